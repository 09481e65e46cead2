"""Trading results: fixed rules tuned on training paths, and leads over them on the same unseen paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.runtime.evaluate import block_bootstrap_error
from foxhunt.runtime.trainer import Trainer

Array = NDArray[Any]

RULES = ("always flat", "buy and hold", "random actions", "moving average", "sees the deviation")
"""The rows of `rule_table`, which are the kinds of kernel `rule_returns`."""
WINDOWS = (8, 12, 16, 24, 32, 48, 64)  # bars
THRESHOLDS = tuple(k / 5 for k in range(1, 13))  # in units of the signal's root mean square
EQUITY = 2  # column of an account


@dataclass(frozen=True)
class Rule:
    """Short above the threshold, long below minus it, unchanged in between.

    The signal is a log price's distance from the mean of the last `window` bars, or a deviation that the
    rule is shown. `earned`: mean net log return of a training path.
    """

    window: int
    threshold: float
    earned: float


@dataclass(frozen=True)
class Lead:
    """A rule on the same paths: its mean net log return a path, the policy's lead, both standard errors."""

    name: str
    mean: float
    error: float
    lead: float
    lead_error: float


def mean_distance(price: Array, window: int) -> Array:
    """Distance of each log price [P, L] from the mean of the last `window` bars; 0 where there are fewer."""
    sums = np.cumsum(np.concatenate([np.zeros((len(price), 1)), price], axis=1), axis=1)
    distance = np.zeros(price.shape)
    distance[:, window - 1 :] = price[:, window - 1 :] - (sums[:, window:] - sums[:, :-window]) / window
    return distance


def rule_returns(price: Array, signal: Array, threshold: float, warm: int, cost: float) -> Array:
    """Net log return [P] of a threshold rule on paths [P, L], traded from bar `warm` on."""
    position, returns = np.zeros(len(price)), np.zeros(len(price))
    for t in range(warm, price.shape[1] - 1):
        now = np.where(signal[:, t] > threshold, -1.0, np.where(signal[:, t] < -threshold, 1.0, position))
        returns += now * (price[:, t + 1] - price[:, t]) - cost * np.abs(now - position)
        position = now
    return returns


def tune_mean_rule(price: Array, warm: int, cost: float) -> Rule:
    """The moving-average threshold rule that earns most on training paths [P, L]."""
    exact = price.astype(np.float64)
    signals = ((w, mean_distance(exact, w)) for w in WINDOWS if w <= warm)
    return _tuned(exact, signals, warm, cost)


def tune_oracle(price: Array, deviation: Array, warm: int, cost: float) -> Rule:
    """The threshold rule on the planted deviation [P, L] that earns most on training paths."""
    return _tuned(price.astype(np.float64), [(1, deviation.astype(np.float64))], warm, cost)


def rule_table(price: Array, deviation: Array, warm: int, cost: float) -> NDArray[np.float32]:
    """What kernel `rule_returns` takes: kind, window and threshold of RULES [5, 3], tuned on these paths."""
    tuned = (tune_mean_rule(price, warm, cost), tune_oracle(price, deviation, warm, cost))
    rows = [(0, 1, 0.0), (1, 1, 0.0), (2, 1, 0.0)]
    rows += [(kind, rule.window, rule.threshold) for kind, rule in enumerate(tuned, len(rows))]
    return np.array(rows, np.float32)


def compare(policy: Array, rules: Mapping[str, Array], block: int = 1) -> tuple[Lead, ...]:
    """The policy's net log returns [P] against each rule's on the same paths, with paired errors.

    `block`: how many neighbouring paths overlap (see `overlap`); errors are then those of a block bootstrap.
    """
    leads = []
    for name, returns in rules.items():
        theirs, paired = returns.astype(np.float64), policy.astype(np.float64) - returns
        error, lead_error = (_error(values, block) for values in (theirs, paired))
        leads.append(Lead(name, float(theirs.mean()), error, float(paired.mean()), lead_error))
    return tuple(leads)


def overlap(starts: Array, bars: int) -> int:
    """How many of the ascending `starts` [P] lie within `bars` bars of the first: 1 if paths share none."""
    return max(int(np.searchsorted(starts, starts[0] + bars)), 1)


def trade_unseen(trainer: Trainer) -> tuple[NDArray[np.float32], dict[str, NDArray[np.float32]]]:
    """Net log returns on the evaluation paths: of the greedy policy [N], and of tuned RULES by name.

    For a program with the steps, buffers and dims of `dqn`'s experience side; a round of step `evaluate`
    is BARS executions, and one that was left unfinished is finished first.
    """
    dims = dict(trainer.plan.dims)
    cost = float(np.asarray(trainer.signals["COST"]))
    price, deviation = (trainer.tensor(name) for name in ("log_price", "deviation"))
    trainer.write_tensor("rules", rule_table(price, deviation, dims["WARM"], cost))
    trainer.run(1, "baselines")
    trainer.sync()
    trainer.run(-trainer.counters()["eval_t"] % dims["BARS"] + dims["BARS"], "evaluate")
    policy = trainer.tensor("eval_account")[:, EQUITY]
    return policy, dict(zip(RULES, trainer.tensor("rule_returns"), strict=True))


def _tuned(price: Array, signals: Iterable[tuple[int, Array]], warm: int, cost: float) -> Rule:
    rules = []
    for window, signal in signals:
        size = float(np.sqrt(np.mean(signal[:, warm:] ** 2)))
        for threshold in THRESHOLDS:
            earned = float(rule_returns(price, signal, size * threshold, warm, cost).mean())
            rules.append(Rule(window, size * threshold, earned))
    return max(rules, key=lambda rule: rule.earned)


def _error(values: NDArray[np.float64], block: int) -> float:
    if block > 1:
        return block_bootstrap_error(values, block)
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")

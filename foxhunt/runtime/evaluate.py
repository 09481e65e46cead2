"""Held-out accuracy against baselines that need no network; its error knows that bars are not independent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.runtime.data import WindowOptions, future_volatility

Classes = NDArray[np.int64]
BLOCK = 63  # bars that are resampled together: one window
DRAWS = 2000


@dataclass(frozen=True)
class Comparison:
    """A baseline on the same windows: its accuracy, the lead over it and the lead's standard error."""

    name: str
    accuracy: float
    lead: float
    error: float
    barred: bool = True  # the network is expected to beat it; False: reported only


@dataclass(frozen=True)
class Result:
    """One head on the held-out windows that have a label."""

    head: str
    windows: int
    accuracy: float
    comparisons: tuple[Comparison, ...]


def regime_labels(arrays: Mapping[str, NDArray[Any]], ends: Classes, options: WindowOptions) -> Classes:
    """Volatility class 0 … K−1 of the bars after each window end [N]: how many edges are not above it."""
    volatility = future_volatility(arrays["log_return"], ends, options.regime_bars)
    return np.searchsorted(arrays["regime_edges"], volatility, side="right").astype(np.int64)


def direction_labels(arrays: Mapping[str, NDArray[Any]], ends: Classes, options: WindowOptions) -> Classes:
    """Sign of the price move over the next `horizon` bars [N]; 0 where there is none."""
    close = arrays["close"]
    signs: Classes = np.sign(close[ends + options.horizon] - close[ends]).astype(np.int64)
    return signs


def regime_result(predicted: Classes, arrays: Mapping[str, NDArray[Any]], options: WindowOptions) -> Result:
    """The regime head's classes for `eval_ends` [N], against three baselines."""
    train, held_out = arrays["train_ends"], arrays["eval_ends"]
    truth = regime_labels(arrays, held_out, options)
    constant = np.full_like(truth, np.bincount(truth, minlength=options.regimes).argmax())
    last = regime_labels(arrays, held_out - options.regime_bars, options)
    by_hour = np.zeros((24, options.regimes), np.int64)
    hours = arrays["hour_of_day"]
    np.add.at(by_hour, (hours[train], regime_labels(arrays, train, options)), 1)
    hourly = by_hour.argmax(axis=1)[hours[held_out]]
    return _result(
        "regime",
        predicted == truth,
        (
            ("best constant class in hindsight", constant == truth, True),
            (f"class of the last {options.regime_bars} bars", last == truth, True),
            ("most frequent training class of the hour", hourly == truth, False),
        ),
    )


def direction_result(
    predicted: Classes, arrays: Mapping[str, NDArray[Any]], options: WindowOptions
) -> Result:
    """The direction head's signs (−1, +1) for `eval_ends` [N], on the windows whose price moves."""
    truth = direction_labels(arrays, arrays["eval_ends"], options)
    train = direction_labels(arrays, arrays["train_ends"], options)
    moves = truth != 0
    majority = 1 if train.sum() >= 0 else -1
    hindsight = 1 if truth.sum() >= 0 else -1
    return _result(
        "direction",
        (predicted == truth)[moves],
        (
            ("most frequent training sign", (truth == majority)[moves], False),
            ("best constant sign in hindsight", (truth == hindsight)[moves], False),
        ),
    )


def _result(head: str, right: NDArray[Any], baselines: tuple[tuple[str, NDArray[Any], bool], ...]) -> Result:
    comparisons = []
    for name, theirs, barred in baselines:
        lead = right.astype(np.float64) - theirs
        error = block_bootstrap_error(lead)
        comparisons.append(Comparison(name, float(theirs.mean()), float(lead.mean()), error, barred))
    return Result(head, len(right), float(right.mean()), tuple(comparisons))


def block_bootstrap_error(values: NDArray[np.float64], block: int = BLOCK, draws: int = DRAWS) -> float:
    """Standard error of the mean of a serially dependent series [N].

    Circular block bootstrap (Politis and Romano 1992): resamples blocks of `block` neighbours; the draws
    are fixed.
    """
    count = len(values)
    if count < 2:
        return float("nan")
    blocks = -(-count // block)
    starts = np.random.Generator(np.random.Philox(0)).integers(0, count, (draws, blocks, 1))
    picked = values[(starts + np.arange(block)) % count].reshape(draws, -1)[:, :count]
    return float(picked.mean(axis=1).std(ddof=1))

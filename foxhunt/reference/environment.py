"""Oracles of the trading environment: episodes, states, actions, rewards, labels, and fixed rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.reference.philox import Words
from foxhunt.reference.registry import Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]
Array = NDArray[Any]

ORDER_SHARES = np.array([1.0, 0.5, 0.0])  # market, half, none
URGENCY_SHARES = np.array([1.0, 0.5, 0.25])


@reference("env_reset")
def env_reset(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """A random path and first bar where an episode has ended; the rest stays."""
    ended, b = inputs["ended"] != 0, np.arange(dims["B"])
    path = inputs["rng"].below(b, 0, dims["P"])
    row = path * dims["L"] + dims["WARM"] + inputs["rng"].below(b, 1, dims["L"] - 1 - dims["WARM"])
    last = np.minimum(path * dims["L"] + dims["L"] - 1, row + dims["BARS"])
    fresh = np.stack([row, last, np.zeros_like(row)], axis=1)
    return _started(inputs, ended, fresh)


@reference("eval_reset")
def eval_reset(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Environment b at bar WARM of path b when t − 1 is a multiple of BARS."""
    row = np.arange(dims["B"]) % dims["P"] * dims["L"] + dims["WARM"]
    fresh = np.stack([row, row + dims["BARS"], np.zeros_like(row)], axis=1)
    starts = np.full(dims["B"], (inputs["t"] - 1) % dims["BARS"] == 0)
    return _started(inputs, starts, fresh)


def _started(inputs: Inputs, starts: Array, fresh: Array) -> Outputs:
    return {
        "index": np.where(starts[:, None], fresh, inputs["index"]),
        "account": np.where(starts[:, None], 0.0, inputs["account"]),
        "ended": np.where(starts, 0, inputs["ended"]),
    }


@reference("env_observe")
def env_observe(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Market features of the bar, then the account's."""
    row, last, since = inputs["index"].T
    position, profit, equity, peak, net = inputs["account"].astype(np.float64).T
    account = [
        position,
        consts["PROFIT_SCALE"] * profit,
        since / (since + consts["RECENT_BARS"]),
        (last - row) / dims["BARS"],
        consts["EQUITY_SCALE"] * equity,
        consts["EQUITY_SCALE"] * (peak - equity),
        np.abs(position),
        consts["PROFIT_SCALE"] * net,
    ]
    own = np.stack(account[: dims["S"] - dims["M"]], axis=1)
    x = np.concatenate([inputs["market"][row], own], axis=1)
    return {"x": np.clip(x, -consts["CLIP"], consts["CLIP"])}


@reference("env_act")
def env_act(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Per branch, a uniform action with probability epsilon, else the lowest of greatest Q."""
    b = np.arange(dims["B"])
    coins, words = inputs["rng"].bits(b, 0), inputs["rng"].bits(b, 1)
    chosen = []
    for name, coin, word in zip(("q_dir", "q_mag", "q_ord", "q_urg"), coins, words, strict=True):
        q = inputs[name].astype(np.float64)
        best = np.argmax(np.where(np.isnan(q), -np.inf, q), axis=1)
        explores = (coin >> np.uint64(8)) * 2.0**-24 < np.float32(inputs["epsilon"])
        chosen.append(np.where(explores, any_action(word), best))
    return {"action": np.stack(chosen, axis=1)}


def any_action(word: Words) -> NDArray[np.int64]:
    """The uniform action 0 … 2 of a word."""
    return (word * np.uint64(3) >> np.uint64(32)).astype(np.int64)


def position_after(old: Array, action: Array) -> Array:
    """The position after an action [B, 4]: old + f (target − old)."""
    direction, magnitude, order, urgency = action.T
    target = (direction - 1) * (magnitude + 1) / 3
    position: Array = old + ORDER_SHARES[order] * URGENCY_SHARES[urgency] * (target - old)
    return position


@reference("env_step")
def env_step(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Position, account, reward and its components after one bar; how episodes end."""
    price = inputs["price"].astype(np.float64).ravel()
    row, last, since = inputs["index"].T
    old, open_profit, equity, peak, _ = inputs["account"].astype(np.float64).T
    now = position_after(old, inputs["action"])
    turnover = np.abs(now - old)
    inside = row < last
    pnl = np.where(inside, now * (price[np.minimum(row + 1, len(price) - 1)] - price[row]), 0.0)
    paid = -inputs["cost"] * turnover
    next_equity = equity + pnl + paid
    next_peak = np.maximum(peak, next_equity)
    deeper = np.maximum((next_peak - next_equity) - (peak - equity), 0.0)
    zero = np.zeros_like(pnl)
    components = [
        pnl,
        paid,
        zero,
        -consts["DRAWDOWN_WEIGHT"] * deeper,
        -consts["HOLDING_COST"] * np.abs(now),
        zero,
    ]
    rewards6 = inputs["scale"] * np.stack(components, axis=1)
    kept = np.where(np.sign(now) == np.sign(old), open_profit, 0.0)
    terminated = next_equity <= -inputs["loss_limit"]
    return {
        "reward": rewards6.sum(axis=1),
        "rewards6": rewards6,
        "terminated": terminated.astype(np.float64),
        "ended": terminated + 2 * (row + 1 >= last),
        "index": np.stack(
            [np.where(inside, row + 1, row), last, np.where(turnover > 0, 0, since + 1)], axis=1
        ),
        "account": np.stack([now, kept + pnl, next_equity, next_peak, pnl + paid], axis=1),
    }


@reference("env_labels")
def env_labels(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Sign of the move over HORIZON bars, class of the next AHEAD bars' volatility.

    All is rounded to f32 step by step as in the kernel: a class has no tolerance.
    """
    price = inputs["price"].astype(np.float32).ravel()
    row = inputs["index"][:, 0]
    bar, before = row % dims["L"], int(consts["BEFORE"])
    moves = bar + dims["HORIZON"] < dims["L"]
    ahead = price[np.where(moves, row + dims["HORIZON"], row)] - price[row]
    known = (bar >= before) & (bar + dims["AHEAD"] < dims["L"])
    safe = np.where(known, row, before)
    future = _volatility(price, safe + dims["AHEAD"], dims["AHEAD"])
    past = _volatility(price, safe, before)
    edges = [np.float32(consts[f"EDGE{k}"]) for k in (1, 2, 3, 4)]
    regime = sum((future >= edge * past).astype(np.int32) for edge in edges)
    return {"dir_label": np.sign(ahead).astype(np.int32), "reg_label": np.where(known, regime, -1)}


def _volatility(price: NDArray[np.float32], row: Array, bars: int) -> NDArray[np.float32]:
    squares = np.zeros(len(row), np.float32)
    for k in range(bars):
        change = price[row - bars + k + 1] - price[row - bars + k]
        squares += change * change
    result: NDArray[np.float32] = np.sqrt(squares / np.float32(bars))
    return result


@reference("rule_returns")
def rule_returns(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Net log return of each rule on each path, [R, P]."""
    price, deviation = (inputs[k].astype(np.float64) for k in ("price", "deviation"))
    paths = np.arange(dims["P"])
    returns = np.zeros((dims["R"], dims["P"]))
    for r, (kind, window, threshold) in enumerate(inputs["rules"].astype(np.float64)):
        bars = int(np.clip(window, 1, dims["WARM"]))
        position = np.zeros(dims["P"])
        for t in range(dims["WARM"], dims["L"] - 1):
            signal = np.zeros(dims["P"])
            if kind == consts["MEAN_RULE"]:
                signal = price[:, t] - price[:, t - bars + 1 : t + 1].mean(axis=1)
            if kind == consts["ORACLE"]:
                signal = deviation[:, t]
            old = position
            if kind == consts["BUY_AND_HOLD"]:
                position = np.ones(dims["P"])
            if kind == consts["RANDOM"]:
                words = inputs["rng"].bits(r * dims["P"] + paths, t)
                position = position_after(old, np.stack([any_action(w) for w in words], axis=1))
            position = np.where(signal > threshold, -1.0, np.where(signal < -threshold, 1.0, position))
            returns[r] += position * (price[:, t + 1] - price[:, t])
            returns[r] -= np.float32(inputs["cost"]) * np.abs(position - old)
    return {"returns": returns}

"""Oracles of the kernels that draw, gather and label windows of bars."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.registry import Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


@reference("draw_windows")
def draw_windows(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`window[b] = ends[uniform integer below N]`."""
    return {"window": inputs["ends"][inputs["rng"].below(np.arange(dims["B"]), 0, dims["N"])]}


@reference("eval_windows")
def eval_windows(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Batch t − 1 modulo the number of batches; position −1 and the last window past the end."""
    batches = -(-dims["N"] // dims["B"])
    position = (inputs["t"] - 1) % batches * dims["B"] + np.arange(dims["B"])
    inside = position < dims["N"]
    window = inputs["ends"][np.where(inside, position, dims["N"] - 1)]
    return {"position": np.where(inside, position, -1), "window": window}


@reference("gather_windows")
def gather_windows(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """BARS rows of features ending at the window's bar, then that bar's hour."""
    end = np.clip(inputs["window"], dims["BARS"] - 1, dims["T"] - 1)
    bars = inputs["features"][end[:, None] + np.arange(1 - dims["BARS"], 1)]
    return {"enc": np.concatenate([bars.reshape(len(end), -1), inputs["hour"][end]], axis=1)}


@reference("direction_label")
def direction_label(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Sign of the move over HORIZON bars; 0 where it leaves the table."""
    t, close = inputs["window"], inputs["close"].astype(np.float64)
    inside = (t >= 0) & (t + dims["HORIZON"] < dims["T"])
    safe = np.where(inside, t, 0)
    move = close[np.minimum(safe + dims["HORIZON"], dims["T"] - 1)] - close[safe]
    return {"label": np.where(inside, np.sign(move), 0).astype(np.int32)}


@reference("regime_label")
def regime_label(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """How many edges the realised volatility of the next AHEAD bars has reached; −1 outside the table.

    The volatility is rounded to f32 step by step in the order of the bars: a class has no tolerance.
    """
    t, returns = inputs["window"], inputs["log_return"]
    inside = (t >= 0) & (t + dims["AHEAD"] < dims["T"])
    safe = np.where(inside, t, 0)
    squares = np.zeros(len(t), np.float32)
    for k in range(1, dims["AHEAD"] + 1):
        ahead = returns[np.minimum(safe + k, dims["T"] - 1)].astype(np.float32)
        squares += ahead * ahead
    reached = np.sum(inputs["edges"][None, :] <= np.sqrt(squares)[:, None], axis=1)
    return {"label": np.where(inside, reached, -1).astype(np.int32)}


@reference("scatter_rows")
def scatter_rows(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`y[r][position[b]] = x[r][b]`; positions outside a row are left out."""
    position = inputs["position"]
    result = [np.array(y) for y in inputs["y"]]
    for x, y in zip(inputs["x"], result, strict=True):
        used = (position >= 0) & (position < len(y))
        y[position[used]] = x[: len(position)][used]
    return {"y": result}

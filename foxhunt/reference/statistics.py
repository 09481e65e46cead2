"""Oracles of the statistics: over the finite elements of the union of rows, in float64."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.registry import SKIP, Array, Inputs, Outputs, reference, rows

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


def _finite(inputs: Inputs) -> Array:
    values: Array = np.concatenate([*rows(inputs["x"]), np.zeros(0)])
    finite: Array = values[np.isfinite(values)]
    return finite


@reference("p99_abs")
def p99_abs(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Upper edge of the first of 256 bins on [0, max], from the top, that reaches more than 1 % of all.

    The bin of an element is defined by the f32 quotient: the answer is one number and not a tolerance.
    """
    values = np.abs(_finite(inputs))
    top = values.max(initial=0.0)
    if top == 0.0:
        return {"y": np.zeros(1)}
    quotients = values.astype(np.float32) / np.float32(top)
    bins = np.minimum(255, np.floor(quotients * np.float32(256)).astype(np.int64))
    above = np.cumsum(np.bincount(bins, minlength=256)[::-1])
    found = 255 - int(np.argmax(above * 100 > len(values)))
    return {"y": np.array([top * (found + 1) / 256])}


@reference("rms")
def rms(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Root mean square; 0 without a finite element."""
    values = _finite(inputs)
    return {"y": np.array([np.sqrt(np.mean(values**2)) if len(values) else 0.0])}


@reference("l2_norm")
def l2_norm(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Euclidean norm; +inf where it passes the largest f32."""
    with np.errstate(over="ignore"):
        return {"y": np.array([np.sqrt(np.sum(_finite(inputs) ** 2))]).astype(np.float32)}


@reference("max_abs")
def max_abs(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Largest magnitude; 0 without a finite element."""
    return {"y": np.array([np.abs(_finite(inputs)).max(initial=0.0)])}


@reference("mean")
def mean(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Mean; the skip value without a finite element."""
    values = _finite(inputs)
    return {"y": np.array([values.mean()]) if len(values) else np.array([SKIP])}


@reference("variance")
def variance(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Variance about the mean; the skip value without a finite element."""
    values = _finite(inputs)
    if not len(values):
        return {"y": np.array([SKIP])}
    shifted = values - values[0]  # so that equal elements give exactly 0
    with np.errstate(over="ignore"):
        return {"y": np.array([np.mean((shifted - shifted.mean()) ** 2)]).astype(np.float32)}


@reference("masked_mean")
def masked_mean(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Mean of the finite elements with a mask other than 0; the skip value without one."""
    values = np.asarray(inputs["x"], np.float64)
    counted = values[np.isfinite(values) & (inputs["mask"] != 0)]
    return {"y": np.array([counted.mean()]) if len(counted) else np.array([SKIP])}


@reference("count_nonzero")
def count_nonzero(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Elements that are not 0."""
    return {"y": np.array([np.count_nonzero(inputs["x"])], np.int64)}


@reference("count_nonfinite")
def count_nonfinite(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Elements that are NaN or infinite."""
    return {"y": np.array([sum(int((~np.isfinite(r)).sum()) for r in rows(inputs["x"]))], np.float64)}


def _finite_pairs(inputs: Inputs) -> tuple[Array, Array]:
    """w and g of all rows, where both are finite."""
    w, g = (np.concatenate([*rows(inputs[k]), np.zeros(0)]) for k in "wg")
    finite = np.isfinite(w) & np.isfinite(g)
    return w[finite], g[finite]


@reference("decay_rate")
def decay_rate(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`|Σ w g| / max(Σ w², FLOOR)`."""
    w, g = _finite_pairs(inputs)
    return {"y": np.array([abs(w @ g) / max(w @ w, consts["FLOOR"])])}


@reference("l1_lambda")
def l1_lambda(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Entropy deficit of the gradient's direction × mean |g| / mean |w|."""
    w, g = (np.abs(x) for x in _finite_pairs(inputs))
    total = g.sum()
    if len(g) < 2 or total == 0:
        return {"y": np.zeros(1)}
    positive = g[g > 0]
    entropy = np.log(total) - (positive * np.log(positive)).sum() / total
    deficit = 1 - entropy / np.log(len(g))
    return {"y": np.array([deficit * g.mean() / max(w.mean(), consts["FLOOR"])])}


@reference("column_mean_abs")
def column_mean_abs(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Mean magnitude of one column; 0 without a finite element."""
    column = np.asarray(inputs["x"], np.float64)[:, dims["COLUMN"]]
    finite = np.abs(column[np.isfinite(column)])
    return {"y": np.array([finite.mean() if len(finite) else 0.0])}


@reference("iqn_quantiles")
def iqn_quantiles(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Mean of one off-median quantile over batch and choices; the skip value without a finite element."""
    tau = [t for t in range(dims["T"]) if t != dims["T"] // 2][dims["QUANTILE"]]
    values = np.asarray(inputs["x"], np.float64)[tau :: dims["T"]]
    finite = values[np.isfinite(values)]
    return {"y": np.array([finite.mean()]) if len(finite) else np.array([SKIP])}

"""Oracles of fully connected layers and of their backward."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.registry import Array, Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


def _float64(inputs: Inputs) -> dict[str, Array]:
    return {name: np.asarray(value, np.float64) for name, value in inputs.items()}


def elu(x: Array) -> Array:
    """x above 0, exp(x) − 1 below (alpha 1)."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def elu_slope(y: Array) -> Array:
    """The derivative of ELU where it gave y."""
    return np.where(y > 0, 1.0, 1.0 + y)


@reference("linear")
def linear(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`y = x w + b`."""
    p = _float64(inputs)
    return {"y": p["x"] @ p["w"] + p["b"]}


@reference("linear_elu")
def linear_elu(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`y = elu(x w + b)`."""
    p = _float64(inputs)
    return {"y": elu(p["x"] @ p["w"] + p["b"])}


@reference("bwd_dh_pre")
def bwd_dh_pre(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`dh2_pre = (dh3 w3ᵀ) elu'(h2)`, `dh1_pre = (dh2_pre w2ᵀ) elu'(h1)`."""
    p = _float64(inputs)
    dh2_pre = (p["dh3"] @ p["w3"].T) * elu_slope(p["h2"])
    return {"dh2_pre": dh2_pre, "dh1_pre": (dh2_pre @ p["w2"].T) * elu_slope(p["h1"])}


@reference("bwd_dW_reduce")
def bwd_dw_reduce(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`dw = aᵀ d`."""
    p = _float64(inputs)
    return {"dw": p["a"].T @ p["d"]}


@reference("bwd_db_reduce")
def bwd_db_reduce(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`db = Σ_b d`."""
    return {"db": np.asarray(inputs["d"], np.float64).sum(axis=0)}


@reference("linear_dx")
def linear_dx(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`dx = dy wᵀ`, to which `add` [B, K] is added, all times elu'(y), where the kernel has `add` or `y`."""
    p = _float64(inputs)
    dx = p["dy"] @ p["w"].T
    if "add" in p:
        dx = p["add"] + dx
    return {"dx": dx * elu_slope(p["y"]) if "y" in p else dx}


@reference("bounded_elu_grad")
def bounded_elu_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`dx = dy elu'(y)` where |y| is at most the limit, else 0; a NaN in y stays NaN."""
    y, dy = np.asarray(inputs["y"], np.float64), np.asarray(inputs["dy"], np.float64)
    return {"dx": np.where(np.abs(y) > float(inputs["limit"]), 0.0, dy * elu_slope(y))}

"""Oracles of what changes weights and running averages (math §5)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.registry import Inputs, Outputs, reference, rows

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


@reference("beta_correction")
def beta_correction(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """The running 1 − β^t of both moments, from 0 at t = 1."""
    old = np.zeros(2) if inputs["t"] <= 1 else np.asarray(inputs["correction"], np.float64)
    complement = np.array([consts["ONE_MINUS_BETA1"], consts["ONE_MINUS_BETA2"]], np.float64)
    return {"correction": old + complement * (1 - old)}


@reference("adamw")
def adamw(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """AdamW with decoupled decay, L1 and a clip of the global norm; a non-finite gradient changes nothing."""
    norm, clip = float(np.ravel(inputs["norm"])[0]), float(inputs["clip"])
    scale = clip / norm if norm > clip else 1.0
    lr, wd, l1 = (float(inputs[k]) for k in ("lr", "wd", "l1"))
    c1, c2 = np.asarray(inputs["correction"], np.float64)
    result: Outputs = {"w": [], "m": [], "v": []}
    for w, g, m, v in zip(*(rows(inputs[k]) for k in "wgmv"), strict=True):
        finite = np.isfinite(g)
        limit = consts["GRADIENT_LIMIT"]
        scaled = np.clip(np.where(finite, g, 0.0) * scale, -limit, limit)
        m_new = consts["BETA1"] * m + consts["ONE_MINUS_BETA1"] * scaled
        v_new = consts["BETA2"] * v + consts["ONE_MINUS_BETA2"] * scaled**2
        step = m_new / c1 / (np.sqrt(v_new / c2) + consts["EPSILON"])
        w_new = w - lr * (step + wd * w + l1 * np.sign(w))
        for key, new, old in (("w", w_new, w), ("m", m_new, m), ("v", v_new, v)):
            result[key].append(np.where(finite, new, old))
    return result


@reference("clamp_abs")
def clamp_abs(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Every row within ± the limit, which is +inf while unobserved."""
    limit = float(inputs["limit"])
    return {"w": [np.clip(w, -limit, limit) for w in rows(inputs["w"])]}


@reference("ema")
def ema(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`KEEP s + TAKE x` where x is finite."""
    x, s = (np.asarray(inputs[k], np.float64) for k in "xs")
    finite = np.isfinite(x)
    return {"s": np.where(finite, consts["KEEP"] * s + consts["TAKE"] * np.where(finite, x, 0.0), s)}


@reference("clamp_group")
def clamp_group(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Weights and moments within their limits, and the share of weights that were clamped."""
    result: Outputs = {
        key: [
            np.clip(row, -float(inputs[f"{key}_limit"]), float(inputs[f"{key}_limit"]))
            for row in rows(inputs[key])
        ]
        for key in "wmv"
    }
    limit = float(inputs["w_limit"])
    rate = sum(int((np.abs(row) > limit).sum()) for row in rows(inputs["w"])) / dims["n"]
    return result | {
        "rate": np.array([rate]),
        "rate_deficit": np.array([max(0.0, rate - consts["EXPECTED"])]),
    }


@reference("polyak")
def polyak(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`target + tau (online − target)`."""
    pairs = zip(rows(inputs["target"]), rows(inputs["online"]), strict=True)
    return {"target": [target + float(inputs["tau"]) * (online - target) for target, online in pairs]}


@reference("zero")
def zero(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Zeros."""
    return {"y": [np.zeros(len(row)) for row in rows(inputs["y"])]}

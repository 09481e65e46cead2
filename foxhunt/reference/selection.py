"""Oracles of variable selection over feature groups, of attention among them, and of sums and shares.

A row of e, emb and qkv is one group of one sample: `b * GROUPS + g`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.linear import elu, elu_slope
from foxhunt.reference.registry import SKIP, Array, Inputs, Outputs, reference, rows

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


def _float64(inputs: Inputs) -> dict[str, Array]:
    return {name: np.asarray(value, np.float64) for name, value in inputs.items()}


def softmax(x: Array) -> Array:
    """Softmax over the last axis; NaN where the greatest element is not finite."""
    with np.errstate(invalid="ignore"):
        powers = np.exp(x - x.max(axis=-1, keepdims=True))
    result: Array = powers / powers.sum(axis=-1, keepdims=True)
    return result


def softmax_slope(y: Array, dy: Array) -> Array:
    """The gradient of a softmax's input where it gave y, over the last axis."""
    slope: Array = y * (dy - (y * dy).sum(axis=-1, keepdims=True))
    return slope


@reference("softmax_rows")
def softmax_rows(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`y = softmax(x)` of each row."""
    return {"y": softmax(np.asarray(inputs["x"], np.float64))}


@reference("softmax_rows_grad")
def softmax_rows_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`dx = y (dy − Σ y dy)` of each row."""
    p = _float64(inputs)
    return {"dx": softmax_slope(p["y"], p["dy"])}


@reference("group_embed")
def group_embed(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`e = elu(x_g w_g + b_g)` of each group."""
    p = _float64(inputs)
    groups, features, width = p["w"].shape
    x = p["x"].reshape(-1, groups, features)
    e = elu(np.einsum("bgf,gfj->bgj", x, p["w"]) + p["b"])
    return {"e": e.reshape(-1, width)}


@reference("group_embed_grad")
def group_embed_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`dw_g = x_gᵀ d_g`, `db_g = Σ_b d_g`."""
    p = _float64(inputs)
    groups = dims["GROUPS"]
    d = p["d"].reshape(-1, groups, p["d"].shape[1])
    x = p["x"].reshape(len(d), groups, -1)
    return {"dw": np.einsum("bgf,bgj->gfj", x, d), "db": d.sum(axis=0)}


@reference("vsn_mix")
def vsn_mix(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`emb = GROUPS mask e`: under an even mask every row of e as it is."""
    p = _float64(inputs)
    return {"emb": dims["GROUPS"] * p["mask"].reshape(-1, 1) * p["e"]}


@reference("vsn_mix_grad")
def vsn_mix_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`d_e = GROUPS d_emb mask elu'(e)`; `d_logits` through the mask's softmax."""
    p = _float64(inputs)
    d = dims["GROUPS"] * p["d_emb"]
    slope = (d * p["e"]).sum(axis=1).reshape(p["mask"].shape)
    d_e = d * p["mask"].reshape(-1, 1) * elu_slope(p["e"])
    return {"d_e": d_e, "d_logits": softmax_slope(p["mask"], slope)}


def _heads(qkv: Array, groups: int) -> tuple[Array, Array, Array]:
    """q, k and v, each [B, GROUPS, EMB]."""
    q, k, v = np.split(qkv.reshape(-1, groups, qkv.shape[1]), 3, axis=2)
    return q, k, v


@reference("attention")
def attention(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`att = softmax(q kᵀ / √EMB)`, `flat = emb + att v`."""
    p = _float64(inputs)
    q, k, v = _heads(p["qkv"], dims["GROUPS"])
    att = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2]))
    flat = p["emb"].reshape(v.shape) + att @ v
    return {"att": att.reshape(len(q), -1), "flat": flat.reshape(len(q), -1)}


@reference("attention_grad")
def attention_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`d_qkv` of q, k and v side by side; `d_emb` of the residual."""
    p = _float64(inputs)
    q, k, v = _heads(p["qkv"], dims["GROUPS"])
    d, att = p["d_flat"].reshape(v.shape), p["att"].reshape(len(q), dims["GROUPS"], -1)
    slopes = softmax_slope(att, d @ v.transpose(0, 2, 1)) / np.sqrt(q.shape[2])
    parts = (slopes @ k, slopes.transpose(0, 2, 1) @ q, att.transpose(0, 2, 1) @ d)
    width = q.shape[2]
    return {"d_qkv": np.concatenate(parts, axis=2).reshape(-1, 3 * width), "d_emb": d.reshape(-1, width)}


@reference("add_many")
def add_many(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`y = Σ_r xs[r]`, a short row counting as zeros behind its end."""
    y = np.zeros(dims["m"])
    for row in rows(inputs["xs"]):
        y[: len(row)] += row
    return {"y": y}


@reference("sanitise")
def sanitise(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Every row within ± the limit, which is +inf while unobserved; NaN stays NaN."""
    limit = float(inputs["limit"])
    return {"y": [np.clip(x, -limit, limit) for x in rows(inputs["x"])]}


@reference("limit_size")
def limit_size(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """The rows of x, all scaled by one factor that brings their `size` down to the limit."""
    limit, size = float(inputs["limit"]), float(np.asarray(inputs["size"])[0])
    scale = limit / size if size > limit else 1.0
    return {"y": [row * scale for row in rows(inputs["x"])]}


@reference("column_mean")
def column_mean(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Mean of the finite elements of each column; the skip value without one."""
    x = np.asarray(inputs["x"], np.float64)
    finite = np.isfinite(x)
    count = finite.sum(axis=0)
    mean = np.where(finite, x, 0.0).sum(axis=0) / np.maximum(count, 1)
    return {"y": np.where(count > 0, mean, SKIP)}


@reference("gate_entropy")
def gate_entropy(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`y = −Σ p ln p`, with 0 ln 0 = 0."""
    p = np.asarray(inputs["p"], np.float64)
    return {"y": np.array([-np.sum(p * np.log(np.where(p == 0, 1.0, p)))])}

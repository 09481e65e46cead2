"""Oracles of a mixture of experts: the mixture, its slopes with the load-balance loss, that loss's weight."""

from __future__ import annotations

from collections.abc import Mapping
from math import log

import numpy as np

from foxhunt.reference.linear import elu_slope
from foxhunt.reference.registry import Array, Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


def _experts(y: Array, dims: Dims) -> Array:
    return np.asarray(y, np.float64).reshape(-1, dims["E"], dims["M"])


@reference("moe_mix")
def moe_mix(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`z[b, m] = Σ_e gate[b, e] y[b, e, m]`."""
    gate = np.asarray(inputs["gate"], np.float64)
    return {"z": np.einsum("be,bem->bm", gate, _experts(inputs["y"], dims))}


@reference("moe_mix_grad")
def moe_mix_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Slopes of the gate's logits and of the experts before their ELUs, load balance included."""
    gate, dz, util = (np.asarray(inputs[k], np.float64) for k in ("gate", "dz", "util"))
    y = _experts(inputs["y"], dims)
    balance = 2 * float(inputs["weight"]) * dims["E"] / len(gate)
    slope = np.einsum("bm,bem->be", dz, y) + balance * util
    d_y = gate[:, :, None] * dz[:, None, :] * elu_slope(y)
    return {
        "d_gate": gate * (slope - (gate * slope).sum(axis=1, keepdims=True)),
        "d_y": d_y.reshape(len(gate), -1),
    }


@reference("moe_lambda_eff_update")
def moe_lambda_eff_update(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`base (1 + BOOST clamp(1 − entropy / ln E, 0, 1))`; an entropy of +inf is one never observed."""
    experts = dims["E"]
    deficit = np.clip(1 - float(inputs["entropy"]) / log(experts), 0, 1) if experts > 1 else 0.0
    return {"lambda_eff": np.array([float(inputs["base"]) * (1 + consts["BOOST"] * deficit)])}

"""Oracles of the expectile value nets and of the curiosity forward model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.registry import Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


@reference("expectile_loss")
def expectile_loss(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`loss = |e − [u < 0]| u²` of `u = mean target − v`, and its slope."""
    v, target = (np.asarray(inputs[k], np.float64) for k in ("v", "target"))
    e, weight = float(inputs["expectile"]), float(inputs["weight"])
    u = target.mean(axis=1) - v[:, 0]
    pull = np.where(u < 0, 1 - e, e) * u
    return {"loss": pull * u, "dv": (-2 * weight / len(v) * pull)[:, None]}


@reference("curiosity_input")
def curiosity_input(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """The state and the one-hot actions of all branches, side by side."""
    x, action = np.asarray(inputs["x"], np.float64), np.asarray(inputs["action"])
    onehot = (np.arange(dims["A"]) == action[:, :, None]).astype(np.float64)
    return {"y": np.concatenate([x, onehot.reshape(len(x), -1)], axis=1)}


@reference("mse_rows")
def mse_rows(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Mean squared error a row, and its slope."""
    pred, target = (np.asarray(inputs[k], np.float64) for k in ("pred", "target"))
    error = pred - target
    scale = 2 * float(inputs["weight"]) / error.size
    return {"loss": (error**2).mean(axis=1), "d_pred": scale * error}

"""Oracles of the implicit-quantile head: cosine features, mixing, targets and the quantile Huber loss."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.linear import elu_slope
from foxhunt.reference.registry import Array, Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


def fractions(count: int) -> Array:
    """The midpoints (t + ½) / T of T equal parts of (0, 1)."""
    midpoints: Array = (np.arange(count) + 0.5) / count
    return midpoints


@reference("iqn_cosines")
def iqn_cosines(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`y[t, k] = cos(π k τ_t)`."""
    return {"y": np.cos(np.pi * np.arange(dims["K"]) * fractions(dims["T"])[:, None])}


@reference("iqn_mix")
def iqn_mix(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`psi[b T + t] = z[b] phi[t]`."""
    z, phi = (np.asarray(inputs[k], np.float64) for k in ("z", "phi"))
    return {"psi": (z[:, None] * phi[None]).reshape(-1, z.shape[1])}


@reference("iqn_mix_grad")
def iqn_mix_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`dz = Σ_t d_psi phi` and `d_phi_pre = elu'(phi) Σ_b d_psi z`."""
    z, phi, d_psi = (np.asarray(inputs[k], np.float64) for k in ("z", "phi", "d_psi"))
    d = d_psi.reshape(len(z), len(phi), -1)
    return {"dz": (d * phi).sum(axis=1), "d_phi_pre": (d * z[:, None]).sum(axis=0) * elu_slope(phi)}


@reference("iqn_target")
def iqn_target(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`tq = r + γ (1 − terminated) theta[a*]` for each branch, and its mean over taus."""
    taus, actions, branches = dims["T"], dims["A"], dims["K"]
    reward, terminated = (np.asarray(inputs[k], np.float64) for k in ("reward", "terminated"))
    theta = np.asarray(inputs["theta"], np.float64).reshape(len(reward), taus, branches, actions)
    discount = float(inputs["gamma"]) * (1 - terminated)
    best = np.stack([np.argmax(q, axis=1) for q in inputs["q"]], axis=1)
    chosen = np.take_along_axis(theta, best[:, None, :, None], axis=3)[..., 0]
    targets = reward[:, None, None] + discount[:, None, None] * chosen
    return {"tq": targets.reshape(-1, branches), "tiqn": targets.mean(axis=1)}


@reference("iqn_loss")
def iqn_loss(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Quantile Huber loss of the actions taken, and its slope."""
    taus, actions, branches, kappa = dims["T"], dims["A"], dims["K"], consts["KAPPA"]
    action = np.asarray(inputs["action"])
    count = len(action)
    quant = np.asarray(inputs["quant"], np.float64).reshape(count, taus, branches, actions)
    targets = np.asarray(inputs["tq"], np.float64).reshape(count, taus, branches)
    taken = np.arange(actions) == action[:, :, None]
    delta = targets[:, None, :, :, None] - quant[:, :, None]  # [B, i, j, branch, action]
    tau = fractions(taus)[None, :, None, None, None]
    asymmetry = np.where(delta < 0, 1 - tau, tau)
    size = np.abs(delta)
    huber = np.where(size <= kappa, delta**2 / 2, kappa * (size - kappa / 2))
    loss = (asymmetry * huber * taken[:, None, None]).sum(axis=(1, 2, 3, 4)) / (taus * kappa)
    slope = -(asymmetry * np.clip(delta, -kappa, kappa)).sum(axis=2) * taken[:, None] / (taus * kappa)
    d_quant = slope * float(inputs["weight"]) / count
    return {"loss": loss, "d_quant": d_quant.reshape(count * taus, -1)}

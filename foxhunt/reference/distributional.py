"""Oracles of a dueling categorical head: movable atoms, distributions, targets, losses, slopes (math §6)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.registry import Array, Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


def _by_action(x: Array, dims: Dims) -> Array:
    """[B, A·N] as float64 [B, A, N]."""
    return np.asarray(x, np.float64).reshape(len(x), -1, dims["N"])


def _float64(inputs: Inputs, *names: str) -> tuple[Array, ...]:
    return tuple(np.asarray(inputs[name], np.float64) for name in names)


def _taken(inputs: Inputs, dims: Dims) -> tuple[Array, Array]:
    """The branch's action of each sample, 0 where there is no such action, and whether there is."""
    action = np.asarray(inputs["action"])[:, dims["BRANCH"]]
    inside = (action >= 0) & (action < inputs["logp"].shape[1] // dims["N"])
    return np.where(inside, action, 0), inside


@reference("atom_positions")
def atom_positions(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`z_0 = −c`, gaps `2c softmax(θ)`; c is the bound, 1 while unobserved."""
    theta, bound = np.asarray(inputs["theta"], np.float64), float(inputs["bound"])
    c = bound if np.isfinite(bound) else 1.0
    with np.errstate(invalid="ignore"):
        powers = np.exp(theta - theta.max(axis=1, keepdims=True))
    below = np.concatenate([np.zeros((len(theta), 1)), np.cumsum(powers, axis=1)], axis=1)
    return {"atoms": -c + 2 * c * below / below[:, -1:]}


@reference("atom_grad")
def atom_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """The slope in θ of `weight mean((Σ_i p_i z_i − target)²)` at fixed p."""
    q, target, atoms = _float64(inputs, "q", "target", "atoms")
    action, inside = _taken(inputs, dims)
    rows = np.arange(len(action))
    with np.errstate(invalid="ignore"):
        error = q[rows, action] - target[:, dims["BRANCH"]]
    error = np.where(inside & np.isfinite(error), error, 0.0)
    p = np.exp(_by_action(inputs["logp"], dims)[rows, action])
    slopes = 2 * float(inputs["weight"]) / len(rows) * (error @ p)
    above = np.cumsum(slopes[:0:-1])[::-1]  # a gap moves every atom above it
    gaps = np.diff(atoms)
    mean = gaps @ above / gaps.sum() if gaps.sum() > 0 else 0.0
    return {"d_theta": gaps * (above - mean)}


@reference("dueling")
def dueling(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Log-softmax over atoms of value + adv − mean of adv, and its mean position."""
    value, atoms = _float64(inputs, "value", "atoms")
    adv = _by_action(inputs["adv"], dims)
    with np.errstate(invalid="ignore"):
        joint = value[:, None] + adv - adv.mean(axis=1, keepdims=True)
        shifted = joint - joint.max(axis=2, keepdims=True)
        logp = shifted - np.log(np.exp(shifted).sum(axis=2, keepdims=True))
    return {"logp": logp.reshape(len(logp), -1), "q": np.exp(logp) @ atoms}


@reference("dueling_grad")
def dueling_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`d − mean over actions of d`."""
    d = _by_action(inputs["d"], dims)
    return {"d_adv": (d - d.mean(axis=1, keepdims=True)).reshape(len(d), -1)}


@reference("c51_value_grad")
def c51_value_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """The sum of d over branches and actions."""
    return {"d_value": np.sum([_by_action(d, dims).sum(axis=1) for d in inputs["d"]], axis=0)}


@reference("c51_loss")
def c51_loss(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Cross-entropy of the taken action against m, and the slopes of its weighted mean."""
    logp, m = _by_action(inputs["logp"], dims), np.asarray(inputs["m"], np.float64)
    action, inside = _taken(inputs, dims)
    rows = np.arange(len(action))
    own = logp[rows, action]
    with np.errstate(invalid="ignore"):
        loss = -np.where(m == 0, 0.0, m * own).sum(axis=1)
    known = inside & np.isfinite(loss)
    slope = (np.exp(own) - m) * float(inputs["weight"]) / len(rows)
    d_joint = np.zeros_like(logp)
    d_joint[rows, action] = np.where(known[:, None], slope, 0.0)
    return {"loss": np.where(known, loss, np.nan), "d_joint": d_joint.reshape(len(rows), -1)}


@reference("c51_target")
def c51_target(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """The chosen action's distribution, moved by the Bellman operator and projected on the support."""
    q, reward, terminated, atoms = _float64(inputs, "q", "reward", "terminated", "atoms")
    limit, last = float(inputs["limit"]), dims["N"] - 1
    rows = np.arange(len(q))
    choice = np.where(np.isnan(q), -np.inf, q).argmax(axis=1)
    p = np.exp(_by_action(inputs["logp"], dims)[rows, choice])
    p /= p.sum(axis=1, keepdims=True)
    raw = reward[:, None] + float(inputs["gamma"]) * (1 - terminated)[:, None] * atoms
    moved = np.clip(np.clip(raw, -limit, limit), atoms[0], atoms[-1])
    place = np.clip(np.searchsorted(atoms, moved, side="right") - 1, 0, last)
    gap = np.where(place < last, atoms[np.minimum(place + 1, last)] - atoms[place], 1.0)
    part = np.where(place < last, (moved - atoms[place]) / gap, 0.0)
    m = np.zeros_like(p)
    for j in range(last + 1):
        m[rows, place[:, j]] += p[:, j] * (1 - part[:, j])
        m[rows, np.minimum(place[:, j] + 1, last)] += p[:, j] * part[:, j]
    mean = (p * raw).sum(axis=1)
    whole = ~np.isnan(raw).any(axis=1) & ~np.isnan(p).any(axis=1)
    return {"m": np.where(whole[:, None], m, np.nan), "mean": np.where(whole, mean, np.nan)}


@reference("mag_concat_qdir")
def mag_concat_qdir(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """z, and behind it q_dir over the RMS, which is +inf while unobserved: then q_dir as it is."""
    z, q_dir = _float64(inputs, "z", "q_dir")
    rms = float(inputs["rms"])
    return {"y": np.concatenate([z, q_dir / (rms if np.isfinite(rms) else 1.0)], axis=1)}


@reference("mag_concat_qdir_grad")
def mag_concat_qdir_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """The first M columns of d."""
    return {"dz": np.asarray(inputs["d"], np.float64)[:, : dims["M"]]}


@reference("denoised_target")
def denoised_target(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`(c51 + iqn) / 2`, a row of c51 being a branch."""
    c51 = np.stack([np.asarray(row, np.float64) for row in inputs["c51"]], axis=1)
    return {"target_q": (c51 + np.asarray(inputs["iqn"], np.float64)) / 2}

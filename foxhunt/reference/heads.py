"""Oracles of the auxiliary heads: a masked two-way and a K-way softmax cross-entropy on one trunk output."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.registry import Array, Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


def cross_entropy(logits: Array, target: Array, scale: float) -> tuple[Array, Array]:
    """(loss [B], slope [B, N]) of softmax rows; a negative target is masked: loss and slope 0."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows, known = np.arange(len(target)), target >= 0
    safe = np.where(known, target, 0)
    onehot = np.zeros_like(logits)
    onehot[rows, safe] = 1.0
    slope = (np.exp(log_p) - onehot) * scale * known[:, None]
    return np.where(known, -log_p[rows, safe], 0.0), slope


@reference("aux_heads")
def aux_heads(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Logits, losses, slopes and dh of both heads."""
    p = {k: np.asarray(v, np.float64) for k, v in inputs.items()}
    direction, regime = inputs["dir_label"], inputs["reg_label"]
    z_dir = p["h"] @ p["dir_w"] + p["dir_b"]
    z_reg = p["h"] @ p["reg_w"] + p["reg_b"]
    known = np.abs(direction) == 1
    inside = (regime >= 0) & (regime < dims["K"])
    scale = float(p["dir_weight"]) / max(int(np.ravel(inputs["valid"])[0]), 1)
    dir_loss, d_dir = cross_entropy(z_dir, np.where(known, direction > 0, -1), scale)
    reg_loss, d_reg = cross_entropy(z_reg, np.where(inside, regime, -1), float(p["reg_weight"]) / dims["B"])
    difference = z_dir[:, 1] - z_dir[:, 0]
    return {
        "d_logits": np.concatenate([d_dir, d_reg], axis=1),
        "dh": d_dir @ p["dir_w"].T + d_reg @ p["reg_w"].T,
        "dir_loss": np.where(known | (direction == 0), dir_loss, np.nan),
        "reg_loss": np.where(inside, reg_loss, np.nan),
        "dir_correct": (known & ((difference > 0) == (direction > 0))).astype(np.float64),
        "reg_correct": (z_reg.argmax(axis=1) == regime).astype(np.float64),
        "reg_class": z_reg.argmax(axis=1).astype(np.float64),
        "pred_tanh": np.tanh(difference),
    }


@reference("aux_heads_grad")
def aux_heads_grad(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """`dW = hᵀ d` and `db = Σ_b d`, the direction head's columns first."""
    h, d = np.asarray(inputs["h"], np.float64), np.asarray(inputs["d_logits"], np.float64)
    weights, biases, c = h.T @ d, d.sum(axis=0), dims["C"]
    return {"dir_w": weights[:, :c], "dir_b": biases[:c], "reg_w": weights[:, c:], "reg_b": biases[c:]}

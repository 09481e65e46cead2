"""W1, the aux-trunk training step: one problem in NumPy that every arm gets, and what an arm is.

x [B, 443] -> Linear, ELU -> 256 -> Linear, ELU -> 128 -> Linear -> h [B, 128]; a 2-class head with labels -1,
0 (masked), 1 and a 5-class head; loss = direction cross-entropy + 0.5 regime cross-entropy; backward without
dx; gradients clipped to a global norm of 1; AdamW (lr 1e-3, weight decay 1e-2); and five running statistics,
s = 0.99 s + 0.01 y, of both losses, max|h|, the root mean square of h, and the gradient norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

LAYERS = {"l1": (443, 256), "l2": (256, 128), "l3": (128, 128), "dir": (128, 2), "reg": (128, 5)}
STATISTICS = ("direction loss", "regime loss", "max |h|", "rms h", "gradient norm")
LR, WEIGHT_DECAY, CLIP, REGIME_WEIGHT, KEEP = 1e-3, 1e-2, 1.0, 0.5, 0.99
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Problem:
    """Random inputs, labels and first weights: `<layer>.w` [in, out] and `<layer>.b` [out], float32."""

    batch: int
    x: Array
    direction: NDArray[np.int32]  # -1, 0, 1
    regime: NDArray[np.int32]  # 0 ... 4
    weights: Mapping[str, Array]


def problem(batch: int, seed: int = 0) -> Problem:
    """The problem of that batch size; the same for the same seed."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, (fan_in, fan_out) in LAYERS.items():
        weights[f"{name}.w"] = (rng.standard_normal((fan_in, fan_out)) / fan_in**0.5).astype(np.float32)
        weights[f"{name}.b"] = (0.1 * rng.standard_normal(fan_out)).astype(np.float32)
    return Problem(
        batch,
        rng.standard_normal((batch, LAYERS["l1"][0])).astype(np.float32),
        rng.integers(-1, 2, batch, dtype=np.int32),
        rng.integers(0, 5, batch, dtype=np.int32),
        weights,
    )


class Arm(Protocol):
    """One way to run the step; its state lives on the device."""

    name: str

    def restart(self) -> None:
        """First weights, zero moments and statistics."""

    def run(self, steps: int) -> None:
        """Run that many steps, a multiple of 100 or fewer than that, and wait for them."""

    def outputs(self) -> tuple[dict[str, Array], Array]:
        """The weights by name, and the five statistics."""


def reference(p: Problem, steps: int) -> tuple[dict[str, Array], Array]:
    """The same steps in NumPy float64: weights and statistics after them."""
    w = {name: value.astype(np.float64) for name, value in p.weights.items()}
    m = {name: np.zeros_like(value) for name, value in w.items()}
    v = {name: np.zeros_like(value) for name, value in w.items()}
    statistics = np.zeros(5)
    for t in range(1, steps + 1):
        gradients, seen = _gradients(p, w)
        norm = np.sqrt(sum(float((g * g).sum()) for g in gradients.values()))
        statistics = KEEP * statistics + (1 - KEEP) * np.array([*seen, norm])
        scale = min(1.0, CLIP / norm)
        for name, g in gradients.items():
            m[name] = BETA1 * m[name] + (1 - BETA1) * scale * g
            v[name] = BETA2 * v[name] + (1 - BETA2) * (scale * g) ** 2
            step = m[name] / (1 - BETA1**t) / (np.sqrt(v[name] / (1 - BETA2**t)) + EPSILON)
            w[name] -= LR * (step + WEIGHT_DECAY * w[name])
    return w, statistics


def _gradients(p: Problem, w: dict[str, Array]) -> tuple[dict[str, Array], tuple[float, ...]]:
    x = p.x.astype(np.float64)
    h1 = _elu(x @ w["l1.w"] + w["l1.b"])
    h2 = _elu(h1 @ w["l2.w"] + w["l2.b"])
    h = h2 @ w["l3.w"] + w["l3.b"]
    mask = p.direction != 0
    dir_loss, dir_slope = _cross_entropy(h @ w["dir.w"] + w["dir.b"], p.direction > 0, mask)
    reg_loss, reg_slope = _cross_entropy(h @ w["reg.w"] + w["reg.b"], p.regime, np.ones(p.batch, bool))
    reg_slope *= REGIME_WEIGHT
    dh = dir_slope @ w["dir.w"].T + reg_slope @ w["reg.w"].T
    dh2 = dh @ w["l3.w"].T * np.where(h2 > 0, 1, 1 + h2)
    dh1 = dh2 @ w["l2.w"].T * np.where(h1 > 0, 1, 1 + h1)
    pairs = {"l1": (x, dh1), "l2": (h1, dh2), "l3": (h2, dh), "dir": (h, dir_slope), "reg": (h, reg_slope)}
    gradients = {}
    for name, (inputs, slopes) in pairs.items():
        gradients[f"{name}.w"] = inputs.T @ slopes
        gradients[f"{name}.b"] = slopes.sum(0)
    return gradients, (dir_loss, reg_loss, float(np.abs(h).max()), float(np.sqrt((h * h).mean())))


def _elu(z: Array) -> Array:
    return np.where(z > 0, z, np.expm1(np.minimum(z, 0)))


def _cross_entropy(z: Array, label: NDArray[np.integer], mask: NDArray[np.bool_]) -> tuple[float, Array]:
    """Mean over the unmasked samples, and its gradient."""
    count = max(int(mask.sum()), 1)
    z = z - z.max(1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
    rows = np.arange(len(z))
    chosen = label.astype(np.int64)
    slope = np.exp(log_p)
    slope[rows, chosen] -= 1
    return float(-(log_p[rows, chosen] * mask).sum() / count), slope * mask[:, None] / count

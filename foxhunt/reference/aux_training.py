"""Program `aux` in NumPy: the same network on the same samples, step by step, as an oracle.

Written from the formulas (math §1, §2, §5, §7), not from the kernels. Arrays keep the dtype of the
parameters: float64 for an oracle, float32 for a quick trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.reference import statistics
from foxhunt.reference.applicator import Applicator

Array = NDArray[Any]
Params = dict[str, Array]

LAYERS = (("aux_w1", "aux_b1"), ("aux_w2", "aux_b2"), ("aux_w3", "aux_b3"))
HEADS = (("dir_w", "dir_b"), ("reg_w", "reg_b"))


TRUNK = tuple(name for layer in LAYERS for name in layer)
GROUPS = {"TRUNK_WEIGHT_BOUND": TRUNK, "HEADS_WEIGHT_BOUND": tuple(name for head in HEADS for name in head)}
FLOOR = 1e-8  # of bounds
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Controls:
    """The host slots, with the values that `specs/aux/isv.yaml` gives them."""

    lr: float = 3e-4
    wd: float = 0.01
    l1: float = 0.0
    dir_weight: float = 1.0
    regime_weight: float = 1.0


@dataclass(frozen=True)
class Batch:
    """Inputs x [B, ENC], direction labels −1/0/+1 [B] and regime classes [B]."""

    x: Array
    direction: NDArray[np.int64]
    regime: NDArray[np.int64]


@dataclass
class State:
    """Everything that a training step changes."""

    params: Params
    m: Params = field(default_factory=dict)
    v: Params = field(default_factory=dict)
    t: int = 0
    slots: dict[str, Applicator] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Moments start at zero."""
        self.m = self.m or {n: np.zeros_like(p) for n, p in self.params.items()}
        self.v = self.v or {n: np.zeros_like(p) for n, p in self.params.items()}

    def slot(self, name: str) -> Applicator:
        """The slot of that name, made on first use; a p99 or an RMS of 0 is no observation (math §1)."""
        degenerate = "_BOUND" in name or "_RMS_" in name
        return self.slots.setdefault(name, Applicator(degenerate_zero=degenerate))

    def limit(self, name: str) -> float:
        """The bound that consumers of a slot see: +inf until it is observed."""
        slot = self.slot(name)
        return np.inf if slot.fresh else max(slot.x, FLOOR)


def gather(
    arrays: Mapping[str, Array], ends: NDArray[np.int64], bars: int, horizon: int, regime_bars: int
) -> Batch:
    """The samples whose windows of `bars` bars end at `ends` [B], from the arrays of reader `ohlcv`."""
    window = ends[:, None] + np.arange(1 - bars, 1)
    flat = arrays["features"][window].reshape(len(ends), -1)
    x = np.concatenate([flat, arrays["hour"][ends]], axis=1)
    direction = np.sign(arrays["close"][ends + horizon] - arrays["close"][ends]).astype(np.int64)
    ahead = arrays["log_return"][ends[:, None] + np.arange(1, regime_bars + 1)]
    volatility = np.sqrt(np.sum(ahead**2, axis=1, dtype=np.float64)).astype(np.float32)
    regime = np.searchsorted(arrays["regime_edges"], volatility, side="right").astype(np.int64)
    return Batch(x, direction, regime)


def elu(z: Array) -> Array:
    """x where positive, exp(x) − 1 elsewhere."""
    return np.where(z > 0, z, np.expm1(np.minimum(z, 0)))


def forward(params: Params, x: Array) -> tuple[list[Array], Array, Array]:
    """(inputs of each layer and h_s2_aux, direction logits [B, 2], regime logits [B, K])."""
    h = [x.astype(params["aux_w1"].dtype)]
    for k, (w, b) in enumerate(LAYERS):
        z = h[-1] @ params[w] + params[b]
        h.append(elu(z) if k < 2 else z)
    direction, regime = (h[-1] @ params[w] + params[b] for w, b in HEADS)
    return h, direction, regime


def cross_entropy(logits: Array, labels: NDArray[np.int64], mask: NDArray[np.bool_]) -> tuple[float, Array]:
    """(mean loss over the unmasked rows, its gradient [B, K]); both 0 when every row is masked."""
    count = max(int(mask.sum()), 1)
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    safe = np.where(mask, labels, 0)
    gradient = np.exp(log_p)
    gradient[rows, safe] -= 1
    loss = -float(np.sum(np.where(mask, log_p[rows, safe], 0))) / count
    return loss, gradient * (mask[:, None] / count)


def losses_and_gradients(
    params: Params, batch: Batch, controls: Controls
) -> tuple[dict[str, float], Params, Array]:
    """(observations by slot, the gradient of the weighted losses, h_s2_aux [B, AUX])."""
    h, direction, regime = forward(params, batch.x)
    mask = batch.direction != 0
    dir_loss, d_dir = cross_entropy(direction, (batch.direction > 0).astype(np.int64), mask)
    reg_loss, d_reg = cross_entropy(regime, batch.regime, np.ones(len(mask), bool))
    d_dir, d_reg = d_dir * controls.dir_weight, d_reg * controls.regime_weight
    difference = direction[:, 1] - direction[:, 0]
    right = (difference > 0) == (batch.direction > 0)
    observed = {
        "AUX_DIR_LOSS_EMA": dir_loss if mask.any() else np.nan,
        "AUX_REGIME_LOSS_EMA": reg_loss,
        "AUX_DIR_ACC": float(right[mask].mean()) if mask.any() else np.nan,
        "AUX_REGIME_ACC": float((regime.argmax(axis=1) == batch.regime).mean()),
        "AUX_PRED_TANH": float(np.tanh(difference).mean()),
        "H_S2_AUX_BOUND": p99_abs(h[3]),
        "H_S2_AUX_RMS_EMA": float(np.sqrt(np.mean(h[3].astype(np.float64) ** 2))),
    }
    gradients: Params = {}
    for (w, b), d in zip(HEADS, (d_dir, d_reg), strict=True):
        gradients[w], gradients[b] = h[3].T @ d, d.sum(axis=0)
    d = d_dir @ params["dir_w"].T + d_reg @ params["reg_w"].T
    for k in (2, 1, 0):
        w, b = LAYERS[k]
        gradients[w], gradients[b] = h[k].T @ d, d.sum(axis=0)
        if k:
            d = (d @ params[w].T) * np.where(h[k] > 0, 1, 1 + h[k])
    dtype = params["aux_w1"].dtype
    return observed, {n: g.astype(dtype) for n, g in gradients.items()}, h[3]


def p99_abs(*tensors: Array) -> float:
    """The 256-bin p99 of the magnitudes of all tensors together (math §2)."""
    return float(statistics.p99_abs({"x": [t.ravel() for t in tensors]}, {}, {})["y"][0])


def train_step(state: State, batch: Batch, controls: Controls) -> dict[str, float]:
    """One step of `specs/aux`; returns what it observed, by slot.

    Bounds are those of the step's start. Order: gradients, clip by the global norm, AdamW, weight oracle,
    clamp, Pearls.
    """
    clip, *limits = (state.limit(slot) for slot in ("GRAD_CLIP_BOUND", *GROUPS))
    observed, gradients, _ = losses_and_gradients(state.params, batch, controls)
    norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients.values())))
    adamw(state, gradients, clip / norm if norm > clip else 1.0, controls)
    observed |= {slot: p99_abs(*(state.params[n] for n in names)) for slot, names in GROUPS.items()}
    observed["GRAD_CLIP_BOUND"] = norm
    for limit, names in zip(limits, GROUPS.values(), strict=True):
        for name in names:
            np.clip(state.params[name], -limit, limit, out=state.params[name])
    for slot, y in observed.items():
        state.slot(slot).fold(y)
    return observed


def adamw(state: State, gradients: Params, scale: float, controls: Controls) -> None:
    """AdamW with decoupled decay and L1 on gradients times `scale` (math §5), in place."""
    state.t += 1
    c1, c2 = 1 - BETA1**state.t, 1 - BETA2**state.t
    for name, w in state.params.items():
        g = gradients[name] * scale
        m, v = state.m[name], state.v[name]
        m += (1 - BETA1) * (g - m)
        v += (1 - BETA2) * (g * g - v)
        step = (m / c1) / (np.sqrt(v / c2) + EPSILON)
        w -= controls.lr * (step + controls.wd * w + controls.l1 * np.sign(w))

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

Array = NDArray[Any]
Params = dict[str, Array]

LAYERS = (("aux_w1", "aux_b1"), ("aux_w2", "aux_b2"), ("aux_w3", "aux_b3"))
HEADS = (("dir_w", "dir_b"), ("reg_w", "reg_b"))


@dataclass(frozen=True)
class Hyper:
    """What the program's control slots and kernel constants say."""

    lr: float = 3e-4
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.01
    regime_weight: float = 1.0
    bound_floor: float = 1e-8
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # weight-bound slot → its tensors


@dataclass(frozen=True)
class Batch:
    """Inputs x [B, ENC], direction labels −1/0/+1 [B] and regime classes [B]."""

    x: Array
    direction: NDArray[np.int64]
    regime: NDArray[np.int64]


@dataclass
class Pearl:
    """A slot with its Wiener triple (math §1)."""

    x: float = 0.0
    s: float = 0.0
    d: float = 0.0
    lag: float = 0.0

    @property
    def observed(self) -> bool:
        """Whether a first observation has replaced the sentinel."""
        return (self.x, self.s, self.d, self.lag) != (0.0, 0.0, 0.0, 0.0)

    def fold(self, y: float, skip_zero: bool = False) -> None:
        """Pearl A on the first observation, Pearl D after it; skipped observations change nothing."""
        if not np.isfinite(y) or max(abs(y - self.x), abs(y - self.lag)) > 1e18 or (skip_zero and y == 0.0):
            return
        if not self.observed:
            self.x = self.lag = y
            return
        self.s += ((y - self.x) ** 2 - self.s) / 256
        self.d += ((y - self.lag) ** 2 - self.d) / 256
        ratio = min(max(self.d / self.s - 1, 0.0), 1.0) if self.s else 1.0
        self.x += min(max(1 - ratio**0.5, 1 / 1024), 0.9) * (y - self.x)
        self.lag = y

    def limit(self, floor: float) -> float:
        """The bound that consumers see: +inf until observed."""
        return max(self.x, floor) if self.observed else np.inf


@dataclass
class State:
    """Everything that a training step changes."""

    params: Params
    m: Params = field(default_factory=dict)
    v: Params = field(default_factory=dict)
    t: int = 0
    slots: dict[str, Pearl] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Moments start at zero."""
        self.m = self.m or {n: np.zeros_like(p) for n, p in self.params.items()}
        self.v = self.v or {n: np.zeros_like(p) for n, p in self.params.items()}

    def slot(self, name: str) -> Pearl:
        """The slot of that name, made on first use."""
        return self.slots.setdefault(name, Pearl())


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
    params: Params, batch: Batch, hyper: Hyper
) -> tuple[dict[str, float], Params, Array]:
    """(both losses and the observed metrics, the gradient of the weighted sum, h_s2_aux)."""
    h, direction, regime = forward(params, batch.x)
    mask = batch.direction != 0
    dir_loss, d_dir = cross_entropy(direction, (batch.direction > 0).astype(np.int64), mask)
    reg_loss, d_reg = cross_entropy(regime, batch.regime, np.ones(len(mask), bool))
    d_reg = d_reg * hyper.regime_weight
    difference = direction[:, 1] - direction[:, 0]
    right = (difference > 0) == (batch.direction > 0)
    metrics = {
        "dir_loss": dir_loss,
        "reg_loss": reg_loss,
        "dir_acc": float(right[mask].mean()) if mask.any() else np.nan,
        "reg_acc": float((regime.argmax(axis=1) == batch.regime).mean()),
        "tanh": float(np.tanh(difference).mean()),
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
    return metrics, {n: g.astype(dtype) for n, g in gradients.items()}, h[3]


def p99_abs(*tensors: Array) -> float:
    """Upper edge of the first of 256 bins over [0, max] with more than 1 % from it up (math §2)."""
    values = np.concatenate([np.abs(t.ravel()) for t in tensors])
    values = values[np.isfinite(values)]
    top = float(values.max(initial=0.0))
    if top == 0.0:
        return 0.0
    bins = np.minimum(255, np.floor(values / top * 256).astype(np.int64))
    above = np.cumsum(np.bincount(bins, minlength=256)[::-1])
    b = 255 - int(np.argmax(above > 0.01 * len(values)))
    return top * (b + 1) / 256


def train_step(state: State, batch: Batch, hyper: Hyper) -> dict[str, float]:
    """One step: gradients, clip at the value of the step's start, AdamW, weight oracle, clamp, Pearls."""
    limits = {slot: state.slot(slot).limit(hyper.bound_floor) for slot in ("GRAD_CLIP_BOUND", *hyper.groups)}
    metrics, gradients, h = losses_and_gradients(state.params, batch, hyper)
    norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients.values())))
    _adamw(state, gradients, min(1.0, limits["GRAD_CLIP_BOUND"] / norm) if norm else 1.0, hyper)
    observed = {s: p99_abs(*(state.params[n] for n in names)) for s, names in hyper.groups.items()}
    for slot, names in hyper.groups.items():
        for name in names:
            np.clip(state.params[name], -limits[slot], limits[slot], out=state.params[name])
    rms = float(np.sqrt(np.mean(h.astype(np.float64) ** 2)))
    for slot, y in {
        **observed,
        "GRAD_CLIP_BOUND": norm,
        "H_S2_AUX_BOUND": p99_abs(h),
        "H_S2_AUX_RMS": rms,
    }.items():
        state.slot(slot).fold(y, skip_zero=True)
    for slot in ("dir_loss", "reg_loss", "dir_acc", "tanh"):
        state.slot(slot).fold(metrics[slot])
    return {**metrics, "grad_norm": norm}


def _adamw(state: State, gradients: Params, scale: float, hyper: Hyper) -> None:
    state.t += 1
    c1, c2 = 1 - hyper.beta1**state.t, 1 - hyper.beta2**state.t
    for name, w in state.params.items():
        g = gradients[name] * scale
        m, v = state.m[name], state.v[name]
        m += (1 - hyper.beta1) * (g - m)
        v += (1 - hyper.beta2) * (g * g - v)
        w -= hyper.lr * ((m / c1) / (np.sqrt(v / c2) + hyper.eps) + hyper.weight_decay * w)

"""A small layer trained on inputs that a test may spoil, for tests of the sentinel on both backends."""

import numpy as np

PROGRAM = """
dims: {B: 8, K: 4, N: 3, M: 2}
isv:
  - {name: LR, source: host, init: 0.01, reset: never}
  - {name: WD, source: host, init: 0.0, reset: never}
  - {name: L1, source: host, init: 0.0, reset: never}
  - {name: WEIGHT, source: host, init: 1.0, reset: never}
  - {name: TAU, source: host, init: 0.5, reset: never}
  - {name: CLIP, floor: 1.0e-8, reset: fold}
params:
  - {name: w, shape: [K, N], group: net, init: glorot, reset: never}
  - {name: b, shape: [N], group: net, reset: never}
buffers:
  - {name: x, shape: [B, K], lifetime: input}
  - {name: want, shape: [B, N], lifetime: input}
  - {name: y, shape: [B, N], lifetime: step}
  - {name: dy, shape: [B, N], lifetime: step}
  - {name: loss, shape: [B], lifetime: step}
  - {name: norm, shape: [1], lifetime: step}
  - {name: correction, shape: [M], lifetime: persistent, reset: never}
  - {name: target, shape: [K, N], lifetime: persistent, reset: never}
  - {name: seen, shape: [B, N], lifetime: persistent, reset: never}
counters:
  - {name: t, advance: train, reset: never}
producers:
  - {name: norm_p99, kernel: p99_abs, args: {x: norm}, out: {y: CLIP}}
steps:
  - name: train
    items:
      - {kernel: linear, args: {x: x, w: w, b: b, y: y}}
      - {kernel: mse_rows, args: {pred: y, target: want, weight: WEIGHT, loss: loss, d_pred: dy}}
      - {kernel: bwd_dW_reduce, args: {a: x, d: dy, dw: w.g}, as: dw}
      - {kernel: bwd_db_reduce, args: {d: dy, db: b.g}, as: db}
      - {kernel: l2_norm, args: {x: [net.g], y: norm}}
      - {kernel: beta_correction, args: {t: t, correction: correction}}
      - kernel: adamw
        args:
          {w: [net], g: [net.g], m: [net.m], v: [net.v], lr: LR, wd: WD, l1: L1, correction: correction,
           norm: norm, clip: CLIP}
      - {kernel: polyak, args: {online: [w], target: [target], tau: TAU}}
      - {producers: [norm_p99]}
  - name: look
    items:
      - {kernel: linear, args: {x: x, w: w, b: b, y: seen}}
diagnostics:
  - {name: LR}
  - {name: CLIP}
  - {name: t}
"""
LEARNT = ("w", "b", "w.m", "w.v", "b.m", "b.v", "target", "correction")
STATE = ("params", "params.m", "params.v", "correction", "target", "seen")
SLOTS = 6
POLICIES = ("report", "skip-update", "stop", "off")


def feed(trainer, bad=None, value=np.nan):
    """Inputs of normal numbers; `bad` names one whose element [2, 1] is `value`."""
    rng = np.random.default_rng(7)
    for name in ("x", "want"):
        values = rng.standard_normal(trainer._views[name].shape).astype(np.float32)
        if name == bad:
            values[2, 1] = value
        trainer.write_tensor(name, values)


def learnt(trainer):
    return {name: trainer.tensor(name) for name in LEARNT}


def same(one, two):
    return all(np.array_equal(one[n], two[n], equal_nan=True) for n in one)


def state(trainer):
    """Everything that outlives a step, the sentinel's rows and the arena left out."""
    held = {v.name: trainer.tensor(v.name) for v in trainer.plan.views if v.buffer in STATE}
    return held | {"isv": trainer.backend.read("isv", 0, SLOTS, "f32")}


def found_rows(trainer):
    """`sentinel.rows` as it is."""
    count = 3 * (len(trainer.plan.watched) + 1)
    return trainer.backend.read("sentinel.rows", 0, count, "i64").reshape(-1, 3)

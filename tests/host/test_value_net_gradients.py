"""Slopes of the quantile, expectile and curiosity losses against central differences of the kernels."""

import numpy as np
import pytest
from small_programs import training

DIMS = "{B: 70, T: 5, M: 9, COSINES: 6, K: 4, A: 3, S: 7, ONE: 1, BT: B * T, C: K * A, WIDTH: S + C}"

QUANTILES = f"""
dims: {DIMS}
isv: [{{name: WEIGHT, source: host, init: 0.5, reset: never}}]
buffers:
  - {{name: z, shape: [B, M], lifetime: input}}
  - {{name: wphi, shape: [COSINES, M], lifetime: input}}
  - {{name: bphi, shape: [M], lifetime: input}}
  - {{name: w, shape: [M, C], lifetime: input}}
  - {{name: b, shape: [C], lifetime: input}}
  - {{name: tq, shape: [BT, K], lifetime: input}}
  - {{name: action, shape: [B, K], dtype: i32, lifetime: input}}
  - {{name: wt, shape: [C, M], lifetime: input}}
  - {{name: none, shape: [M], lifetime: input}}
  - {{name: cosines, shape: [T, COSINES], lifetime: step}}
  - {{name: phi, shape: [T, M], lifetime: step}}
  - {{name: psi, shape: [BT, M], lifetime: step}}
  - {{name: quant, shape: [BT, C], lifetime: step}}
  - {{name: d_quant, shape: [BT, C], lifetime: step}}
  - {{name: d_psi, shape: [BT, M], lifetime: step}}
  - {{name: d_phi_pre, shape: [T, M], lifetime: step}}
  - {{name: loss, shape: [B], lifetime: persistent, reset: never}}
  - {{name: g_z, shape: [B, M], lifetime: persistent, reset: never}}
  - {{name: g_wphi, shape: [COSINES, M], lifetime: persistent, reset: never}}
  - {{name: g_bphi, shape: [M], lifetime: persistent, reset: never}}
  - {{name: g_w, shape: [M, C], lifetime: persistent, reset: never}}
  - {{name: g_b, shape: [C], lifetime: persistent, reset: never}}
steps:
  - name: gradients
    items:
      - {{kernel: iqn_cosines, args: {{y: cosines}}}}
      - {{kernel: linear_elu, args: {{x: cosines, w: wphi, b: bphi, y: phi}}}}
      - {{kernel: iqn_mix, args: {{z: z, phi: phi, psi: psi}}}}
      - {{kernel: linear, args: {{x: psi, w: w, b: b, y: quant}}, as: head}}
      - kernel: iqn_loss
        args: {{action: action, quant: quant, tq: tq, weight: WEIGHT, loss: loss, d_quant: d_quant}}
        bind: {{T: T, A: A}}
      - {{kernel: linear, args: {{x: d_quant, w: wt, b: none, y: d_psi}}, as: head_back}}
      - {{kernel: iqn_mix_grad, args: {{z: z, phi: phi, d_psi: d_psi, dz: g_z, d_phi_pre: d_phi_pre}}}}
      - {{kernel: bwd_dW_reduce, args: {{a: psi, d: d_quant, dw: g_w}}, as: dw}}
      - {{kernel: bwd_db_reduce, args: {{d: d_quant, db: g_b}}, as: db}}
      - {{kernel: bwd_dW_reduce, args: {{a: cosines, d: d_phi_pre, dw: g_wphi}}, as: dwphi}}
      - {{kernel: bwd_db_reduce, args: {{d: d_phi_pre, db: g_bphi}}, as: dbphi}}
"""

EXPECTILES = f"""
dims: {DIMS}
isv:
  - {{name: WEIGHT, source: host, init: 0.5, reset: never}}
  - {{name: EXPECTILE, source: host, init: 0.9, reset: never}}
buffers:
  - {{name: x, shape: [B, M], lifetime: input}}
  - {{name: w, shape: [M, ONE], lifetime: input}}
  - {{name: b, shape: [ONE], lifetime: input}}
  - {{name: target, shape: [B, K], lifetime: input}}
  - {{name: v, shape: [B, ONE], lifetime: step}}
  - {{name: dv, shape: [B, ONE], lifetime: step}}
  - {{name: loss, shape: [B], lifetime: persistent, reset: never}}
  - {{name: g_w, shape: [M, ONE], lifetime: persistent, reset: never}}
  - {{name: g_b, shape: [ONE], lifetime: persistent, reset: never}}
steps:
  - name: gradients
    items:
      - {{kernel: linear, args: {{x: x, w: w, b: b, y: v}}}}
      - kernel: expectile_loss
        args: {{v: v, target: target, expectile: EXPECTILE, weight: WEIGHT, loss: loss, dv: dv}}
      - {{kernel: bwd_dW_reduce, args: {{a: x, d: dv, dw: g_w}}}}
      - {{kernel: bwd_db_reduce, args: {{d: dv, db: g_b}}}}
"""

CURIOSITY = f"""
dims: {DIMS}
isv: [{{name: WEIGHT, source: host, init: 0.5, reset: never}}]
buffers:
  - {{name: x, shape: [B, S], lifetime: input}}
  - {{name: action, shape: [B, K], dtype: i32, lifetime: input}}
  - {{name: w, shape: [WIDTH, S], lifetime: input}}
  - {{name: b, shape: [S], lifetime: input}}
  - {{name: next, shape: [B, S], lifetime: input}}
  - {{name: seen, shape: [B, WIDTH], lifetime: step}}
  - {{name: pred, shape: [B, S], lifetime: step}}
  - {{name: d_pred, shape: [B, S], lifetime: step}}
  - {{name: loss, shape: [B], lifetime: persistent, reset: never}}
  - {{name: g_w, shape: [WIDTH, S], lifetime: persistent, reset: never}}
  - {{name: g_b, shape: [S], lifetime: persistent, reset: never}}
steps:
  - name: gradients
    items:
      - {{kernel: curiosity_input, args: {{x: x, action: action, y: seen}}, bind: {{A: A}}}}
      - {{kernel: linear, args: {{x: seen, w: w, b: b, y: pred}}}}
      - {{kernel: mse_rows, args: {{pred: pred, target: next, weight: WEIGHT, loss: loss, d_pred: d_pred}}}}
      - {{kernel: bwd_dW_reduce, args: {{a: seen, d: d_pred, dw: g_w}}}}
      - {{kernel: bwd_db_reduce, args: {{d: d_pred, db: g_b}}}}
"""

PROGRAMS = {
    "quantiles": (QUANTILES, ("z", "wphi", "bphi", "w", "b")),
    "expectiles": (EXPECTILES, ("w", "b")),
    "curiosity": (CURIOSITY, ("w", "b")),
}


def total(trainer):
    """What the slopes are of: weight 0.5 times the mean of the loss."""
    trainer.step()
    return 0.5 * trainer.tensor("loss").astype(np.float64).mean()


@pytest.mark.parametrize("name", PROGRAMS)
def test_slopes_agree_with_central_differences(name, tmp_path):
    text, inputs = PROGRAMS[name]
    rng = np.random.default_rng(3)
    with training(text, tmp_path) as trainer:
        for view in trainer.plan.views:
            if view.name == "action":
                trainer.write_tensor("action", rng.integers(0, 3, view.shape).astype(np.int32))
            elif view.name in ("x", "z", "wphi", "bphi", "w", "b", "tq", "target", "next"):
                trainer.write_tensor(view.name, rng.standard_normal(view.shape).astype(np.float32))
        if name == "quantiles":
            trainer.write_tensor("wt", trainer.tensor("w").T)
        trainer.step()
        for tensor in inputs:
            values, slopes = trainer.tensor(tensor).copy(), trainer.tensor(f"g_{tensor}").ravel().copy()
            for at in rng.choice(values.size, min(12, values.size), replace=False):
                ends = []
                for epsilon in (4e-3, -4e-3):
                    moved = values.copy()
                    moved.ravel()[at] += np.float32(epsilon)
                    trainer.write_tensor(tensor, moved)
                    ends.append((total(trainer), float(moved.ravel()[at])))
                slope = (ends[0][0] - ends[1][0]) / (ends[0][1] - ends[1][1])
                scale = max(abs(slope), 0.1 * np.sqrt((slopes**2).mean()))
                assert abs(slopes[at] - slope) < 2e-2 * scale, (tensor, at, slopes[at], slope)
            trainer.write_tensor(tensor, values)

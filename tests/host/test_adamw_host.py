"""The emitted AdamW over many steps: its first one, constant gradients, and none at all."""

import numpy as np
import pytest
from small_programs import training

N = 1003
PROGRAM = f"""
dims: {{N: {N}, M: 2, ONE: 1}}
isv:
  - {{name: LR, source: host, init: 1.0e-3, reset: never}}
  - {{name: WD, source: host, init: 0.0, reset: never}}
  - {{name: L1, source: host, init: 0.0, reset: never}}
  - {{name: CLIP, floor: 1.0e-6, reset: never}}
params:
  - {{name: w, shape: [N], group: net, init: normal, reset: never}}
buffers:
  - {{name: grad, shape: [N], lifetime: input}}
  - {{name: norm, shape: [ONE], lifetime: step}}
  - {{name: correction, shape: [M], lifetime: persistent, reset: never}}
counters:
  - {{name: t, advance: train, reset: never}}
producers:
  - {{name: clip, kernel: rms, args: {{x: norm}}, out: {{y: CLIP}}}}
steps:
  - name: train
    items:
      - {{kernel: add_many, args: {{xs: [grad], y: w.g}}}}
      - {{kernel: l2_norm, args: {{x: w.g, y: norm}}}}
      - {{producers: [clip]}}
      - {{kernel: beta_correction, args: {{t: t, correction: correction}}}}
      - kernel: adamw
        args:
          {{w: w, g: w.g, m: w.m, v: w.v, lr: LR, wd: WD, l1: L1,
           correction: correction, norm: norm, clip: CLIP}}
diagnostics: [{{name: CLIP}}, {{name: t}}]
"""


@pytest.fixture
def trainer(tmp_path):
    with training(PROGRAM, tmp_path) as made:
        yield made


def test_the_first_update_has_t_1_and_known_sizes(trainer):
    before = trainer.tensor("w")
    gradient = np.zeros(N, np.float32)
    gradient[:3] = [1e-8, 1e-4, 1.0]
    trainer.write_tensor("grad", gradient)
    assert trainer.counters()["t"] == 0
    trainer.step()
    assert trainer.counters()["t"] == 1
    moved = before - trainer.tensor("w")
    np.testing.assert_allclose(trainer.tensor("correction"), [0.1, 0.001], rtol=1e-6)
    np.testing.assert_allclose(moved[:3], [5.000e-4, 9.9990e-4, 1.0000e-3], atol=2e-7)
    assert (moved[3:] == 0).all()


def test_600_steps_of_one_gradient_stay_finite_and_move_by_the_rate(trainer):
    before = trainer.tensor("w")
    gradient = np.where(np.arange(N) % 2, 1e-3, -1e6).astype(np.float32)
    trainer.write_tensor("grad", gradient)
    trainer.run(600)
    assert trainer.counters()["t"] == 600
    for name in ("w", "w.m", "w.v", "correction"):
        assert np.isfinite(trainer.tensor(name)).all(), name
    np.testing.assert_allclose(before - trainer.tensor("w"), 0.6 * np.sign(gradient), rtol=2e-3)


def test_without_gradient_and_decay_every_bit_stays(trainer):
    weights = trainer.tensor("w")
    weights[:4] = [-0.0, 0.0, 1e-45, -3e38]
    trainer.write_tensor("w", weights)
    trainer.run(10)
    assert trainer.tensor("w").tobytes() == weights.tobytes()
    assert not trainer.tensor("w.m").any()
    assert not trainer.tensor("w.v").any()

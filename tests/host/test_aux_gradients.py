"""The trunk's backward kernels: right gradients, and no way to write one for the trunk's input."""

import re

import numpy as np
import pytest
from kernel_harness import ROOT
from small_programs import training

from foxhunt.emit.source import strip_comments
from foxhunt.ir.resolve import resolve
from foxhunt.spec.load import load_specs

WEIGHTS = {
    "w1": ("ENC", "H1"),
    "w2": ("H1", "H2"),
    "w3": ("H2", "AUX"),
    "b1": ("H1",),
    "b2": ("H2",),
    "b3": ("AUX",),
}
INPUT_GRADIENT = re.compile(
    r"\b(d|g|grad|gradient)_?(x|x_in|enc|in|input|h0|encoder)(_\w+)?\b", re.IGNORECASE
)
INPUTS = {"x": ("B", "ENC"), **WEIGHTS}
OUTPUTS = {"h": ("B", "AUX"), **{f"g_{name}": shape for name, shape in WEIGHTS.items()}}


def declared(tensors, lifetime):
    return "".join(
        f"  - {{name: {n}, shape: [{', '.join(s)}], lifetime: {lifetime}}}\n" for n, s in tensors.items()
    )


TRUNK = f"""
dims: {{B: 4, ENC: 32, H1: 32, H2: 32, AUX: 32}}
buffers:
{declared(INPUTS, "input")}
{declared(OUTPUTS, "persistent, reset: never")}
  - {{name: h1, shape: [B, H1], lifetime: step}}
  - {{name: h2, shape: [B, H2], lifetime: step}}
  - {{name: dh1_pre, shape: [B, H1], lifetime: step}}
  - {{name: dh2_pre, shape: [B, H2], lifetime: step}}
steps:
  - name: gradients
    doc: The gradient of half the squared norm of h, which is h itself at h.
    items:
      - {{kernel: linear_elu, args: {{x: x, w: w1, b: b1, y: h1}}, as: l1}}
      - {{kernel: linear_elu, args: {{x: h1, w: w2, b: b2, y: h2}}, as: l2}}
      - {{kernel: linear, args: {{x: h2, w: w3, b: b3, y: h}}}}
      - kernel: bwd_dh_pre
        args: {{dh3: h, w3: w3, w2: w2, h2: h2, h1: h1, dh2_pre: dh2_pre, dh1_pre: dh1_pre}}
      - {{kernel: bwd_dW_reduce, args: {{a: h2, d: h, dw: g_w3}}, as: dw3}}
      - {{kernel: bwd_dW_reduce, args: {{a: h1, d: dh2_pre, dw: g_w2}}, as: dw2}}
      - {{kernel: bwd_dW_reduce, args: {{a: x, d: dh1_pre, dw: g_w1}}, as: dw1}}
      - {{kernel: bwd_db_reduce, args: {{d: h, db: g_b3}}, as: db3}}
      - {{kernel: bwd_db_reduce, args: {{d: dh2_pre, db: g_b2}}, as: db2}}
      - {{kernel: bwd_db_reduce, args: {{d: dh1_pre, db: g_b1}}, as: db1}}
"""


@pytest.fixture(scope="module")
def trunk(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("trunk"), np.random.default_rng(3)
    with training(TRUNK, folder) as trainer:
        for name, shape in INPUTS.items():
            size = (4 if shape[0] == "B" else 32, *(32 for _ in shape[1:]))
            trainer.write_tensor(name, rng.standard_normal(size) * (1.0 if name == "x" else 0.2))
        trainer.step()
        yield trainer, folder


def loss(trainer):
    trainer.step()
    return 0.5 * (trainer.tensor("h").astype(np.float64) ** 2).sum()


@pytest.mark.parametrize("name", sorted(WEIGHTS))
def test_gradients_agree_with_central_differences(trunk, name):
    trainer, _ = trunk
    weight, gradient = trainer.tensor(name).copy(), trainer.tensor(f"g_{name}").copy().ravel()
    for at in np.random.default_rng(7).choice(weight.size, 16, replace=False):
        sides = []
        for epsilon in (1e-3, -1e-3):
            moved = weight.copy()
            moved.ravel()[at] += np.float32(epsilon)
            trainer.write_tensor(name, moved)
            sides.append((loss(trainer), moved.ravel()[at]))
        slope = (sides[0][0] - sides[1][0]) / (float(sides[0][1]) - float(sides[1][1]))
        scale = max(abs(slope), 0.1 * np.sqrt((gradient**2).mean()))
        assert abs(gradient[at] - slope) < 2e-2 * scale, (name, at)
    trainer.write_tensor(name, weight)
    trainer.step()


def test_no_backward_kernel_has_a_way_to_a_gradient_of_the_input(trunk):
    _, folder = trunk
    kernels = load_specs(ROOT / "specs").kernels
    for name in ("bwd_dh_pre", "bwd_dW_reduce", "bwd_db_reduce"):
        written = {p for p, param in kernels[name].params.items() if param.access != "read"}
        assert written <= {"dh2_pre", "dh1_pre", "dw", "db"}
        source = strip_comments((folder / "generated" / "kernels" / f"{name}.cuh").read_text())
        assert not re.search(
            r"\b(d|g|grad|gradient)_?(x|x_in|enc|in|input|h0|encoder)(_\w+)?\b", source, re.IGNORECASE
        )


def test_nothing_in_the_backward_of_aux_writes_to_the_encoding(trunk):
    program = resolve(load_specs(ROOT / "specs"), "aux", "tiny")
    backward = [la for step in program.steps for la in step.launches if "backward" in la.blocks]
    assert {la.kernel.kernel for la in backward} >= {"bwd_dh_pre", "bwd_dW_reduce", "bwd_db_reduce"}
    assert sum(la.kernel.kernel.startswith("bwd_") for la in backward) == 7
    written = {r.base for la in backward for a in la.arguments if a.access != "read" for r in a.ranges}
    assert "enc" not in written
    assert not any(name.startswith("enc.") for name in written)

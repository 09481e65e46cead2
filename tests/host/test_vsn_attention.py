"""Variable selection, attention and an ELU trunk with two heads, forward and backward, as one program.

Its wiring is checked in float64 by central differences, and then the program itself against float64.
"""

import numpy as np
import pytest
from small_programs import training
from step_oracle import StepOracle

from foxhunt.ir.layout import lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.spec.load import load_specs

DIMS = {"B": 7, "GROUPS": 6, "GF": 4, "EMB": 8, "SH1": 16, "SH2": 12, "ACTIONS": 3, "ATOMS": 5, "ONE": 1}
PARAMS = {
    "emb_w": "GROUPS, GF, EMB",
    "emb_b": "GROUPS, EMB",
    "vsn_w": "GROUPS * GF, GROUPS",
    "vsn_b": "GROUPS",
    "att_w": "EMB, 3 * EMB",
    "att_b": "3 * EMB",
    "w1": "GROUPS * EMB, SH1",
    "b1": "SH1",
    "w2": "SH1, SH2",
    "b2": "SH2",
    "val_w": "SH2, ATOMS",
    "val_b": "ATOMS",
    "adv_w": "SH2, ACTIONS",
    "adv_b": "ACTIONS",
}
INPUTS = {"x": "B, GROUPS * GF", "d_val": "B, ATOMS", "d_adv": "B, ACTIONS", **PARAMS}
OUTPUTS = {"val": "B, ATOMS", "adv": "B, ACTIONS", "mean_mask": "GROUPS", "entropy": "ONE"}
LOCALS = {
    **dict.fromkeys(["e", "emb", "d_emb", "d_res", "d_e"], "B * GROUPS, EMB"),
    **dict.fromkeys(["logits", "mask", "d_logits"], "B, GROUPS"),
    **dict.fromkeys(["qkv", "d_qkv"], "B * GROUPS, 3 * EMB"),
    **dict.fromkeys(["flat", "d_flat"], "B, GROUPS * EMB"),
    **dict.fromkeys(["h1", "d1"], "B, SH1"),
    **dict.fromkeys(["h2", "d2", "d_h2"], "B, SH2"),
    "att": "B, GROUPS * GROUPS",
}


def declared(tensors, lifetime, prefix=""):
    rows = (f"  - {{name: {prefix}{n}, shape: [{s}], lifetime: {lifetime}}}\n" for n, s in tensors.items())
    return "".join(rows)


NETWORK = f"""
dims: {{{", ".join(f"{k}: {v}" for k, v in DIMS.items())}}}
buffers:
{declared(INPUTS, "input")}
{declared(OUTPUTS, "persistent, reset: never")}
{declared(PARAMS, "persistent, reset: never", "g_")}
{declared(LOCALS, "step")}
blocks:
  - name: forward
    items:
      - {{kernel: group_embed, args: {{x: x, w: emb_w, b: emb_b, e: e}}}}
      - {{kernel: linear, args: {{x: x, w: vsn_w, b: vsn_b, y: logits}}, as: vsn}}
      - {{kernel: softmax_rows, args: {{x: logits, y: mask}}}}
      - {{kernel: vsn_mix, args: {{mask: mask, e: e, emb: emb}}}}
      - {{kernel: linear, args: {{x: emb, w: att_w, b: att_b, y: qkv}}, as: project}}
      - kernel: attention
        args: {{qkv: qkv, emb: emb, att: att, flat: flat}}
        bind: {{GROUPS: GROUPS}}
      - {{kernel: linear_elu, args: {{x: flat, w: w1, b: b1, y: h1}}, as: l1}}
      - {{kernel: linear_elu, args: {{x: h1, w: w2, b: b2, y: h2}}, as: l2}}
      - {{kernel: linear, args: {{x: h2, w: val_w, b: val_b, y: val}}, as: value}}
      - {{kernel: linear, args: {{x: h2, w: adv_w, b: adv_b, y: adv}}, as: advantage}}
      - {{kernel: column_mean, args: {{x: mask, y: mean_mask}}}}
      - {{kernel: gate_entropy, args: {{p: mean_mask, y: entropy}}}}
  - name: backward
    items:
      - {{kernel: linear_dx, args: {{dy: d_val, w: val_w, dx: d_h2}}, as: dx_val}}
      - {{kernel: linear_dx_add_elu, args: {{dy: d_adv, w: adv_w, add: d_h2, y: h2, dx: d2}}}}
      - {{kernel: linear_dx_elu, args: {{dy: d2, w: w2, y: h1, dx: d1}}}}
      - {{kernel: linear_dx, args: {{dy: d1, w: w1, dx: d_flat}}, as: dx_1}}
      - kernel: attention_grad
        args: {{d_flat: d_flat, qkv: qkv, att: att, d_qkv: d_qkv, d_emb: d_res}}
        bind: {{GROUPS: GROUPS}}
      - {{kernel: linear_dx_add, args: {{dy: d_qkv, w: att_w, add: d_res, dx: d_emb}}}}
      - {{kernel: vsn_mix_grad, args: {{d_emb: d_emb, mask: mask, e: e, d_e: d_e, d_logits: d_logits}}}}
      - {{kernel: group_embed_grad, args: {{x: x, d: d_e, dw: g_emb_w, db: g_emb_b}}}}
      - {{kernel: bwd_dW_reduce, args: {{a: x, d: d_logits, dw: g_vsn_w}}, as: dw_vsn}}
      - {{kernel: bwd_dW_reduce, args: {{a: emb, d: d_qkv, dw: g_att_w}}, as: dw_att}}
      - {{kernel: bwd_dW_reduce, args: {{a: flat, d: d1, dw: g_w1}}, as: dw_1}}
      - {{kernel: bwd_dW_reduce, args: {{a: h1, d: d2, dw: g_w2}}, as: dw_2}}
      - {{kernel: bwd_dW_reduce, args: {{a: h2, d: d_val, dw: g_val_w}}, as: dw_val}}
      - {{kernel: bwd_dW_reduce, args: {{a: h2, d: d_adv, dw: g_adv_w}}, as: dw_adv}}
      - {{kernel: bwd_db_reduce, args: {{d: d_logits, db: g_vsn_b}}, as: db_vsn}}
      - {{kernel: bwd_db_reduce, args: {{d: d_qkv, db: g_att_b}}, as: db_att}}
      - {{kernel: bwd_db_reduce, args: {{d: d1, db: g_b1}}, as: db_1}}
      - {{kernel: bwd_db_reduce, args: {{d: d2, db: g_b2}}, as: db_2}}
      - {{kernel: bwd_db_reduce, args: {{d: d_val, db: g_val_b}}, as: db_val}}
      - {{kernel: bwd_db_reduce, args: {{d: d_adv, db: g_adv_b}}, as: db_adv}}
steps:
  - name: gradients
    doc: The gradient of Σ d_val·val + Σ d_adv·adv.
    items:
      - {{use: forward, as: forward}}
      - {{use: backward, as: backward}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("network")


@pytest.fixture(scope="module")
def trainer(folder):
    rng = np.random.default_rng(5)
    with training(NETWORK, folder) as trainer:
        for name in INPUTS:
            scale = 1.0 if name in ("x", "d_val", "d_adv") else 0.5
            shape = trainer.tensor(name).shape
            trainer.write_tensor(name, (scale * rng.standard_normal(shape)).astype(np.float32))
        trainer.step()
        yield trainer


@pytest.fixture(scope="module")
def oracle(trainer, folder):
    oracle = StepOracle(lay_out(resolve(load_specs(folder / "specs"), "trial"), None))
    for name in INPUTS:
        oracle.tensor(name)[...] = trainer.tensor(name)
    oracle.run("gradients")
    return oracle


def loss(oracle):
    oracle.run("gradients")
    return sum(float((oracle.tensor(f"d_{head}") * oracle.tensor(head)).sum()) for head in ("val", "adv"))


@pytest.mark.parametrize("name", sorted(PARAMS))
def test_the_block_s_gradients_are_central_differences(oracle, name):
    tensor, gradient = oracle.tensor(name), oracle.tensor(f"g_{name}").copy().ravel()
    sampled = np.random.default_rng(7).choice(tensor.size, min(12, tensor.size), replace=False)
    for at in sampled:
        place, sides = np.unravel_index(at, tensor.shape), []
        kept = tensor[place]
        for moved in (kept + 1e-5, kept - 1e-5):
            tensor[place] = moved
            sides.append(loss(oracle))
        tensor[place] = kept
        slope = (sides[0] - sides[1]) / 2e-5
        assert slope == pytest.approx(gradient[at], rel=1e-6, abs=1e-7), (name, at)
    loss(oracle)


@pytest.mark.parametrize("name", sorted([*OUTPUTS, *(f"g_{n}" for n in PARAMS)]))
def test_the_program_agrees_with_float64(trainer, oracle, name):
    want = oracle.tensor(name)
    scale = np.sqrt((want**2).mean())
    np.testing.assert_allclose(trainer.tensor(name), want, rtol=2e-5, atol=2e-5 * scale)


def test_two_steps_have_the_same_bits(trainer):
    before = {f"g_{n}": trainer.tensor(f"g_{n}").copy() for n in PARAMS}
    trainer.step()
    assert all((trainer.tensor(n) == g).all() for n, g in before.items())


SIGNALS = """
dims: {B: 84, GROUPS: 6, EXPERTS: 8}
isv:
  - {name: BEFORE, source: host, init: 42.0, reset: never}
  - {name: VSN_MASK_EMA, count: GROUPS, reset: fold}
  - {name: MOE_EXPERT_UTIL_EMA, count: EXPERTS, reset: fold}
  - {name: MOE_GATE_ENTROPY_EMA, reset: fold}
buffers:
  - {name: mask, shape: [B, GROUPS], lifetime: input}
  - {name: gate, shape: [B, EXPERTS], lifetime: input}
  - {name: util, shape: [EXPERTS], lifetime: step}
producers:
  - {name: vsn_mask, kernel: column_mean, args: {x: mask}, out: {y: VSN_MASK_EMA}}
  - {name: moe_util, kernel: column_mean, args: {x: gate}, out: {y: MOE_EXPERT_UTIL_EMA}}
  - {name: gate_entropy, kernel: gate_entropy, args: {p: util}, out: {y: MOE_GATE_ENTROPY_EMA}}
steps:
  - name: observe
    items:
      - {kernel: column_mean, args: {x: gate, y: util}, as: mean_gate}
      - {producers: [vsn_mask, moe_util, gate_entropy]}
diagnostics:
  - {name: BEFORE}
  - {name: VSN_MASK_EMA}
  - {name: MOE_EXPERT_UTIL_EMA}
  - {name: MOE_GATE_ENTROPY_EMA}
"""


def observed(folder, mask, gate):
    """The slots after one step on these, as f32."""
    with training(SIGNALS, folder) as trainer:
        trainer.write_tensor("mask", np.broadcast_to(mask, (84, 6)).astype(np.float32))
        trainer.write_tensor("gate", np.broadcast_to(gate, (84, 8)).astype(np.float32))
        trainer.step()
        return {name: np.float32(trainer.signals[name]) for name in ("BEFORE", *SLOTS)}


SLOTS = ("VSN_MASK_EMA", "MOE_EXPERT_UTIL_EMA", "MOE_GATE_ENTROPY_EMA")


def test_constant_shares_stand_in_their_slots_after_one_step(tmp_path):
    mask = (np.arange(6) + 1) / np.float32(21)
    found = observed(tmp_path, mask, 1 / 8)
    assert (found["VSN_MASK_EMA"] == mask.astype(np.float32)).all()
    assert (found["MOE_EXPERT_UTIL_EMA"] == 1 / 8).all()
    assert found["MOE_GATE_ENTROPY_EMA"] == pytest.approx(np.log(8), rel=1e-6)
    assert found["BEFORE"] == 42


def test_a_share_that_is_never_finite_leaves_its_slot_alone(tmp_path):
    mask, gate = np.full((84, 6), 0.25), np.zeros((84, 8))
    mask[:, 2] = np.nan
    mask[5] = np.inf
    gate[:42, 0] = gate[42:, 3] = 1
    found = observed(tmp_path, mask, gate)
    assert found["VSN_MASK_EMA"].tolist() == [0.25, 0.25, 0, 0.25, 0.25, 0.25]
    assert found["MOE_EXPERT_UTIL_EMA"].tolist() == [0.5, 0, 0, 0.5, 0, 0, 0, 0]
    assert found["MOE_GATE_ENTROPY_EMA"] == pytest.approx(np.log(2), rel=1e-6)

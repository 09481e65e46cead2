"""A mixture of experts under two dueling categorical branches: gradients against central differences."""

import numpy as np
import pytest
from small_programs import training

SIZES = {"B": 6, "H": 5, "E": 3, "M": 4, "A": 3, "N": 7, "BRANCHES": 2}
WEIGHTS = {
    "gate_w": ("H", "E"),
    "gate_b": ("E",),
    "exp_w": ("H", "E * M"),
    "exp_b": ("E * M",),
    "val_w": ("M", "N"),
    "val_b": ("N",),
    "dir_w": ("M", "A * N"),
    "dir_b": ("A * N",),
    "mag_w": ("M + A", "A * N"),
    "mag_b": ("A * N",),
    "theta": ("BRANCHES", "N - 1"),
    "h": ("B", "H"),
}
SAMPLE = {
    "q_seen": ("B", "A"),
    "reward": ("B",),
    "terminated": ("B",),
    "q_next": ("B", "A"),
    "iqn": ("B", "BRANCHES"),
}
KEPT = {
    "atoms": ("BRANCHES", "N"),
    "util": ("E",),
    "logp_dir": ("B", "A * N"),
    "logp_mag": ("B", "A * N"),
    "q_dir": ("B", "A"),
    "q_mag": ("B", "A"),
    "loss_dir": ("B",),
    "loss_mag": ("B",),
    "m_dir": ("B", "N"),
    "target_q": ("B", "BRANCHES"),
    **{f"g_{name}": shape for name, shape in WEIGHTS.items()},
}


def declared(tensors, lifetime):
    return "".join(
        f"  - {{name: {n}, shape: [{', '.join(s)}], lifetime: {lifetime}}}\n" for n, s in tensors.items()
    )


PROGRAM = (
    f"""
dims: {{{", ".join(f"{k}: {v}" for k, v in SIZES.items())}, DIR: 0, MAG: 1}}
buffers:
{declared(WEIGHTS | SAMPLE, "input")}
{declared(KEPT, "persistent, reset: never")}
"""
    """
  - {name: action, shape: [B, BRANCHES], dtype: i32, lifetime: input}
  - {name: logp_next, shape: [B, A * N], lifetime: input}
  - {name: gate_z, shape: [B, E], lifetime: step}
  - {name: gate, shape: [B, E], lifetime: step}
  - {name: y, shape: [B, E * M], lifetime: step}
  - {name: z, shape: [B, M], lifetime: step}
  - {name: zmag, shape: [B, M + A], lifetime: step}
  - {name: value, shape: [B, N], lifetime: step}
  - {name: adv_dir, shape: [B, A * N], lifetime: step}
  - {name: adv_mag, shape: [B, A * N], lifetime: step}
  - {name: m_mag, shape: [B, N], lifetime: step}
  - {name: t_dir, shape: [B], lifetime: step}
  - {name: t_mag, shape: [B], lifetime: step}
  - {name: d_joint_dir, shape: [B, A * N], lifetime: step}
  - {name: d_joint_mag, shape: [B, A * N], lifetime: step}
  - {name: d_dir, shape: [B, A * N], lifetime: step}
  - {name: d_mag, shape: [B, A * N], lifetime: step}
  - {name: d_value, shape: [B, N], lifetime: step}
  - {name: d_zmag, shape: [B, M + A], lifetime: step}
  - {name: dz_mag, shape: [B, M], lifetime: step}
  - {name: dz_dir, shape: [B, M], lifetime: step}
  - {name: dz, shape: [B, M], lifetime: step}
  - {name: d_gate, shape: [B, E], lifetime: step}
  - {name: d_y, shape: [B, E * M], lifetime: step}
  - {name: dh_gate, shape: [B, H], lifetime: step}
  - {name: entropy, shape: [1], lifetime: step}
isv:
  - {name: GAMMA, source: host, init: 0.9, reset: never}
  - {name: C51_WEIGHT, source: host, init: 0.7, reset: never}
  - {name: ATOM_WEIGHT, source: host, init: 0.3, reset: never}
  - {name: MOE_LAMBDA, source: host, init: 0.2, reset: never}
  - {name: MOE_LAMBDA_EFF, source: kernel, init: 0.2, reset: fold}
  - {name: MOE_GATE_ENTROPY_EMA, floor: 0.0, reset: fold}
  - {name: H_RMS, floor: 1.0e-6, reset: fold}
  - {name: TARGET_Q_BOUND, floor: 1.0e-8, reset: fold}
  - {name: ATOM_POS_BOUND, count: BRANCHES, floor: 1.0e-8, reset: fold}
producers:
  - {name: entropy_mean, kernel: mean, args: {x: entropy}, out: {y: MOE_GATE_ENTROPY_EMA}}
  - {name: h_rms, kernel: rms, args: {x: h}, out: {y: H_RMS}}
  - {name: target_q_p99, kernel: p99_abs, args: {x: target_q}, out: {y: TARGET_Q_BOUND}}
  - name: atom_p99
    foreach: {b: BRANCHES}
    kernel: p99_abs
    args: {x: "atoms[b]"}
    out: {y: "ATOM_POS_BOUND[b]"}
blocks:
  - name: forward
    items:
      - {kernel: linear, args: {x: h, w: gate_w, b: gate_b, y: gate_z}, as: l_gate}
      - {kernel: softmax_rows, args: {x: gate_z, y: gate}}
      - {kernel: column_mean, args: {x: gate, y: util}}
      - {kernel: linear_elu, args: {x: h, w: exp_w, b: exp_b, y: y}}
      - {kernel: moe_mix, args: {gate: gate, y: y, z: z}}
      - {kernel: linear, args: {x: z, w: val_w, b: val_b, y: value}, as: l_value}
      - {kernel: linear, args: {x: z, w: dir_w, b: dir_b, y: adv_dir}, as: l_dir}
      - {kernel: mag_concat_qdir, args: {z: z, q_dir: q_seen, rms: H_RMS, y: zmag}}
      - {kernel: linear, args: {x: zmag, w: mag_w, b: mag_b, y: adv_mag}, as: l_mag}
      - {kernel: atom_positions, args: {theta: theta, bound: TARGET_Q_BOUND, atoms: atoms}}
      - kernel: dueling
        args: {value: value, adv: adv_dir, atoms: "atoms[DIR]", logp: logp_dir, q: q_dir}
        as: dueling_dir
      - kernel: dueling
        args: {value: value, adv: adv_mag, atoms: "atoms[MAG]", logp: logp_mag, q: q_mag}
        as: dueling_mag
  - name: targets
    items:
      - kernel: c51_target
        args:
          {q: q_next, logp: logp_next, reward: reward, terminated: terminated, gamma: GAMMA,
           atoms: "atoms[DIR]", limit: "ATOM_POS_BOUND[DIR]", m: m_dir, mean: t_dir}
        as: target_dir
      - kernel: c51_target
        args:
          {q: q_next, logp: logp_next, reward: reward, terminated: terminated, gamma: GAMMA,
           atoms: "atoms[MAG]", limit: "ATOM_POS_BOUND[MAG]", m: m_mag, mean: t_mag}
        as: target_mag
      - {kernel: denoised_target, args: {c51: [t_dir, t_mag], iqn: iqn, target_q: target_q}}
  - name: backward
    items:
      - kernel: c51_loss
        args:
          {logp: logp_dir, m: m_dir, action: action, weight: C51_WEIGHT,
           loss: loss_dir, d_joint: d_joint_dir}
        bind: {BRANCH: DIR}
        as: loss_of_dir
      - kernel: c51_loss
        args:
          {logp: logp_mag, m: m_mag, action: action, weight: C51_WEIGHT,
           loss: loss_mag, d_joint: d_joint_mag}
        bind: {BRANCH: MAG}
        as: loss_of_mag
      - kernel: atom_grad
        args:
          {action: action, atoms: "atoms[DIR]", logp: logp_dir, q: q_dir, target: target_q,
           weight: ATOM_WEIGHT, d_theta: "g_theta[DIR]"}
        bind: {BRANCH: DIR}
        as: atoms_of_dir
      - kernel: atom_grad
        args:
          {action: action, atoms: "atoms[MAG]", logp: logp_mag, q: q_mag, target: target_q,
           weight: ATOM_WEIGHT, d_theta: "g_theta[MAG]"}
        bind: {BRANCH: MAG}
        as: atoms_of_mag
      - {kernel: dueling_grad, args: {d: d_joint_dir, d_adv: d_dir}, bind: {N: N}, as: grad_dir}
      - {kernel: dueling_grad, args: {d: d_joint_mag, d_adv: d_mag}, bind: {N: N}, as: grad_mag}
      - {kernel: c51_value_grad, args: {d: [d_joint_dir, d_joint_mag], d_value: d_value}}
      - {kernel: linear_dx, args: {dy: d_mag, w: mag_w, dx: d_zmag}, as: dx_mag}
      - {kernel: mag_concat_qdir_grad, args: {d: d_zmag, dz: dz_mag}}
      - {kernel: linear_dx_add, args: {dy: d_dir, w: dir_w, add: dz_mag, dx: dz_dir}, as: dx_dir}
      - {kernel: linear_dx_add, args: {dy: d_value, w: val_w, add: dz_dir, dx: dz}, as: dx_value}
      - kernel: moe_mix_grad
        args: {dz: dz, gate: gate, weight: MOE_LAMBDA_EFF, util: util, y: y, d_gate: d_gate, d_y: d_y}
      - {kernel: linear_dx, args: {dy: d_gate, w: gate_w, dx: dh_gate}, as: dx_gate}
      - {kernel: linear_dx_add, args: {dy: d_y, w: exp_w, add: dh_gate, dx: g_h}, as: dx_experts}
      - {kernel: bwd_dW_reduce, args: {a: h, d: d_gate, dw: g_gate_w}, as: dw_gate}
      - {kernel: bwd_dW_reduce, args: {a: h, d: d_y, dw: g_exp_w}, as: dw_exp}
      - {kernel: bwd_dW_reduce, args: {a: z, d: d_value, dw: g_val_w}, as: dw_val}
      - {kernel: bwd_dW_reduce, args: {a: z, d: d_dir, dw: g_dir_w}, as: dw_dir}
      - {kernel: bwd_dW_reduce, args: {a: zmag, d: d_mag, dw: g_mag_w}, as: dw_mag}
      - {kernel: bwd_db_reduce, args: {d: d_gate, db: g_gate_b}, as: db_gate}
      - {kernel: bwd_db_reduce, args: {d: d_y, db: g_exp_b}, as: db_exp}
      - {kernel: bwd_db_reduce, args: {d: d_value, db: g_val_b}, as: db_val}
      - {kernel: bwd_db_reduce, args: {d: d_dir, db: g_dir_b}, as: db_dir}
      - {kernel: bwd_db_reduce, args: {d: d_mag, db: g_mag_b}, as: db_mag}
steps:
  - name: observe
    doc: Signals are observed in no other step, so that they stand still while weights are moved.
    items:
      - {use: forward, as: forward}
      - {use: targets, as: targets}
      - {kernel: gate_entropy, args: {p: util, y: entropy}}
      - {producers: [entropy_mean, h_rms, target_q_p99, atom_p99]}
      - kernel: moe_lambda_eff_update
        args: {base: MOE_LAMBDA, entropy: MOE_GATE_ENTROPY_EMA, lambda_eff: MOE_LAMBDA_EFF}
        bind: {E: E}
  - name: gradients
    items:
      - {use: forward, as: forward}
      - {use: targets, as: targets}
      - {use: backward, as: backward}
"""
)


def size(shape):
    return tuple(eval(s, {}, dict(SIZES)) for s in shape)


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    rng = np.random.default_rng(5)
    with training(PROGRAM, tmp_path_factory.mktemp("dueling")) as trainer:
        for name, shape in (WEIGHTS | SAMPLE).items():
            trainer.write_tensor(name, rng.standard_normal(size(shape)) * 0.8)
        trainer.write_tensor("terminated", np.array([0, 1, 0, 0, 1, 0], np.float32))
        trainer.write_tensor("logp_next", rng.standard_normal(size(("B", "A * N"))))
        trainer.write_tensor("action", rng.integers(0, SIZES["A"], size(("B", "BRANCHES"))))
        for _ in range(2):  # the second step's λ comes from the first one's entropy
            trainer.step("observe")
        trainer.sync()
        trainer.step("gradients")
        yield trainer


def loss(trainer):
    """What the weights above θ learn from; reads what the kernels left, in float64."""
    trainer.step("gradients")
    util = trainer.tensor("util").astype(np.float64)
    balance = float(trainer.signals["MOE_LAMBDA_EFF"]) * SIZES["E"] * (util**2).sum()
    return balance + 0.7 * sum(trainer.tensor(f"loss_{b}").astype(np.float64).mean() for b in ("dir", "mag"))


def matching(trainer, p, target):
    """What θ learns from: positions move, the distributions p and their targets do not."""
    trainer.step("gradients")
    atoms = trainer.tensor("atoms").astype(np.float64)
    return 0.3 * sum((((p[b] @ atoms[b]) - target[:, b]) ** 2).mean() for b in range(SIZES["BRANCHES"]))


def taken(trainer):
    """The distributions of the actions taken, [BRANCHES, B, N]."""
    action, rows = trainer.tensor("action"), np.arange(SIZES["B"])
    logp = [
        trainer.tensor(f"logp_{b}").astype(np.float64).reshape(size(("B", "A", "N"))) for b in ("dir", "mag")
    ]
    return np.exp([logp[b][rows, action[:, b]] for b in range(SIZES["BRANCHES"])])


@pytest.mark.parametrize("name", sorted(WEIGHTS))
def test_gradients_agree_with_central_differences(net, name):
    weight, gradient = net.tensor(name).copy(), net.tensor(f"g_{name}").copy().ravel()
    p, target = taken(net), net.tensor("target_q").astype(np.float64)
    scale = 0.1 * np.sqrt((gradient.astype(np.float64) ** 2).mean())
    assert scale > 1e-5
    for at in np.random.default_rng(7).choice(weight.size, min(12, weight.size), replace=False):
        sides = []
        for epsilon in (1e-2, -1e-2):
            moved = weight.copy()
            moved.ravel()[at] += np.float32(epsilon)
            net.write_tensor(name, moved)
            found = matching(net, p, target) if name == "theta" else loss(net)
            sides.append((found, float(moved.ravel()[at])))
        slope = (sides[0][0] - sides[1][0]) / (sides[0][1] - sides[1][1])
        assert abs(gradient[at] - slope) < 2e-2 * max(abs(slope), scale), (name, at, gradient[at], slope)
    net.write_tensor(name, weight)
    net.step("gradients")


def test_the_load_balance_follows_the_entropy_of_the_gate(net):
    entropy, base = float(net.signals["MOE_GATE_ENTROPY_EMA"]), 0.2
    assert 0 < entropy < np.log(SIZES["E"])
    expected = base * (1 + 9 * (1 - entropy / np.log(SIZES["E"])))
    assert float(net.signals["MOE_LAMBDA_EFF"]) == pytest.approx(expected, rel=1e-5)


def test_atoms_reach_exactly_the_observed_bound(net):
    atoms, bound = net.tensor("atoms"), np.float32(net.signals["TARGET_Q_BOUND"])
    assert bound > 0
    assert np.all(atoms[:, 0] == -bound)
    assert np.all(atoms[:, -1] == bound)
    assert np.all(np.diff(atoms, axis=1) > 0)


def test_no_gradient_reaches_the_magnitude_branch_through_q_dir(net):
    rows = net.tensor("q_seen") / float(net.signals["H_RMS"])
    assert np.isfinite(rows).all()
    seen = net.tensor("q_seen").copy()
    before = net.tensor("g_dir_w").copy(), net.tensor("g_val_w").copy()
    net.write_tensor("q_seen", seen + 1.0)
    net.step("gradients")
    assert np.array_equal(net.tensor("g_dir_w"), before[0])
    assert not np.array_equal(net.tensor("g_val_w"), before[1])
    net.write_tensor("q_seen", seen)
    net.step("gradients")

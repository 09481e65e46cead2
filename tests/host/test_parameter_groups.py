"""What is observed of parameter groups, their clamps and Pearl C: facts §3 and §10, math §3 to §5."""

import numpy as np
import pytest
from small_programs import training

from foxhunt.ir.graph import build_graph
from foxhunt.ir.layout import lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.reference import REFERENCES
from foxhunt.schedule.build import build_schedule
from foxhunt.schedule.fuse import inputs
from foxhunt.spec.load import load_specs

DIMS = {"BIG": 70_001, "SIDE": 40, "SHORT": 3, "GROUPS": 2, "MOMENTS": 2}
SHAPES = {"t": ("BIG",), "c1": ("SIDE", "SIDE"), "c2": ("SIDE",), "c3": ("SIDE", "SHORT"), "c4": ("SHORT",)}
CURIOSITY = ("c1", "c2", "c3", "c4")  # a group of four buffers; trunk is the one buffer t
BOUNDS = {"w": "WEIGHT_BOUND", "m": "ADAM_M_BOUND", "v": "ADAM_V_BOUND"}


def buffers():
    for part, shape in SHAPES.items():
        for x, lifetime in zip("wgmv", ("persistent", "input", "persistent", "persistent"), strict=True):
            reset = ", reset: never" if lifetime == "persistent" else ""
            yield f"  - {{name: {part}_{x}, shape: [{', '.join(shape)}], lifetime: {lifetime}{reset}}}"


def rows(x):
    return f"[{', '.join(f'{part}_{x}' for part in CURIOSITY)}]"


C = {x: rows(x) for x in "wgmv"}
W, G, M, V = (f"{{each: [t_{x}, {rows(x)}]}}" for x in "wgmv")
PROGRAM = f"""
dims: {{{", ".join(f"{name}: {size}" for name, size in DIMS.items())}}}
isv:
  - {{name: WEIGHT_BOUND, count: GROUPS, floor: 1.0e-8, reset: fold}}
  - {{name: ADAM_M_BOUND, count: GROUPS, floor: 1.0e-8, reset: fold}}
  - {{name: ADAM_V_BOUND, count: GROUPS, floor: 1.0e-8, reset: fold}}
  - {{name: WD_RATE, count: GROUPS, reset: fold}}
  - {{name: L1_LAMBDA_TRUNK, reset: fold}}
  - {{name: GRAD_CLIP_BOUND, floor: 1.0e-8, reset: fold}}
  - {{name: LR, source: host, init: 0.0, reset: never}}
  - {{name: L1_NONE, source: host, init: 0.0, reset: never}}
  - {{name: RATE, count: GROUPS, source: kernel, reset: fold}}
  - {{name: RATE_DEFICIT, count: GROUPS, source: kernel, reset: fold}}
counters: [{{name: adam_t, advance: train, reset: never}}]
buffers:
{chr(10).join(buffers())}
  - {{name: norm, shape: [1], lifetime: step}}
  - {{name: correction, shape: [MOMENTS], lifetime: persistent, reset: never}}
producers:
  - {{name: w_p99, foreach: {{g: GROUPS}}, kernel: p99_abs, args: {{x: {W}}}, out: {{y: "WEIGHT_BOUND[g]"}}}}
  - {{name: m_p99, foreach: {{g: GROUPS}}, kernel: p99_abs, args: {{x: {M}}}, out: {{y: "ADAM_M_BOUND[g]"}}}}
  - {{name: v_p99, foreach: {{g: GROUPS}}, kernel: p99_abs, args: {{x: {V}}}, out: {{y: "ADAM_V_BOUND[g]"}}}}
  - name: decay
    foreach: {{g: GROUPS}}
    kernel: decay_rate
    args: {{w: {W}, g: {G}}}
    out: {{y: "WD_RATE[g]"}}
  - {{name: l1, kernel: l1_lambda, args: {{w: t_w, g: t_g}}, out: {{y: L1_LAMBDA_TRUNK}}}}
  - {{name: grad_norm, kernel: p99_abs, args: {{x: norm}}, out: {{y: GRAD_CLIP_BOUND}}}}
steps:
  - name: train
    items:
      - {{kernel: l2_norm, args: {{x: [t_g, {C["g"][1:]}, y: norm}}}}
      - {{kernel: beta_correction, args: {{t: adam_t, correction: correction}}}}
      - kernel: adamw
        args:
          {{w: t_w, g: t_g, m: t_m, v: t_v, lr: LR, wd: "WD_RATE[0]", l1: L1_LAMBDA_TRUNK,
           correction: correction, norm: norm, clip: GRAD_CLIP_BOUND}}
        as: update_trunk
      - kernel: adamw
        args:
          {{w: {C["w"]}, g: {C["g"]}, m: {C["m"]}, v: {C["v"]}, lr: LR, wd: "WD_RATE[1]", l1: L1_NONE,
           correction: correction, norm: norm, clip: GRAD_CLIP_BOUND}}
        as: update_curiosity
      - {{producers: [w_p99, m_p99, v_p99, decay, l1, grad_norm]}}
      - kernel: clamp_group
        args:
          {{w: t_w, m: t_m, v: t_v, w_limit: "WEIGHT_BOUND[0]", m_limit: "ADAM_M_BOUND[0]",
           v_limit: "ADAM_V_BOUND[0]", rate: "RATE[0]", rate_deficit: "RATE_DEFICIT[0]"}}
        as: clamp_trunk
      - kernel: clamp_group
        args:
          {{w: {C["w"]}, m: {C["m"]}, v: {C["v"]}, w_limit: "WEIGHT_BOUND[1]", m_limit: "ADAM_M_BOUND[1]",
           v_limit: "ADAM_V_BOUND[1]", rate: "RATE[1]", rate_deficit: "RATE_DEFICIT[1]"}}
        as: clamp_curiosity
diagnostics: [{{name: RATE}}, {{name: RATE_DEFICIT}}, {{name: WD_RATE}}]
"""


@pytest.fixture
def trainer(tmp_path):
    with training(PROGRAM, tmp_path) as made:
        rng = np.random.default_rng(5)
        for part, shape in SHAPES.items():
            size = tuple(DIMS[s] for s in shape)
            for x in "wgm":
                made.write_tensor(f"{part}_{x}", rng.standard_normal(size).astype(np.float32))
            made.write_tensor(f"{part}_v", rng.random(size).astype(np.float32))
        yield made


def tensors(trainer, x):
    return [[trainer.tensor(f"{p}_{x}").copy().ravel() for p in group] for group in (("t",), CURIOSITY)]


def observed(trainer):
    scratch = trainer.backend.read("scratch", 0, len(trainer.plan.observations), "f32")
    found = {}
    for o in sorted(trainer.plan.observations, key=lambda o: o.position):
        found.setdefault(o.producer, []).append(float(scratch[o.position]))
    return found


def after_adamw(trainer):
    """Weights stay with a learning rate of 0; moments as AdamW's f32 arithmetic leaves them."""
    g, m, v = (tensors(trainer, x) for x in "gmv")
    f = np.float32
    pairs = [list(zip(*group, strict=True)) for group in zip(m, g, strict=True)]
    first = [[f(0.9) * a + f(0.1) * b for a, b in group] for group in pairs]
    pairs = [list(zip(*group, strict=True)) for group in zip(v, g, strict=True)]
    second = [[f(0.999) * a + f(0.001) * (b * b) for a, b in group] for group in pairs]
    return {"w": tensors(trainer, "w"), "g": g, "m": first, "v": second}


def expected(kernel, **inputs):
    return REFERENCES[kernel](inputs, {}, {"FLOOR": 1e-12})["y"][0]


def test_every_group_is_observed_as_the_union_of_its_buffers(trainer):
    state = after_adamw(trainer)
    trainer.step()
    trainer.sync()
    found = observed(trainer)
    for x, producer in zip("wmv", ("w_p99", "m_p99", "v_p99"), strict=True):
        assert found[producer] == pytest.approx([expected("p99_abs", x=g) for g in state[x]], rel=1e-6)
    pairs = list(zip(state["w"], state["g"], strict=True))
    assert found["decay"] == pytest.approx([expected("decay_rate", w=w, g=g) for w, g in pairs], rel=1e-6)
    assert found["l1"] == pytest.approx([expected("l1_lambda", w=pairs[0][0], g=pairs[0][1])], rel=1e-5)


def test_observations_stand_output_by_output_all_groups_together(trainer):
    order = sorted(trainer.plan.observations, key=lambda o: o.position)
    names = ("w_p99", "m_p99", "v_p99", "decay")
    assert [o.producer for o in order] == [n for n in names for _ in range(2)] + ["l1", "grad_norm"]


def test_every_pass_sweeps_every_buffer_of_a_group_once(trainer, tmp_path):
    laid_out = lay_out(resolve(load_specs(tmp_path / "specs"), "trial"), None)
    (step,) = build_schedule(laid_out, (build_graph(laid_out, "train"),)).steps
    swept = []
    for task in (t for launch in step.launches for t in launch.tasks):
        if task.launches[0].kernel.kind == "statistic" and task.launches[0].producer:
            ranges = {r.base for n in task.launches for r in inputs(n)}
            swept += [(task.pass_index, base) for base in ranges - {"norm", "arena"}]
    buffers = [f"{part}_{x}" for part in SHAPES for x in "wmv"]
    assert sorted(k for k in swept if k[1][-1] != "g") == sorted((p, b) for p in (0, 1) for b in buffers)
    assert sorted(b for p, b in swept if b[-1] == "g") == sorted(f"{part}_g" for part in SHAPES)


def test_nothing_is_clamped_before_a_bound_is_known_and_pearl_c_counts_afterwards(trainer):
    before = after_adamw(trainer)
    trainer.step()
    trainer.sync()
    for x in BOUNDS:
        for found, known in zip(tensors(trainer, x), before[x], strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(found, known, strict=True))
    assert not trainer.signals["RATE"].any()

    limits = {x: np.array(trainer.signals[slot]) for x, slot in BOUNDS.items()}
    for part in SHAPES:
        trainer.write_tensor(f"{part}_w", trainer.tensor(f"{part}_w") * np.float32(3))
    before = after_adamw(trainer)
    trainer.step()
    trainer.sync()
    for x in BOUNDS:
        for k, (found, known) in enumerate(zip(tensors(trainer, x), before[x], strict=True)):
            for a, b in zip(found, known, strict=True):
                assert np.array_equal(a, np.clip(b, -limits[x][k], limits[x][k]))
    beyond = [np.concatenate(g) for g in before["w"]]
    rates = [np.mean(np.abs(w) > limit) for w, limit in zip(beyond, limits["w"], strict=True)]
    assert min(rates) > 0.1
    assert trainer.signals["RATE"] == pytest.approx(rates, rel=1e-6)
    assert trainer.signals["RATE_DEFICIT"] == pytest.approx(np.array(rates) - 0.01, rel=1e-6)


def test_a_decay_rate_that_was_never_observed_is_no_decay(trainer):
    """The slots of rates are read as they are: before an observation and after a reset they are 0."""
    trainer.signals["LR"] = 0.1
    for part in SHAPES:
        gradient = np.zeros_like(trainer.tensor(f"{part}_w"))
        trainer.write_tensor(f"{part}_g", gradient)
        trainer.write_tensor(f"{part}_m", gradient)
    before = tensors(trainer, "w")
    trainer.step()
    trainer.sync()
    for found, known in zip(tensors(trainer, "w"), before, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(found, known, strict=True))
    assert not trainer.signals["WD_RATE"].any()  # a gradient of 0 is degenerate: nothing was observed


FACTS = """
dims: {B: 300, COMPONENTS: 6, TAUS: 5, QUANTILES: TAUS - 1, CHOICES: 12, BT: B * TAUS}
isv:
  - {name: IQN_QUANTILE_EMA, count: QUANTILES, reset: fold}
  - {name: REWARD_COMPONENT_EMA, count: COMPONENTS, reset: fold}
  - {name: OTHER, source: host, init: 0.1, reset: never}
buffers:
  - {name: rewards, shape: [B, COMPONENTS], lifetime: persistent, reset: never}
  - {name: quantiles, shape: [BT, CHOICES], lifetime: input}
producers:
  - name: iqn_quantile
    foreach: {k: QUANTILES}
    kernel: iqn_quantiles
    args: {x: quantiles}
    bind: {T: TAUS, QUANTILE: k}
    out: {y: "IQN_QUANTILE_EMA[k]"}
  - name: reward_component
    foreach: {c: COMPONENTS}
    kernel: column_mean_abs
    args: {x: rewards}
    bind: {COLUMN: c}
    out: {y: "REWARD_COMPONENT_EMA[c]"}
steps:
  - name: train
    items:
      - {producers: [iqn_quantile, reward_component]}
      - {kernel: zero, args: {y: rewards}}
diagnostics: [{name: IQN_QUANTILE_EMA}, {name: REWARD_COMPONENT_EMA}, {name: OTHER}]
"""


def test_quantiles_and_reward_components_have_the_values_of_the_facts(tmp_path):
    rng = np.random.default_rng(8)
    with training(FACTS, tmp_path) as trainer:
        taus = np.tile(np.arange(5), 300)
        trainer.write_tensor("quantiles", np.repeat((taus[:, None] + 1) * 0.7, 12, axis=1))
        sizes = np.array([1, 2, 0, 4, 5, 0])  # components 2 and 5 are always zero
        trainer.write_tensor("rewards", sizes * rng.choice([-1, 1], (300, 6)))
        trainer.step()
        trainer.sync()
        assert np.array_equal(trainer.signals["REWARD_COMPONENT_EMA"], sizes)
        assert trainer.signals["IQN_QUANTILE_EMA"] == pytest.approx([0.7, 1.4, 2.8, 3.5], rel=1e-6)
        assert trainer.signals["OTHER"] == np.float32(0.1)
        assert not trainer.tensor("rewards").any()
        skips = [skips for name, (_, skips) in trainer.health().items() if name.startswith("reward")]
        assert skips == [0, 0, 1, 0, 0, 1]

        trainer.step()  # the buffer was zeroed: nothing to learn, every slot keeps its bits
        trainer.sync()
        assert np.array_equal(trainer.signals["REWARD_COMPONENT_EMA"], sizes)


def test_the_columns_of_a_buffer_share_one_sweep(tmp_path):
    with training(FACTS, tmp_path):
        pass
    laid_out = lay_out(resolve(load_specs(tmp_path / "specs"), "trial"), None)
    (step,) = build_schedule(laid_out, (build_graph(laid_out, "train"),)).steps
    tasks = [t for q in step.launches for t in q.tasks if t.launches[0].kernel.kind == "statistic"]
    assert sorted(len(t.launches) for t in tasks) == [4, 6]

"""Program `dqn` at `tiny` dims on the host: bits, bounds that follow, resets, parameters, a debug run."""

import numpy as np
import pytest
from kernel_harness import ROOT

from foxhunt.emit.store import store
from foxhunt.emit.templates import load_templates
from foxhunt.pipeline import compile_program
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.load import load_specs

LOSSES = ("LAMBDA_C51", "LAMBDA_IQN", "LAMBDA_ATOM", "LAMBDA_IQL", "LAMBDA_CURIOSITY", "MOE_LAMBDA")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The plan and its folder, beside the examples with the bars."""
    folder = tmp_path_factory.mktemp("dqn")
    (folder / "examples").symlink_to(ROOT / "examples")
    templates = load_templates([ROOT / "templates"])
    found = compile_program(load_specs(ROOT / "specs"), "dqn", "tiny", {}, templates, None)
    store(found.files, folder / "generated")
    return found.plan, folder / "generated"


def started(compiled, **options):
    """A trainer that has paths, a replay and a few steps behind it."""
    trainer = Trainer(*compiled, backend="host", **options)
    trainer.run(1, "plant")
    trainer.run(4, "collect")
    return trainer


def learn(trainer, steps):
    for _ in range(steps):
        trainer.run(1, "collect")
        trainer.run(1, "train")
    trainer.sync()


@pytest.fixture
def trainer(compiled):
    with started(compiled) as trainer:
        learn(trainer, 10)
        yield trainer


def test_two_runs_have_the_same_bits_and_another_seed_has_others(compiled):
    ends = []
    for seed in (5, 5, 6):
        with started(compiled, seed=seed) as trainer:
            learn(trainer, 20)
            trainer.run(20, "evaluate")
            traded = trainer.tensor("eval_account").tobytes()
            ends.append((trainer.tensor("w1").tobytes(), traded, trainer.signals["H_S2_BOUND"]))
    assert ends[0] == ends[1]
    assert ends[0][0] != ends[2][0]


def test_signals_are_finite_and_nothing_is_refused(trainer):
    learn(trainer, 100)
    for name, value in trainer.diagnostics().items():
        assert np.isfinite(np.asarray(value, np.float64)).all(), name
    assert not any(refused for refused, _ in trainer.health().values())
    mean_gate = np.asarray(trainer.signals["MOE_EXPERT_UTIL_EMA"])
    assert mean_gate.sum() == pytest.approx(1, abs=0.05)
    assert np.asarray(trainer.signals["VSN_MASK_EMA"]).sum() == pytest.approx(1, abs=0.05)
    rewards = np.asarray(trainer.signals["REWARD_COMPONENT_EMA"])
    assert (rewards[[2, 5]] == 0).all()
    assert (rewards[[0, 1]] > 0).all()


def scaled(trainer, names, factor):
    for name in names:
        trainer.write_tensor(name, factor * trainer.tensor(name))


def raise_weights(trainer):
    """Step by step, as training does: one leap the clamp would take back before the bound has moved."""
    trainer.signals["LR"] = 0.0
    scaled(trainer, weights(), 1.06)


def weights():
    return [p.name for p in load_specs(ROOT / "specs").programs["dqn"].params if p.group != "aux_net"]


def raise_losses(trainer):
    for name in LOSSES:
        trainer.signals[name] = 1.06 * trainer.signals[name]


@pytest.mark.parametrize(
    ("bounds", "grow"),
    [
        (("WEIGHT_BOUND",), raise_weights),
        (("H_S2_BOUND",), lambda trainer: scaled(trainer, ("w1", "w2"), 1.04)),
        (("TARGET_Q_BOUND", "ATOM_POS_BOUND"), lambda trainer: scaled(trainer, ("ring_reward",), 1.06)),
        (("GRAD_CLIP_BOUND", "BW_D_H_S2_BOUND", "Q_DIR_GRAD_BOUND"), raise_losses),
        (("ADAM_M_BOUND", "ADAM_V_BOUND"), raise_losses),
    ],
    ids=["weights", "trunk", "targets", "gradients", "moments"],
)
def test_a_bound_follows_what_grows_tenfold(trainer, bounds, grow):
    before = {name: np.asarray(trainer.signals[name]).copy() for name in bounds}
    most = {name: np.zeros_like(value) for name, value in before.items()}
    for _ in range(60):
        grow(trainer)
        trainer.run(1, "train")
        trainer.sync()
        for name in bounds:
            most[name] = np.maximum(most[name], trainer.signals[name])
    for name, old in before.items():
        assert np.median(most[name] / old) > 5, (name, most[name] / old)
        assert (most[name] > 2 * old).all(), (name, most[name] / old)


def test_acting_learning_and_evaluating_share_one_allocation_of_each_parameter(compiled):
    plan, _ = compiled
    places = {}
    for step in plan.steps:
        for launch in step.launches:
            if ".now." not in launch.name and "fused" not in launch.name:
                continue
            for argument in launch.args:
                if getattr(argument, "buffer", "") == "params":
                    places.setdefault(step.name, set()).add((argument.buffer, argument.offset))
    assert places["collect"] == places["evaluate"]
    assert places["collect"] <= places["train"]
    assert sum(b.name == "params" for b in plan.buffers) == 1


def test_a_fold_clears_signals_with_their_triples_and_starts_new_episodes_and_nothing_else(trainer):
    kept = ("w1", "w1.m", "t_w1", "cur_w1", "env_account", "ring_x")
    before = {name: trainer.tensor(name).copy() for name in kept}
    trainer.reset("fold")
    for slot in trainer.plan.slots:
        if slot.reset == "fold":
            assert (np.asarray(trainer.signals[slot.name]) == 0).all(), slot.name
    assert (trainer.tensor("env_ended") == 1).all()
    assert all((trainer.tensor(name) == value).all() for name, value in before.items())
    wiener = trainer.backend.read("wiener", 0, 213, "f32")
    assert (wiener == 0).all()
    learn(trainer, 1)
    assert trainer.signals["H_S2_BOUND"] > 0


def test_a_debug_run_finds_nothing(compiled):
    with started(compiled, debug=True) as trainer:
        learn(trainer, 2)
        trainer.run(2, "evaluate")
        trainer.run(1, "use_bars")
        trainer.run(1, "baselines")
        trainer.sync()

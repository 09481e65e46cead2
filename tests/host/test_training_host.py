"""Program `aux` compiled for the host: it trains like NumPy, resumes bit for bit, and meets its bar."""

from pathlib import Path

import numpy as np
import pytest

from foxhunt.backend.base import make_backend
from foxhunt.cli.demo import held_out
from foxhunt.diagnostics import CheckpointError
from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program
from foxhunt.reference.aux_training import GROUPS, Controls, State, gather, train_step
from foxhunt.reference.philox import Stream
from foxhunt.runtime import checkpoint
from foxhunt.runtime.data import load_source
from foxhunt.runtime.trainer import Trainer
from foxhunt.schedule.abi import rng_hash
from foxhunt.spec.load import load_specs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """(folder, plan) of `aux` at B = 256."""
    folder = tmp_path_factory.mktemp("aux")
    done = compile_program(load_specs(ROOT / "specs"), "aux", "demo")
    store(done.files, folder)
    return folder, done.plan


@pytest.fixture(scope="module")
def bars(compiled):
    return load_source(compiled[1].data[0], ROOT)


@pytest.fixture
def make(compiled, monkeypatch):
    folder, plan = compiled
    monkeypatch.chdir(ROOT)  # the data's path is relative
    made = []

    def trainer(seed=0):
        made.append(Trainer(plan, folder, backend=make_backend("host"), seed=seed))
        return made[-1]

    yield trainer
    for one in made:
        one.close()


def persistent(trainer):
    """Every checkpointed tensor's bytes."""
    trainer.sync()
    return {
        e.name: trainer.backend.read(e.buffer, e.offset_bytes, e.count, e.dtype).tobytes()
        for e in checkpoint.entities(trainer.plan)
    }


def numpy_state(trainer):
    names = [n for group in GROUPS.values() for n in group]
    return State({n: trainer.tensor(n).astype(np.float64) for n in names})


def test_the_first_20_steps_agree_with_numpy_in_float64_on_the_same_samples(make, bars):
    """Tolerances: 5e-6 of every slot, 1e-5 of each tensor's largest weight; ten times what is seen."""
    trainer = make(seed=3)
    state = numpy_state(trainer)
    for step in range(1, 21):
        draws = Stream(3, step, rng_hash("train.draw_windows")).below(
            np.arange(256), 0, len(bars["train_ends"])
        )
        lr = 3e-4 * (1 + step / 10)
        trainer.signals["LR"] = lr
        trainer.step("train")
        train_step(state, gather(bars, bars["train_ends"][draws], 63, 30, 6), Controls(lr=lr))
        trainer.sync()
        for name, slot in state.slots.items():
            assert trainer.signals[name] == pytest.approx(slot.x, rel=5e-6, abs=1e-6), (step, name)
        for name, expected in state.params.items():
            worst = np.abs(trainer.tensor(name) - expected).max()
            assert worst <= 1e-5 * np.abs(expected).max() + 2e-7, (step, name, worst)


def test_training_resumed_from_a_checkpoint_is_bit_identical(make, tmp_path):
    whole = make(seed=1)
    whole.run(7, "train")
    whole.signals["LR"] = 1e-4
    whole.save(tmp_path / "a.safetensors")
    whole.run(5, "train")
    resumed = make(seed=2)
    resumed.run(3, "train")
    resumed.load(tmp_path / "a.safetensors")
    resumed.run(5, "train")
    assert persistent(whole) == persistent(resumed)
    assert whole.diagnostics() == resumed.diagnostics()


def test_steps_one_by_one_equal_steps_in_a_run(make):
    one, many = make(), make()
    for _ in range(6):
        one.step("train")
    many.run(6, "train", per_graph=4)
    assert persistent(one) == persistent(many)


def test_after_a_fold_reset_the_first_step_is_unclipped_and_unclamped(make):
    trainer = make()
    trainer.run(5, "train")
    trainer.reset("fold")
    assert trainer.signals["GRAD_CLIP_BOUND"] == 0.0
    assert not trainer.backend.read("wiener", 0, 3, "f32").any()
    trainer.write_tensor("aux_b1", np.full(256, 50, np.float32))
    trainer.signals["LR"] = 0.0
    trainer.step("train")
    assert (trainer.tensor("aux_b1") == 50).all()
    trainer.sync()
    bound = trainer.signals["TRUNK_WEIGHT_BOUND"]
    assert 0 < bound < 50
    trainer.step("train")
    assert (trainer.tensor("aux_b1") == np.float32(bound)).all()


def test_the_trunk_has_exactly_163_072_parameters(make):
    assert make().tensor("trunk").shape == (163_072,)


@pytest.mark.parametrize("seed", range(5))
def test_the_regime_head_beats_both_baselines_on_held_out_bars(make, seed):
    trainer = make(seed)
    trainer.run(150, "train")
    regime, _ = held_out(trainer, ROOT)
    assert regime.windows == 1147
    for comparison in regime.comparisons:
        if comparison.barred:
            assert comparison.lead > comparison.error > 0, comparison


def test_evaluation_sees_every_held_out_window_and_changes_no_weight(make):
    trainer = make()
    before = trainer.tensor("trunk")
    trainer.write_tensor("eval_reg_class", np.full(1147, -1, np.float32))
    first = held_out(trainer, ROOT)
    assert (trainer.tensor("eval_reg_class") >= 0).all()
    assert (trainer.tensor("eval_reg_loss") > 0).all()
    assert held_out(trainer, ROOT) == first
    assert np.array_equal(trainer.tensor("trunk"), before)


def test_the_batch_size_is_no_part_of_a_checkpoint_and_a_shape_is(make, tmp_path):
    make().save(tmp_path / "a.safetensors")
    specs = load_specs(ROOT / "specs")
    checkpoint.load(tmp_path / "a.safetensors", compile_program(specs, "aux").plan)
    with pytest.raises(CheckpointError) as error:
        checkpoint.load(tmp_path / "a.safetensors", compile_program(specs, "aux", dims={"H1": 128}).plan)
    assert "aux_w1 f32 [443,256]" in str(error.value)
    assert "aux_w1 f32 [443,128]" in str(error.value)

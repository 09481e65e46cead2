"""Program `dqn` on the GPU: the host's bits, replayed and launch by launch; ten thousand steps."""

from pathlib import Path

import numpy as np
import pytest
from test_cuda_aux import EagerBackend, assert_same_bits

from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program
from foxhunt.runtime.load import load_plan
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.load import load_specs

ROOT = Path(__file__).parents[2]


def compiled(folder, variant):
    (folder / "examples").symlink_to(ROOT / "examples")
    store(compile_program(load_specs(ROOT / "specs"), "dqn", variant).files, folder / "generated")
    return folder / "generated"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("tiny"), "tiny")


def alternating(trainer, rounds):
    for _ in range(rounds):
        trainer.run(1, "collect")
        trainer.run(2, "train")


def end(folder, backend):
    """All memory that lasts, after learning, a fold, more learning, evaluation and a change to real bars."""
    with Trainer(load_plan(folder), folder, backend=backend, seed=5) as trainer:
        trainer.run(1, "plant")
        trainer.run(4, "collect")
        for rate in (1e-3, 5e-4):
            trainer.signals["LR"] = rate
            trainer.signals["EPSILON"] = 300 * rate
            alternating(trainer, 10)
            trainer.reset("fold")
        alternating(trainer, 5)
        trainer.run(16, "evaluate")
        trainer.run(1, "use_bars")
        alternating(trainer, 5)
        trainer.run(1, "baselines")
        trainer.sync()
        kept = [b for b in trainer.plan.buffers if b.role in ("params", "state", "isv", "wiener", "health")]
        return {b.name: trainer.backend.read(b.name, 0, b.count, b.dtype) for b in kept}


@pytest.fixture(scope="module")
def replayed(tiny):
    return end(tiny, "cuda")


def test_the_gpu_has_the_bits_of_the_host(tiny, replayed):
    assert_same_bits(end(tiny, "host"), replayed)


def test_replays_equal_eager_launches(tiny, replayed):
    assert_same_bits(end(tiny, EagerBackend()), replayed)


def test_two_runs_have_the_same_bits(tiny, replayed):
    assert_same_bits(end(tiny, "cuda"), replayed)


def test_ten_thousand_steps_stay_finite(tmp_path):
    folder = compiled(tmp_path, "small")
    with Trainer(load_plan(folder), folder, backend="cuda", seed=1) as trainer:
        trainer.run(1, "plant")
        trainer.run(10, "collect")
        alternating(trainer, 5_000)
        trainer.sync()
        for name, value in trainer.diagnostics().items():
            assert np.isfinite(np.asarray(value, np.float64)).all(), name
        assert np.isfinite(trainer.tensor("w1")).all()
        assert not any(refused for refused, _ in trainer.health().values())

"""Program `aux` on the GPU: the host's bits, for any way of replaying, with a learning-rate schedule."""

from pathlib import Path

import numpy as np
import pytest

from foxhunt.backend.cuda import CudaBackend
from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program
from foxhunt.runtime.load import load_plan
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.load import load_specs

ROOT = Path(__file__).parents[2]
STEPS = 100


class EagerBackend(CudaBackend):
    """Every launch by itself, no graph."""

    def run(self, step, count, per_graph=1, *, eager=True):
        super().run(step, count, per_graph, eager=True)


@pytest.fixture(scope="module")
def aux(tmp_path_factory):
    """The emitted folder of aux for 256 samples a step."""
    folder = tmp_path_factory.mktemp("aux")
    compiled = compile_program(load_specs(ROOT / "specs"), "aux", dims={"B": 256})
    store(compiled.files, folder)
    return folder


def scheduled(folder, backend, per_graph=1, waits=False):
    """What a checkpoint keeps after STEPS steps, the learning rate falling at each tenth of them."""
    with Trainer(load_plan(folder), folder, backend=backend, seed=5) as trainer:
        for rate in np.linspace(1e-3, 1e-4, 10):
            trainer.signals["LR"] = float(rate)
            trainer.run(STEPS // 10, per_graph=per_graph)
            if waits:
                trainer.sync()
        trainer.sync()
        kept = [b for b in trainer.plan.buffers if b.checkpoint or b.role in ("isv", "wiener", "health")]
        return {b.name: trainer.backend.read(b.name, 0, b.count, b.dtype) for b in kept}


def assert_same_bits(a, b):
    assert set(a) == set(b)
    different = [name for name in a if a[name].tobytes() != b[name].tobytes()]
    assert not different, {
        name: (int((a[name] != b[name]).sum()), a[name].size, float(np.abs(a[name] - b[name]).max()))
        for name in different
    }


@pytest.fixture(scope="module")
def replayed(aux):
    return scheduled(aux, "cuda")


def test_the_gpu_has_the_bits_of_the_host(aux, replayed):
    assert_same_bits(scheduled(aux, "host"), replayed)
    assert replayed["params"].std() > 0


def test_replays_equal_eager_launches(aux, replayed):
    assert_same_bits(scheduled(aux, EagerBackend(), waits=True), replayed)


@pytest.mark.parametrize("per_graph", [2, 3, 10])
def test_steps_a_graph_change_nothing(aux, replayed, per_graph):
    assert_same_bits(scheduled(aux, "cuda", per_graph), replayed)


def test_training_goes_on_from_a_checkpoint_with_the_same_bits(aux, tmp_path):
    plan = load_plan(aux)

    def state(trainer):
        trainer.sync()
        return {
            b.name: trainer.backend.read(b.name, 0, b.count, b.dtype) for b in plan.buffers if b.checkpoint
        }

    with Trainer(plan, aux, backend="cuda", seed=1) as trainer:
        trainer.run(7)
        trainer.save(tmp_path / "seven.safetensors")
        trainer.run(5)
        expected = state(trainer)
        trainer.load(tmp_path / "seven.safetensors")  # into the storage that the graphs hold
        trainer.run(5)
        assert_same_bits(state(trainer), expected)
    with Trainer(plan, aux, backend="cuda", seed=2) as trainer:
        trainer.load(tmp_path / "seven.safetensors")
        trainer.run(5)
        assert_same_bits(state(trainer), expected)


def test_a_fold_reset_between_replays_has_the_host_bits(aux):
    def run(backend):
        with Trainer(load_plan(aux), aux, backend=backend, seed=3) as trainer:
            trainer.run(3)
            trainer.reset("fold")
            trainer.run(3)
            trainer.sync()
            names = ("isv", "wiener", "params")
            sizes = {b.name: b for b in trainer.plan.buffers}
            return {n: trainer.backend.read(n, 0, sizes[n].count, sizes[n].dtype) for n in names}

    assert_same_bits(run("cuda"), run("host"))

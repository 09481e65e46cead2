"""W1 and program `aux` through foxhunt: compiled from specs for a batch size, captured, replayed."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from w1_problem import LAYERS, Array, Problem

from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program
from foxhunt.runtime.load import load_plan
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.load import load_specs

HERE = Path(__file__).parent
NAMES = {f"{layer}.{part}": f"{layer}_{part}" for layer in LAYERS for part in "wb"}


def trainer_of(specs: Path, program: str, batch: int, backend: str = "cuda") -> Trainer:
    """Compile a program for a batch size into a temporary folder and make its trainer."""
    folder = Path(tempfile.mkdtemp(prefix=f"foxhunt-{program}-"))
    compiled = compile_program(load_specs(specs), program, dims={"B": batch})
    store(compiled.files, folder)
    return Trainer(load_plan(folder), folder, backend=backend)


class FoxhuntArm:
    """`per_graph` steps a replay."""

    def __init__(self, p: Problem, precision: str, per_graph: int, backend: str = "cuda") -> None:
        self.name = f"foxhunt, {per_graph} step{'s' * (per_graph > 1)} a graph"
        if precision != "fp32":
            raise ImportError(f"foxhunt has no {precision} tier yet")
        self._problem, self._per_graph = p, per_graph
        self._trainer = trainer_of(HERE / "specs", "w1", p.batch, backend)
        for name, values in (("x", p.x), ("dir_label", p.direction), ("reg_label", p.regime)):
            self._trainer.write_tensor(name, values)
        self.restart()

    def restart(self) -> None:
        for name, value in self._problem.weights.items():
            entity = NAMES[name]
            self._trainer.write_tensor(entity, value)
            for moment in (f"{entity}.m", f"{entity}.v"):
                self._trainer.write_tensor(moment, np.zeros_like(value))
        self._trainer.write_tensor("averages", np.zeros(5, np.float32))
        adam_t = next(c for c in self._trainer.plan.counters if c.name == "adam_t")
        self._trainer.backend.write("counters", 8 * adam_t.index, np.zeros(1, np.int64))

    def run(self, steps: int) -> None:
        self._trainer.run(steps, per_graph=self._per_graph)
        self._trainer.sync()

    def outputs(self) -> tuple[dict[str, Array], Array]:
        weights = {name: self._trainer.tensor(entity) for name, entity in NAMES.items()}
        return weights, self._trainer.tensor("averages")

    def launch_times(self) -> dict[str, float]:
        """µs of each launch by itself; the state is spent afterwards."""
        times: dict[str, float] = self._trainer.backend.launch_times("train")  # type: ignore[attr-defined]
        return times


def aux_times(batch: int, steps: int, rounds: int) -> dict[str, float]:
    """Medians of program `aux`, µs a step, for 1 and 20 steps a graph."""
    with trainer_of(HERE.parent / "specs", "aux", batch) as trainer:
        medians = {}
        for per_graph in (1, 20):
            samples = []
            for turn in range(rounds + 1):
                begin = time.perf_counter()
                trainer.run(steps, per_graph=per_graph)
                trainer.sync()
                if turn:
                    samples.append(1e6 * (time.perf_counter() - begin) / steps)
            medians[f"{per_graph} a graph"] = statistics.median(samples)
    return medians

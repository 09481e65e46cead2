"""A whole step in float64: its declared launches in program order, each by its kernel's reference.

Whatever is wired in YAML is wired here by the same ranges, so that a program's loss can be differenced
without the rounding of float32, and the program itself be compared with the result.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from foxhunt.dtypes import F32
from foxhunt.ir.types import Access, Argument, LaidOutProgram, Launch, Range
from foxhunt.reference import REFERENCES
from foxhunt.reference.philox import Stream
from foxhunt.schedule.abi import rng_hash


class StepOracle:
    """The memory of a laid out program, float64 where the device has f32, and the steps on it."""

    def __init__(self, laid_out: LaidOutProgram, seed: int = 0) -> None:
        self.laid_out, self.seed = laid_out, seed
        self.memory = {
            a.name: np.zeros(a.count, np.float64 if a.dtype == F32 else a.dtype.numpy)
            for a in laid_out.allocations
        }
        self.shapes = {t.name: t.shape for t in laid_out.program.tensors}
        for slot in laid_out.program.slots:
            self.memory["isv"][slot.index : slot.index + slot.count] = slot.init

    def tensor(self, name: str) -> Any:
        """A param, its `.g`, `.m` or `.v`, a buffer or a local: what is written into it is in the memory."""
        owner = name[:-2] if name.endswith((".g", ".m", ".v")) else name
        place, shape = self.laid_out.places[name], self.shapes[owner]
        return self.memory[place.allocation][place.offset : place.offset + prod(shape)].reshape(shape)

    def run(self, name: str) -> None:
        """One execution of a step. Observations stay in `scratch`; kernels' slots change at its end."""
        self.memory["counters"][0] += 1
        slots = [
            written
            for step in self.laid_out.program.steps
            if step.name == name
            for launch in step.launches
            for written in self._launch(launch)
        ]
        for r, value in slots:
            self._at(r)[...] = value

    def _launch(self, launch: Launch) -> list[tuple[Range, Any]]:
        """Runs a launch and returns what it wants to be in slots."""
        inputs = {a.name: self._input(launch, a) for a in launch.arguments}
        found = REFERENCES[launch.kernel.reference](inputs, dict(launch.dims), launch.kernel.consts)
        slots = []
        for argument in launch.arguments:
            if argument.access is Access.READ:
                continue
            values = found[argument.name] if argument.many else [found[argument.name]]
            for r, value in zip(argument.ranges, values, strict=True):
                shaped = np.reshape(value, r.shape)
                if r.base == "isv":
                    slots.append((r, shaped))
                else:
                    self._at(r)[...] = shaped
        return slots

    def _input(self, launch: Launch, argument: Argument) -> Any:
        if argument.kind == "rng":
            return Stream(self.seed, int(self.memory["counters"][0]), rng_hash(launch.name))
        arrays = [self._at(r) for r in argument.ranges]
        if argument.kind == "bound":
            observed = argument.triple is not None and self._at(argument.triple).any()
            return max(float(arrays[0].item()), argument.floor) if observed else np.inf
        if argument.kind in ("slot", "counter") and argument.access is Access.READ:
            return arrays[0].item()
        return arrays if argument.many else arrays[0]

    def _at(self, r: Range) -> Any:
        return self.memory[r.base][r.offset : r.offset + r.count].reshape(r.shape)

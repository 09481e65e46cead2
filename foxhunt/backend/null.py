"""A backend that computes nothing and records what it was asked: for tests of what stands on a backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from foxhunt.backend.base import runnable
from foxhunt.backend.host_memory import HostMemory
from foxhunt.backend.plan import Plan


class NullBackend:
    """Holds memory like the host backend; `calls` lists the runs as (step, count, per_graph)."""

    name = "null"

    def __init__(self) -> None:
        """Nothing recorded yet."""
        self.calls: list[tuple[str, int, int]] = []
        self._completed = 0

    def build(self, folder: Path, plan: Plan, debug: bool = False) -> None:
        """Nothing."""

    def allocate(self, plan: Plan) -> None:
        """Allocate every buffer, zero-filled."""
        self._plan, self._memory = plan, HostMemory(plan)

    def read(self, buffer: str, offset_bytes: int, count: int, dtype: str) -> npt.NDArray[Any]:
        """A copy of `count` elements."""
        return self._memory.read(buffer, offset_bytes, count, dtype)

    def write(self, buffer: str, offset_bytes: int, array: npt.NDArray[Any]) -> None:
        """Copy `array` into a buffer."""
        self._memory.write(buffer, offset_bytes, array)

    def ingest_row(self, row: int) -> npt.NDArray[np.float32]:
        """One row of the ingest ring."""
        return self._memory.ingest_row(row)

    def publish_words(self) -> npt.NDArray[np.uint32]:
        """The publish ring."""
        return self._memory.publish_words()

    def prepare(self, plan: Plan) -> None:
        """Nothing."""

    def run(self, step: str, count: int, per_graph: int = 1) -> None:
        """Record the call; KeyError for a step that the plan does not have."""
        _ = runnable(self._plan)[step]
        self.calls.append((step, count, per_graph))
        if step in {s.name for s in self._plan.steps}:
            self._completed += count

    def completed(self) -> int:
        """Steps run so far."""
        return self._completed

    def sync(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""

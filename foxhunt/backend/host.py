"""The host backend: the emitted sources through the machine's C++ compiler, run with real block semantics."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from foxhunt.backend.base import BuildProgress, entries, pack, runnable
from foxhunt.backend.host_build import build_library
from foxhunt.backend.host_debug import check_launch
from foxhunt.backend.host_library import LaunchList, Library
from foxhunt.backend.host_memory import HostMemory, copy_rate
from foxhunt.backend.plan import Launch, Plan


class HostBackend:
    """Runs a plan on the cores of this machine; a `foxhunt.backend.base.Backend`. Runs are synchronous."""

    name = "host"

    def __init__(
        self,
        threads: int | None = None,
        progress: BuildProgress | None = None,
        watch: Callable[[str, Launch], None] | None = None,
    ) -> None:
        """`threads` defaults to `$FOXHUNT_THREADS`, else to the cores that this process may use.

        Results do not depend on it. `progress` hears of every compiled launch; `watch` is called with the
        step and the launch after each launch, when memory is as that launch left it.
        """
        self._threads = threads or int(os.environ.get("FOXHUNT_THREADS", 0)) or usable_cores()
        self._progress = progress
        self._watch = watch
        self._library: Library | None = None
        self._lists: dict[str, LaunchList] = {}
        self._completed = 0

    def build(self, folder: Path, plan: Plan, debug: bool = False) -> None:
        """Compile every `launches/*.cu` that the plan uses. Raises BuildError.

        With `debug` accessors check every index, and every launch is checked to write all that it
        declares to write, and nothing else.
        """
        self.close()
        self._debug = debug
        path = build_library(Path(folder), entries(plan), debug, self._progress)
        self._library = Library(path, self._threads)

    def allocate(self, plan: Plan) -> None:
        """Allocate every buffer, zero-filled. Raises BackendError FH561."""
        assert self._library is not None, "build comes before allocate"
        self._plan, self._memory = plan, HostMemory(plan)
        self._counted = {step.name for step in plan.steps}
        self._lists = {
            name: LaunchList(
                step.launches,
                [self._library.entry(launch.entry) for launch in step.launches],
                [pack(launch, self._memory.addresses) for launch in step.launches],
            )
            for name, step in runnable(plan).items()
        }

    def read(self, buffer: str, offset_bytes: int, count: int, dtype: str) -> npt.NDArray[Any]:
        """A copy of `count` elements."""
        return self._memory.read(buffer, offset_bytes, count, dtype)

    def write(self, buffer: str, offset_bytes: int, array: npt.NDArray[Any]) -> None:
        """Copy `array` into a buffer."""
        self._memory.write(buffer, offset_bytes, array)

    def ingest_row(self, row: int) -> npt.NDArray[np.float32]:
        """The host slots' row of the ingest ring; empty without host slots."""
        return self._memory.ingest_row(row)

    def publish_words(self) -> npt.NDArray[np.uint32]:
        """The publish ring. Another thread may read it while `run` runs."""
        return self._memory.publish_words()

    def prepare(self, plan: Plan) -> None:
        """Nothing: there is no capture."""

    def run(self, step: str, count: int, per_graph: int = 1) -> None:
        """Run a step or a reset `count` times; an interrupt is taken between two of them.

        Raises BackendError FH562 to FH566 with the launch's name.
        """
        assert self._library is not None, "build comes before run"
        launches = self._lists[step]
        done = 0
        while done < count:
            if self._debug or self._watch:
                self._run_singly(step, launches)
                ran = 1
            else:
                ran = self._library.run(launches, count - done)
            done += ran
            self._completed += ran if step in self._counted else 0

    def _run_singly(self, step: str, launches: LaunchList) -> None:
        assert self._library is not None, "build comes before run"
        for k, launch in enumerate(launches.launches):
            if self._debug:
                check_launch(self._library, self._memory, launches, k)
            else:
                self._library.run_one(launches, k)
            if self._watch:
                self._watch(step, launch)

    def launch_times(self, step: str, repeats: int = 20) -> dict[str, float]:
        """Microseconds of each launch of a step, in place: the median of `repeats` executions.

        Raises BackendError FH562 or FH563 with the launch's name.
        """
        assert self._library is not None, "build comes before launch_times"
        launches = self._lists[step]
        times = self._library.run_timed(launches, repeats)
        self._completed += repeats if step in self._counted else 0
        medians = np.median(times[:, :, 1] - times[:, :, 0], axis=0) / 1000
        return {n.name: float(t) for n, t in zip(launches.launches, medians, strict=True)}

    def copy_rate(self) -> float:
        """Bytes a second, read and written ones together, that these threads copy in memory."""
        return copy_rate(self._threads)

    def completed(self) -> int:
        """Steps that have ended, resets not counted."""
        return self._completed

    def sync(self) -> None:
        """Nothing: runs are synchronous."""

    def close(self) -> None:
        """End the threads and drop the memory."""
        if self._library is not None:
            self._library.close()
        self._library = None
        self._lists = {}


def usable_cores() -> int:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

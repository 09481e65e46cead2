"""The CUDA backend: builds a plan's kernels, captures each step once into a graph and replays it.

Order of a life: `build`, `allocate`, `prepare` (captures), then `run` as often as you like. Nothing is built
or allocated after a capture without a new one: graphs carry the generation of the memory they use.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from foxhunt.backend.base import INGEST, PUBLISH, runnable
from foxhunt.backend.cubin import build_cubins
from foxhunt.backend.cuda_capture import capture, refuse_while_capturing
from foxhunt.backend.cuda_launch import Sequence, load_functions
from foxhunt.backend.cuda_memory import DeviceMemory
from foxhunt.backend.plan import Plan
from foxhunt.diagnostics import BackendError, BuildError, extra, fail

log = logging.getLogger(__name__)
COMPLETION_EVERY = (
    16  # steps between completion events: bounds how far `completed` lags, well inside the ingest ring
)
INSTALL = f"Install the extra for your driver, cuda13 or cuda12: {extra('cuda13')}."


def unavailable() -> str:
    """Why CUDA cannot be used here, or "" if it can: it takes cupy, a driver with a device and a compiler."""
    try:
        load_cupy()
        from foxhunt.backend.cubin_compilers import find_compiler

        find_compiler()
    except (BackendError, BuildError) as error:
        return error.diagnostics[0].message
    return ""


def load_cupy() -> Any:
    """The cupy module, on a machine with a device. Raises BackendError FH580 naming what is missing."""
    try:
        import cupy
    except ImportError as error:
        message = "cupy is not installed." if error.name == "cupy" else f"cupy cannot be imported: {error}."
        raise fail(BackendError, "FH580", message, help=INSTALL) from error
    try:
        devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise fail(BackendError, "FH580", f"no usable NVIDIA driver: {error}.", help=INSTALL) from error
    if not devices:
        raise fail(BackendError, "FH580", "no NVIDIA GPU is visible.", help="Check CUDA_VISIBLE_DEVICES.")
    return cupy


class CudaBackend:
    """Runs a plan on the current CUDA device, on one non-default stream; a `foxhunt.backend.base.Backend`."""

    name = "cuda"

    def __init__(self) -> None:
        """Take the current device. Raises BackendError FH580 where there is none."""
        self._cupy = load_cupy()
        runtime = self._cupy.cuda.runtime
        self._device = runtime.getDevice()
        runtime.setDevice(self._device)  # makes its context, which modules are loaded into
        capability = self._cupy.cuda.Device(self._device).compute_capability
        self.arch = f"sm_{capability}"
        self._stream = self._cupy.cuda.Stream(non_blocking=True)
        self._debug = False
        self._functions: dict[str, Any] = {}
        self._memory: DeviceMemory | None = None
        self._generation = 0  # of the memory; a graph of an older one is captured again
        self._sequences: dict[str, Sequence] = {}
        self._graphs: dict[tuple[str, int], tuple[int, Any]] = {}
        self._enqueued = self._completed = 0  # steps
        self._events: deque[tuple[Any, int]] = deque()  # completion events and the steps enqueued before each

    def build(self, folder: Path, plan: Plan, debug: bool = False) -> None:
        """Compile every `launches/*.cu` of `folder` for this device (cached) and load the plan's entries.

        With `debug` every launch runs by itself and is waited for, so that a failure names it.
        """
        refuse_while_capturing("build kernels")
        cubins = build_cubins(folder, self.arch)
        self._functions = load_functions(self._cupy, cubins, plan)
        self._debug = debug
        self._forget("kernels were built again")

    def allocate(self, plan: Plan) -> None:
        """Allocate every buffer of `plan`, zero-filled. Raises BackendError FH581 if it does not fit."""
        refuse_while_capturing("allocate buffers")
        self.sync()
        self._memory = None  # give the old storage back before asking for the new
        self._memory = DeviceMemory(self._cupy, plan)
        self._generation += 1
        self._rows = plan.ingest_rows
        self._sequences = {
            name: Sequence(self._cupy, step, self._functions, self._memory.addresses)
            for name, step in runnable(plan).items()
        }
        self._counted = {step.name for step in plan.steps}

    def prepare(self, plan: Plan) -> None:
        """Capture every step of `plan` into a graph of one execution."""
        if not self._debug:
            for step in plan.steps:
                self._graph(step.name, 1)

    def run(self, step: str, count: int, per_graph: int = 1, *, eager: bool = False) -> None:
        """Enqueue `count` executions of a step or a reset, `per_graph` a replay: the results are the same.

        With `eager` the launches are enqueued one by one, without a graph.
        """
        if step not in self._counted:
            eager = True  # a reset is rare: not worth a graph
        if eager or self._debug:
            sequence = self._sequence(step)
            for _ in range(count):
                sequence.enqueue_in_order(self._stream, wait=self._debug)
                self._count(step, 1)
            return
        replays, rest = divmod(count, per_graph)
        for steps, times in ((per_graph, replays), (1, rest)):
            for _ in range(times):
                self._graph(step, steps).launch(self._stream)
                self._count(step, steps)

    def launch_times(self, step: str, repeats: int = 100) -> dict[str, float]:
        """Microseconds of each launch of a step by itself: the mean of `repeats` in a row in one graph.

        Runs them on the program's memory, whose contents are worth nothing afterwards.
        """
        times = {}
        for launch in self._sequence(step).launches:
            enqueue = partial(_repeat, partial(launch.enqueue, self._stream), repeats)
            graph = capture(self._cupy, self._stream, enqueue, f"launch {launch.plan.name}")
            graph.launch(self._stream)
            begin, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
            begin.record(self._stream)
            graph.launch(self._stream)
            end.record(self._stream)
            self.sync()
            elapsed = self._cupy.cuda.get_elapsed_time(begin, end)
            times[launch.plan.name] = 1000.0 * elapsed / repeats
        return times

    def copy_rate(self, repeats: int = 20) -> float:
        """Bytes a second, read and written ones together, of copies of 256 MiB within the device's memory.

        Raises BackendError FH581 when there is no room for two such pieces.
        """
        refuse_while_capturing("allocate buffers")
        cupy, size = self._cupy, 1 << 28
        runtime = cupy.cuda.runtime
        try:
            source, target = cupy.cuda.Memory(size), cupy.cuda.Memory(size)
        except runtime.CUDARuntimeError as error:
            raise fail(BackendError, "FH581", "no 512 MiB are free to measure copies in.") from error
        self.sync()
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        for warm in (True, False):
            begin.record(self._stream)
            for _ in range(1 if warm else repeats):
                runtime.memcpyAsync(
                    target.ptr, source.ptr, size, runtime.memcpyDeviceToDevice, self._stream.ptr
                )
            end.record(self._stream)
            self.sync()
        seconds = float(cupy.cuda.get_elapsed_time(begin, end)) / 1000.0
        return 2.0 * size * repeats / seconds

    def completed(self) -> int:
        """How many steps have ended, without waiting; may lag by a few, and catches up when asked again."""
        if not self._events and self._completed < self._enqueued:
            self._record()
        while self._events and self._events[0][0].done:
            self._completed = self._events.popleft()[1]
        return self._completed

    def sync(self) -> None:
        """Wait until everything enqueued has run. Raises BackendError FH582 when a launch failed."""
        refuse_while_capturing("synchronise")
        try:
            self._stream.synchronize()
        except self._cupy.cuda.runtime.CUDARuntimeError as error:
            raise fail(
                BackendError,
                "FH582",
                f"a launch failed on the device: {error}.",
                help="Run again with the debug option: it waits for each launch, and names the one at fault.",
            ) from error
        self._events.clear()
        self._completed = self._enqueued

    def read(self, buffer: str, offset_bytes: int, count: int, dtype: str) -> npt.NDArray[Any]:
        """A copy of `count` elements of `buffer` from byte `offset_bytes`; synchronises."""
        self.sync()
        return self._allocated().read(buffer, offset_bytes, count, dtype)

    def write(self, buffer: str, offset_bytes: int, array: npt.NDArray[Any]) -> None:
        """Copy `array` into `buffer` at byte `offset_bytes`; synchronises. Captured graphs see it."""
        self.sync()
        self._allocated().write(buffer, offset_bytes, array)

    def ingest_row(self, row: int) -> npt.NDArray[np.float32]:
        """Row `row` of the ingest ring, one float32 per host slot, in memory that host and device share."""
        rows: npt.NDArray[np.float32] = self._allocated().rings[INGEST].view(np.float32)
        return rows.reshape(self._rows, -1)[row] if rows.size else rows

    def publish_words(self) -> npt.NDArray[np.uint32]:
        """The publish ring, in memory that host and device share: latest (low, high), then the rows."""
        return self._allocated().rings[PUBLISH].view(np.uint32)

    def close(self) -> None:
        """Wait, then give graphs, kernels and memory back."""
        with suppress(BackendError):  # a failed launch was reported when it was waited for
            self.sync()
        self._graphs.clear()
        self._sequences.clear()
        self._functions = {}
        self._memory = None

    def _graph(self, step: str, steps: int) -> Any:
        """The graph of `steps` executions, captured if there is none for the present memory."""
        generation, graph = self._graphs.get((step, steps), (0, None))
        if generation == self._generation and graph is not None:
            return graph
        sequence = self._sequence(step)
        if graph is not None:
            log.warning("step %s: captured again, because its memory was allocated again", step)
        enqueue = partial(_repeat, partial(sequence.enqueue_on_lanes, self._stream), steps)
        graph = capture(self._cupy, self._stream, enqueue, f"step {step}")
        log.info("step %s: captured %d launches × %d", step, len(sequence.launches), steps)
        self._graphs[step, steps] = (self._generation, graph)
        return graph

    def _forget(self, reason: str) -> None:
        if self._graphs:
            log.warning("captured graphs dropped, because %s", reason)
        self._graphs.clear()
        self._sequences.clear()

    def _sequence(self, step: str) -> Sequence:
        if step not in self._sequences:
            raise fail(BackendError, "FH585", f"step {step!r} is not built and allocated.")
        return self._sequences[step]

    def _allocated(self) -> DeviceMemory:
        if self._memory is None:
            raise fail(BackendError, "FH585", "no buffers are allocated.")
        return self._memory

    def _count(self, step: str, steps: int) -> None:
        if step not in self._counted:
            return
        self._enqueued += steps
        last = self._events[-1][1] if self._events else self._completed
        if self._enqueued - last >= COMPLETION_EVERY:
            self._record()

    def _record(self) -> None:
        event = self._cupy.cuda.Event(disable_timing=True)
        event.record(self._stream)
        self._events.append((event, self._enqueued))


def _repeat(enqueue: Any, times: int) -> None:
    for _ in range(times):
        enqueue()

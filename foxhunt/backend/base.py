"""What a backend does, how one is chosen, and how a launch's arguments become words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from foxhunt.backend.plan import Launch, Plan, Pointer, Step
from foxhunt.diagnostics import BackendError, fail

log = logging.getLogger(__name__)

INGEST, PUBLISH = "ring.ingest", "ring.publish"
BuildProgress = Callable[[int, int, str], None]
"""Called with (launches compiled, launches in all, entry just compiled)."""


class Backend(Protocol):
    """Builds a plan's launches, holds its memory and runs its steps. Call in the order of the methods."""

    name: str

    def build(self, folder: Path, plan: Plan, debug: bool = False) -> None:
        """Compile the emitted folder's launches, in parallel, cached by content. Raises BuildError."""

    def allocate(self, plan: Plan) -> None:
        """Allocate every buffer, zero-filled. Raises BackendError."""

    def read(self, buffer: str, offset_bytes: int, count: int, dtype: str) -> npt.NDArray[Any]:
        """A copy of `count` elements, after everything enqueued has run."""

    def write(self, buffer: str, offset_bytes: int, array: npt.NDArray[Any]) -> None:
        """Copy `array` into a buffer, after everything enqueued has run and before what comes next."""

    def ingest_row(self, row: int) -> npt.NDArray[np.float32]:
        """The host slots' row of the ingest ring: float32, host memory, empty without host slots."""

    def publish_words(self) -> npt.NDArray[np.uint32]:
        """The publish ring: uint32, host memory, `[latest low, latest high, row 0 … row 15]`."""

    def prepare(self, plan: Plan) -> None:
        """Make steps ready to run: a capture on CUDA, nothing on the host."""

    def run(self, step: str, count: int, per_graph: int = 1) -> None:
        """Enqueue `count` executions of a step or a reset. Raises BackendError that names the launch."""

    def completed(self) -> int:
        """Steps that have ended, resets not counted; does not wait."""

    def sync(self) -> None:
        """Wait until everything enqueued has run."""

    def close(self) -> None:
        """Give memory and threads back; harmless when done twice."""


@runtime_checkable
class Timed(Protocol):
    """A backend that can say where the time goes."""

    def launch_times(self, step: str, repeats: int) -> dict[str, float]:
        """Microseconds of each launch of a step. Runs them: state is worth nothing afterwards."""

    def copy_rate(self) -> float:
        """Bytes a second, read and written ones together, that the machine copies in its memory."""


def make_backend(name: str | Backend = "auto", progress: BuildProgress | None = None) -> Backend:
    """The backend `host` or `cuda`; `auto` takes CUDA where it works and logs its choice with the reason.
    A backend is returned as it is.

    Raises BackendError FH560 for anything else, and FH580 for `cuda` where it cannot be used.
    """
    from foxhunt.backend.host import HostBackend

    if not isinstance(name, str) and hasattr(name, "build"):
        return name
    if name == "host":
        return HostBackend(progress=progress)
    if name not in ("auto", "cuda"):
        raise fail(BackendError, "FH560", f"unknown backend {name!r:.60}", help="Use auto, host or cuda.")
    from foxhunt.backend.cuda import CudaBackend, unavailable

    reason = unavailable() if name == "auto" else ""
    if reason:
        log.info("backend: host, because %s", reason)
        return HostBackend(progress=progress)
    if name == "auto":
        log.info("backend: cuda, because a GPU, its driver and a compiler are there")
    return CudaBackend()


def pack(
    launch: Launch, addresses: Mapping[str, int]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The launch's argument words and, for each, the elements behind it (0 for an integer)."""
    words = np.zeros(len(launch.args), np.uint64)
    counts = np.zeros(len(launch.args), np.int64)
    for k, arg in enumerate(launch.args):
        if isinstance(arg, Pointer):
            words[k] = addresses[arg.buffer] + arg.offset
            counts[k] = arg.count
        else:
            words[k] = arg.value % 2**64
    return words, counts


def runnable(plan: Plan) -> dict[str, Step]:
    """Every step and reset that `run` takes, by name."""
    return {step.name: step for step in (*plan.steps, *plan.resets)}


def entries(plan: Plan) -> tuple[str, ...]:
    """The C symbols of all launches, sorted."""
    return tuple(sorted({launch.entry for step in runnable(plan).values() for launch in step.launches}))

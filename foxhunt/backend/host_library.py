"""A built library: its entries, its thread pool and runner, and its faults as errors."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import numpy.typing as npt

from foxhunt.backend.plan import Launch, Pointer
from foxhunt.diagnostics import BackendError, fail

BUDGET_NS = (
    50_000_000  # a call into the runner: how long an interrupt may have to wait beyond the step it falls in
)
FOREVER_NS = 2**62

_FAULTS = {
    1: ("FH562", "accessed element {index} of {what}", "Mend the index in the kernel's template."),
    2: ("FH562", "loaded four elements at {index} of {what}, an address that is no multiple of 16 bytes",
        "Use load4 and store4 only where aligned4 says so."),
    3: ("FH563", "deadlocked: thread {index} waits for threads that wait for it",
        "Let all threads of a warp, or of the block, come to the same collective."),
    4: ("FH563", "came to different collectives at once (thread {index})",
        "Let all threads of a warp, or of the block, come to the same collective."),
    5: ("FH563", "called a collective that needs every thread after some had returned (thread {index})",
        "Only sync, shuffles and ballot may be called after threads have returned."),
}  # fmt: skip


class _Fault(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("argument", ctypes.c_int32),
        ("index", ctypes.c_longlong),
        ("count", ctypes.c_longlong),
    )


class LaunchList:
    """The launches of one step as the runner takes them; keeps the arrays alive that it points into."""

    def __init__(
        self,
        launches: tuple[Launch, ...],
        entries: list[int],
        packed: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]],
    ) -> None:
        """One entry address and one pair (words, counts) a launch."""
        self.launches = launches
        self.packed = packed
        self.rows = np.zeros((len(launches), 4), np.int64)
        for row, launch, entry, (words, counts) in zip(self.rows, launches, entries, packed, strict=True):
            row[:] = (entry, launch.grid, words.ctypes.data, counts.ctypes.data)


class Library:
    """A loaded program with its thread pool."""

    def __init__(self, path: Path, threads: int) -> None:
        """Load the library and start the pool. Raises BackendError FH566 when it cannot be loaded."""
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            path.unlink(missing_ok=True)
            message = f"the compiled program {path} cannot be loaded: {error}"
            raise fail(
                BackendError, "FH566", message, help="It was removed; run again to build it anew."
            ) from error
        self._library.foxhunt_pool_open.restype = ctypes.c_void_p
        self._library.foxhunt_run.restype = ctypes.c_longlong
        self._library.foxhunt_run.argtypes = (
            *(ctypes.c_void_p, ctypes.c_void_p),
            *(ctypes.c_longlong, ctypes.c_longlong, ctypes.c_longlong),
            ctypes.POINTER(ctypes.c_longlong),
        )
        self._library.foxhunt_run_timed.argtypes = (
            *(ctypes.c_void_p, ctypes.c_void_p),
            *(ctypes.c_longlong, ctypes.c_longlong, ctypes.c_void_p),
            ctypes.POINTER(ctypes.c_longlong),
        )
        self._pool = ctypes.c_void_p(self._library.foxhunt_pool_open(ctypes.c_longlong(threads)))

    def entry(self, symbol: str) -> int:
        """The address of an entry."""
        address = ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value
        assert address is not None
        return address

    def run(self, launches: LaunchList, count: int) -> int:
        """Run the list up to `count` times, at least once, for about 50 ms; returns how often.

        Raises BackendError FH562 or FH563.
        """
        return self._run(launches, 0, len(launches.launches), count, BUDGET_NS)

    def run_one(self, launches: LaunchList, k: int) -> None:
        """Run launch `k` of the list. Raises BackendError."""
        self._run(launches, k, 1, 1, FOREVER_NS)

    def run_timed(self, launches: LaunchList, count: int) -> npt.NDArray[np.int64]:
        """Run the list `count` times; begin and end of each launch in ns, int64 [count, launches, 2].

        Raises BackendError FH562 or FH563.
        """
        times = np.zeros((count, len(launches.launches), 2), np.int64)
        failed = ctypes.c_longlong(-1)
        self._library.foxhunt_run_timed(
            self._pool,
            launches.rows.ctypes.data,
            len(launches.launches),
            count,
            times.ctypes.data,
            ctypes.byref(failed),
        )
        if failed.value >= 0:
            raise self._fault(launches.launches[failed.value])
        return times

    def close(self) -> None:
        """End the pool's threads."""
        if self._pool:
            self._library.foxhunt_pool_close(self._pool)
        self._pool = ctypes.c_void_p()

    def _run(self, launches: LaunchList, first: int, length: int, count: int, budget: int) -> int:
        failed = ctypes.c_longlong(-1)
        rows = launches.rows[first : first + length]
        done = self._library.foxhunt_run(
            self._pool, rows.ctypes.data, length, count, budget, ctypes.byref(failed)
        )
        if failed.value >= 0:
            raise self._fault(launches.launches[first + failed.value])
        return int(done)

    def _fault(self, launch: Launch) -> BackendError:
        fault = _Fault()
        self._library.foxhunt_take_fault(ctypes.byref(fault))
        code, text, mend = _FAULTS[fault.kind]
        what = f"argument {fault.argument}, which has {fault.count}"
        if 0 <= fault.argument < len(launch.args):
            arg = launch.args[fault.argument]
            if isinstance(arg, Pointer):
                what = f"{describe(arg)} (argument {fault.argument})"
        message = f"launch {launch.name} {text.format(index=fault.index, what=what)}"
        error = fail(BackendError, code, message, help=mend)
        assert isinstance(error, BackendError)
        return error


def describe(pointer: Pointer) -> str:
    """The range behind a pointer, for messages: `h1 [256:512) f32`, in elements where the offset allows."""
    from foxhunt.dtypes import DTYPES

    start = pointer.offset // DTYPES[pointer.dtype].size
    return f"{pointer.buffer} [{start}:{start + pointer.count}) {pointer.dtype}"

"""The checks of a debug run: a launch writes all that it declares to write, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from foxhunt.backend.host_library import LaunchList, Library, describe
from foxhunt.backend.host_memory import HostMemory
from foxhunt.backend.plan import Launch, Pointer
from foxhunt.diagnostics import BackendError, fail
from foxhunt.dtypes import DTYPES

Images = dict[str, npt.NDArray[np.uint8]]
CANARIES = (0x7FC0FA11, 0x7FC0BEEF)
"""Quiet NaNs as f32. An element that keeps the first in one run and the second in another was not written."""
WHOLE = (
    "tickets",
)  # a launch with a pointer into one of these may write all of it: its count is not in the plan


def check_launch(library: Library, memory: HostMemory, launches: LaunchList, k: int) -> None:
    """Run launch `k` with its checks. Raises BackendError FH562 to FH565."""
    launch = launches.launches[k]
    before = {name: image.copy() for name, image in memory.bytes.items()}
    _fill(memory, launch, CANARIES[0])
    library.run_one(launches, k)
    _check_undeclared(memory, launch, before)
    suspects = _unwritten(memory, launch, CANARIES[0])
    if suspects:
        _restore(memory, before)
        _fill(memory, launch, CANARIES[1])
        library.run_one(launches, k)
        for pointer, element in _unwritten(memory, launch, CANARIES[1]).items():
            if pointer in suspects:
                message = f"launch {launch.name} left element {element} of {describe(pointer)} unwritten"
                help = "Write every element, or declare `access: update`."
                raise fail(BackendError, "FH564", message, help=help)


def _written(launch: Launch) -> Iterator[Pointer]:
    return (arg for arg in launch.args if isinstance(arg, Pointer) and arg.access == "write")


def _fill(memory: HostMemory, launch: Launch, canary: int) -> None:
    for pointer in _written(launch):
        _words(memory, pointer)[:] = _pattern(pointer, canary)


def _words(memory: HostMemory, pointer: Pointer) -> npt.NDArray[np.uint8]:
    """The bytes behind a pointer, one row an element."""
    size = DTYPES[pointer.dtype].size
    return memory.view(pointer.buffer, pointer.offset, pointer.count * size, "u8").reshape(-1, size)


def _pattern(pointer: Pointer, canary: int) -> npt.NDArray[np.uint8]:
    size = DTYPES[pointer.dtype].size
    return np.resize(np.array([canary], "<u4").view(np.uint8), size)


def _unwritten(memory: HostMemory, launch: Launch, canary: int) -> dict[Pointer, int]:
    """For each written range with elements that still hold the canary, the first of them."""
    found = {}
    for pointer in _written(launch):
        untouched = (_words(memory, pointer) == _pattern(pointer, canary)).all(axis=1)
        if untouched.any():
            found[pointer] = int(untouched.argmax())
    return found


def _restore(memory: HostMemory, images: Images) -> None:
    for name, image in images.items():
        memory.bytes[name][:] = image


def _check_undeclared(memory: HostMemory, launch: Launch, before: Images) -> None:
    allowed: dict[str, list[tuple[int, int]]] = {}
    for arg in launch.args:
        if isinstance(arg, Pointer) and arg.access != "read":
            span = (arg.offset, arg.offset + arg.count * DTYPES[arg.dtype].size)
            if arg.buffer in WHOLE:
                span = (0, memory.bytes[arg.buffer].size)
            allowed.setdefault(arg.buffer, []).append(span)
    for name, image in before.items():
        changed = memory.bytes[name] != image
        for start, stop in allowed.get(name, ()):
            changed[start:stop] = False
        if changed.any():
            _refuse_undeclared(launch, f"byte {int(changed.argmax())} of {name}")
    if (name_beside := memory.damaged_guard()) is not None:
        _refuse_undeclared(launch, f"memory beside {name_beside}")


def _refuse_undeclared(launch: Launch, what: str) -> None:
    raise fail(
        BackendError,
        "FH565",
        f"launch {launch.name} changed {what}, which it does not declare",
        help="Declare the range in the kernel's params, or mend the index.",
    )

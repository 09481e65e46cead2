"""The argument words of a device launch, in the order of the entry's parameters: one source for emission
and plan.

For each task, for each of its launches: arguments by name, workspaces by name, the ticket, the dims that
are no constexpr by name, the carry of a statistic with several passes. Then, for a statistic, the partials
and the ticket of the task; then the task's grid. Every word has 8 bytes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from foxhunt.dtypes import DTYPES, DType
from foxhunt.ir.types import Argument, Launch, Range
from foxhunt.schedule.estimate import CARRY_WORDS, PARTIAL_BYTES, size
from foxhunt.schedule.types import FusedLaunch, Task

CUDA_PARAMETER_BYTES = 4064
"""The classic limit of a kernel's parameters is 4096 bytes on every architecture and toolkit; some are kept
back.
"""
WORD_LIMIT = CUDA_PARAMETER_BYTES // 8


@dataclass(frozen=True)
class Word:
    """One 8-byte argument. `span` is what a pointer points at; a scalar has `value`."""

    name: str  # C identifier, unique within its launch or task
    dtype: DType
    access: str = "read"
    span: Range | None = None
    value: int = 0


def dynamic_dims(launch: Launch) -> tuple[tuple[str, int], ...]:
    """The dims that a launch passes as arguments, by name."""
    return tuple(d for d in launch.dims if d[0] not in launch.kernel.static)


def static_dims(launch: Launch) -> tuple[tuple[str, int], ...]:
    """The dims that are constexpr in the launch's entry, by name."""
    return tuple(d for d in launch.dims if d[0] in launch.kernel.static)


def rng_hash(launch: str) -> int:
    """The first 32 bits of the SHA-256 of a qualified launch name: what separates its Philox stream from
    others.
    """
    return int.from_bytes(hashlib.sha256(launch.encode()).digest()[:4], "big")


def float_bits(value: float) -> int:
    """The bits of a value as f32, as an unsigned integer.

    >>> hex(float_bits(1.0)), hex(float_bits(-0.0))
    ('0x3f800000', '0x80000000')
    """
    return int.from_bytes(struct.pack("<f", value), "little")


def partials_name(task: Task) -> str:
    """The step allocation that holds the per-block partials of a statistic task."""
    return f"{task.launches[0].name}.pass{task.pass_index}.partials"


def launch_words(launch: Launch, tickets: Mapping[str, int]) -> list[Word]:
    """The words of one launch; `tickets` maps an owner to its first ticket."""
    words = [word for argument in launch.arguments for word in _argument(launch, argument)]
    for name in sorted(launch.kernel.workspace):
        dtype = DTYPES[launch.kernel.workspace[name].dtype]
        span = workspace(launch, name)
        words.append(Word(name, dtype, "update", span))
    if launch.kernel.tickets != 0:
        words.append(_ticket("ticket", tickets.get(launch.name, 0)))
    words += [Word(name, DTYPES["i64"], value=value) for name, value in dynamic_dims(launch)]
    if launch.kernel.kind == "statistic" and launch.kernel.passes > 1:
        words.append(Word("carry", DTYPES["u32"], "update", carry(launch)))
    return words


def task_words(task: Task, tickets: Mapping[str, int]) -> list[Word]:
    """The words that follow those of the task's launches."""
    words: list[Word] = []
    if task.launches[0].kernel.kind == "statistic":
        span = Range(partials_name(task), 0, DTYPES["u8"], (partial_bytes(task),), "partials")
        words.append(Word("partials", DTYPES["u8"], "update", span))
        words.append(_ticket("ticket", tickets.get(partials_name(task), 0)))
    words.append(Word("grid", DTYPES["i64"], value=task.grid))
    return words


def partial_bytes(task: Task) -> int:
    """Bytes of the partials of a statistic task: one fixed-size record per block and member."""
    return task.grid * len(task.launches) * PARTIAL_BYTES


def entry_words(launch: FusedLaunch, tickets: Mapping[str, int]) -> list[Word]:
    """All words of a device launch, in order."""
    words: list[Word] = []
    for task in launch.tasks:
        for member in task.launches:
            own = launch_words(member, tickets)
            if task.pass_index < member.kernel.passes - 1:  # outputs are written by the last pass only
                own = [replace(w, access="update") if w.access == "write" else w for w in own]
            words += own
        words += task_words(task, tickets)
    return words


def word_count(task: Task) -> int:
    """How many words a task adds to its device launch."""
    return sum(len(launch_words(member, {})) for member in task.launches) + len(task_words(task, {}))


def _argument(launch: Launch, argument: Argument) -> Iterator[Word]:
    name, access = argument.name, str(argument.access)
    if argument.kind == "rng":
        yield Word(f"{name}_seed", DTYPES["i64"], span=Range("seed", 0, DTYPES["i64"], (1,), "seed"))
        yield Word(
            f"{name}_step", DTYPES["i64"], span=Range("counters", 0, DTYPES["i64"], (1,), "foxhunt.step")
        )
        yield Word(f"{name}_hash", DTYPES["i64"], value=rng_hash(launch.name))
    elif argument.kind == "bound":
        slot = argument.ranges[0]
        assert argument.triple is not None, "layout gives every bound its triple"
        yield Word(f"{name}_slot", slot.dtype, span=slot)
        yield Word(f"{name}_triple", argument.triple.dtype, span=argument.triple)
        yield Word(f"{name}_floor", DTYPES["i64"], value=float_bits(argument.floor))
    elif argument.many:
        for row, span in enumerate(argument.ranges):
            yield Word(f"{name}_{row}", span.dtype, access, span)
            yield Word(f"{name}_{row}_count", DTYPES["i64"], value=span.count)
    else:
        yield Word(name, argument.ranges[0].dtype, access, argument.ranges[0])


def _ticket(name: str, index: int) -> Word:
    return Word(name, DTYPES["u32"], "update", Range("tickets", index, DTYPES["u32"], (1,), "tickets"))


def workspace(launch: Launch, name: str) -> Range:
    """The range of a launch's workspace: an allocation of its own, `<launch>.<workspace>`."""
    spec = launch.kernel.workspace[name]
    shape = tuple(size(launch, s) for s in spec.shape)
    return Range(f"{launch.name}.{name}", 0, DTYPES[spec.dtype], shape, f"{launch.name}.{name}")


def carry(launch: Launch) -> Range:
    """The words that each pass of a multi-pass statistic leaves for the next."""
    return Range(f"{launch.name}.carry", 0, DTYPES["u32"], (CARRY_WORDS,), f"{launch.name}.carry")

"""What a launch touches: every byte range with its access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from foxhunt.dtypes import I64
from foxhunt.ir.system import NAMES, STEP_COUNTER
from foxhunt.ir.types import Access, Launch, Range, StepGraph

_STEP = Range("counters", 0, I64, (1,), STEP_COUNTER)


class Touch(NamedTuple):
    """One range that a launch touches. `slot_write`: a kernel writes a slot, seen from the next step on."""

    range: Range
    access: Access
    slot_write: bool = False

    @property
    def reads(self) -> bool:
        """Whether what stands there before the launch matters."""
        return self.access is not Access.WRITE

    @property
    def writes(self) -> bool:
        """Whether something else may stand there after the launch."""
        return self.access is not Access.READ


def accesses(launch: Launch) -> Iterator[Touch]:
    """The ranges of arguments, the triples of bounds, and the step counter that random numbers depend on."""
    for argument in launch.arguments:
        writes_slot = argument.kind == "slot" and argument.access is not Access.READ
        for found in argument.ranges:
            if found.count:
                # A producer's output may be of kind slot, but what it writes is scratch.
                yield Touch(found, argument.access, writes_slot and found.base == "isv")
        if argument.triple is not None:
            yield Touch(argument.triple, Access.READ)
        if argument.kind == "rng":
            yield Touch(_STEP, Access.READ)


def traffic(launch: Launch) -> int:
    """Bytes of distinct ranges that a launch names; a range named twice is read from cache."""
    spans = {(r.base, r.start, r.stop) for a in launch.arguments for r in a.ranges}
    return sum(stop - start for _, start, stop in spans)


def items(graph: StepGraph) -> Iterator[Launch]:
    """The launches of a step that a person declared."""
    return (launch for launch in graph.launches if launch.kernel.kernel not in NAMES)

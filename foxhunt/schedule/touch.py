"""Which bytes a device launch touches: its arguments, and what the schedule itself gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from foxhunt.ir.types import Access, Launch
from foxhunt.schedule.abi import carry, partial_bytes, partials_name, workspace
from foxhunt.schedule.types import FusedLaunch, Task


@dataclass(frozen=True)
class Touch:
    """Bytes [start, stop) of allocation `base`; `owner` is the launch that asks for them."""

    base: str
    start: int
    stop: int
    writes: bool
    owner: str


def touched(launch: FusedLaunch) -> tuple[Touch, ...]:
    """Every byte range that a device launch reads or writes."""
    return tuple(t for task in launch.tasks for t in task_touches(task))


def task_touches(task: Task) -> Iterator[Touch]:
    """The ranges of one task. A pass counts as touching all that its launches touch in any pass."""
    for launch in task.launches:
        yield from launch_touches(launch)
    if task.launches[0].kernel.kind == "statistic":
        yield Touch(partials_name(task), 0, partial_bytes(task), True, partials_name(task))


def launch_touches(launch: Launch) -> Iterator[Touch]:
    """The ranges of one launch: arguments, bounds' triples, workspaces."""
    for a in launch.arguments:
        for r in a.ranges:
            yield Touch(r.base, r.start, r.stop, a.access is not Access.READ, launch.name)
        if a.triple is not None:
            yield Touch(a.triple.base, a.triple.start, a.triple.stop, False, launch.name)
        if a.kind == "rng":
            yield Touch("counters", 0, 8, False, launch.name)
    spans = [workspace(launch, name) for name in launch.kernel.workspace]
    if launch.kernel.kind == "statistic" and launch.kernel.passes > 1:
        spans.append(carry(launch))
    for span in spans:
        yield Touch(span.base, span.start, span.stop, True, launch.name)


def physical(touch: Touch, arena: Mapping[str, int]) -> Touch:
    """The same bytes with step allocations moved to where the arena has them."""
    offset = arena.get(touch.base)
    if offset is None:
        return touch
    return Touch("arena", offset + touch.start, offset + touch.stop, touch.writes, touch.owner)

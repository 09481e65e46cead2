"""A compiled program by name: which launches there are, where they landed, and what touches which bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from foxhunt.backend import plan as planned
from foxhunt.diagnostics import SpecError, fail
from foxhunt.dtypes import DTYPES
from foxhunt.ir.access import accesses
from foxhunt.ir.system import NAMES
from foxhunt.ir.types import Access, Edge, Launch, Range, Slot, StepGraph, Tensor
from foxhunt.pipeline import Compiled
from foxhunt.schedule.estimate import size
from foxhunt.schedule.types import FusedLaunch, ScheduledStep
from foxhunt.spec.models import SpecSet
from foxhunt.spec.text import nearest


@dataclass(frozen=True)
class Use:
    """One argument of one declared launch that touches a range."""

    launch: Launch
    argument: str
    kind: str
    access: Access
    range: Range

    def __str__(self) -> str:
        """`train.forward.l1 x`, with the kind where it is no plain data."""
        kind = "" if self.kind == "data" else f" ({self.kind})"
        return f"{self.launch.name} {self.argument}{kind}"


@dataclass(frozen=True)
class Home:
    """Where a declared launch landed: tasks of device launches, one a pass."""

    step: ScheduledStep
    numbers: tuple[int, ...]  # positions in `step.launches`

    @property
    def launches(self) -> tuple[FusedLaunch, ...]:
        """The device launches, in execution order."""
        return tuple(self.step.launches[n] for n in self.numbers)


@dataclass(frozen=True)
class Index:
    """A compiled program and the specs that it came from, by name."""

    specs: SpecSet = field(repr=False)
    compiled: Compiled = field(repr=False)

    @property
    def program(self) -> str:
        """The program's name."""
        return self.compiled.laid_out.program.name

    @cached_property
    def graphs(self) -> dict[str, StepGraph]:
        """Step → its hazard graph."""
        return {g.step: g for g in self.compiled.graphs}

    @cached_property
    def launches(self) -> dict[str, Launch]:
        """Every launch of every step by qualified name, foxhunt's own included."""
        return {n.name: n for g in self.compiled.graphs for n in g.launches}

    @cached_property
    def steps(self) -> dict[str, ScheduledStep]:
        """Step → its schedule."""
        return {s.name: s for s in self.compiled.schedule.steps}

    def demand_step(self, name: str) -> None:
        """Raises SpecError FH290 unless the program has a step of that name."""
        if name not in self.steps:
            message = f"program {self.program} has no step {name!r}"
            raise fail(SpecError, "FH290", message, help=nearest(name, self.steps, "its steps"))

    @cached_property
    def incoming(self) -> dict[str, list[Edge]]:
        """Launch or device launch → what it waits for: hazards of declared launches under their names, edges
        of the schedule under `device:<name>`.
        """
        return _grouped(self.compiled, lambda e: e.after)

    @cached_property
    def outgoing(self) -> dict[str, list[Edge]]:
        """The same the other way: what waits for it."""
        return _grouped(self.compiled, lambda e: e.before)

    @cached_property
    def homes(self) -> dict[str, Home]:
        """Launch → where it landed."""
        found: dict[str, tuple[ScheduledStep, list[int]]] = {}
        for step in self.compiled.schedule.steps:
            for number, fused in enumerate(step.launches):
                for n in members(fused):
                    found.setdefault(n.name, (step, []))[1].append(number)
        return {name: Home(step, tuple(dict.fromkeys(numbers))) for name, (step, numbers) in found.items()}

    @cached_property
    def fused(self) -> dict[str, tuple[ScheduledStep, FusedLaunch]]:
        """Device launch → its step and itself."""
        return {n.name: (s, n) for s in self.compiled.schedule.steps for n in s.launches}

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Device launch → its position in its step."""
        return {n.name: k for s in self.compiled.schedule.steps for k, n in enumerate(s.launches)}

    @cached_property
    def slots(self) -> dict[str, Slot]:
        """Slot by name, retired ones included."""
        return {s.name: s for s in self.compiled.laid_out.program.slots}

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Param, buffer or workspace by name."""
        return {t.name: t for t in self.compiled.laid_out.program.tensors}

    @cached_property
    def views(self) -> dict[str, planned.View]:
        """Everything that a trainer can read by name: tensors, `.g .m .v`, groups."""
        return {v.name: v for v in self.compiled.plan.views}

    @cached_property
    def _uses(self) -> dict[str, list[Use]]:
        found: dict[str, list[Use]] = defaultdict(list)
        for n in self.launches.values():
            if n.kernel.kernel in NAMES:
                continue
            for a in n.arguments:
                for r in a.ranges:
                    found[r.base].append(Use(n, a.name, a.kind, a.access, r))
        return found

    def uses(self, base: str, start: int, stop: int) -> list[Use]:
        """The arguments of declared launches that touch bytes [start, stop) of an allocation."""
        return [u for u in self._uses.get(base, ()) if u.range.start < stop and start < u.range.stop]

    def uses_of(self, name: str) -> list[Use]:
        """The arguments that touch an entity with a place: a slot, a tensor, a view."""
        place = self.compiled.laid_out.places.get(name)
        if place is None:
            return []
        dtype, count = self._extent(name)
        item = DTYPES[dtype].size
        return self.uses(place.allocation, place.offset * item, (place.offset + count) * item)

    def _extent(self, name: str) -> tuple[str, int]:
        if name in self.slots:
            return "f32", self.slots[name].count
        if name in self.views:
            shape = self.views[name].shape
        elif name in self.tensors:
            shape = self.tensors[name].shape
        else:
            return "i64", 1  # a counter
        count = 1
        for n in shape:
            count *= n
        return self.views[name].dtype if name in self.views else self.tensors[name].dtype.name, count


def _grouped(compiled: Compiled, end: Callable[[Edge], str]) -> dict[str, list[Edge]]:
    found: dict[str, list[Edge]] = defaultdict(list)
    for graph in compiled.graphs:
        for e in graph.edges:
            found[end(e)].append(e)
    for step in compiled.schedule.steps:
        for e in step.edges:
            found[f"device:{end(e)}"].append(e)
    return dict(found)


def members(fused: FusedLaunch) -> tuple[Launch, ...]:
    """The declared launches that a device launch runs, in task order."""
    return tuple(n for t in fused.tasks for n in t.launches)


def flops(launch: Launch) -> int:
    """The floating-point operations that a launch's kernel declares for its dims."""
    return size(launch, launch.kernel.flops)


def conflicts(a: Launch, b: Launch) -> list[tuple[str, str]]:
    """Bytes that both touch and one writes, as (hazard of a before b, range): none means any order is right.

    A write of a slot counts as it does in the step's graph: it follows every reader.
    """
    found = []
    for mine in accesses(a):
        for yours in accesses(b):
            start = max(mine.range.start, yours.range.start)
            stop = min(mine.range.stop, yours.range.stop)
            same = mine.range.base == yours.range.base and start < stop
            if same and (mine.writes or yours.writes):
                kind = "WAW" if mine.writes and yours.writes else "RAW" if mine.writes else "WAR"
                item = yours.range.dtype.size
                found.append((kind, f"{yours.range.text} [{start // item}:{stop // item})"))
    return list(dict.fromkeys(found))


def shared_reads(a: Launch, b: Launch) -> list[str]:
    """The ranges that both only read."""
    theirs = [t for t in accesses(b) if not t.writes]
    return sorted(
        {
            mine.range.text
            for mine in accesses(a)
            for yours in theirs
            if not mine.writes
            and mine.range.base == yours.range.base
            and mine.range.start < yours.range.stop
            and yours.range.start < mine.range.stop
        }
    )


def human_bytes(count: float) -> str:
    """A count of bytes in the unit that reads best.

    >>> human_bytes(512), human_bytes(1536), human_bytes(7589032)
    ('512 B', '1.5 KiB', '7.2 MiB')
    """
    units = iter(("B", "KiB", "MiB", "GiB"))
    unit = next(units)
    while count >= 1024 and (larger := next(units, None)):
        count, unit = count / 1024, larger
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def human_count(count: float) -> str:
    """A large count with an SI prefix.

    >>> human_count(0), human_count(950), human_count(928_940_032)
    ('0', '950', '929 M')
    """
    units = iter(("", " k", " M", " G", " T"))
    unit = next(units)
    while count >= 1000 and (larger := next(units, None)):
        count, unit = count / 1000, larger
    return f"{count:.3g}{unit}"

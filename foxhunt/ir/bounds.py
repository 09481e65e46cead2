"""Rule no-self-limiting-bound: what a bound has clamped must not be what its producer observes.

Otherwise the bound can only shrink, and training stops.
"""

from __future__ import annotations

from dataclasses import dataclass

from foxhunt.ir.access import accesses, items
from foxhunt.ir.findings import Findings
from foxhunt.ir.intervals import Intervals
from foxhunt.ir.types import LaidOutProgram, Launch, Range, StepGraph


@dataclass(frozen=True)
class _Observed:
    """Bytes that a producer reads and nothing in its own step has written before."""

    launch: Launch
    range: Range
    start: int
    stop: int


class _Sweep:
    """All steps in program order; launches are numbered through the program."""

    def __init__(self, laid_out: LaidOutProgram, graphs: tuple[StepGraph, ...], findings: Findings) -> None:
        self.findings = findings
        self.slots = {(s.index or 0) + k: s for s in laid_out.program.slots for k in range(s.count)}
        first = {s.name: s.index or 0 for s in laid_out.program.slots}
        self.fed = {o.position: first[o.slot] + o.element for o in laid_out.program.observations}
        self.launches = [launch for graph in graphs for launch in items(graph)]
        self.limits = [_elements(launch) for launch in self.launches]
        self.bounds: frozenset[int] = frozenset().union(*self.limits)
        self.reported: set[tuple[str, str]] = set()

    def run(self, graphs: tuple[StepGraph, ...]) -> None:
        number = 0
        ends: list[dict[str, Intervals]] = []
        open_reads: list[_Observed] = []
        for graph in graphs:
            state: dict[str, Intervals] = {}
            for launch in items(graph):
                if launch.producer is not None and self._feeds(launch):
                    open_reads += self._observe(launch, state)
                for touch in accesses(launch):
                    if touch.writes:
                        intervals = state.setdefault(touch.range.base, Intervals())
                        intervals.write(touch.range.start, touch.range.stop, number)
                number += 1
            ends.append(state)
        for observed in open_reads:  # the last writer may stand later in this step, or in any other
            for state in ends:
                for *_, writer, _readers in state.get(observed.range.base, Intervals()).overlapping(
                    observed.start, observed.stop
                ):
                    self._check(observed.launch, observed.range, writer)

    def _observe(self, launch: Launch, state: dict[str, Intervals]) -> list[_Observed]:
        remaining = []
        for touch in accesses(launch):
            if touch.writes:
                continue
            position = touch.range.start
            intervals = state.get(touch.range.base, Intervals())
            for start, stop, writer, _ in intervals.overlapping(touch.range.start, touch.range.stop):
                self._check(launch, touch.range, writer)
                if position < start:
                    remaining.append(_Observed(launch, touch.range, position, start))
                position = stop
            if position < touch.range.stop:
                remaining.append(_Observed(launch, touch.range, position, touch.range.stop))
        return remaining

    def _feeds(self, launch: Launch) -> frozenset[int]:
        """The ISV elements used as bounds that a producer's launch observes for."""
        positions = (
            touch.range.offset + k
            for touch in accesses(launch)
            if touch.range.base == "scratch"
            for k in range(touch.range.count)
        )
        return frozenset(self.fed[p] for p in positions) & self.bounds

    def _check(self, launch: Launch, found: Range, writer: int | None) -> None:
        if writer is None:
            return
        for element in sorted(self._feeds(launch) & self.limits[writer]):
            slot, by = self.slots[element], self.launches[writer]
            if (launch.name, by.name) in self.reported:
                continue
            self.reported.add((launch.name, by.name))
            message = (
                f"{launch.name} observes {found.text} for bound {slot.name} after {by.name} has clamped it"
            )
            hint = "such a bound can only shrink: observe the value before the clamp"
            self.findings.add("FH255", message, launch.at, hint, ((by.at, "the clamp"),), slot.name)


def _elements(launch: Launch) -> frozenset[int]:
    """The ISV elements that a launch takes as bounds."""
    return frozenset(
        r.offset + k for a in launch.arguments if a.kind == "bound" for r in a.ranges for k in range(r.count)
    )


def check_bounds(laid_out: LaidOutProgram, graphs: tuple[StepGraph, ...], findings: Findings) -> None:
    """A bound's producer may not read a range whose last writer takes that slot as a bound."""
    sweep = _Sweep(laid_out, graphs, findings)
    if sweep.bounds:
        sweep.run(graphs)

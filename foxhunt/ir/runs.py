"""Placing runs of positions on one line: written ones, then locked ones, then the rest in the lowest gaps."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from foxhunt.diagnostics import Location
from foxhunt.ir.findings import Findings


@dataclass(frozen=True)
class Run:
    """`count` neighbouring positions. `written` is asked for by a person, `locked` by the lock."""

    name: str
    count: int
    written: int | None = None
    locked: int | None = None
    alignment: int = 1
    at: Location | None = None


@dataclass(frozen=True)
class Placement:
    """First position of each run, and one past the highest position."""

    starts: Mapping[str, int]
    total: int


class _Line:
    """Taken intervals, disjoint and sorted."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int, str]] = []
        self.resume: dict[tuple[int, int], int] = {}

    def clash(self, start: int, count: int) -> str | None:
        """The name of a run that overlaps `count` positions from `start`."""
        k = bisect_left(self.taken, (start + count, -1, ""))
        if k and self.taken[k - 1][1] > start:
            return self.taken[k - 1][2]
        return None

    def take(self, start: int, count: int, name: str) -> None:
        insort(self.taken, (start, start + count, name))

    def lowest(self, run: Run, floor: int) -> int:
        """The lowest free run from `floor` on. Gaps only fill up, so a search for the same size resumes."""
        key = (run.count, run.alignment)
        position = _align(max(floor, self.resume.get(key, 0)), run.alignment)
        k = max(0, bisect_left(self.taken, (position, -1, "")) - 1)
        while k < len(self.taken):
            start, stop, _ = self.taken[k]
            if start >= position + run.count:
                break
            if stop > position:
                position = _align(stop, run.alignment)
            k += 1
        self.resume[key] = position
        return position


def place_runs(runs: Iterable[Run], what: str, findings: Findings, after_written: bool = True) -> Placement:
    """A position for every run. Written runs that overlap are findings that name `what`.

    A run that is neither written nor locked goes behind the highest written position when `after_written`, so
    that one `index:` starts a numbering; and never in a place that the lock holds for another.
    """
    line, starts = _Line(), dict[str, int]()
    runs = list(runs)
    for run in runs:
        if run.written is None:
            continue
        other = line.clash(run.written, run.count)
        if other is not None:
            shown = f"{run.written}" if run.count == 1 else f"{run.written}..{run.written + run.count - 1}"
            message = f"{what} {shown} of {run.name} overlaps {other}"
            findings.add("FH230", message, run.at, "leave `index:` out and the next free place is found")
        else:
            line.take(run.written, run.count, run.name)
        starts[run.name] = run.written
    floor = line.taken[-1][1] if line.taken and after_written else 0
    for run in _kept(runs):
        if line.clash(run.locked or 0, run.count) is None:
            line.take(run.locked or 0, run.count, run.name)
            starts[run.name] = run.locked or 0
    for run in runs:
        if run.name not in starts:
            starts[run.name] = line.lowest(run, floor)
            line.take(starts[run.name], run.count, run.name)
    return Placement(starts, line.taken[-1][1] if line.taken else 0)


def _kept(runs: list[Run]) -> list[Run]:
    """The locked runs that still fit before the next one: of two that clash, the one that has grown moves."""
    locked = sorted(
        (r for r in runs if r.written is None and r.locked is not None), key=lambda r: r.locked or 0
    )
    following = [run.locked or 0 for run in locked[1:]]
    ends = [(run.locked or 0) + run.count for run in locked]
    return [run for run, end, after in zip_longest(locked, ends, following) if after is None or end <= after]


def _align(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment

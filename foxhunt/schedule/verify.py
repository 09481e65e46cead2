"""The schedule's own proof: hazards recomputed on physical bytes, a path demanded for each.

A finding here is a bug of the scheduler, never a user's mistake, so it is an `AssertionError` and no
diagnostic.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foxhunt.ir.types import Allocation, StepGraph
from foxhunt.schedule.dag import ancestors, bits, descendants
from foxhunt.schedule.touch import Touch, physical, task_touches
from foxhunt.schedule.types import ScheduledStep


def verify(
    step: ScheduledStep, graph: StepGraph, arena: Mapping[str, int], allocations: Sequence[Allocation] = ()
) -> None:
    """Every hazard on physical ranges has a path in the final graph, and so has every edge of the declared
    graph.
    """
    index = {n.name: i for i, n in enumerate(step.launches)}
    edges = [(index[e.before], index[e.after]) for e in step.edges]
    reach = descendants(len(step.launches), edges)
    before = ancestors(len(step.launches), edges)
    _declared_edges(step, graph, reach)
    memory: dict[str, Spans] = {}
    bounds = {a.name: a.nbytes for a in allocations}
    for node, launch in enumerate(step.launches):
        touches = [
            (task, physical(t, arena)) for task, part in enumerate(launch.tasks) for t in task_touches(part)
        ]
        for _, t in touches:
            _demand(t.stop <= bounds.get(t.base, t.stop), f"{t.owner} leaves {t.base} at byte {t.stop}")
            loose = memory.get(t.base, _NOTHING).hazards(t) & ~before[node]
            if loose:
                other = step.launches[next(bits(loose))].name
                _demand(False, f"{other} and {launch.name} share {t.base} without an order")
        _side_by_side(launch.name, touches)
        for writes in (False, True):  # a launch's writes supersede its own reads
            for _, t in touches:
                if t.writes is writes:
                    memory.setdefault(t.base, Spans()).record(t, node)


def _demand(holds: bool, message: str) -> None:
    """An assertion that `python -O` keeps."""
    if not holds:
        raise AssertionError(message)


def _declared_edges(step: ScheduledStep, graph: StepGraph, reach: Sequence[int]) -> None:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for node, launch in enumerate(step.launches):
        for task in launch.tasks:
            for n in task.launches:
                first.setdefault(n.name, node)
                last[n.name] = node
    _demand(set(first) == {n.name for n in graph.launches}, f"step {step.name} lost a launch")
    for e in graph.edges:
        ok = bool(reach[last[e.before]] >> first[e.after] & 1)
        _demand(ok, f"{e.before} → {e.after} ({e.kind} {e.reason}) has no path in the schedule")


def _side_by_side(name: str, touches: Sequence[tuple[int, Touch]]) -> None:
    """Launches inside one device launch run together, so none may write what another touches."""
    by_base: dict[str, list[Touch]] = {}
    for _, t in touches:
        if t.stop > t.start:
            by_base.setdefault(t.base, []).append(t)
    for base, found in by_base.items():
        found.sort(key=lambda t: (t.start, t.stop))
        reach_any: list[tuple[int, str]] = []  # (furthest stop, owner) of reads and writes so far
        reach_write: list[tuple[int, str]] = []
        for t in found:
            against = reach_any if t.writes else reach_write
            clash = next((o for stop, o in against if stop > t.start and o != t.owner), None)
            _demand(clash is None, f"{clash} and {t.owner} share {base} inside {name}")
            reach_any = _furthest(reach_any, t)
            reach_write = _furthest(reach_write, t) if t.writes else reach_write


def _furthest(known: list[tuple[int, str]], t: Touch) -> list[tuple[int, str]]:
    """The two owners that reach furthest: enough to find one that is not the asker."""
    best = {owner: stop for stop, owner in known}
    best[t.owner] = max(best.get(t.owner, 0), t.stop)
    return sorted(((stop, owner) for owner, stop in best.items()), reverse=True)[:2]


Users = tuple[int, int]
"""The last writer and the readers since, each as bits over device launches."""


@dataclass
class Spans:
    """Bytes of one allocation cut into sorted runs, each with its users."""

    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    users: list[Users] = field(default_factory=list)

    def hazards(self, touch: Touch) -> int:
        """The earlier launches, as bits, that must precede a launch with this touch."""
        found = 0
        for i in self._overlapping(touch):
            writer, readers = self.users[i]
            found |= writer | (readers if touch.writes else 0)
        return found

    def record(self, touch: Touch, node: int) -> None:
        """Remember that `node` touched these bytes."""
        if touch.stop <= touch.start:
            return
        cut: list[tuple[int, int, Users]] = []
        chosen = self._overlapping(touch)
        at = touch.start
        for i in chosen:
            start, stop, user = self.starts[i], self.stops[i], self.users[i]
            if start > at:
                cut.append((at, start, _used((0, 0), touch, node)))
            if start < touch.start:
                cut.append((start, touch.start, user))
            cut.append((max(start, touch.start), min(stop, touch.stop), _used(user, touch, node)))
            if stop > touch.stop:
                cut.append((touch.stop, stop, user))
            at = min(stop, touch.stop)
        if at < touch.stop:
            cut.append((at, touch.stop, _used((0, 0), touch, node)))
        merged = _joined(cut)
        where = slice(chosen.start, chosen.stop)
        self.starts[where] = [c[0] for c in merged]
        self.stops[where] = [c[1] for c in merged]
        self.users[where] = [c[2] for c in merged]

    def _overlapping(self, touch: Touch) -> range:
        first = bisect_right(self.stops, touch.start)
        return range(first, max(first, bisect_left(self.starts, touch.stop)))


_NOTHING = Spans()


def _used(user: Users, touch: Touch, node: int) -> Users:
    return (1 << node, 0) if touch.writes else (user[0], user[1] | 1 << node)


def _joined(cut: Sequence[tuple[int, int, Users]]) -> list[tuple[int, int, Users]]:
    """Neighbouring runs with the same users as one, so that runs stay few."""
    result: list[tuple[int, int, Users]] = []
    for start, stop, user in cut:
        if result and result[-1][1] == start and result[-1][2] == user:
            result[-1] = (result[-1][0], stop, user)
        else:
            result.append((start, stop, user))
    return result

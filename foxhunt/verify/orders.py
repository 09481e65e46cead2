"""Other legal orders of a scheduled step: every device launch after those that it has an edge from."""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from foxhunt.backend.plan import Plan
from foxhunt.ir.types import StepGraph
from foxhunt.pipeline import Compiled
from foxhunt.schedule.types import ScheduledStep

Priority = Callable[[int], float]
"""Position of a device launch's first declared launch → which of the launches that may run goes first."""


def orders(compiled: Compiled, seed: int, count: int) -> Iterator[tuple[str, Plan]]:
    """The plan as scheduled, with everything as late as it may be, and in `count` random orders, each with
    its name. Orders that come to the same are given once.
    """
    seen = set()
    wanted: list[tuple[str, Plan]] = [("the scheduled order", compiled.plan)]
    wanted.append(("the reverse order", reordered(compiled, lambda position: -position)))
    for number in range(count):
        draw = random.Random(f"{seed}.{number}")
        wanted.append((f"random order {number}", reordered(compiled, _drawn(draw))))
    for name, plan in wanted:
        key = tuple(tuple(n.name for n in s.launches) for s in plan.steps)
        if key not in seen:
            seen.add(key)
            yield name, plan


def _drawn(draw: random.Random) -> Priority:
    return lambda _: draw.random()


def declared_order(compiled: Compiled) -> Plan:
    """The plan in the order of the specs, as far as hazards let it."""
    return reordered(compiled, lambda position: position)


def reordered(compiled: Compiled, priority: Priority) -> Plan:
    """The compiled plan with the launches of each step in another order that keeps the schedule's edges."""
    graphs = {g.step: g for g in compiled.graphs}
    scheduled = {s.name: s for s in compiled.schedule.steps}
    steps = []
    for step in compiled.plan.steps:
        launches = {n.name: n for n in step.launches}
        names = _sorted(scheduled[step.name], _positions(scheduled[step.name], graphs[step.name]), priority)
        steps.append(replace(step, launches=tuple(launches[n] for n in names)))
    return replace(compiled.plan, steps=tuple(steps))


def _positions(step: ScheduledStep, graph: StepGraph) -> dict[str, int]:
    number = {n.name: k for k, n in enumerate(graph.launches)}
    return {f.name: min(number[n.name] for t in f.tasks for n in t.launches) for f in step.launches}


def _sorted(step: ScheduledStep, positions: Mapping[str, int], priority: Priority) -> list[str]:
    waiting = dict.fromkeys((n.name for n in step.launches), 0)
    after = defaultdict(list)
    for edge in {(e.before, e.after) for e in step.edges}:
        waiting[edge[1]] += 1
        after[edge[0]].append(edge[1])
    ready = [(priority(positions[n]), positions[n], n) for n, count in waiting.items() if not count]
    heapq.heapify(ready)
    found = []
    while ready:
        name = heapq.heappop(ready)[2]
        found.append(name)
        for then in sorted(after[name]):
            waiting[then] -= 1
            if not waiting[then]:
                heapq.heappush(ready, (priority(positions[then]), positions[then], then))
    return found

"""Which stream each device launch runs on. One lane, unless two independent launches are both long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from foxhunt.ir.types import Edge
from foxhunt.schedule.dag import ranks
from foxhunt.schedule.estimate import FLOOR_US, LANE_US, microseconds
from foxhunt.schedule.types import FusedLaunch


def assign(
    launches: Sequence[FusedLaunch], edges: Sequence[Edge]
) -> tuple[tuple[FusedLaunch, ...], tuple[Edge, ...]]:
    """The launches with their lanes, and the edges with those that fork and join a lane added.

    Of the launches of one level that are each estimated over `LANE_US`, every second one goes to lane 1.
    That lane starts after the step's first launch and its leaves end before the step's last one, so a
    captured step is one connected graph.
    """
    index = {n.name: i for i, n in enumerate(launches)}
    level = ranks([n.name for n in launches], [(index[e.before], index[e.after]) for e in edges]).level
    long: dict[int, list[int]] = defaultdict(list)
    for i, n in enumerate(launches[1:-1], start=1):
        if _microseconds(n) > LANE_US:
            long[level[i]].append(i)
    aside = {i for members in long.values() for i in members[1::2]}
    placed = tuple(replace(n, lane=int(i in aside)) for i, n in enumerate(launches))
    return placed, (*edges, *_joints(placed, edges))


def _microseconds(launch: FusedLaunch) -> float:
    """One launch's floor, and the work of all its members: many tiny tasks together are no long launch."""
    return FLOOR_US + sum(microseconds(m) - FLOOR_US for t in launch.tasks for m in t.launches)


def _joints(launches: Sequence[FusedLaunch], edges: Sequence[Edge]) -> list[Edge]:
    entered = {e.after for e in edges}
    left = {e.before for e in edges}
    joints = []
    for n in launches:
        if n.lane and n.name not in entered:
            joints.append(
                Edge(launches[0].name, n.name, "ORDER", "a lane starts after the step's first launch")
            )
        if n.lane and n.name not in left:
            joints.append(
                Edge(n.name, launches[-1].name, "ORDER", "a lane ends before the step's last launch")
            )
    return joints


def waits(launches: Sequence[FusedLaunch], edges: Sequence[Edge]) -> dict[str, tuple[str, ...]]:
    """For each launch the launches of other lanes that it waits for; those of its own lane come first
    anyway.
    """
    lane = {n.name: n.lane for n in launches}
    found: dict[str, list[str]] = defaultdict(list)
    for e in edges:
        if lane[e.before] != lane[e.after]:
            found[e.after].append(e.before)
    return {name: tuple(sorted(set(names))) for name, names in found.items()}

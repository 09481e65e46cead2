"""The hazard graph of one step: who must end before whom, and why."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from foxhunt.diagnostics import SpecError, fail
from foxhunt.ir.access import accesses
from foxhunt.ir.intervals import Intervals
from foxhunt.ir.sentinel import sentinel_launch, update_launches
from foxhunt.ir.system import apply_launch, ingest_launch, publish_launch
from foxhunt.ir.types import Access, Edge, LaidOutProgram, Launch, Range, StepGraph

_STRENGTH = {"RAW": 0, "WAW": 1, "WAR": 2, "ORDER": 3}
_MEMORY = 24
"""Chains that a launch remembers for dropping covered edges; forgetting one only keeps an edge more."""

Hazards = dict[tuple[int, int], tuple[str, str]]


def build_graph(laid_out: LaidOutProgram, step: str) -> StepGraph:
    """The launches of `step` with its ingest, sentinel, applicator and publish, and the edges between them.

    Raises SpecError naming the cycle when `after` or a slot's writer asks for the impossible.
    """
    declared = next(s for s in laid_out.program.steps if s.name == step)
    update = update_launches(laid_out, step)
    looks, folds = sentinel_launch(laid_out, step), apply_launch(laid_out, step)
    system = [n for n in (looks, *update[1:], folds, publish_launch(laid_out, step)) if n is not None]
    launches = (ingest_launch(laid_out, step), *update[:1], *declared.launches, *system)
    hazards = _hazards(launches, len(system))
    _add_order(launches, hazards)
    order = _topological(launches, hazards)
    kept = _uncovered(order, hazards)
    edges = (Edge(launches[a].name, launches[b].name, *hazards[a, b]) for a, b in sorted(kept))
    return StepGraph(step, launches, tuple(edges))


def _hazards(launches: tuple[Launch, ...], system: int) -> Hazards:
    """Every conflict with the latest earlier access, in program order.

    Slots are constant within a step: writes of slots by kernels are swept after all items, so that every
    reader comes before the writer, wherever it stands; the applicator and publish follow.
    """
    state: dict[str, Intervals] = {}
    hazards: Hazards = {}
    deferred: list[tuple[int, Range, Access]] = []
    items = len(launches) - system
    for k, launch in enumerate(launches):
        if k == items:
            for writer, found, access in deferred:
                _touch(state, hazards, writer, [(found, access)])
        touched = []
        for touch in accesses(launch):
            if touch.slot_write:
                deferred.append((k, touch.range, touch.access))
            else:
                touched.append((touch.range, touch.access))
        _touch(state, hazards, k, touched)
    return hazards


def _touch(
    state: dict[str, Intervals], hazards: Hazards, k: int, touched: list[tuple[Range, Access]]
) -> None:
    """Records the accesses of launch `k`; all its conflicts are found before any of them counts."""
    for found, access in touched:
        intervals = state.setdefault(found.base, Intervals())
        for start, stop, writer, readers in intervals.overlapping(found.start, found.stop):
            if access is not Access.WRITE and writer is not None:
                _record(hazards, writer, k, "RAW", found, start, stop)
            if access is not Access.READ:
                if writer is not None:
                    _record(hazards, writer, k, "WAW", found, start, stop)
                for reader in readers:
                    _record(hazards, reader, k, "WAR", found, start, stop)
    for found, access in touched:
        if access is Access.READ:
            state[found.base].read(found.start, found.stop, k)
    for found, access in touched:
        if access is not Access.READ:
            state[found.base].write(found.start, found.stop, k)


def _record(
    hazards: Hazards, before: int, after: int, kind: str, found: Range, start: int, stop: int
) -> None:
    if before == after:
        return
    known = hazards.get((before, after))
    if known is None or _STRENGTH[kind] < _STRENGTH[known[0]]:
        size = found.dtype.size
        hazards[before, after] = (kind, f"{found.text} [{start // size}:{stop // size})")


def _add_order(launches: tuple[Launch, ...], hazards: Hazards) -> None:
    index = {launch.name: k for k, launch in enumerate(launches)}
    for k, launch in enumerate(launches):
        for name in launch.after:
            hazards.setdefault((index[name], k), ("ORDER", f"after: {name.partition('.')[2]}"))


def _topological(launches: tuple[Launch, ...], hazards: Hazards) -> list[int]:
    """Launches in an order that keeps every edge, the earlier in the program first."""
    successors: list[list[int]] = [[] for _ in launches]
    waiting = [0] * len(launches)
    for before, after in hazards:
        successors[before].append(after)
        waiting[after] += 1
    ready = [k for k, count in enumerate(waiting) if not count]
    heapify(ready)
    order = []
    while ready:
        k = heappop(ready)
        order.append(k)
        for after in successors[k]:
            waiting[after] -= 1
            if not waiting[after]:
                heappush(ready, after)
    if len(order) < len(launches):
        raise _cycle(launches, hazards, {k for k, count in enumerate(waiting) if count})
    return order


def _cycle(launches: tuple[Launch, ...], hazards: Hazards, stuck: set[int]) -> SpecError:
    edges = _circle(hazards, stuck)
    names = [launches[a].name for a, _ in edges]
    shown = names if len(names) < 12 else [*names[:6], "…", *names[-5:]]
    reasons = [f"{launches[a].name} → {launches[b].name}: {' '.join(hazards[a, b])}" for a, b in edges[:6]]
    error = fail(
        SpecError,
        "FH240",
        f"launches in a circle: {' → '.join([*shown, names[0]])}",
        at=launches[edges[0][0]].at,
        help="break one of: " + "; ".join(reasons),
    )
    assert isinstance(error, SpecError)
    return error


def _circle(hazards: Hazards, stuck: set[int]) -> list[tuple[int, int]]:
    """The edges of one circle, from its earliest launch on; of several circles the one with the earliest."""
    import networkx  # here, because a sound program never needs it and the import takes longer than a compile

    graph = networkx.DiGraph(sorted(edge for edge in hazards if stuck.issuperset(edge)))
    knots = [c for c in networkx.strongly_connected_components(graph) if len(c) > 1]
    members = min([*knots, *({loop} for loop in networkx.nodes_with_selfloops(graph))], key=min)
    edges: list[tuple[int, int]] = networkx.find_cycle(graph.subgraph(members).copy(), source=min(members))
    return edges


def _uncovered(order: list[int], hazards: Hazards) -> set[tuple[int, int]]:
    """The edges that no path of other kept edges implies, up to what the chains remember.

    Each launch continues the chain of one predecessor or starts its own; `seen[k]` maps a chain to the
    latest place in it that is known to come before k. Walking the predecessors from the latest on, one that
    is already seen needs no edge. Linear, where a transitive reduction is quadratic.
    """
    rank = {k: position for position, k in enumerate(order)}
    predecessors: dict[int, list[int]] = {k: [] for k in order}
    for before, after in hazards:
        predecessors[after].append(before)
    chain: dict[int, int] = {}
    tail: dict[int, int] = {}
    seen: dict[int, Mapping[int, int]] = {}
    kept: set[tuple[int, int]] = set()
    for k in order:
        known: dict[int, int] = {}
        joined = None
        for before in sorted(predecessors[k], key=lambda p: -rank[p]):
            if known.get(chain[before], -1) >= rank[before]:
                continue
            kept.add((before, k))
            for c, position in seen[before].items():
                if known.get(c, -1) < position:
                    known[c] = position
            if joined is None and tail[chain[before]] == before:
                joined = chain[before]
        chain[k] = k if joined is None else joined
        tail[chain[k]] = k
        known[chain[k]] = rank[k]
        if len(known) > _MEMORY:
            known = dict(sorted(known.items(), key=lambda item: -item[1])[:_MEMORY])
        seen[k] = known
    return kept

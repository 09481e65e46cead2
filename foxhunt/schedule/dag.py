"""Directed acyclic graphs on 0..n-1: levels, remaining path lengths, reachability as bitsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from foxhunt.diagnostics import SpecError, fail

Pair = tuple[int, int]


@dataclass(frozen=True)
class Ranks:
    """Longest path from any source (`level`) and to any sink (`remaining`), both in edges, per node."""

    level: tuple[int, ...]
    remaining: tuple[int, ...]


def adjacency(count: int, edges: Iterable[Pair]) -> tuple[list[list[int]], list[list[int]]]:
    """Predecessors and successors of every node, each neighbour once, ascending."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for a, b in sorted(set(edges)):
        before[b].append(a)
        after[a].append(b)
    return before, after


def ranks(names: Sequence[str], edges: Iterable[Pair]) -> Ranks:
    """Levels and remaining lengths in linear time; a cycle is FH301, naming its members."""
    count = len(names)
    before, after = adjacency(count, edges)
    waiting = [len(b) for b in before]
    queue = [i for i in range(count) if not waiting[i]]
    level = [0] * count
    for node in queue:  # grows while it is walked
        for then in after[node]:
            level[then] = max(level[then], level[node] + 1)
            waiting[then] -= 1
            if not waiting[then]:
                queue.append(then)
    if len(queue) < count:
        raise _cyclic(names, before, waiting)
    remaining = [0] * count
    for node in reversed(queue):
        for then in after[node]:
            remaining[node] = max(remaining[node], remaining[then] + 1)
    return Ranks(tuple(level), tuple(remaining))


def _cyclic(names: Sequence[str], before: list[list[int]], waiting: list[int]) -> SpecError:
    # Every node still waiting has a predecessor still waiting, so walking back must repeat a node.
    node = next(i for i, n in enumerate(waiting) if n)
    path: list[int] = []
    seen: dict[int, int] = {}
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(p for p in before[node] if waiting[p])
    cycle = [names[i] for i in reversed([*path[seen[node] :], node])]
    shown = cycle if len(cycle) <= 12 else [*cycle[:6], "…", *cycle[-5:]]
    error = fail(
        SpecError,
        "FH301",
        f"launches wait for one another in a circle: {' → '.join(shown)}",
        help="remove one of the `after:` entries or reorder the items",
    )
    assert isinstance(error, SpecError)
    return error


def descendants(count: int, edges: Iterable[Pair]) -> list[int]:
    """For a DAG whose edges all go from lower to higher index: strict descendants of each node as bitsets."""
    _, after = adjacency(count, edges)
    reach = [0] * count
    for node in range(count - 1, -1, -1):
        bits = 0
        for then in after[node]:
            bits |= reach[then] | (1 << then)
        reach[node] = bits
    return reach


def ancestors(count: int, edges: Iterable[Pair]) -> list[int]:
    """For a DAG whose edges all go from lower to higher index: strict ancestors of each node as bitsets."""
    before, _ = adjacency(count, edges)
    known = [0] * count
    for node in range(count):
        for first in before[node]:
            known[node] |= known[first] | (1 << first)
    return known


def reduced(count: int, edges: Iterable[Pair]) -> list[Pair]:
    """The transitive reduction of a DAG whose edges all go from lower to higher index, sorted.

    It depends on the order that the edges mean only, so equal graphs written differently give equal edges.
    """
    before, _ = adjacency(count, edges)
    known = [0] * count
    kept: list[Pair] = []
    for node in range(count):
        covered = 0
        for first in reversed(before[node]):  # nearest first: it may cover the farther ones
            if not covered >> first & 1:
                kept.append((first, node))
                covered |= known[first] | (1 << first)
        known[node] = covered
    return sorted(kept)


def bits(mask: int) -> Iterator[int]:
    """The positions of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low

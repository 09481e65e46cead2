"""A topological order that depends on what the graph means, not on how it was written down."""

from __future__ import annotations

from foxhunt.ir.types import Launch, StepGraph
from foxhunt.schedule.dag import Pair, Ranks, ranks


def order(graph: StepGraph) -> tuple[Launch, ...]:
    """The launches of a step, by level, then longest remaining path first, then qualified name.

    Levels are longest paths, and those are the same for every set of edges with one transitive closure: any
    declaration order with the same meaning gives the same result. Raises FH301 for a cycle. Linear in
    launches and edges, but for the sort.
    """
    return tuple(graph.launches[i] for i in sorted_nodes([n.name for n in graph.launches], pairs(graph))[0])


def pairs(graph: StepGraph) -> list[Pair]:
    """The edges of a step as index pairs into `graph.launches`."""
    index = {launch.name: i for i, launch in enumerate(graph.launches)}
    return [(index[e.before], index[e.after]) for e in graph.edges]


def sorted_nodes(names: list[str], edges: list[Pair]) -> tuple[list[int], Ranks]:
    """Node numbers in schedule order, and the ranks that it comes from."""
    found = ranks(names, edges)
    return sorted(range(len(names)), key=lambda i: (found.level[i], -found.remaining[i], names[i])), found

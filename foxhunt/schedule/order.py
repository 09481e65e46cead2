"""A topological order that depends on what the graph means, not on how it was written down."""

from __future__ import annotations

from dataclasses import replace

from foxhunt.ir.types import Edge, Launch, StepGraph
from foxhunt.schedule.dag import Pair, Ranks, ranks


def order(graph: StepGraph) -> tuple[Launch, ...]:
    """The launches of a step, by level, then longest remaining path first, then qualified name.

    Levels are longest paths, and those are the same for every set of edges with one transitive closure: any
    declaration order with the same meaning gives the same result. Raises FH301 for a cycle. Linear in
    launches and edges, but for the sort.
    """
    names = [n.name for n in graph.launches]
    return tuple(graph.launches[i] for i in sorted_nodes(names, pairs(bounded(graph)))[0])


def bounded(graph: StepGraph) -> StepGraph:
    """The graph with its ingest before all and its publish after all, whatever they touch.

    A replay reads its inputs first, and what it publishes says that the whole step has ended.
    """
    entered = {e.after for e in graph.edges}
    left = {e.before for e in graph.edges}
    edges = list(graph.edges)
    for end, kernel in ((graph.launches[0], "ingest"), (graph.launches[-1], "publish")):
        if end.kernel.kernel != kernel:
            continue
        for n in graph.launches:
            if kernel == "ingest" and n is not end and n.name not in entered:
                edges.append(Edge(end.name, n.name, "ORDER", "a step starts with its ingest"))
            if kernel == "publish" and n is not end and n.name not in left:
                edges.append(Edge(n.name, end.name, "ORDER", "a step ends with its publish"))
    return replace(graph, edges=tuple(edges))


def pairs(graph: StepGraph) -> list[Pair]:
    """The edges of a step as index pairs into `graph.launches`."""
    index = {launch.name: i for i, launch in enumerate(graph.launches)}
    return [(index[e.before], index[e.after]) for e in graph.edges]


def sorted_nodes(names: list[str], edges: list[Pair]) -> tuple[list[int], Ranks]:
    """Node numbers in schedule order, and the ranks that it comes from."""
    found = ranks(names, edges)
    return sorted(range(len(names)), key=lambda i: (found.level[i], -found.remaining[i], names[i])), found

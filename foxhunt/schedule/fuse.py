"""From launches to device launches: statistics of one range share its passes, small tasks of one level
share a launch.

Both contract nodes of one level only. Levels rise strictly along every edge, so two nodes of a level never
depend on one another and no contraction inside levels can close a circle. Decisions go by the dims that the
program is compiled with.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foxhunt.diagnostics import SpecError, fail
from foxhunt.ir.types import Access, Edge, Launch, Range, StepGraph
from foxhunt.schedule.abi import WORD_LIMIT, word_count
from foxhunt.schedule.dag import Pair, ranks, reduced
from foxhunt.schedule.estimate import SMALL_US, microseconds, statistic_grid
from foxhunt.schedule.order import bounded, pairs, sorted_nodes
from foxhunt.schedule.types import FusedLaunch, Task

ALONE = ("ingest", "publish", "reset")
"""System kernels that bound a step, and keep launches of their own."""
MAX_GRID = 2**31 - 1

MAX_MEMBERS = 8
"""Statistics in one sweep: each keeps registers, and shared bins of 3 KiB of the 48 that a block has."""

MAX_TASKS = 12
"""Tasks in one device launch. A compiler gives all their branches the registers of the widest, and with some
dozens of statistics begins to spill.
"""

Span = tuple[str, int, int]


@dataclass(frozen=True)
class Contracted:
    """Tasks in schedule order, grouped into device launches, and the edges between those by position."""

    launches: tuple[FusedLaunch, ...]
    edges: tuple[Edge, ...]


def fuse(graph: StepGraph) -> Contracted:
    """The device launches of one step in order, with the reduced edges between them. Entries are left
    unnamed.
    """
    graph = bounded(graph)
    groups = _groups(graph)
    tasks, task_edges = _tasks(graph, groups)
    names = [f"{t.launches[0].name}.pass{t.pass_index:04}" for t in tasks]
    kinds = [mates(t) for t in tasks]
    level = _settled_levels(kinds, names, task_edges)
    bins = _bins(tasks, kinds, names, level)
    return _contract(graph, tasks, task_edges, bins)


def apart(graph: StepGraph) -> Contracted:
    """The same launches with nothing joined: a task, and a device launch, for each launch and pass."""
    graph = bounded(graph)
    tasks, edges = _tasks(graph, [(n,) for n in graph.launches])
    return _contract(graph, tasks, edges, [[i] for i in range(len(tasks))])


def inputs(launch: Launch) -> tuple[Range, ...]:
    """The ranges that a statistic sweeps: those of its `many` data parameters, or of all its data
    parameters.
    """
    read = [a for a in launch.arguments if a.kind == "data" and a.access is Access.READ]
    swept = [a for a in read if a.many] or read
    return tuple(r for a in swept for r in a.ranges)


def rows(launch: Launch) -> tuple[int, ...]:
    """The element counts of the rows of a statistic's domain."""
    many = [a for a in launch.arguments if a.many and a.kind == "data" and a.access is Access.READ]
    return tuple(r.count for r in many[0].ranges) if many else (dict(launch.dims).get("n", 1),)


def _span(r: Range) -> Span:
    return (r.base, r.start, r.stop)


def _groups(graph: StepGraph) -> list[tuple[Launch, ...]]:
    """Launches in schedule order, the statistics that share a sweep together.

    They share one when they are of one level, cut their inputs into equal rows, and read a range in common.
    """
    order, found = sorted_nodes([n.name for n in graph.launches], pairs(graph))
    groups: list[list[Launch]] = []
    readers: dict[object, list[Launch]] = {}
    for node in order:
        launch = graph.launches[node]
        if launch.kernel.kind != "statistic":
            groups.append([launch])
            continue
        keys = [(found.level[node], rows(launch), launch.block, _span(r)) for r in inputs(launch)]
        known = [readers[k] for k in keys if k in readers and len(readers[k]) < MAX_MEMBERS]
        group = known[0] if known else []
        if not known:
            groups.append(group)
        group.append(launch)
        for key in keys:
            if len(readers.get(key, ())) in (0, MAX_MEMBERS):
                readers[key] = group
    return [tuple(sorted(g, key=lambda n: n.name)) for g in groups]


def _tasks(graph: StepGraph, groups: Sequence[tuple[Launch, ...]]) -> tuple[list[Task], list[Pair]]:
    """One task per group and pass, and the edges between tasks: into the first pass, out of a launch's
    last.
    """
    tasks: list[Task] = []
    edges: list[Pair] = []
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for group in groups:
        for index in range(max(n.kernel.passes for n in group)):
            members = tuple(n for n in group if n.kernel.passes > index)
            if index:
                edges.append((len(tasks) - 1, len(tasks)))
            for n in members:
                first.setdefault(n.name, len(tasks))
                last[n.name] = len(tasks)
            tasks.append(_task(members, index))
    edges += [(last[e.before], first[e.after]) for e in graph.edges]
    return tasks, edges


def _task(members: tuple[Launch, ...], index: int) -> Task:
    block = max(n.block for n in members)
    if members[0].kernel.kind == "statistic":
        return Task(members, index, statistic_grid(sum(rows(members[0]))), block)
    launch = members[0]
    if not 1 <= launch.grid <= MAX_GRID:
        raise fail(
            SpecError,
            "FH302",
            f"launch {launch.name} needs {launch.grid} blocks; a device launch has 1 to {MAX_GRID}",
            at=launch.at,
            help=f"change `grid:` of kernel {launch.kernel.kernel} or the dims behind it",
        )
    return Task(members, index, launch.grid, block)


def mates(task: Task) -> str:
    """Which tasks a task may share a device launch with: those of the same word; none for the empty one.

    Gemms join gemms only: they want a whole device, and their registers would thin out everything else.
    """
    kernel = task.launches[0].kernel
    if kernel.kernel in ALONE:
        return ""
    if kernel.kind == "gemm":
        return "gemm"
    return "small" if max(microseconds(n) for n in task.launches) < SMALL_US else ""


def _settled_levels(kinds: Sequence[str], names: list[str], edges: list[Pair]) -> list[int]:
    """Levels, with tasks that can wait moved down to the latest level where a mate is.

    A later level stays below everything that depends on the task, so levels still rise along every edge.
    """
    level = list(ranks(names, edges).level)
    after: dict[int, list[int]] = defaultdict(list)
    for first, then in edges:
        after[first].append(then)
    peopled = Counter((kinds[i], level[i]) for i in range(len(names)))
    steps = {kind: sorted({at for k, at in peopled if k == kind}) for kind in set(kinds)}
    for node in sorted(range(len(names)), key=lambda i: (-level[i], names[i])):
        kind = kinds[node]
        if not kind or not after[node]:
            continue
        low = bisect_right(steps[kind], level[node])
        high = bisect_right(steps[kind], min(level[n] for n in after[node]) - 1)
        for wanted in reversed(steps[kind][low:high]):
            if peopled[kind, wanted]:
                peopled[kind, level[node]] -= 1
                peopled[kind, wanted] += 1
                level[node] = wanted
                break
    return level


def _bins(
    tasks: Sequence[Task], kinds: Sequence[str], names: list[str], level: Sequence[int]
) -> list[list[int]]:
    """Task numbers per device launch, in execution order."""
    bins: list[list[int]] = []
    open_bin: dict[tuple[str, int], int] = {}
    room: dict[int, int] = {}
    for node in sorted(range(len(tasks)), key=lambda i: (level[i], names[i])):
        words = checked_word_count(tasks[node])
        key = (kinds[node], level[node])
        here = open_bin.get(key) if kinds[node] else None
        if here is not None and room[here] >= words and len(bins[here]) < MAX_TASKS:
            bins[here].append(node)
            room[here] -= words
            continue
        if kinds[node]:
            open_bin[key] = len(bins)
            room[len(bins)] = WORD_LIMIT - words
        bins.append([node])
    return bins


def checked_word_count(task: Task) -> int:
    """The argument words of a task; FH303 if they are more than one device launch takes."""
    words, launch = word_count(task), task.launches[0]
    if words > WORD_LIMIT:
        raise fail(
            SpecError,
            "FH303",
            f"launch {launch.name} needs {words} argument words; a device launch has at most {WORD_LIMIT}",
            at=launch.at,
            help="give a `many` parameter fewer rows, or put the ranges into one buffer",
        )
    return words


def _contract(
    graph: StepGraph, tasks: Sequence[Task], task_edges: Iterable[Pair], bins: Sequence[Sequence[int]]
) -> Contracted:
    home = {node: i for i, members in enumerate(bins) for node in members}
    crossing = [(home[a], home[b]) for a, b in task_edges if home[a] != home[b]]
    names = [n.name for n in _named(graph.step, tasks, bins)]
    order, _ = sorted_nodes(names, crossing)
    place = {old: new for new, old in enumerate(order)}
    launches = tuple(_named(graph.step, tasks, [bins[i] for i in order]))
    crossing = [(place[a], place[b]) for a, b in crossing]
    return Contracted(launches, _edges(graph, launches, reduced(len(launches), crossing)))


def _named(step: str, tasks: Sequence[Task], bins: Sequence[Sequence[int]]) -> list[FusedLaunch]:
    taken = {n.name for t in tasks for n in t.launches}
    result = []
    count = 0
    for members in bins:
        group = tuple(tasks[i] for i in members)
        alone = len(group) == 1 and len(group[0].launches) == 1
        if alone:
            name = group[0].launches[0].name + (f".pass{group[0].pass_index}" if group[0].pass_index else "")
        else:
            while f"{step}.fused_{count}" in taken:
                count += 1
            name = f"{step}.fused_{count}"
            count += 1
        result.append(FusedLaunch(name, "", group, max(t.block for t in group)))
    return result


def _edges(graph: StepGraph, launches: Sequence[FusedLaunch], kept: Sequence[Pair]) -> tuple[Edge, ...]:
    """The kept edges with the reasons of the launches behind them; passes of one group follow one another."""
    home: dict[str, tuple[int, int]] = {}
    for i, fused in enumerate(launches):
        for task in fused.tasks:
            for n in task.launches:
                home[n.name] = (home.get(n.name, (i, i))[0], i)
    reasons: dict[Pair, list[tuple[str, str]]] = defaultdict(list)
    for e in graph.edges:
        reasons[home[e.before][1], home[e.after][0]].append((e.kind, e.reason))
    result = []
    for a, b in kept:
        kind, reason = min(reasons.get((a, b), [("RAW", "partials of the pass before")]))
        more = len(set(reasons.get((a, b), []))) - 1
        text = f"{reason} and {more} more" if more > 0 else reason
        result.append(Edge(launches[a].name, launches[b].name, kind, text))
    return tuple(result)

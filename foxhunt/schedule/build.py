"""From step graphs to the schedule: order, fuse, lanes, entries, memory, then the proof."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from foxhunt.diagnostics import Location, SpecError, fail
from foxhunt.dtypes import DTYPES
from foxhunt.ir.system import NAMES, reset_launch, reset_policies
from foxhunt.ir.types import Allocation, LaidOutProgram, Lifetime, StepGraph
from foxhunt.schedule.abi import carry, partial_bytes, partials_name, rng_hash, static_dims
from foxhunt.schedule.estimate import size
from foxhunt.schedule.fuse import apart, checked_word_count, fuse
from foxhunt.schedule.lanes import assign
from foxhunt.schedule.memory import ARENA_LIMIT, place
from foxhunt.schedule.types import FusedLaunch, Schedule, ScheduledStep, Task
from foxhunt.schedule.verify import verify

KEYWORDS = frozenset(
    ("static_cast", "const_cast", "dynamic_cast", "reinterpret_cast", "static_assert", "thread_local")
)
"""C++ keywords that a qualified launch name could become when its dots turn into underscores."""


def build_schedule(
    laid_out: LaidOutProgram,
    graphs: Sequence[StepGraph],
    arena_limit: int = ARENA_LIMIT,
    fused: bool = True,
) -> Schedule:
    """Everything that emission and the backends need. Raises SpecError (FH3xx) for what cannot be
    scheduled.

    Without `fused` every launch is a device launch of its own, a statistic one a pass: `foxhunt verify`
    holds the two against each other.
    """
    _distinct_streams(graphs)
    steps = []
    for graph in graphs:
        contracted = fuse(graph) if fused else apart(graph)
        launches, edges = assign(contracted.launches, contracted.edges)
        steps.append(ScheduledStep(graph.step, launches, edges, len(graph.launches)))
    resets = [_reset(laid_out, policy) for policy in reset_policies(laid_out)]
    named = _with_entries([*steps, *resets])
    steps, resets = named[: len(steps)], named[len(steps) :]
    allocations = (*laid_out.allocations, *_owned(steps))
    arena, arena_bytes = place(allocations, steps, arena_limit, _declared(laid_out))
    for step, graph in zip(steps, graphs, strict=True):
        verify(step, graph, arena, allocations)
    system = (
        Allocation("tickets", DTYPES["u32"], max(1, _tickets(steps)[1]), Lifetime.SYSTEM, False),
        Allocation("arena", DTYPES["u8"], arena_bytes, Lifetime.SYSTEM, False),
    )
    known = tuple(a for a in allocations if a.name not in ("tickets", "arena"))
    return Schedule(laid_out, tuple(steps), tuple(resets), arena, arena_bytes, (*known, *system))


def _declared(laid_out: LaidOutProgram) -> dict[str, Location]:
    """Where each allocation is declared; the gradients of all params, at the largest param."""
    tensors = laid_out.program.tensors
    largest = max((t for t in tensors if t.role == "param"), key=lambda t: t.count, default=None)
    return {t.name: t.at for t in tensors} | ({"params.g": largest.at} if largest else {})


def _reset(laid_out: LaidOutProgram, policy: str) -> ScheduledStep:
    launch = reset_launch(laid_out, policy)
    task = Task((launch,), 0, launch.grid, launch.block)
    checked_word_count(task)
    return ScheduledStep(policy, (FusedLaunch(launch.name, "", (task,), launch.block),), (), 1)


def tasks(steps: Iterable[ScheduledStep]) -> list[Task]:
    """All tasks of all steps in execution order."""
    return [task for step in steps for launch in step.launches for task in launch.tasks]


def ticket_offsets(steps: Iterable[ScheduledStep]) -> dict[str, int]:
    """The first ticket of each owner: a launch that asks for tickets, or a statistic task (by its partials'
    name).
    """
    return _tickets(steps)[0]


def _tickets(steps: Iterable[ScheduledStep]) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    total = 0
    for task in tasks(steps):
        wanted = [(n.name, size(n, n.kernel.tickets)) for n in task.launches]
        if task.launches[0].kernel.kind == "statistic":
            wanted.append((partials_name(task), 1))
        for owner, count in wanted:
            if count and owner not in offsets:
                offsets[owner] = total
                total += count
    return offsets, total


def _owned(steps: Iterable[ScheduledStep]) -> tuple[Allocation, ...]:
    """Step allocations that the schedule itself asks for: partials of statistic tasks, carries of their
    members.
    """
    owned: dict[str, Allocation] = {}
    for task in tasks(steps):
        if task.launches[0].kernel.kind != "statistic":
            continue
        name = partials_name(task)
        owned[name] = Allocation(name, DTYPES["u8"], partial_bytes(task), Lifetime.STEP, False)
        for n in task.launches:
            if n.kernel.passes > 1:
                span = carry(n)
                owned[span.base] = Allocation(span.base, span.dtype, span.count, Lifetime.STEP, False)
    return tuple(owned.values())


def _distinct_streams(graphs: Iterable[StepGraph]) -> None:
    """Two launches whose names hash alike would draw the same random numbers (FH305)."""
    seen: dict[int, str] = {}
    for graph in graphs:
        for launch in graph.launches:
            if not any(a.kind == "rng" for a in launch.arguments):
                continue
            other = seen.setdefault(rng_hash(launch.name), launch.name)
            if other != launch.name:
                raise fail(
                    SpecError,
                    "FH305",
                    f"{other} and {launch.name} would draw the same random numbers",
                    at=launch.at,
                    help="name one of them differently with `as:`",
                )


def _with_entries(steps: Sequence[ScheduledStep]) -> list[ScheduledStep]:
    """One entry per distinct shape of a device launch, named after the first launch that uses it."""
    entries: dict[object, str] = {}
    taken: set[str] = set()

    def named(launch: FusedLaunch) -> FusedLaunch:
        key = entry_key(launch)
        if key not in entries:
            entries[key] = _symbol(launch.name, taken)
            taken.add(entries[key].lower())
        return replace(launch, entry=entries[key])

    return [replace(s, launches=tuple(named(n) for n in s.launches)) for s in steps]


def entry_key(launch: FusedLaunch) -> object:
    """What decides the text of an entry: kernels, passes, blocks, constexpr dims, rows of `many`
    parameters.
    """
    return (
        launch.block,
        tuple(
            (
                task.pass_index,
                task.block,
                tuple(
                    (
                        n.name if n.kernel.kernel in NAMES else n.kernel.kernel,
                        static_dims(n),
                        tuple(len(a.ranges) for a in n.arguments if a.many),
                    )
                    for n in task.launches
                ),
            )
            for task in launch.tasks
        ),
    )


def _symbol(name: str, taken: set[str]) -> str:
    """A C identifier for a qualified name, unlike all in `taken` even on a file system that folds case."""
    base = re.sub(r"\W", "_", name, flags=re.ASCII)
    if len(base) > 100:
        base = f"{base[:80]}_{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    if base in KEYWORDS:
        base += "_"
    symbol, count = base, 2
    while symbol.lower() in taken:
        symbol, count = f"{base}_{count}", count + 1
    return symbol

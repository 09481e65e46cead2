"""Launches, graphs and laid-out programs built by hand, for tests of the schedule and of emission."""

from __future__ import annotations

from collections.abc import Sequence

from foxhunt.diagnostics import Location
from foxhunt.dtypes import F32, U32
from foxhunt.ir.types import (
    Access,
    Allocation,
    Argument,
    Edge,
    LaidOutProgram,
    Launch,
    Lifetime,
    Program,
    Range,
    StepGraph,
)
from foxhunt.spec import models as spec

HERE = Location("toy.yaml", 1, 1)


def kernel(name: str = "copy", kind: str = "body", **fields: object) -> spec.Kernel:
    """A kernel entry; its parameters do not matter to the schedule."""
    entry = {"kernel": name, "kind": kind, "doc": name, "params": {}, "reference": name}
    return spec.Kernel.model_validate({**entry, **fields})


def span(base: str, start: int = 0, count: int = 64) -> Range:
    return Range(base, start, F32, (count,), base)


def launch(
    name: str,
    reads: Sequence[Range] = (),
    writes: Sequence[Range] = (),
    of: spec.Kernel | None = None,
    grid: int = 1,
    rng: bool = False,
) -> Launch:
    """A launch that reads and writes these ranges, one parameter each: r0, r1, …, w0, …."""
    arguments = [Argument(f"r{i}", "data", Access.READ, False, (r,)) for i, r in enumerate(reads)]
    arguments += [Argument(f"w{i}", "data", Access.WRITE, False, (r,)) for i, r in enumerate(writes)]
    if rng:
        arguments.append(Argument("rng", "rng", Access.READ, False, ()))
    of = of or kernel()
    n = reads[0].count if reads else writes[0].count if writes else 1
    arguments.sort(key=lambda a: a.name)
    return Launch(name, name.split(".")[0], of, tuple(arguments), (("n", n),), grid, of.block, HERE)


def accesses(one: Launch) -> list[tuple[Range, bool]]:
    return [(r, a.access is not Access.READ) for a in one.arguments for r in a.ranges]


def conflicting(one: Launch, other: Launch) -> bool:
    """Whether the order of two launches matters: they share bytes and one of them writes those."""
    return any(
        a.base == b.base and a.start < b.stop and b.start < a.stop and (wa or wb)
        for a, wa in accesses(one)
        for b, wb in accesses(other)
    )


def graph(launches: Sequence[Launch], step: str = "train") -> StepGraph:
    """The launches in this order, with an edge for every conflict."""
    edges = [
        Edge(a.name, b.name, "RAW", "shared bytes")
        for j, b in enumerate(launches)
        for a in launches[:j]
        if conflicting(a, b)
    ]
    return StepGraph(step, tuple(launches), tuple(edges))


def laid_out(launches: Sequence[Launch], persistent: Sequence[str] = ()) -> LaidOutProgram:
    """A program with one allocation for each base that the launches name."""
    sizes: dict[str, int] = {}
    for one in launches:
        for r, _ in accesses(one):
            sizes[r.base] = max(sizes.get(r.base, 1), r.offset + r.count)
    allocations = [
        Allocation(n, F32, size, Lifetime.PERSISTENT if n in persistent else Lifetime.STEP, False)
        for n, size in sizes.items()
    ]
    allocations.append(Allocation("counters", U32, 2, Lifetime.SYSTEM, True))
    source = spec.Program.model_validate({"program": "toy"})
    program = Program("toy", "default", "fp32", (), (), (), (), (), (), (), (), source, {})
    return LaidOutProgram(program, tuple(allocations), {})

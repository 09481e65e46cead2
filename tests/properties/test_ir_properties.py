"""Hazards of random programs, positions of random histories, and mistakes that never end in a traceback."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foxhunt.contract.fingerprint import fingerprint
from foxhunt.contract.lock import check_allowed, compare, parse_lock, render_lock
from foxhunt.diagnostics import FoxhuntError
from foxhunt.ir.access import accesses
from foxhunt.ir.findings import Findings
from foxhunt.ir.graph import build_graph
from foxhunt.ir.intervals import Intervals
from foxhunt.ir.layout import lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.ir.runs import Run, place_runs
from foxhunt.ir.types import StepGraph
from foxhunt.ir.verify import verify
from foxhunt.rules import RULES
from foxhunt.spec.models import Buffer, Item, Kernel, KernelParam, Program, Slot, SpecSet, Step

SIZE = 6
BUFFERS = ("a", "b")
SLOTS = ("S0", "S1")
PARAMS = {
    "r": KernelParam(shape=("...n",)),
    "w": KernelParam(access="write", shape=("...m",)),
    "u": KernelParam(access="update", shape=("...k",)),
    "s": KernelParam(kind="slot"),
    "t": KernelParam(kind="slot", access="write"),
}
SHAPES = ("r", "w", "u", "rw", "ru", "rs", "ws", "t", "rt", "uts")


def kernel(letters: str) -> Kernel:
    params = {p: PARAMS[p] for p in letters}
    return Kernel(kernel=f"k_{letters}", kind="body", doc="", params=params, reference="k")


KERNELS = {k.kernel: k for k in map(kernel, SHAPES)}


@st.composite
def items(draw: st.DrawFn) -> list[Item]:
    """Launches over slices of two buffers and two slots; some wait for earlier ones."""
    found: list[Item] = []
    for k in range(draw(st.integers(1, 12))):
        letters = draw(st.sampled_from(SHAPES))
        args = {}
        for p in letters:
            if p in "st":
                args[p] = draw(st.sampled_from(SLOTS))
            else:
                start = draw(st.integers(0, SIZE - 1))
                stop = draw(st.integers(start + 1, SIZE))
                args[p] = f"{draw(st.sampled_from(BUFFERS))}[{start}:{stop}]"
        after = (f"n{draw(st.integers(0, k - 1))}",) if k and draw(st.booleans()) else ()
        found.append(Item(kernel=f"k_{letters}", args=args, as_=f"n{k}", after=after))
    return found


def program(found: list[Item]) -> SpecSet:
    source = Program(
        program="p",
        dims={"N": SIZE},
        isv=tuple(Slot(name=s, source="kernel", reset="never") for s in SLOTS),
        buffers=tuple(Buffer(name=b, shape=("N",), lifetime="persistent", reset="never") for b in BUFFERS),
        steps=(Step(name="s", items=tuple(found)),),
    )
    return SpecSet(root="", programs={"p": source}, kernels=KERNELS, sources={}, library=frozenset(KERNELS))


def compiled(found: list[Item]) -> tuple[StepGraph | None, set[str]]:
    """The graph, or the codes that the program is refused with."""
    try:
        return build_graph(lay_out(resolve(program(found), "p")), "s"), set()
    except FoxhuntError as refused:
        return None, {d.code for d in refused.diagnostics}


def reachable(graph: StepGraph) -> set[tuple[str, str]]:
    after: dict[str, set[str]] = {launch.name: set() for launch in graph.launches}
    for edge in graph.edges:
        after[edge.before].add(edge.after)
    pairs = set()
    for first in after:
        waiting, seen = [first], set()
        while waiting:
            for name in after[waiting.pop()] - seen:
                seen.add(name)
                waiting.append(name)
        pairs |= {(first, name) for name in seen}
    return pairs


@settings(max_examples=300, deadline=None)
@given(items())
def test_every_conflicting_pair_is_ordered_by_a_path(found):
    graph, codes = compiled(found)
    if graph is None:
        assert codes == {"FH240"}
        return
    path = reachable(graph)
    assert not any((b, a) in path for a, b in path), "the graph has no circle"
    for one, two in combinations(graph.launches, 2):
        for x in accesses(one):
            for y in accesses(two):
                meet = (
                    x.range.base == y.range.base
                    and x.range.start < y.range.stop
                    and y.range.start < x.range.stop
                )
                if not meet or not (x.writes or y.writes):
                    continue
                if x.slot_write and not y.writes and two.kernel.kernel.startswith("k_"):
                    assert (two.name, one.name) in path, "a reader comes before the slot's writer"
                elif not x.slot_write or y.slot_write or not two.kernel.kernel.startswith("k_"):
                    assert (one.name, two.name) in path, (one.name, two.name)


@settings(max_examples=200, deadline=None)
@given(items())
def test_every_edge_has_a_reason(found):
    graph, _ = compiled(found)
    if graph is None:
        return
    launches = {launch.name: launch for launch in graph.launches}
    for edge in graph.edges:
        one, two = launches[edge.before], launches[edge.after]
        if edge.kind == "ORDER":
            assert one.name in two.after
            continue
        conflicts = {
            ("R" if x.reads else "")
            + ("W" if x.writes else "")
            + "→"
            + ("R" if y.reads else "")
            + ("W" if y.writes else "")
            for x in accesses(one)
            for y in accesses(two)
            if x.range.base == y.range.base and x.range.start < y.range.stop and y.range.start < x.range.stop
        }
        first, second = edge.kind[2], edge.kind[0]
        assert any(first in c.partition("→")[0] and second in c.partition("→")[2] for c in conflicts)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(1, 12)), max_size=40))
def test_intervals_remember_what_a_table_of_bytes_remembers(touches):
    intervals = Intervals()
    table: list[tuple[int | None, list[int]]] = [(None, []) for _ in range(50)]
    for launch, (writes, start, length) in enumerate(touches):
        stop = start + length
        if writes:
            intervals.write(start, stop, launch)
        else:
            intervals.read(start, stop, launch)
        for byte in range(start, stop):
            writer, readers = table[byte]
            table[byte] = (launch, []) if writes else (writer, [*readers, launch])
    found: list[tuple[int | None, list[int]]] = [(None, []) for _ in range(50)]
    position = 0
    for start, stop, writer, readers in intervals.overlapping(0, 50):
        assert start >= position
        position = stop
        for byte in range(start, stop):
            found[byte] = (writer, readers)
    assert found == table


runs = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.none() | st.integers(0, 40),
        st.none() | st.integers(0, 40),
        st.sampled_from([1, 4]),
    ),
    max_size=15,
)


@settings(max_examples=300, deadline=None)
@given(runs)
def test_placed_runs_never_overlap_and_written_ones_stand_where_they_are_written(found):
    findings = Findings()
    given_runs = [
        Run(f"r{k}", count, written, locked, align) for k, (count, written, locked, align) in enumerate(found)
    ]
    placed = place_runs(given_runs, "index", findings)
    if findings.found:
        return
    spans = sorted((placed.starts[r.name], placed.starts[r.name] + r.count) for r in given_runs)
    assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))
    assert placed.total == max((stop for _, stop in spans), default=0)
    assert all(placed.starts[r.name] == r.written for r in given_runs if r.written is not None)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=5), st.randoms())
def test_growth_under_the_lock_only_appends(generations, random):
    slots: list[Slot] = []
    lock = None
    for number, counts in enumerate(generations):
        slots += [
            Slot(name=f"S{number}_{k}", count=f"C{count}", source="host", init=0.0, reset="never")
            for k, count in enumerate(counts)
        ]
        random.shuffle(slots)
        source = Program(program="p", dims={f"C{c}": c for c in range(1, 5)}, isv=tuple(slots))
        laid_out = lay_out(
            resolve(SpecSet(root="", programs={"p": source}, kernels={}, sources={}), "p"), lock
        )
        if lock is not None:
            changes = compare(lock, laid_out)
            assert {c.kind for c in changes} == {"append"}
            check_allowed(changes)
        lock = parse_lock(render_lock(laid_out, fingerprint(laid_out, {})))
        assert lock.entries == laid_out.entries


TEXTS = [
    "a",
    "b",
    "S0",
    "S1",
    "nobody",
    "a[0]",
    "a[9]",
    "a[2:1]",
    "S0[0]",
    "1.0",
    "",
    "a b",
    "N",
    "a.g",
    "[",
    "µ",
]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.builds(
            lambda kernel, args, name, after: Item(kernel=kernel, args=args, as_=name, after=after),
            st.sampled_from([*KERNELS, "missing"]),
            st.dictionaries(st.sampled_from("rwustz"), st.sampled_from(TEXTS), max_size=4),
            st.none() | st.sampled_from(["n1", "n2", "ingest"]),
            st.just(()) | st.tuples(st.sampled_from(["n1", "n2", "n3"])),
        ),
        max_size=5,
    )
)
def test_a_mistake_is_a_finding_and_never_a_traceback(found):
    try:
        laid_out = lay_out(resolve(program(found), "p"))
        verify(laid_out, (build_graph(laid_out, "s"),))
        refused = ()
    except FoxhuntError as error:
        refused = error.diagnostics
    assert all(d.code in RULES and d.message for d in refused)


def test_the_order_of_kernels_and_mappings_means_nothing():
    found = [Item(kernel="k_rw", args={"r": "a", "w": "b"}), Item(kernel="k_u", args={"u": "a"})]
    turned = [Item(kernel="k_rw", args={"w": "b", "r": "a"}), Item(kernel="k_u", args={"u": "a"})]
    one = build_graph(lay_out(resolve(program(found), "p")), "s")
    two = build_graph(lay_out(resolve(program(turned), "p")), "s")
    assert one == two


@pytest.mark.parametrize("count", [1000])
def test_a_thousand_items_keep_few_edges(count):
    found = [Item(kernel="k_u", args={"u": "a"}, as_=f"n{k}") for k in range(count)]
    assert len(build_graph(lay_out(resolve(program(found), "p")), "s").edges) <= count + 2

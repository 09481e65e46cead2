"""Hazards with their reasons, the order of slot writers, `after`, cycles, and size."""

import time

import pytest
from ir_builders import build

from foxhunt.diagnostics import Location, SpecError
from foxhunt.dtypes import F32
from foxhunt.ir.graph import build_graph
from foxhunt.ir.types import (
    Access,
    Allocation,
    Argument,
    LaidOutProgram,
    Launch,
    Lifetime,
    Program,
    Range,
    Step,
)
from foxhunt.spec.models import Kernel
from foxhunt.spec.models import Program as SourceProgram

HEAD = """
program: p
dims: {B: 8, HALF: 4}
isv:
  - {name: LR, source: host, init: 0.1, reset: never}
  - {name: LAMBDA, source: kernel, reset: never}
  - {name: MEAN, reset: fold}
counters: [{name: t, advance: train, reset: never}]
producers: [{name: mean, kernel: p99, args: {x: a}, out: {y: MEAN}}]
buffers:
  - {name: a, shape: [B], lifetime: persistent, reset: never}
  - {name: b, shape: [B], lifetime: persistent, reset: never}
  - {name: c, shape: [B], lifetime: persistent, reset: never}
steps:
  - name: train
    items:
"""


def edges(*items: str) -> set[tuple[str, str, str]]:
    found = build(HEAD + "".join(f"      - {i}\n" for i in items)).edges()
    return {(a.removeprefix("train."), b.removeprefix("train."), kind) for a, b, kind in found}


def between(found, *names):
    return {e for e in found if e[0] in names and e[1] in names}


def test_read_after_write_write_after_read_and_write_after_write():
    found = edges(
        "{kernel: fill, args: {y: a}, as: w1}",
        "{kernel: look, args: {x: a}, as: r}",
        "{kernel: fill, args: {y: a}, as: w2}",
        "{kernel: fill, args: {y: b}, as: v1}",
        "{kernel: fill, args: {y: b}, as: v2}",
    )
    assert between(found, "w1", "r", "w2", "v1", "v2") == {
        ("w1", "r", "RAW"),
        ("r", "w2", "WAR"),
        ("v1", "v2", "WAW"),
    }


def test_disjoint_slices_of_one_buffer_do_not_meet():
    found = edges(
        "{kernel: fill, args: {y: 'a[0:HALF]'}, as: low}",
        "{kernel: fill, args: {y: 'a[HALF:B]'}, as: high}",
        "{kernel: look, args: {x: 'a[0:HALF]'}, as: reads_low}",
        "{kernel: look, args: {x: 'a[1:HALF + 1]'}, as: reads_both}",
    )
    assert between(found, "low", "high", "reads_low", "reads_both") == {
        ("low", "reads_low", "RAW"),
        ("low", "reads_both", "RAW"),
        ("high", "reads_both", "RAW"),
    }


def test_the_reason_names_the_elements():
    built = build(
        HEAD + "      - {kernel: fill, args: {y: a}}\n      - {kernel: look, args: {x: 'a[2:HALF]'}}\n"
    )
    edge = next(e for e in built.graphs[0].edges if e.before == "train.fill")
    assert (edge.after, edge.kind, edge.reason) == ("train.look", "RAW", "a[2:4] [2:4)")


def test_an_edge_that_others_cover_is_dropped():
    found = edges(
        "{kernel: fill, args: {y: a}, as: one}",
        "{kernel: copy, args: {x: a, y: b}, as: two}",
        "{kernel: copy, args: {x: a, y: c}, as: three, after: [two]}",
        "{kernel: look, args: {x: a}, as: four, after: [one, three]}",
    )
    assert between(found, "one", "two", "three", "four") == {
        ("one", "two", "RAW"),
        ("two", "three", "ORDER"),
        ("three", "four", "ORDER"),
    }


def test_every_reader_of_a_slot_comes_before_the_kernel_that_writes_it():
    found = edges(
        "{kernel: scale, args: {x: a, s: LAMBDA}, as: early}",
        "{kernel: set_slot, args: {s: LAMBDA}, as: writer}",
        "{kernel: scale, args: {x: b, s: LAMBDA}, as: late}",
    )
    assert {("early", "writer", "WAR"), ("late", "writer", "WAR")} <= found
    assert ("writer", "publish", "RAW") in found


def test_random_numbers_and_counters_come_after_the_ingest():
    found = edges("{kernel: noise, args: {y: a}}", "{kernel: tick, args: {t: t, y: b}}")
    assert {("ingest", "noise", "RAW"), ("ingest", "tick", "RAW")} <= found


def test_the_applicator_comes_after_the_readers_of_its_slots_and_before_publish():
    found = edges("{producers: [mean]}", "{kernel: scale, args: {x: b, s: MEAN}, as: reader}")
    assert {("mean", "apply", "RAW"), ("reader", "apply", "WAR"), ("apply", "publish", "RAW")} <= found


def test_a_step_without_producers_has_no_applicator():
    assert not {name for e in edges("{kernel: look, args: {x: a}}") for name in e if name == "apply"}


def test_a_circle_is_reported_with_its_launches():
    with pytest.raises(SpecError) as caught:
        edges(
            "{kernel: fill, args: {y: a}, as: one, after: [two]}",
            "{kernel: copy, args: {x: a, y: b}, as: two}",
        )
    (found,) = caught.value.diagnostics
    assert found.code == "FH240"
    assert "train.one → train.two → train.one" in found.message


def test_a_launch_that_waits_for_itself_is_a_circle():
    with pytest.raises(SpecError) as caught:
        edges("{kernel: fill, args: {y: a}, as: one, after: [one]}")
    assert "train.one → train.one" in caught.value.diagnostics[0].message


def chain(count: int, back: bool) -> LaidOutProgram:
    """`count` launches that each update one buffer; `back` closes a circle at the end."""
    kernel = Kernel(kernel="bump", kind="body", doc="", params={}, reference="bump")
    argument = Argument("x", "data", Access.UPDATE, False, (Range("a", 0, F32, (4,), "a"),))
    launches = [Launch(f"s.n{k}", "s", kernel, (argument,), (), 1, 32, Location("x")) for k in range(count)]
    if back:
        last = launches[-1].name
        launches[count // 2] = Launch(
            f"s.n{count // 2}", "s", kernel, (argument,), (), 1, 32, Location("x"), after=(last,)
        )
    step = Step("s", None, tuple(launches), (), Location("x"))
    program = Program(
        name="p",
        variant="default",
        precision="fp32",
        dims=(),
        slots=(),
        tensors=(),
        counters=(),
        observations=(),
        steps=(step,),
        diagnostics=(),
        data=(),
        source=SourceProgram(program="p"),
        kernels={},
    )
    names = ["isv", "wiener", "scratch", "health", "counters", "ring.ingest", "ring.publish", "a"]
    allocations = tuple(Allocation(n, F32, 4, Lifetime.SYSTEM, False) for n in names)
    return LaidOutProgram(program, allocations, {})


def test_a_chain_of_a_hundred_thousand_launches_takes_seconds():
    laid_out = chain(100_000, back=False)
    start = time.perf_counter()
    graph = build_graph(laid_out, "s")
    assert time.perf_counter() - start < 60
    assert len(graph.edges) == 99_999 + 1  # and ingest → publish
    assert (graph.edges[1].before, graph.edges[1].after, graph.edges[1].kind) == ("s.n0", "s.n1", "RAW")


def test_one_circle_among_a_hundred_thousand_launches_is_found():
    laid_out = chain(100_000, back=True)
    start = time.perf_counter()
    with pytest.raises(SpecError) as caught:
        build_graph(laid_out, "s")
    assert time.perf_counter() - start < 60
    assert len(caught.value.diagnostics) == 1
    assert "s.n50000 → s.n50001" in caught.value.diagnostics[0].message

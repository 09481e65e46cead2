from __future__ import annotations

import random
from dataclasses import replace

import pytest
from schedule_toy import graph, kernel, laid_out, launch, span

from foxhunt.diagnostics import Location, SpecError
from foxhunt.dtypes import F32
from foxhunt.ir.types import Allocation, Edge, Lifetime, StepGraph
from foxhunt.schedule import build_schedule
from foxhunt.schedule.abi import rng_hash
from foxhunt.schedule.dag import ranks, reduced
from foxhunt.schedule.estimate import statistic_grid
from foxhunt.schedule.fuse import MAX_TASKS
from foxhunt.schedule.lanes import waits
from foxhunt.schedule.memory import place
from foxhunt.schedule.order import order
from foxhunt.schedule.verify import verify

BIG = 16 << 20  # elements: far above what counts as small


def schedule_of(launches, persistent=(), **options):
    return build_schedule(laid_out(launches, persistent), (graph(launches),), **options)


def groups(step):
    return [[n.name for t in f.tasks for n in t.launches] for f in step.launches]


def rms(name, source, target, passes=1):
    return launch(name, [source], [target], kernel("rms", "statistic", passes=passes))


def test_order_is_by_level_then_longest_remaining_path_then_name():
    a = launch("train.a", [], [span("a")])
    b = launch("train.b", [], [span("b")])
    c = launch("train.c", [span("b")], [span("c")])
    assert [n.name for n in order(graph([a, b, c]))] == ["train.b", "train.a", "train.c"]


def test_all_declaration_orders_with_one_meaning_give_one_order():
    launches = [launch(f"train.l{i}", [span(f"x{i}")], [span(f"y{i % 3}", 64 * i)]) for i in range(9)]
    expected = order(graph(launches))
    for seed in range(10):
        shuffled = random.Random(seed).sample(launches, len(launches))
        assert order(graph(shuffled)) == expected


def test_a_cycle_is_named_and_a_path_into_it_is_not():
    names = ["into", "a", "b", "out", "apart"]
    with pytest.raises(SpecError) as error:
        ranks(names, [(0, 1), (1, 2), (2, 1), (2, 3)])
    assert error.value.diagnostics[0].code == "FH301"
    assert "a → b → a" in str(error.value) or "b → a → b" in str(error.value)
    assert "into" not in str(error.value)


def test_a_cycle_apart_from_everything_else_is_named():
    names = ["a", "b", "c", "x", "y"]
    with pytest.raises(SpecError) as error:
        ranks(names, [(0, 1), (1, 2), (3, 4), (4, 3)])
    (found,) = error.value.diagnostics
    assert found.code == "FH301"
    assert "x → y → x" in found.message or "y → x → y" in found.message


def test_a_self_loop_is_a_cycle():
    with pytest.raises(SpecError, match="x → x"):
        ranks(["x"], [(0, 0)])


def test_a_chain_of_100000_nodes_takes_linear_time_and_one_cycle_in_it_is_found():
    count = 100_000
    names = [f"n{i}" for i in range(count)]
    chain = [(i, i + 1) for i in range(count - 1)]
    assert ranks(names, chain).level[-1] == count - 1
    with pytest.raises(SpecError) as error:
        ranks(names, [*chain, (count - 1, count - 3)])
    assert len(error.value.diagnostics) == 1


def test_the_reduction_does_not_depend_on_redundant_edges():
    assert reduced(4, [(0, 1), (1, 2), (2, 3), (0, 2), (0, 3), (1, 3)]) == [(0, 1), (1, 2), (2, 3)]


def test_statistics_of_one_range_share_each_pass():
    x = span("x", count=4096)
    launches = [rms("train.rms", x, span("s", 0, 1)), rms("train.p99", x, span("s", 1, 1), passes=2)]
    step = schedule_of(launches, ["x", "s"]).steps[0]
    assert groups(step) == [["train.p99", "train.rms"], ["train.p99"]]
    assert [t.pass_index for f in step.launches for t in f.tasks] == [0, 1]


def test_statistics_with_other_rows_keep_sweeps_of_their_own_but_share_a_launch():
    launches = [
        rms("train.a", span("x", 0, 4096), span("s", 0, 1)),
        rms("train.b", span("x", 0, 2048), span("s", 1, 1)),
    ]
    step = schedule_of(launches, ["x", "s"]).steps[0]
    assert [len(f.tasks) for f in step.launches] == [2]


def test_a_statistic_sizes_its_grid_from_its_domain_alone():
    assert [statistic_grid(n) for n in (0, 1, 4096, 4097, 1 << 28)] == [1, 1, 1, 2, 528]


def test_a_statistic_has_the_same_grid_alone_and_in_company():
    masked = launch("train.a", [span("x"), span("mask")], [span("s", 0, 1)], kernel("mean", "statistic"))
    launches = [replace(n, dims=(("n", 8192),)) for n in (masked, rms("train.b", span("x"), span("s", 1, 1)))]
    for fused, grids in ((True, [2]), (False, [2, 2])):
        step = schedule_of(launches, ["x", "mask", "s"], fused=fused).steps[0]
        assert [t.grid for f in step.launches for t in f.tasks] == grids


def test_small_launches_of_one_level_become_one_and_long_ones_stay():
    small = [launch(f"train.s{i}", [], [span(f"s{i}")]) for i in range(3)]
    long = launch("train.long", [], [span("big", 0, BIG)])
    step = schedule_of([*small, long], [f"s{i}" for i in range(3)] + ["big"]).steps[0]
    assert sorted(map(len, groups(step))) == [1, 3]
    assert step.declared == 4


def test_a_launch_holds_so_many_tasks_that_its_branches_leave_registers():
    small = [launch(f"train.s{i:02}", [], [span(f"s{i}")]) for i in range(2 * MAX_TASKS + 1)]
    step = schedule_of(small, [f"s{i}" for i in range(len(small))]).steps[0]
    assert sorted(map(len, groups(step))) == [1, MAX_TASKS, MAX_TASKS]


def test_gemms_join_gemms_only():
    gemm = kernel("gemm", "gemm")
    launches = [launch(f"train.g{i}", [], [span(f"g{i}")], gemm) for i in range(2)]
    launches.append(launch("train.s", [], [span("s")]))
    step = schedule_of(launches, ["g0", "g1", "s"]).steps[0]
    assert sorted(groups(step)) == [["train.g0", "train.g1"], ["train.s"]]


def test_a_small_launch_that_can_wait_joins_a_later_level():
    first = launch("train.first", [], [span("a", 0, BIG)])
    second = launch("train.second", [span("a", 0, 64)], [span("b")])
    free = launch("train.free", [], [span("c")])
    last = launch("train.last", [span("b"), span("c")], [span("d")])
    step = schedule_of([first, second, free, last], ["d"]).steps[0]
    assert groups(step) == [["train.first"], ["train.free", "train.second"], ["train.last"]]


def test_evaluation_publishes_after_everything():
    ingest = launch("eval.ingest", [], [span("isv")], kernel("ingest"))
    work = launch("eval.work", [], [span("out")])
    publish = launch("eval.publish", [span("isv")], [span("ring")], kernel("publish"))
    bounded = StepGraph(
        "eval", (ingest, work, publish), (Edge(ingest.name, publish.name, "RAW", "isv [0:64)"),)
    )
    launches = (ingest, work, publish)
    step = build_schedule(laid_out(launches, ["isv", "out", "ring"]), (bounded,)).steps[0]
    assert groups(step) == [["eval.ingest"], ["eval.work"], ["eval.publish"]]


def test_two_long_independent_launches_take_two_lanes_and_rejoin():
    ingest = launch("train.ingest", [], [span("isv")], kernel("ingest"))
    long = [launch(f"train.l{i}", [], [span(f"x{i}", 0, BIG)]) for i in range(2)]
    publish = launch("train.publish", [span("isv")], [span("ring")], kernel("publish"))
    step = schedule_of([ingest, *long, publish], ["isv", "x0", "x1", "ring"]).steps[0]
    lanes = {f.name: f.lane for f in step.launches}
    assert sorted(lanes.values()) == [0, 0, 0, 1]
    side = next(name for name, lane in lanes.items() if lane)
    waited = waits(step.launches, step.edges)
    assert waited[side] == ("train.ingest",)
    assert waited["train.publish"] == (side,)


def test_short_independent_launches_stay_on_one_lane():
    launches = [launch(f"train.l{i}", [], [span(f"x{i}", 0, 1 << 22)]) for i in range(3)]
    assert {f.lane for f in schedule_of(launches, ["x0", "x1", "x2"]).steps[0].launches} == {0}


def test_buffers_of_a_chain_share_two_places():
    chain = [launch(f"train.c{i:02}", [span(f"h{i}")], [span(f"h{i + 1}")]) for i in range(20)]
    schedule = schedule_of(chain)
    assert schedule.arena_bytes == 2 * 256
    assert all(offset % 256 == 0 for offset in schedule.arena.values())


def test_tasks_of_one_launch_never_share_bytes():
    launches = [launch(f"train.t{i}", [], [span(f"x{i}")]) for i in range(4)]
    assert schedule_of(launches).arena_bytes == 4 * 256


def test_an_arena_past_its_limit_names_the_largest_buffers():
    launches = [launch("train.a", [], [span("huge", 0, 1 << 20), span("tiny")])]
    with pytest.raises(SpecError, match=r"FH304.*\n.*huge \(4194304 bytes\)"):
        schedule_of(launches, arena_limit=1 << 20)


def test_an_arena_past_its_limit_is_told_where_the_largest_declared_buffer_is():
    steps = schedule_of([launch("train.a", [], [span("huge", 0, 1 << 20), span("tiny")])]).steps
    allocations = [Allocation(n, F32, c, Lifetime.STEP, False) for n, c in (("huge", 1 << 20), ("tiny", 1))]
    for declared in ("huge", "tiny"):
        with pytest.raises(SpecError) as caught:
            place(allocations, steps, 1 << 20, {declared: Location("p.yaml", 7)})
        assert caught.value.diagnostics[0].location == Location("p.yaml", 7)


@pytest.mark.parametrize("grid", [0, 2**31])
def test_a_grid_that_cannot_be_launched_is_refused(grid):
    with pytest.raises(SpecError, match="FH302"):
        schedule_of([launch("train.a", [], [span("x")], grid=grid)])


def test_more_argument_words_than_a_kernel_takes_are_refused():
    many = [span("x", i, 1) for i in range(600)]
    with pytest.raises(SpecError, match="FH303"):
        schedule_of([launch("train.a", many, [])])


def test_launches_whose_names_hash_alike_are_refused():
    seen: dict[int, str] = {}
    for i in range(400_000):
        name = f"train.draw{i}"
        other = seen.setdefault(rng_hash(name), name)
        if other != name:
            break
    pair = [launch(n, [], [span("x")], rng=True) for n in (other, name)]
    with pytest.raises(SpecError, match="FH305"):
        schedule_of(pair)


def test_launches_of_one_kernel_and_shape_share_an_entry():
    chain = [launch(f"train.c{i}", [span(f"h{i}")], [span(f"h{i + 1}")]) for i in range(3)]
    assert {f.entry for f in schedule_of(chain).steps[0].launches} == {"train_c0"}


def test_entries_are_distinct_symbols_even_where_dots_and_underscores_meet():
    names = ["train.a.b", "train.a_b", "train.A_b", "static.cast"]
    kernels = [kernel(f"k{i}") for i in range(len(names))]
    chain = [
        launch(n, [span(f"h{i}")], [span(f"h{i + 1}")], k)
        for i, (n, k) in enumerate(zip(names, kernels, strict=True))
    ]
    entries = [f.entry for f in schedule_of(chain).steps[0].launches]
    assert len({e.lower() for e in entries}) == len(names)
    assert entries[-1] == "static_cast_"


def test_the_proof_finds_a_missing_edge_a_lost_launch_and_shared_bytes():
    launches = [launch("train.a", [], [span("x")]), launch("train.b", [span("x")], [span("y")])]
    whole = schedule_of(launches)
    step, declared = whole.steps[0], graph(launches)
    verify(step, declared, whole.arena)
    with pytest.raises(AssertionError, match="no path"):
        verify(replace(step, edges=()), declared, whole.arena)
    with pytest.raises(AssertionError, match="lost a launch"):
        verify(replace(step, launches=step.launches[:1], edges=()), declared, whole.arena)
    apart = [launch("train.a", [], [span("x")]), launch("train.b", [], [span("y")])]
    fused = schedule_of(apart)
    with pytest.raises(AssertionError, match="share arena inside"):
        verify(fused.steps[0], graph(apart), {"x": 0, "y": 128})


def test_the_proof_finds_bytes_that_two_unordered_launches_share():
    root = launch("train.a", [], [span("r", 0, BIG)])
    sides = [launch(f"train.s{i}", [span("r", 0, BIG)], [span(f"x{i}", 0, BIG)]) for i in range(2)]
    whole = schedule_of([root, *sides], ["r"])
    step = whole.steps[0]
    with pytest.raises(AssertionError, match="without an order"):
        verify(step, graph([root, *sides]), {"x0": 0, "x1": 256})

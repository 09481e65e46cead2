from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_toy import conflicting, graph, kernel, laid_out, launch, span

from foxhunt.schedule import build_schedule
from foxhunt.schedule.touch import task_touches

BODY, GEMM = kernel("copy"), kernel("gemm", "gemm")
STATISTIC, TWO_PASSES = kernel("rms", "statistic"), kernel("p99", "statistic", passes=2)
SIZES = (1, 64, 100, 1 << 22, 16 << 20)


@st.composite
def launch_lists(draw):
    """Launches on a few buffers: parts and wholes, tiny and huge, all kinds of kernels."""
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=6))

    def spans(most):
        chosen = draw(st.lists(st.integers(0, len(sizes) - 1), max_size=most, unique=True))
        found = []
        for b in chosen:
            start = draw(st.integers(0, min(3, sizes[b] - 1)))
            found.append(span(f"b{b}", start, draw(st.integers(1, sizes[b] - start))))
        return found

    launches = []
    for i in range(draw(st.integers(1, 10))):
        of = draw(st.sampled_from((BODY, BODY, GEMM, STATISTIC, TWO_PASSES)))
        writes = spans(2)
        reads = [r for r in spans(2) if r.base not in {w.base for w in writes}]
        if of.kind == "statistic" and not reads:
            of = BODY
        if reads or writes:
            launches.append(launch(f"train.l{i}", reads, writes, of))
    return launches or [launch("train.only", [], [span("b0")])]


def closure(step):
    """For each launch position the set of positions that it reaches."""
    index = {n.name: i for i, n in enumerate(step.launches)}
    reach = [set() for _ in step.launches]
    for edge in sorted(step.edges, key=lambda e: -index[e.before]):
        reach[index[edge.before]] |= {index[edge.after]} | reach[index[edge.after]]
    return reach


@settings(max_examples=150, deadline=None)
@given(launch_lists())
def test_every_pair_of_conflicting_launches_keeps_its_order(launches):
    step = build_schedule(laid_out(launches), (graph(launches),)).steps[0]
    reach = closure(step)
    places = {}
    for i, fused in enumerate(step.launches):
        for task in fused.tasks:
            for n in task.launches:
                places.setdefault(n.name, []).append(i)
    assert sorted(places) == sorted(n.name for n in launches)
    for before, after in combinations(launches, 2):
        if conflicting(before, after):
            assert places[after.name][0] in reach[places[before.name][-1]]


def assert_no_live_bytes_are_shared(schedule):
    """Allocations that overlap: in each step that uses both, one is over before the other starts."""
    sizes = {a.name: a.nbytes for a in schedule.allocations if a.name in schedule.arena}
    assert all(schedule.arena[n] + sizes[n] <= schedule.arena_bytes for n in sizes)
    overlapping = [
        (one, other)
        for one, other in combinations(sorted(sizes), 2)
        if schedule.arena[one] < schedule.arena[other] + sizes[other]
        and schedule.arena[other] < schedule.arena[one] + sizes[one]
    ]
    for step in schedule.steps:
        reach = closure(step)
        users = {name: set() for name in sizes}
        for i, fused in enumerate(step.launches):
            for touch in (t for task in fused.tasks for t in task_touches(task)):
                if touch.base in users:
                    users[touch.base].add(i)
        for one, other in overlapping:
            pairs = ((one, other), (other, one))
            assert any(all(v in reach[u] for u in users[x] for v in users[y]) for x, y in pairs)


@settings(max_examples=150, deadline=None)
@given(launch_lists())
def test_no_two_live_allocations_overlap(launches):
    assert_no_live_bytes_are_shared(build_schedule(laid_out(launches), (graph(launches),)))


@settings(max_examples=100, deadline=None)
@given(launch_lists(), st.randoms(use_true_random=False))
def test_declaration_orders_that_mean_the_same_give_one_schedule(launches, random):
    expected = build_schedule(laid_out(launches), (graph(launches),))
    waiting, shuffled = list(launches), []
    while waiting:  # any launch whose conflicting predecessors are out
        free = [n for i, n in enumerate(waiting) if not any(conflicting(m, n) for m in waiting[:i])]
        chosen = random.choice(free)
        waiting.remove(chosen)
        shuffled.append(chosen)
    found = build_schedule(laid_out(shuffled), (graph(shuffled),))
    assert found.steps == expected.steps
    assert found.arena == expected.arena


@settings(max_examples=100, deadline=None)
@given(st.lists(launch_lists(), min_size=2, max_size=3))
def test_a_buffer_that_several_steps_use_has_one_place_that_is_free_in_each(programs):
    graphs = []
    for number, launches in enumerate(programs):
        named = [replace(n, name=f"s{number}.{n.name.split('.')[1]}", step=f"s{number}") for n in launches]
        graphs.append(graph(named, f"s{number}"))
    everything = [n for g in graphs for n in g.launches]
    assert_no_live_bytes_are_shared(build_schedule(laid_out(everything), graphs))

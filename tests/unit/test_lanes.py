"""When a step takes a second lane."""

from schedule_toy import graph, laid_out, launch, span

from foxhunt.schedule import build_schedule


def test_many_tiny_launches_fused_into_several_are_not_long():
    tiny = [launch(f"train.t{i:03}", [], [span(f"x{i}")]) for i in range(600)]
    step = build_schedule(laid_out(tiny), (graph(tiny),)).steps[0]
    assert 1 < len(step.launches) < len(tiny) / 5
    assert {n.lane for n in step.launches} == {0}

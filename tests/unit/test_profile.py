"""`foxhunt profile`: measured times against the graph, on numbers that are known and on the host backend."""

import json
from itertools import pairwise

import pytest
from kernel_harness import ROOT
from view_programs import aux, two_lanes

from foxhunt.backend.base import Timed
from foxhunt.backend.cuda import CudaBackend
from foxhunt.backend.host import HostBackend
from foxhunt.cli import main
from foxhunt.view.profile import profile, trace


@pytest.fixture(scope="module")
def index():
    return aux()


@pytest.fixture(scope="module")
def measured(index):
    """Every launch takes 1 µs, but `forward.l1` 10 and its neighbour on the same level 5."""
    step = index.steps["train"]
    times = {n.name: 1.0 for n in step.launches}
    times["train.forward.l1"] = 10.0
    times["train.fused_1"] = 5.0
    return profile(index, "train", times, 30.0, "host", 1e9)


def test_the_critical_path_is_a_chain_of_edges_and_the_longest(index, measured):
    critical = [t.name for t in measured.timings if t.critical]
    edges = {(e.before, e.after) for e in index.steps["train"].edges}
    assert all(pair in edges for pair in pairwise(critical))
    assert "train.forward.l1" in critical
    assert "train.fused_1" not in critical
    assert measured.critical_microseconds == 9.0 + len(critical)
    assert measured.critical_microseconds <= measured.sum_microseconds


def test_rates_are_declared_work_over_measured_time(measured):
    first = next(t for t in measured.timings if t.name == "train.forward.l1")
    assert first.bytes_per_second == pytest.approx(first.bytes / 10e-6)
    assert first.flops_per_second == pytest.approx(first.flops / 10e-6)
    assert first.flops > 0


def test_the_trace_has_a_slice_a_launch_that_keeps_order_and_edges(index, measured):
    found = json.loads(json.dumps(trace(measured)))
    slices = {e["name"]: e for e in found["traceEvents"] if e["ph"] == "X"}
    assert list(slices) == [n.name for n in index.steps["train"].launches]
    for e in index.steps["train"].edges:
        before = slices[e.before]
        assert before["ts"] + before["dur"] <= slices[e.after]["ts"] + 1e-6
    assert slices["train.forward.l1"]["args"]["entry"] == "train_forward_l1"
    tracks = {e["tid"] for e in found["traceEvents"] if e["name"] == "thread_name"}
    assert tracks == {e["tid"] for e in slices.values()}


def test_lanes_run_side_by_side_in_the_trace(tmp_path):
    index = two_lanes(tmp_path)
    times = {n.name: 10.0 for n in index.steps["train"].launches}
    measured = profile(index, "train", times, 50.0, "cuda", 1e12)
    starts = {t.name: (t.lane, t.start) for t in measured.timings}
    assert starts["train.left"] == (0, 10.0)
    assert starts["train.right"] == (1, 10.0)
    assert measured.critical_microseconds == measured.sum_microseconds - 10.0


def test_both_backends_measure():
    for backend in (HostBackend, CudaBackend):
        assert all(callable(getattr(backend, name)) for name in ("launch_times", "copy_rate"))
    assert isinstance(HostBackend(threads=1), Timed)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    done = capsys.readouterr()
    return stop.value.code, done.out, done.err


@pytest.fixture
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("at_root")
def test_a_step_is_timed_on_the_host(capsys, tmp_path):
    out = tmp_path / "trace.json"
    arguments = (
        "profile",
        "aux",
        "--variant",
        "tiny",
        "--steps",
        "3",
        "--backend",
        "host",
        "--out",
        str(out),
    )
    code, shown, _ = run(capsys, *arguments)
    assert "they differ: a launch has its median" in shown
    assert code == 0
    assert "forward.l1" in shown
    assert "critical path" in shown
    slices = [e for e in json.loads(out.read_text())["traceEvents"] if e["ph"] == "X"]
    assert all(e["dur"] >= 0 for e in slices)
    assert sum(e["dur"] for e in slices) > 0


@pytest.mark.usefixtures("at_root")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["auxx"], "aux"),
        (["aux", "--step", "trian"], "did you mean `train`?"),
        (["aux", "--steps", "0"], "0"),
        (["aux", "--backend", "tpu"], "tpu"),
    ],
)
def test_the_command_refuses_with_words(capsys, arguments, words):
    code, out, err = run(capsys, "profile", *arguments)
    assert code == 2
    assert words in err
    assert out == ""

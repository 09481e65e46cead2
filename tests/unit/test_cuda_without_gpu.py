"""What the CUDA backend promises that needs no GPU to see: a stand-in driver records what it is asked."""

import gc
import sys
from types import SimpleNamespace

import pytest

from foxhunt.backend.cuda import load_cupy, unavailable
from foxhunt.backend.cuda_capture import capture, refuse_while_capturing
from foxhunt.backend.cuda_launch import Sequence
from foxhunt.backend.plan import Launch, Pointer, Scalar, Step
from foxhunt.diagnostics import BackendError


class CudaRuntimeError(RuntimeError):
    pass


class CudaDriverError(RuntimeError):
    pass


class FakeStream:
    """Notes which events it waits for and what it launches."""

    def __init__(self, log, name, non_blocking=True):
        self.log, self.ptr, self.capturing, self.broken = log, name, False, False

    def begin_capture(self, mode):
        self.log.append(("begin", mode))
        self.capturing = True

    def end_capture(self):
        self.capturing = False
        if self.broken:
            raise CudaRuntimeError("cudaErrorStreamCaptureInvalidated")
        return "graph"

    def wait_event(self, event):
        self.log.append(("wait", self.ptr, event.what))


@pytest.fixture
def device():
    """A stand-in for the cupy module, with the log of what it did."""
    log = []

    class Event:
        def __init__(self, disable_timing):
            self.what = None

        def record(self, stream):
            marks = sum(1 for entry in log if entry[0] == "record")
            self.what = marks
            log.append(("record", stream.ptr, marks))

    def launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        if function == "bad":
            raise CudaDriverError("CUDA_ERROR_INVALID_VALUE")
        log.append(("launch", stream, function))

    lanes = iter(range(1, 9))
    cuda = SimpleNamespace(
        Event=Event,
        Stream=lambda non_blocking: FakeStream(log, f"lane{next(lanes)}"),
        driver=SimpleNamespace(launchKernel=launch, CUDADriverError=CudaDriverError),
        runtime=SimpleNamespace(streamCaptureModeGlobal="global", CUDARuntimeError=CudaRuntimeError),
    )
    return SimpleNamespace(cuda=cuda, log=log)


def function(name):
    return SimpleNamespace(ptr=name)


def step(*launches):
    return Step(
        "train", tuple(Launch(n, n, 1, 32, (Scalar(-1),), lane, waits) for n, lane, waits in launches)
    )


def bind(device, made):
    functions = {x.entry: function(x.entry) for x in made.launches}
    return Sequence(device, made, functions, {"w": 4096})


def test_every_lane_forks_from_the_origin_and_rejoins_it_also_one_without_a_consumer(device):
    origin = FakeStream(device.log, "origin")
    bind(device, step(("a", 0, ()), ("b", 1, ("a",)), ("lonely", 2, ()), ("c", 0, ("b",)))).enqueue_on_lanes(
        origin
    )
    log = device.log
    recorded_on = {entry[2]: entry[1] for entry in log if entry[0] == "record"}
    first_launches = {
        stream: log.index(("launch", stream, n)) for stream, n in (("lane1", "b"), ("lane2", "lonely"))
    }
    for lane, first in first_launches.items():
        forks = [e for e in log[:first] if e[0] == "wait" and e[1] == lane and recorded_on[e[2]] == "origin"]
        assert forks, f"{lane} is not part of the capture"
    joined = {
        recorded_on[e[2]] for e in log[log.index(("launch", "origin", "c")) :] if e[:2] == ("wait", "origin")
    }
    assert joined == {"lane1", "lane2"}
    waits = [e for e in log[: log.index(("launch", "origin", "c"))] if e[:2] == ("wait", "origin")]
    assert [recorded_on[e[2]] for e in waits] == ["lane1"]


def test_a_step_of_one_lane_is_a_plain_chain(device):
    bind(device, step(("a", 0, ()), ("b", 0, ()))).enqueue_on_lanes(FakeStream(device.log, "origin"))
    assert device.log == [("launch", "origin", "a"), ("launch", "origin", "b")]


def test_words_are_addresses_and_64_bit_integers(device):
    made = Step("s", (Launch("x", "x", 1, 32, (Pointer("w", 16, 1, "f32", "read"), Scalar(-1), Scalar(7))),))
    (bound,) = bind(device, made).launches
    assert bound._words.tolist() == [4112, 2**64 - 1, 7]


def test_a_launch_that_the_driver_refuses_is_named(device):
    with pytest.raises(BackendError, match="launch bad cannot start: CUDA_ERROR_INVALID_VALUE"):
        bind(device, step(("bad", 0, ()))).enqueue_in_order(FakeStream(device.log, "s"), wait=False)


def test_capture_is_global_and_collects_no_garbage_meanwhile(device):
    stream = FakeStream(device.log, "s")
    seen = []
    assert capture(device, stream, lambda: seen.append(gc.isenabled()), "step train") == "graph"
    assert seen == [False]
    assert gc.isenabled()
    assert device.log == [("begin", "global")]


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt, CudaRuntimeError, MemoryError])
def test_an_exception_ends_the_capture(device, error, broken):
    stream = FakeStream(device.log, "s")
    stream.broken = broken

    def enqueue():
        raise error("in the middle")

    expected = BackendError if error is CudaRuntimeError else error  # what is not CUDA's passes through
    with pytest.raises(expected):
        capture(device, stream, enqueue, "step train")
    assert not stream.capturing
    assert gc.isenabled()
    refuse_while_capturing("go on")


def test_an_invalidated_capture_is_a_named_error(device):
    stream = FakeStream(device.log, "s")
    stream.broken = True
    with pytest.raises(
        BackendError, match="capture of step train failed: cudaErrorStreamCaptureInvalidated"
    ) as e:
        capture(device, stream, lambda: None, "step train")
    assert e.value.diagnostics[0].code == "FH583"


def test_a_capture_in_a_capture_is_refused(device):
    def inner():
        capture(device, FakeStream(device.log, "t"), lambda: None, "step inner")

    with pytest.raises(
        BackendError, match="cannot capture step inner while step outer is being captured"
    ) as e:
        capture(device, FakeStream(device.log, "s"), inner, "step outer")
    assert e.value.diagnostics[0].code == "FH584"


def test_without_cupy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(BackendError) as error:
        load_cupy()
    (finding,) = error.value.diagnostics
    assert finding.code == "FH580"
    assert "uv sync --extra cuda13" in finding.help
    assert "cupy" in unavailable()

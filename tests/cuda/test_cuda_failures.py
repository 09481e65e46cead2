"""A failure says what failed, ends the capture, and leaves the stream and the process usable."""

import dataclasses
import gc
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import walk

from foxhunt.backend.cuda_capture import capture
from foxhunt.backend.plan import Buffer, Step
from foxhunt.diagnostics import BackendError


def code_of(error):
    return error.value.diagnostics[0].code


def test_an_allocation_in_mid_capture_is_a_named_error_and_the_next_capture_works(backend, tmp_path):
    import cupy

    walk.start(backend, tmp_path)
    stream = backend._stream

    def allocate():
        cupy.cuda.Memory(1 << 20)

    with pytest.raises(BackendError, match="step sick") as error:
        capture(cupy, stream, allocate, "step sick")
    assert code_of(error) == "FH583"
    assert not stream.is_capturing()
    assert gc.isenabled()
    backend._graphs.clear()
    backend.run("train", 2)
    replayed = walk.state(backend)
    walk.rewind(backend)
    backend.run("train", 2, eager=True)
    assert walk.state(backend) == replayed


@pytest.mark.parametrize("action", ["build", "allocate", "read", "write", "sync", "capture"])
def test_foxhunt_refuses_by_itself_to_build_or_allocate_in_a_capture(backend, tmp_path, action):
    import cupy

    plan = walk.start(backend, tmp_path)
    actions = {
        "build": lambda: backend.build(tmp_path, plan),
        "allocate": lambda: backend.allocate(plan),
        "read": lambda: backend.read("w", 0, 1, "f32"),
        "write": lambda: walk.rewind(backend),
        "sync": backend.sync,
        "capture": lambda: backend._graph("train", 5),
    }
    with pytest.raises(BackendError, match="while step outer is being captured") as error:
        capture(cupy, backend._stream, actions[action], "step outer")
    assert code_of(error) == "FH584"
    assert not backend._stream.is_capturing()
    backend.run("train", 1)
    backend.sync()


def test_an_exception_in_the_capture_passes_through_and_ends_it(backend, tmp_path):
    import cupy

    walk.start(backend, tmp_path)

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture(cupy, backend._stream, interrupted, "step train")
    assert not backend._stream.is_capturing()
    assert gc.isenabled()
    backend.run("train", 1)
    backend.sync()


def test_a_step_captured_twice_gives_two_right_graphs(backend, tmp_path):
    walk.start(backend, tmp_path)
    first = backend._graph("train", 1)
    backend._graphs.clear()
    second = backend._graph("train", 1)
    walk.rewind(backend)
    backend.run("train", 4, eager=True)
    expected = walk.state(backend)
    walk.rewind(backend)
    for graph in (first, second, first, second):
        graph.launch(backend._stream)
    assert walk.state(backend) == expected


def test_an_impossible_launch_is_named_when_building(backend, tmp_path):
    wide = dataclasses.replace(walk.WILD[0], grid=0)
    with pytest.raises(BackendError, match=r"wild\.store has 0 blocks"):
        backend.build(walk.folder(tmp_path), walk.plan(Step("wild", (wide,))))


def test_a_missing_entry_is_named(backend, tmp_path):
    gone = dataclasses.replace(walk.WILD[0], entry="walk_gone")
    with pytest.raises(BackendError, match=r"walk_gone\.cu is missing"):
        backend.build(walk.folder(tmp_path), walk.plan(Step("wild", (gone,))))


def test_a_program_larger_than_the_device_names_its_largest_buffers(backend):
    plan = walk.plan()
    huge = dataclasses.replace(plan, buffers=(*plan.buffers, Buffer("replay", "f32", 1 << 40, "state")))
    with pytest.raises(BackendError, match="4,194,30") as error:
        backend.allocate(huge)
    assert code_of(error) == "FH581"
    assert "replay" in error.value.diagnostics[0].help


# A launch that fails on the device takes the process's context with it, so these run in one of their own.
@pytest.mark.parametrize(
    ("debug", "message"), [(True, "launch wild.store failed on the device"), (False, "debug option")]
)
def test_a_launch_that_fails_on_the_device(tmp_path, debug, message):
    script = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import walk
        from foxhunt.backend.cuda import CudaBackend
        from foxhunt.backend.plan import Step
        from foxhunt.diagnostics import BackendError
        backend = CudaBackend()
        walk.start(backend, Path({str(tmp_path)!r}), Step("wild", walk.WILD), debug={debug})
        try:
            backend.run("train", 1)
            backend.run("wild", 1)
            backend.sync()
        except BackendError as error:
            print(error)
        """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert message in done.stdout, done.stdout + done.stderr
    assert "error[FH582]" in done.stdout

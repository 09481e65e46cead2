"""What is common to backends: argument words, choice by name, the recording backend."""

import numpy as np
import pytest

from foxhunt.backend.base import entries, make_backend, pack
from foxhunt.backend.null import NullBackend
from foxhunt.backend.plan import Buffer, Launch, Plan, Pointer, Scalar, Step
from foxhunt.diagnostics import BackendError

LAUNCH = Launch("s.k", "s_k", 2, 256, (Pointer("x", 16, 3, "f32", "read"), Scalar(-1), Scalar(7)))
PLAN = Plan(
    program="p", variant="default", precision="fp32", layout_hash="", semantics_hash="",
    layout_lines=(), dims=(),
    buffers=(
        Buffer("x", "f32", 8, "state"), Buffer("ring.ingest", "f32", 64 * 2, "system"),
        Buffer("ring.publish", "u32", 16 * 3 + 2, "system"),
    ),
    views=(), slots=(), counters=(), observations=(), diagnostics=(),
    steps=(Step("s", (LAUNCH,)),), resets=(Step("reset_fold", (LAUNCH,)),), data=(), publish_words=3,
)  # fmt: skip


def test_an_argument_is_one_word_and_its_element_count():
    words, counts = pack(LAUNCH, {"x": 4096})
    assert words.tolist() == [4096 + 16, 2**64 - 1, 7]
    assert counts.tolist() == [3, 0, 0]


def test_entries_are_each_named_once():
    assert entries(PLAN) == ("s_k",)


@pytest.mark.parametrize("name", ["gpu", 5, None, b"host", ["cuda"], object])
def test_an_unknown_backend_is_a_named_error(name):
    with pytest.raises(BackendError, match="FH560"):
        make_backend(name)


def test_a_backend_is_taken_as_it_is():
    backend = NullBackend()
    assert make_backend(backend) is backend


def test_the_null_backend_keeps_memory_and_records_runs():
    backend = NullBackend()
    backend.allocate(PLAN)
    backend.write("x", 4, np.array([1.5, 2.5], np.float32))
    assert backend.read("x", 0, 4, "f32").tolist() == [0, 1.5, 2.5, 0]
    backend.ingest_row(63)[:] = [3, 4]
    assert backend.read("ring.ingest", 63 * 8, 2, "f32").tolist() == [3, 4]
    assert backend.publish_words().size == 16 * 3 + 2
    backend.run("s", 3, 2)
    backend.run("reset_fold", 1)
    assert backend.calls == [("s", 3, 2), ("reset_fold", 1, 1)]
    assert backend.completed() == 3


def test_memory_outside_of_a_buffer_is_refused():
    backend = NullBackend()
    backend.allocate(PLAN)
    with pytest.raises(ValueError, match="x: bytes"):
        backend.read("x", 16, 5, "f32")
    with pytest.raises(ValueError, match="x: bytes"):
        backend.write("x", 28, np.zeros(2, np.float32))

"""Replays equal eager launches bit for bit, also with signals written while steps are queued."""

import gc
import logging
import sys
import threading
import time

import numpy as np
import pytest
import walk


def eager_state(backend, steps):
    walk.rewind(backend)
    backend.run("train", steps, eager=True)
    return walk.state(backend)


def test_replays_equal_eager_launches(backend, tmp_path):
    walk.start(backend, tmp_path)
    expected = eager_state(backend, 40)
    walk.rewind(backend)
    backend.run("train", 40)
    assert walk.state(backend) == expected
    assert np.frombuffer(expected["w"], np.float32).std() > 0.05


@pytest.mark.parametrize("per_graph", [1, 2, 3])
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 6, 31])
def test_results_do_not_depend_on_steps_a_graph(backend, tmp_path, per_graph, steps):
    walk.start(backend, tmp_path)
    expected = eager_state(backend, steps)
    walk.rewind(backend)
    backend.run("train", steps, per_graph)
    assert walk.state(backend) == expected


def test_a_learning_rate_set_before_each_queued_step_is_the_one_it_sees(backend, tmp_path):
    walk.start(backend, tmp_path)
    rates = np.linspace(0.01, 0.9, 400, dtype=np.float32)

    def scheduled(eager):
        walk.rewind(backend)
        done = backend.completed()
        for step, rate in enumerate(rates):
            while backend.completed() - done <= step - 64:  # the ring has 64 rows; nothing else is waited for
                time.sleep(0)
            backend.ingest_row(step % 64)[0] = rate
            backend.run("train", 1, eager=eager)
        return walk.state(backend)

    queued = scheduled(eager=False)
    assert queued == scheduled(eager=True)
    assert (np.frombuffer(queued["trace"], np.float32)[:400] == rates).all()


def test_a_reader_never_sees_a_torn_row(backend, tmp_path):
    walk.start(backend, tmp_path)
    words, row_words = backend.publish_words(), walk.WORDS
    stop, seen, torn, retries = threading.Event(), [], [], [0]

    def read():
        while not stop.is_set():
            latest = int(words[0])
            if latest == 0:
                continue
            at = 2 + (latest - 1) % 16 * row_words
            row = words[at : at + row_words].copy()
            if int(words[0]) - latest >= 15:
                retries[0] += 1
                continue
            seen.append(latest)
            if not (row == latest).all():
                torn.append(latest)

    reader = threading.Thread(target=read)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # else the two threads hand the interpreter over every 5 ms
    try:
        reader.start()
        for _ in range(1000):
            backend.run("train", 100, 10)
        backend.sync()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        reader.join()
    assert not torn
    assert len(seen) > 1000, (len(seen), retries)
    assert sorted(seen) == seen
    assert int(words[0]) == 100_000


def test_noise_differs_at_each_replay_and_equals_the_eager_draws(backend, tmp_path):
    walk.start(backend, tmp_path)

    def draws(eager):
        walk.rewind(backend)
        out = []
        for _ in range(3):
            backend.run("train", 1, eager=eager)
            out.append(backend.read("noise", 0, walk.N, "f32").tobytes())
        return out

    replayed = draws(eager=False)
    assert len(set(replayed)) == 3
    assert replayed == draws(eager=True)


def test_a_load_after_capture_reaches_the_captured_storage(backend, tmp_path, caplog):
    caplog.set_level(logging.INFO, "foxhunt")
    walk.start(backend, tmp_path)
    backend.run("train", 3)
    saved = walk.state(backend)
    backend.run("train", 5)
    after = walk.state(backend)
    captures = len(caplog.records)
    for name, data in saved.items():
        backend.write(name, 0, np.frombuffer(data, np.uint8))
    backend.run("train", 5)
    assert walk.state(backend) == after
    assert len(caplog.records) == captures


def test_memory_allocated_again_is_captured_again_with_the_reason(backend, tmp_path, caplog):
    plan = walk.start(backend, tmp_path)
    expected = eager_state(backend, 4)
    backend.allocate(plan)
    walk.rewind(backend)
    caplog.clear()
    backend.run("train", 4)
    assert walk.state(backend) == expected
    assert any("allocated again" in r.message for r in caplog.records)


def test_a_reset_runs_between_replays(backend, tmp_path):
    walk.start(backend, tmp_path)
    backend.run("train", 2)
    backend.run("fold", 1)
    assert not backend.read("w", 0, walk.N, "f32").any()
    assert backend.read("counters", 0, 1, "i64")[0] == 2


def test_completed_counts_steps_without_waiting(backend, tmp_path):
    walk.start(backend, tmp_path)
    backend.run("train", 100)
    backend.run("fold", 1)
    deadline = time.monotonic() + 10
    while backend.completed() < 100 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert backend.completed() == 100


def test_garbage_of_another_thread_in_mid_capture_is_harmless_or_named(backend, tmp_path):
    import cupy

    from foxhunt.diagnostics import BackendError

    plan = walk.start(backend, tmp_path)
    expected = eager_state(backend, 3)
    stop = threading.Event()

    def litter():
        pool = cupy.cuda.MemoryPool()
        while not stop.is_set():
            try:
                cycle = [pool.malloc(1 << 16)]
                cycle.append(cycle)
                del cycle
                pool.free_all_blocks()
            except cupy.cuda.runtime.CUDARuntimeError:
                pass  # this thread may be told that a capture is under way
            gc.collect()
            time.sleep(0.001)

    thread = threading.Thread(target=litter)
    thread.start()
    failures: list[str] = []
    try:
        for _ in range(5):
            try:
                backend.allocate(plan)
                walk.rewind(backend)
                backend.run("train", 3)
            except BackendError as error:
                failures.append(error.diagnostics[0].code)
                continue
            assert walk.state(backend) == expected
    finally:
        stop.set()
        thread.join()
    backend.allocate(plan)
    walk.rewind(backend)
    backend.run("train", 3)
    assert walk.state(backend) == expected
    assert set(failures) <= {"FH582", "FH583"}


def test_arithmetic_has_the_bits_of_the_host(backend, tmp_path):
    walk.start(backend, tmp_path)
    rng = np.random.default_rng(3)
    a = rng.standard_normal(walk.TINY).astype(np.float32)
    b = rng.standard_normal(walk.TINY).astype(np.float32)
    a[:6] = [1e-40, -1e-40, 1.4e-45, 3e-39, 0.0, -0.0]
    b[:6] = [0.5, 2.0, 0.5, 1e-3, 1e-40, 3.0]
    backend.write("a", 0, a)
    backend.write("b", 0, b)
    backend.run("check", 1)
    with np.errstate(all="ignore"):
        expected = np.concatenate([a * b + a, a / b, np.sqrt(np.abs(a)), a * np.float32(0.5)])
    assert backend.read("out", 0, 4 * walk.TINY, "f32").tobytes() == expected.tobytes()

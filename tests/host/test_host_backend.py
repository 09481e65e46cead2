"""The host backend: builds, runs, floats as they are, interrupts, and the checks of a debug run."""

import ctypes
import signal
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from host_programs import Program, run

from foxhunt.backend import host_build, host_toolchain
from foxhunt.backend.assertions import failed_assertion
from foxhunt.backend.base import make_backend
from foxhunt.backend.host import HostBackend
from foxhunt.diagnostics import BackendError, BuildError

DOUBLE_ARGUMENTS = "const auto x = w.in<f32>(0); const auto y = w.out<f32>(1); const i64 n = w.integer(2);"


def doubling(
    x, body="for (i64 i : block.elements(n)) y[i] = 2.0f * x[i];", access="write", arguments=DOUBLE_ARGUMENTS
):
    program = Program({"x": np.asarray(x, np.float32), "y": np.zeros(len(x), np.float32)})
    program.kernel("double_it", body, arguments, threads="loop")
    return program.launch("double_it", program.pointer("x"), program.pointer("y", access), len(x), grid=3)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FOXHUNT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "host"


# --- running


@pytest.mark.parametrize("grid", [1, 2, 3, 7, 8, 9, 100, 1001])
def test_every_block_runs_once(tmp_path, grid):
    program = Program({"y": np.zeros(grid, np.int64)})
    program.kernel("count", "y[block.index] += 1;", "const auto y = w.update<i64>(0);", threads="one")
    program.launch("count", program.pointer("y", "update"), grid=grid)
    assert (run(program, tmp_path, threads=3, steps=50)["y"] == 50).all()


def test_launches_of_a_step_see_what_earlier_ones_wrote(tmp_path):
    program = doubling(np.ones(1000))
    program.kernel("back", "for (i64 i : block.elements(n)) y[i] = x[i];", DOUBLE_ARGUMENTS, threads="loop")
    program.launch("back", program.pointer("y"), program.pointer("x", "write"), 1000, grid=2)
    assert (run(program, tmp_path, threads=2, steps=10)["x"] == 1024).all()


def test_denormals_survive_even_where_another_library_flushes_them(tmp_path):
    source = tmp_path / "flush.cpp"
    source.write_text(
        """
        extern "C" unsigned long long floats(bool set, unsigned long long value) {
          unsigned long long old = 0;
        #if defined(__x86_64__)
          unsigned word;
          asm volatile("stmxcsr %0" : "=m"(word));
          old = word;
          word = static_cast<unsigned>(value);
          if (set) asm volatile("ldmxcsr %0" : : "m"(word));
        #else
          asm volatile("mrs %0, fpcr" : "=r"(old));
          if (set) asm volatile("msr fpcr, %0" : : "r"(value));
        #endif
          return old;
        }"""
    )
    command = host_toolchain.find_toolchain().command
    subprocess.run([*command, "-shared", "-fPIC", str(source), "-o", str(tmp_path / "flush.so")], check=True)
    floats = ctypes.CDLL(str(tmp_path / "flush.so")).floats
    floats.restype = ctypes.c_ulonglong
    flushing = 0x9FC0 if host_toolchain.platform.machine() == "x86_64" else 1 << 24
    backend = doubling(np.full(1000, 1e-40)).start(tmp_path / "program", threads=2)
    before = floats(False, ctypes.c_ulonglong(0))
    floats(True, ctypes.c_ulonglong(flushing))
    try:
        backend.run("step", 1)
        assert floats(False, ctypes.c_ulonglong(0)) == flushing  # the caller's mode is its own affair
    finally:
        floats(True, ctypes.c_ulonglong(before))
    y = backend.read("y", 0, 1000, "f32")
    backend.close()
    assert (y.view(np.uint32) == 2 * np.full(1, 1e-40, np.float32).view(np.uint32)).all()


def test_an_interrupt_comes_between_steps(tmp_path):
    program = Program({"y": np.zeros(1, np.int64)})
    program.kernel("count", "y[0] += 1;", "const auto y = w.update<i64>(0);", threads="one")
    program.launch("count", program.pointer("y", "update"))
    backend = program.start(tmp_path)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            backend.run("step", 10**12)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert 0 < backend.read("y", 0, 1, "i64")[0] < 10**12
    backend.close()


def test_completed_counts_steps(tmp_path):
    backend = doubling(np.ones(4)).start(tmp_path)
    assert backend.completed() == 0
    backend.run("step", 5)
    assert backend.completed() == 5
    backend.close()
    backend.close()


def test_an_unknown_backend_is_refused_by_name():
    with pytest.raises(BackendError, match=r"FH560.*'tpu'"):
        make_backend("tpu")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not list mappings")
def test_a_closed_program_keeps_no_fiber_stacks(tmp_path):
    """Every stack has a guard page, so a mapping or two of its own, and a process has 65,530 of them."""

    def mappings():
        return len(Path("/proc/self/maps").read_text().splitlines())

    before = mappings()
    for number in range(3):
        program = Program({"y": np.zeros(3, np.float32)})
        body = "const f32 sum = block.sum(1.0f); if (block.thread == 0) y[block.index] = sum;"
        program.kernel(f"sum_{number}", body, "const auto y = w.update<f32>(0);")
        program.launch(f"sum_{number}", program.pointer("y", "update"), grid=3)
        assert np.array_equal(run(program, tmp_path / str(number))["y"], [256, 256, 256])
    assert mappings() - before < 256


# --- building


def test_nothing_is_compiled_twice_and_a_change_compiles_only_what_includes_it(tmp_path, own_cache):
    program = doubling(np.ones(8))
    program.kernel("other", '#include "../kernels/k.cuh"\nK', DOUBLE_ARGUMENTS, threads="loop")
    program.launch("other", program.pointer("x"), program.pointer("y", "write"), 8)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "k.cuh").write_text("#define K for (i64 i : block.elements(n)) y[i] = x[i];\n")
    program.start(tmp_path).close()
    first = {p.name for p in own_cache.iterdir()}
    program.start(tmp_path).close()
    assert {p.name for p in own_cache.iterdir()} == first
    (tmp_path / "kernels" / "k.cuh").write_text(
        "#define K for (i64 i : block.elements(n)) y[i] = 3.0f * x[i];\n"
    )
    program.start(tmp_path).close()
    new = {p.name.split("-")[0] for p in own_cache.iterdir() if p.name not in first}
    assert new == {"other", tmp_path.name.split("-")[0]}


def test_two_builders_at_once_do_not_disturb_each_other(tmp_path, own_cache):
    program = doubling(np.ones(8))
    folder = program.write_to(tmp_path / "program")
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(host_build.build_library(folder, ["double_it"])))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert len(set(results)) == 1
    assert not [p for p in own_cache.iterdir() if p.name.startswith(".")]


def test_progress_names_every_compiled_launch(tmp_path):
    program = doubling(np.ones(8))
    heard = []
    backend = HostBackend(threads=1, progress=lambda done, total, name: heard.append((done, total, name)))
    backend.build(program.write_to(tmp_path), program.plan())
    backend.close()
    assert [h[:2] for h in heard] == [(1, 2), (2, 2)]
    assert {h[2] for h in heard} == {"host_runner", "double_it"}


def test_without_a_compiler_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(host_toolchain.importlib.util, "find_spec", lambda name: None)
    host_toolchain.find_toolchain.cache_clear()
    try:
        with pytest.raises(BuildError) as error:
            doubling(np.ones(8)).start(tmp_path / "program")
    finally:
        host_toolchain.find_toolchain.cache_clear()
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "FH461"
    assert "apt install g++" in diagnostic.help


def test_a_refused_kernel_is_named_with_the_compilers_words(tmp_path):
    with pytest.raises(BuildError) as error:
        doubling(np.ones(8), "nonsense(1);").start(tmp_path)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "FH462"
    assert "refused double_it" in diagnostic.message
    assert "nonsense" in diagnostic.message


def test_an_assertion_that_fails_is_the_reason_and_dims_may_be_wrong(tmp_path):
    with pytest.raises(BuildError) as error:
        doubling(np.ones(8), 'static_assert(BLOCK == 7, "seven (7) threads");').start(tmp_path)
    (found,) = error.value.diagnostics
    assert found.code == "FH462"
    assert 'static_assert(BLOCK == 7, "seven (7) threads") does not hold (' in found.message
    assert "\n" not in found.message
    assert "a dim" in found.help


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            'l/../k/env.cuh:9:5: error: static assertion failed: four\n  9 | static_assert(A == 4, "four");\n'
            "l/../k/env.cuh:9:5: note: the comparison reduces to ‘(5 == 4)’\n",
            'static_assert(A == 4, "four") does not hold (5 == 4, env.cuh:9)',
        ),
        (
            "k/env.cuh:9:1: error: static_assert failed due to requirement 'A == 4' \"four\"\n"
            'static_assert(A == 4, "four");\n^ ~~~~\n',
            'static_assert(A == 4, "four") does not hold (env.cuh:9)',
        ),
        (
            'k/env.cuh(9): error: static assertion failed with "four"\n static_assert(A == 4, "four");\n ^\n'
            "k/env.cuh(9): note #3453-D: the final comparison was 5 == 4\n",
            'static_assert(A == 4, "four") does not hold (5 == 4, env.cuh:9)',
        ),
        ("k/env.cuh:9:1: error: expected ‘;’\nstatic_assert(A == 4);\n", None),
    ],
)
def test_every_compilers_failed_assertion_is_found(log, said):
    assert failed_assertion(log) == said


def test_a_missing_launch_file_is_named(tmp_path):
    program = doubling(np.ones(8))
    program.write_to(tmp_path)
    (tmp_path / "launches" / "double_it.cu").unlink()
    with pytest.raises(BuildError, match=r"FH464.*double_it.cu"):
        HostBackend().build(tmp_path, program.plan())


def test_a_missing_header_is_named(tmp_path):
    program = doubling(np.ones(8))
    program.write_to(tmp_path)
    (tmp_path / "prelude" / "reduce.cuh").unlink()
    with pytest.raises(BuildError) as error:
        HostBackend().build(tmp_path, program.plan())
    (found,) = error.value.diagnostics
    assert (found.code, found.help) == ("FH464", "Run `foxhunt compile` again.")
    assert found.message == f"reduce.cuh is missing in {tmp_path / 'prelude'}"


def test_an_unwritable_cache_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FOXHUNT_CACHE", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="FH463"):
        doubling(np.ones(8)).start(tmp_path)


# --- debug


def test_a_right_program_passes_the_checks_with_the_same_bits(tmp_path):
    x = np.random.default_rng(3).standard_normal(1000)
    program = doubling(x, "for (i64 i : block.elements(n)) y[i] = tanh_(x[i]);")
    results = {run(program, tmp_path, debug=d, steps=2)["y"].tobytes() for d in (False, True)}
    assert len(results) == 1


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("for (i64 i : block.elements(n)) y[i] = x[i + 1];", "FH562", r"element 100 of x \[0:100\) f32"),
        ("for (i64 i : block.elements(n)) y[i] = x[i - 1];", "FH562", r"element -1 of x"),
        ("for (i64 i : block.elements(n + 1)) y[i] = 0.0f;", "FH562", r"element 100 of y \[0:100\) f32"),
        ("for (i64 i : block.elements(n)) y[i] = load4(x, i % 97).x;", "FH562", "no multiple of 16"),
        ("for (i64 i : block.elements(n - 1)) y[i] = x[i];", "FH564", r"element 99 of y \[0:100\) f32"),
        ("for (i64 i : block.elements(n)) if (i != 40) y[i] = x[i];", "FH564", "element 40 of y"),
    ],
)
def test_a_wrong_kernel_is_caught_with_launch_and_element(tmp_path, body, code, said):
    with pytest.raises(BackendError, match=said) as error:
        run(doubling(np.ones(100), body), tmp_path, debug=True)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == code
    assert "step.double_it" in diagnostic.message


def test_a_value_that_looks_like_the_canary_counts_as_written(tmp_path):
    program = Program({"y": np.zeros(8, np.uint32)})
    body = "for (i64 i : block.elements(8)) y[i] = 0x7fc0fa11u;"
    program.kernel("same", body, "const auto y = w.out<u32>(0);", threads="loop")
    program.launch("same", program.pointer("y", "write"))
    assert (run(program, tmp_path, debug=True)["y"] == 0x7FC0FA11).all()


def test_reading_what_is_only_written_does_not_compile(tmp_path):
    with pytest.raises(BuildError, match="FH462"):
        run(doubling(np.ones(8), "for (i64 i : block.elements(n)) y[i] = y[i] + x[i];"), tmp_path, debug=True)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("w.pointer<f32>(0)[3] = 5.0f;", "byte 14 of x"),
        ("w.pointer<f32>(0)[8] = 5.0f;", "beside x"),
    ],
)
def test_a_write_past_the_accessors_is_caught(tmp_path, body, said):
    with pytest.raises(BackendError, match=said) as error:
        run(doubling(np.ones(8), body, access="update"), tmp_path, debug=True)
    assert error.value.diagnostics[0].code == "FH565"

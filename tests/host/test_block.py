"""Blocks on the host: barriers, shuffles, reductions in the fixed order, tickets, wrong kernels."""

import numpy as np
import pytest
from host_programs import Program, run

from foxhunt.diagnostics import BackendError

RNG = np.random.default_rng(5)


def tree(values, combine, identity):
    """The promised order: a butterfly in each warp, then the warps' values by the same tree."""

    def fold(row):
        while row.size > 1:
            half = row.size // 2
            row = combine(row[:half], row[half:])
        return row[0]

    warps = np.array([fold(w) for w in values.reshape(-1, 32)], values.dtype)
    width = 1 << (warps.size - 1).bit_length()
    padded = np.full(width, identity, values.dtype)
    padded[: warps.size] = warps
    return fold(padded)


def per_thread(tmp_path, block, expression, x, out_dtype=np.float32, blocks=1, **options):
    """y[i] = expression for every thread i of `blocks` blocks, where v is x[i]."""
    program = Program({"x": x, "y": np.zeros(block * blocks, out_dtype)})
    ctype = {"float32": "f32", "int64": "i64", "uint32": "u32", "int32": "i32"}
    program.kernel(
        "each",
        f"const i64 i = block.first(); const auto v = x[i]; y[i] = {expression};",
        f"const auto x = w.in<{ctype[x.dtype.name]}>(0);"
        f"const auto y = w.out<{ctype[np.dtype(out_dtype).name]}>(1);",
        block,
    )
    program.launch("each", program.pointer("x"), program.pointer("y", "write"), grid=blocks, block=block)
    return run(program, tmp_path, **options)["y"]


@pytest.mark.parametrize("block", [32, 64, 96, 256, 1024])
def test_a_block_sum_has_the_fixed_order(tmp_path, block):
    x = RNG.standard_normal(3 * block).astype(np.float32) * 10.0 ** RNG.integers(-6, 6, 3 * block).astype(
        np.float32
    )
    y = per_thread(tmp_path, block, "block.sum(v)", x, blocks=3)
    for b in range(3):
        rows = slice(b * block, (b + 1) * block)
        assert (y[rows] == tree(x[rows], np.add, np.float32(-0.0))).all()


def test_reductions_of_integers_and_extrema(tmp_path):
    x = RNG.integers(-(2**62), 2**62, 96)
    total = per_thread(tmp_path / "a", 96, "block.sum(v)", x, np.int64)
    assert (total == x.sum()).all()
    assert (per_thread(tmp_path / "b", 96, "block.max(v)", x, np.int64) == x.max()).all()
    y = RNG.standard_normal(64).astype(np.float32)
    assert (per_thread(tmp_path / "c", 64, "block.min(v)", y) == y.min()).all()


@pytest.mark.parametrize(
    ("values", "largest", "smallest"),
    [
        ([np.nan, -1, 0, 1], 1, -1),
        ([np.inf, -np.inf, np.nan], np.inf, -np.inf),
        ([-0.0, 0.0], 0.0, -0.0),
        ([np.nan], np.nan, np.nan),
    ],
)
@pytest.mark.parametrize("place", [0, 37, 60])
def test_extrema_leave_nan_out_wherever_it_stands(tmp_path, values, largest, smallest, place):
    x = np.full(64, values[-1], np.float32)
    x[place : place + len(values)] = values
    bits = lambda a: np.asarray(a, np.float32).view(np.uint32)  # noqa: E731
    found = (
        per_thread(tmp_path / "a", 64, "block.max(v)", x),
        per_thread(tmp_path / "b", 64, "block.min(v)", x),
    )
    for y, expected in zip(found, (largest, smallest), strict=True):
        assert np.isnan(y).all() if np.isnan(expected) else (bits(y) == bits(expected)).all()


def test_a_sum_keeps_the_sign_of_zero(tmp_path):
    y = per_thread(tmp_path, 96, "block.sum(v)", np.full(96, -0.0, np.float32))
    assert np.signbit(y).all()


def test_shuffles_move_values_between_lanes(tmp_path):
    x = np.arange(64, dtype=np.float32)
    rows = x.reshape(2, 32)
    lane = np.arange(32)
    assert (per_thread(tmp_path / "a", 64, "block.shfl_xor(v, 5)", x) == rows[:, lane ^ 5].ravel()).all()
    assert (per_thread(tmp_path / "b", 64, "block.shfl(v, 7)", x) == rows[:, [7] * 32].ravel()).all()
    down = np.where(lane + 3 < 32, rows[:, (lane + 3) % 32], rows)
    assert (per_thread(tmp_path / "c", 64, "block.shfl_down(v, 3)", x) == down.ravel()).all()
    rotated = per_thread(
        tmp_path / "d", 64, "block.shfl(block.shfl(v, block.lane() + 1), block.lane() + 31)", x
    )
    assert (rotated == x).all()


def test_warp_reductions_and_ballots_stay_in_their_warp(tmp_path):
    x = RNG.standard_normal(96).astype(np.float32)
    sums = per_thread(tmp_path / "a", 96, "block.warp_sum(v)", x)
    assert (sums == np.repeat([tree(w, np.add, 0) for w in x.reshape(3, 32)], 32)).all()
    votes = per_thread(tmp_path / "b", 96, "block.ballot(v > 0.0f)", x, np.uint32)
    expected = [int("".join("01"[int(p)] for p in w[::-1] > 0), 2) for w in x.reshape(3, 32)]
    assert (votes == np.repeat(np.array(expected, np.uint32), 32)).all()


def test_a_barrier_orders_shared_memory_over_many_rounds(tmp_path):
    program = Program({"y": np.zeros(256, np.int64)})
    program.kernel(
        "rotate",
        """auto& s = block.template shared<i64[256]>();
        s[block.thread] = block.thread;
        for (int round = 0; round < 100; ++round) {
          block.sync();
          const i64 next = s[(block.thread + 1) % BLOCK];
          block.sync();
          s[block.thread] = next;
        }
        y[block.thread] = s[block.thread];""",
        "const auto y = w.out<i64>(0);",
        shared=2048,
    )
    program.launch("rotate", program.pointer("y", "write"))
    assert (run(program, tmp_path)["y"] == (np.arange(256) + 100) % 256).all()


def test_threads_that_returned_do_not_count_at_a_barrier(tmp_path):
    program = Program({"y": np.zeros(128, np.int64)})
    program.kernel(
        "leave",
        """if (block.thread % 3 == 0) return;
        auto& s = block.template shared<i64[128]>();
        s[block.thread] = block.thread;
        block.sync();
        if (block.thread >= 64) return;
        block.sync();
        y[block.thread] = s[block.thread % 3 == 1 ? block.thread + 1 : block.thread - 1];""",
        "const auto y = w.update<i64>(0);",
        block=128,
        shared=1024,
    )
    program.launch("leave", program.pointer("y", "update"), block=128)
    t = np.arange(128)
    expected = np.where((t % 3 == 0) | (t >= 64), 0, np.where(t % 3 == 1, t + 1, t - 1))
    assert (run(program, tmp_path)["y"] == expected).all()


LAST_BLOCK = """
f32 acc = 0.0f;
for (i64 i = block.first(); i < n; i += block.stride()) acc += x[i];
acc = block.sum(acc);
if (block.thread == 0) partials[block.index] = acc;
if (!block.last_block(ticket, 1, block.count)) return;
acc = 0.0f;
for (i64 b = block.thread; b < block.count; b += BLOCK) acc += load_fresh(partials, b);
acc = block.sum(acc);
if (block.thread == 0) y[0] = acc + y[0];
"""


def two_level_sum(n, grid):
    x = RNG.standard_normal(n).astype(np.float32)
    program = Program({
        "x": x, "partials": np.zeros(grid, np.float32), "tickets": np.zeros(2, np.uint32),
        "y": np.zeros(1, np.float32),
    })  # fmt: skip
    program.kernel(
        "total",
        LAST_BLOCK,
        "const auto x = w.in<f32>(0); const auto partials = w.out<f32>(1); const auto ticket = w.ticket(2);"
        "const auto y = w.update<f32>(3); const i64 n = w.integer(4);",
    )
    return program.launch(
        "total", program.pointer("x"), program.pointer("partials", "write"),
        program.pointer("tickets", "update"), program.pointer("y", "update"), n, grid=grid,
    )  # fmt: skip


@pytest.mark.parametrize("n", [1, 31, 32, 33, 255, 257, 100_003])
def test_the_last_block_finishes_at_every_length(tmp_path, n):
    program = two_level_sum(n, 7)
    after = run(program, tmp_path, debug=n < 300)
    assert after["y"][0] == pytest.approx(program.buffers["x"].astype(np.float64).sum(), rel=1e-4, abs=1e-4)


def test_tickets_wrap_so_that_launches_follow_without_a_reset(tmp_path):
    program = two_level_sum(5000, 40)
    once, often = (run(program, tmp_path, steps=k) for k in (1, 5))
    assert (often["tickets"] == 0).all()
    expected = np.float32(0)
    for _ in range(5):
        expected = np.float32(once["y"][0] + expected)
    assert often["y"][0] == expected


def test_results_do_not_depend_on_the_number_of_threads(tmp_path):
    program = two_level_sum(100_003, 97)
    results = {run(program, tmp_path, threads=t, steps=3)["y"].tobytes() for t in (1, 2, 3, 8)}
    assert len(results) == 1


def test_once_runs_once_between_two_barriers(tmp_path):
    program = Program({"y": np.zeros(64, np.float32)})
    body = """auto& s = block.template shared<f32>();
        if (block.thread == 3) s = 1.0f;
        block.once([&] { s += 2.0f; });
        y[block.thread] = s;"""
    program.kernel("once", body, "const auto y = w.out<f32>(0);", block=64, shared=4)
    program.launch("once", program.pointer("y", "write"), block=64)
    assert (run(program, tmp_path)["y"] == 3).all()


def test_a_fibers_stack_is_aligned_as_the_compiler_assumes(tmp_path):
    program = Program({"y": np.ones(64, np.int64)})
    body = """alignas(16) f32 local[4];
        u64 address = reinterpret_cast<u64>(&local);
        asm volatile("" : "+r"(address));
        block.sync();
        y[block.thread] = static_cast<i64>(address % 16);"""
    program.kernel("align", body, "const auto y = w.out<i64>(0);", block=64)
    program.launch("align", program.pointer("y", "write"), block=64)
    assert (run(program, tmp_path)["y"] == 0).all()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("if (block.thread == 0) block.sync(); else block.sum(1.0f);", "different collectives"),
        ("if (block.thread < 16) block.shfl_xor(1.0f, 1); else block.sync();", "deadlocked"),
        ("if (block.thread == 5) return; block.sum(1.0f);", "after some had returned"),
        ("if (block.thread == 40) return; block.warp_sum(1.0f);", "after some had returned"),
        (
            "if (block.thread == 63) return; block.last_block(Ticket(nullptr), 0, 1);",
            "after some had returned",
        ),
    ],
)
def test_a_wrong_use_of_collectives_is_reported_and_does_not_hang(tmp_path, body, said):
    program = Program({"y": np.zeros(1, np.float32)})
    program.kernel("wrong", body, block=64).launch("wrong", program.pointer("y"), grid=3, block=64)
    with pytest.raises(BackendError, match=said) as error:
        run(program, tmp_path)
    assert "step.wrong" in str(error.value)
    assert error.value.diagnostics[0].code == "FH563"


PHASES = """
  const f32 scale = block.index + 1;
  block.phase(40, 3, [&](int row, int col) {
    y[(block.index * 40 + row) * 3 + col] = v[row * 3 + col] * scale;
  });
  if (!block.last_block(ticket, 0, block.count)) return;
  block.phase(120, [&](int k) {
    f32 sum = 0.0f;
    for (int b = 0; b < block.count; ++b) sum += load_fresh(y, b * 120 + k);
    z[k] = sum;
  });
"""
ARGUMENTS = """
  const auto v = w.in<f32>(0);
  const auto y = w.out<f32>(1), z = w.out<f32>(2);
  const Ticket ticket = w.ticket(3);
"""


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("threads", ["one", "fibers"])
def test_phases_visit_every_index_once_and_the_last_block_sees_all_of_them(tmp_path, threads, debug):
    """One call a block and a fiber a thread do the same."""
    v = RNG.integers(-9, 9, 120).astype(np.float32)
    empty = np.full(240, np.nan, np.float32)
    program = Program({"v": v, "y": empty, "z": empty[:120].copy(), "ticket": np.zeros(1, np.uint32)})
    program.kernel("phases", PHASES, ARGUMENTS, 64, threads)
    program.launch(
        "phases",
        program.pointer("v"),
        program.pointer("y", "write"),
        program.pointer("z", "write"),
        program.pointer("ticket", "update"),
        grid=2,
        block=64,
    )
    found = run(program, tmp_path, debug, steps=2)
    assert (found["y"] == np.concatenate([v, 2 * v])).all()
    assert (found["z"] == 3 * v).all()
    assert found["ticket"] == 0

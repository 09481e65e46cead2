"""Philox4x32-10 against the published vectors, and what is drawn from it."""

import numpy as np
import pytest
from host_programs import Program, run

VECTORS = [  # Random123, kat_vectors: counter, key, output
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text):
    return np.array([int(w, 16) for w in text.split()], np.uint32)


def test_the_published_vectors(tmp_path):
    counters, keys, expected = (np.stack([words(v[i]) for v in VECTORS]) for i in range(3))
    program = Program({"c": counters.ravel(), "k": keys.ravel(), "y": np.zeros(12, np.uint32)})
    program.kernel(
        "vectors",
        """for (i64 r : block.elements(3)) {
          const u32x4 v = philox({c[4*r], c[4*r + 1], c[4*r + 2], c[4*r + 3]}, k[2*r], k[2*r + 1]);
          y[4*r] = v.x; y[4*r + 1] = v.y; y[4*r + 2] = v.z; y[4*r + 3] = v.w;
        }""",
        "const auto c = w.in<u32>(0); const auto k = w.in<u32>(1); const auto y = w.out<u32>(2);",
        threads="loop",
    )
    program.launch("vectors", program.pointer("c"), program.pointer("k"), program.pointer("y", "write"))
    assert (run(program, tmp_path)["y"].reshape(3, 4) == expected).all()


def draws(tmp_path, expression, n, dtype, seed=7, step=1, launch=99):
    ctype = {np.float32: "f32", np.int64: "i64", np.uint32: "u32"}[dtype]
    program = Program(
        {"seed": np.array([seed], np.int64), "step": np.array([step], np.int64), "y": np.zeros(n, dtype)}
    )
    program.kernel(
        "draw",
        f"for (i64 i : block.elements(n)) y[i] = {expression};",
        f"const auto rng = w.rng(0); const auto y = w.out<{ctype}>(3); const i64 n = w.integer(4);",
        threads="loop",
    )
    program.launch(
        "draw",
        program.pointer("seed"),
        program.pointer("step"),
        launch,
        program.pointer("y", "write"),
        n,
        grid=8,
    )
    return run(program, tmp_path)["y"]


def test_uniform_numbers_lie_below_one_and_are_spread_evenly(tmp_path):
    u = draws(tmp_path, "rng.uniform(i, 0)", 1 << 20, np.float32)
    assert u.min() >= 0
    assert u.max() < 1
    counts = np.histogram(u, 64, (0, 1))[0]
    expected = (1 << 20) / 64
    assert ((counts - expected) ** 2 / expected).sum() < 110  # chi squared, 63 degrees of freedom: p = 2e-4


def test_normal_numbers_have_the_moments_of_a_normal(tmp_path):
    z = draws(tmp_path, "rng.normal(i, 0)", 1 << 20, np.float32).astype(np.float64)
    assert abs(z.mean()) < 0.004
    assert abs(z.var() - 1) < 0.006
    assert abs((z**4).mean() - 3) < 0.04
    assert np.abs(z).max() < 5.8


@pytest.mark.parametrize("n", [1, 3, 10, 2**40 + 1])
def test_below_reaches_every_value_and_no_other(tmp_path, n):
    k = draws(tmp_path, f"rng.below(i, 0, {n}LL)", 4096, np.int64)
    assert k.min() >= 0
    assert k.max() < n
    if n <= 10:
        assert set(k) == set(range(n))


def test_seed_step_launch_draw_and_high_elements_each_give_other_numbers(tmp_path):
    base = draws(tmp_path / "base", "rng.bits(i, 0).x", 64, np.uint32)
    others = [
        draws(tmp_path / "seed", "rng.bits(i, 0).x", 64, np.uint32, seed=7 + 2**40),
        draws(tmp_path / "step", "rng.bits(i, 0).x", 64, np.uint32, step=2),
        draws(tmp_path / "launch", "rng.bits(i, 0).x", 64, np.uint32, launch=98),
        draws(tmp_path / "draw", "rng.bits(i, 1).x", 64, np.uint32),
        draws(tmp_path / "high", "rng.bits(i + (1LL << 33), 0).x", 64, np.uint32),
    ]
    assert all((base != other).mean() > 0.9 for other in others)
    assert (base == draws(tmp_path / "again", "rng.bits(i, 0).x", 64, np.uint32)).all()

"""Elementary functions of the prelude: errors over f32 bit patterns against NumPy, and special values."""

import ctypes
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from host_programs import Program, run

from foxhunt.backend.host_build import build_library

FUNCTIONS = {
    "exp_": np.exp, "expm1_": np.expm1, "log_": np.log, "log1p_": np.log1p, "tanh_": np.tanh,
    "sin_": np.sin, "cos_": np.cos,
}  # fmt: skip
LIMITS = dict.fromkeys(FUNCTIONS, 2.0)
STRIDE = 997  # every 997th bit pattern here; `python tests/host/test_math.py 1` measures all 2^32


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("math"))


def build(folder):
    program = Program({"x": np.zeros(1, np.float32)})
    for name in (*FUNCTIONS, "sigmoid_", "softplus_", "elu_", "cos_turns_"):
        program.kernel(
            f"math_{name}",
            f"for (i64 i : block.elements(n)) y[i] = {name}(x[i]);",
            "const auto x = w.in<f32>(0); const auto y = w.out<f32>(1); const i64 n = w.integer(2);",
            threads="loop",
        )
        program.launch(f"math_{name}", program.pointer("x"), program.pointer("x"), 1)
    return ctypes.CDLL(str(build_library(program.write_to(folder), program.sources)))


def call(library, name, x):
    y = np.empty_like(x)
    words = np.array([x.ctypes.data, y.ctypes.data, x.size, 1], np.uint64)
    counts = np.array([x.size, x.size, 0, 0], np.int64)
    one = ctypes.c_longlong(1)
    getattr(library, f"math_{name}")(
        ctypes.c_void_p(words.ctypes.data), ctypes.c_void_p(counts.ctypes.data), ctypes.c_longlong(0), one
    )
    return y


def ulps(y, exact):
    """Distance of y from the exact value in units of the last place; inf where only one of them is NaN."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        unit = np.maximum(
            np.abs(np.spacing(np.minimum(np.abs(rounded), np.finfo(np.float32).max))), 2.0**-149
        )
        distance = np.abs(y.astype(np.float64) - exact.astype(np.float64)) / unit
        distance[(y == rounded) | (np.isnan(y) & np.isnan(rounded))] = 0
        # The next value after the largest finite one counts as infinity.
        over = np.isinf(y) != np.isinf(rounded)
        nearly = np.where(np.isinf(y), np.abs(exact), np.abs(y)) > 3.40282e38
        distance[over & nearly] = 1
        distance[over & ~nearly] = np.inf
        distance[np.isnan(y) != np.isnan(rounded)] = np.inf
    return distance


def worst(library, name, start, stop, stride):
    bits = np.arange(start, stop, stride, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name](x.astype(np.float64))
    distance = ulps(call(library, name, x), exact)
    at = int(distance.argmax())
    return float(distance[at]), float(x[at])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_within_two_ulp_over_all_of_f32(library, name):
    error, at = worst(library, name, 0, 2**32, STRIDE)
    assert error <= LIMITS[name], f"{name}({at!r}) is off by {error} ulp"


INF, NAN, DENORMAL = np.inf, np.nan, 1e-40
SPECIAL = {
    "exp_": [(0, 1), (-0.0, 1), (89, INF), (INF, INF), (-104.5, 0), (-INF, 0), (NAN, NAN), (DENORMAL, 1)],
    "expm1_": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -1), (NAN, NAN), (DENORMAL, DENORMAL), (-30, -1)],
    "log_": [
        (1, 0),
        (0, -INF),
        (-0.0, -INF),
        (-1, NAN),
        (-DENORMAL, NAN),
        (INF, INF),
        (-INF, NAN),
        (NAN, NAN),
    ],
    "log1p_": [(0, 0), (-0.0, -0.0), (-1, -INF), (-2, NAN), (INF, INF), (NAN, NAN), (DENORMAL, DENORMAL)],
    "tanh_": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (20, 1), (NAN, NAN), (-DENORMAL, -DENORMAL)],
    "sin_": [(0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (-DENORMAL, -DENORMAL)],
    "cos_": [(0, 1), (-0.0, 1), (INF, NAN), (NAN, NAN), (DENORMAL, 1)],
    "elu_": [
        (89, 89),
        (1e30, 1e30),
        (-0.0, -0.0),
        (-INF, -1),
        (INF, INF),
        (NAN, NAN),
        (-DENORMAL, -DENORMAL),
    ],
    "sigmoid_": [(0, 0.5), (INF, 1), (-INF, 0), (NAN, NAN), (100, 1)],
    "softplus_": [(INF, INF), (-INF, 0), (NAN, NAN), (100, 100)],
    "cos_turns_": [(0, 1), (0.25, 0), (0.5, -1), (0.75, 0), (0.125, np.sqrt(0.5))],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_are_exact(library, name):
    x, expected = np.array(SPECIAL[name], np.float32).T.copy()
    y = call(library, name, x)
    nan = np.isnan(expected)
    if name == "cos_turns_":
        assert np.abs(y) == pytest.approx(np.abs(expected), abs=1e-7)
    else:
        assert (y[~nan].view(np.uint32) == expected[~nan].view(np.uint32)).all()
    assert (y[nan].view(np.uint32) == 0x7FFFFFFF).all()  # the NaN of CUDA arithmetic, so that bits agree


def test_sine_holds_where_the_argument_is_nearest_to_a_multiple_of_half_pi(library):
    hard = np.ldexp(np.float32(16367173), 72).astype(np.float32)  # the worst single-precision argument
    x = np.array([hard, -hard, 11 * np.pi, 2**15, 2**15 - 0.0625, 3.4e38, 1e22], np.float32)
    for name in ("sin_", "cos_"):
        assert ulps(call(library, name, x), FUNCTIONS[name](x.astype(np.float64))).max() <= 2


@pytest.mark.parametrize(("name", "dtype"), [("to_i32", np.int32), ("to_i64", np.int64)])
def test_conversions_truncate_saturate_and_take_nan_as_zero(tmp_path, name, dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    edge = np.nextafter(np.float32(high), np.float32(0))  # the largest f32 that fits
    x = np.array([0, -0.9, 0.9, 2.5, -2.5, edge, high, low, INF, -INF, NAN, DENORMAL], np.float32)
    program = Program({"x": x, "y": np.zeros(x.size, dtype)})
    body = f"for (i64 i : block.elements(n)) y[i] = {name}(x[i]);"
    arguments = (
        f"const auto x = w.in<f32>(0); const auto y = w.out<{name[3:]}>(1); const i64 n = w.integer(2);"
    )
    program.kernel("convert", body, arguments, threads="loop")
    program.launch("convert", program.pointer("x"), program.pointer("y", "write"), x.size)
    assert run(program, tmp_path)["y"].tolist() == [0, 0, 0, 2, -2, int(edge), high, low, high, low, 0, 0]


if __name__ == "__main__":  # how `docs` figures are measured: the largest error over every n-th bit pattern
    measured = build(Path(tempfile.mkdtemp()))
    for function in FUNCTIONS:
        parts = [worst(measured, function, s, s + 2**26, int(sys.argv[1])) for s in range(0, 2**32, 2**26)]
        error, at = max(parts)
        print(f"{function} {error:.3f} ulp at {at!r}", flush=True)

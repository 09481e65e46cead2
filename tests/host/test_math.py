"""Elementary functions of the prelude: errors over f32 bit patterns against NumPy, special values, no flush to zero."""

import ctypes
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from host_programs import Program

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
    """Distance of y from the exact value in units of the last place of the f32 result; inf where only one is NaN."""
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


if __name__ == "__main__":  # how `docs` figures are measured: the largest error over every n-th bit pattern
    measured = build(Path(tempfile.mkdtemp()))
    for function in FUNCTIONS:
        parts = [worst(measured, function, s, s + 2**26, int(sys.argv[1])) for s in range(0, 2**32, 2**26)]
        print(function, "%.3f ulp at %r" % max(parts), flush=True)

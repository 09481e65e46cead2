"""First values of parameters: the same bits for the same (seed, name) on every machine.

Each tensor draws from its own Philox stream, keyed by the seed and the SHA-256 of its name, so that adding
a parameter changes no other. Only integer arithmetic, + − × ÷ and sqrt are used, in a fixed order: no libm,
no BLAS.
"""

from __future__ import annotations

from hashlib import sha256
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

POLICIES = ("zeros", "ones", "normal", "he", "glorot", "orthogonal")
NORMAL_DEVIATION = 0.02
_DRAWS = 12  # uniforms summed for one normal: variance 12 · 1/12 = 1, tails end at ±6


def initial(policy: str, shape: tuple[int, ...], seed: int, name: str) -> NDArray[np.float32]:
    """The float32 values of a tensor.

    `normal` has deviation 0.02, `he` sqrt(2 / fan_in), `glorot` sqrt(2 / (fan_in + fan_out)); `orthogonal`
    has orthonormal columns (rows, if it is wider than tall). The last axis is the output: fan_in is the
    product of the others.
    """
    if policy == "zeros":
        return np.zeros(shape, np.float32)
    if policy == "ones":
        return np.ones(shape, np.float32)
    fan_out = shape[-1]
    fan_in = prod(shape[:-1]) if len(shape) > 1 else fan_out
    draws = _normals(prod(shape), seed, name)
    if policy == "orthogonal":
        return _orthogonal(draws, prod(shape[:-1]), fan_out).reshape(shape).astype(np.float32)
    deviations = {
        "normal": NORMAL_DEVIATION,
        "he": sqrt(2 / max(fan_in, 1)),
        "glorot": sqrt(2 / max(fan_in + fan_out, 1)),
    }
    return (draws * deviations[policy]).reshape(shape).astype(np.float32)


def _normals(count: int, seed: int, name: str) -> NDArray[np.float64]:
    """Standard normals [count] as centred sums of uniforms; the sum is of integers, so it is exact."""
    digest = sha256(f"{seed}\n{name}".encode()).digest()
    bits = np.random.Philox(key=int.from_bytes(digest[:16], "little")).random_raw(count * _DRAWS)
    sums = (bits >> np.uint64(11)).astype(np.int64).reshape(count, _DRAWS).sum(axis=1)
    normals: NDArray[np.float64] = sums * 2.0**-53 - _DRAWS / 2
    return normals


def _orthogonal(draws: NDArray[np.float64], rows: int, columns: int) -> NDArray[np.float64]:
    """[rows, columns] by modified Gram–Schmidt."""
    tall = draws.reshape(rows, columns) if rows >= columns else draws.reshape(columns, rows)
    basis = np.ascontiguousarray(tall)
    for j in range(basis.shape[1]):
        rest = np.ascontiguousarray(basis[:, j:])
        norm = np.sqrt(_column_sums(rest[:, :1] * rest[:, :1]))
        unit = rest[:, :1] / norm
        basis[:, j : j + 1] = unit
        if rest.shape[1] > 1:
            later = rest[:, 1:]
            basis[:, j + 1 :] = later - unit * _column_sums(unit * later)
    return basis if rows >= columns else np.ascontiguousarray(basis.T)


def _column_sums(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over the rows [columns], by halving: every partial sum is an elementwise addition."""
    while len(matrix) > 1:
        half = len(matrix) // 2
        folded = matrix[:half] + matrix[half : 2 * half]
        if len(matrix) % 2:
            folded[0] += matrix[-1]
        matrix = folded
    sums: NDArray[np.float64] = matrix[0]
    return sums

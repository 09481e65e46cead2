"""Philox4x32-10 in NumPy, with the counter and key layout of `templates/base/prelude/philox.cuh`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(
    counter: tuple[Words, Words, Words, Words], key: tuple[int, int]
) -> tuple[Words, Words, Words, Words]:
    """Ten rounds on arrays of 32-bit words held in uint64 (Salmon, Moraes, Dror, Shaw 2011)."""
    x, y, z, w = counter
    key0, key1 = key
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * x, np.uint64(0xCD9E8D57) * z
        x, y, z, w = (
            (p1 >> _HALF) ^ y ^ np.uint64(key0),
            p1 & _MASK,
            (p0 >> _HALF) ^ w ^ np.uint64(key1),
            p0 & _MASK,
        )
        key0, key1 = (key0 + 0x9E3779B9) & 0xFFFFFFFF, (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return x, y, z, w


@dataclass(frozen=True)
class Stream:
    """The random numbers of one launch in one step: seed, `foxhunt.step`, hash of the launch's name."""

    seed: int
    step: int
    launch: int

    def bits(self, element: NDArray[np.int64], draw: int) -> tuple[Words, Words, Words, Words]:
        """Four words for each element."""
        index = element.astype(np.uint64)
        high = index >> _HALF
        second = np.uint64(draw) ^ ((high << np.uint64(16)) & _MASK)
        fixed = [np.full_like(index, v & 0xFFFFFFFF) for v in (self.step, self.launch)]
        seed = self.seed & 0xFFFFFFFFFFFFFFFF
        return philox((index & _MASK, second, fixed[0], fixed[1]), (seed & 0xFFFFFFFF, seed >> 32))

    def below(self, element: NDArray[np.int64], draw: int, n: int) -> NDArray[np.int64]:
        """Integers in [0, n), one for each element."""
        x, y, _, _ = self.bits(element, draw)
        return np.array([((int(b) << 32 | int(a)) * n) >> 64 for a, b in zip(x, y, strict=True)], np.int64)

"""The buffers of a plan in ordinary memory: zero-filled, 64-byte aligned, a guard zone on both sides."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from foxhunt.backend.base import INGEST, PUBLISH
from foxhunt.backend.plan import Plan
from foxhunt.diagnostics import BackendError, fail
from foxhunt.dtypes import DTYPES

ALIGNMENT = 64  # bytes
GUARD = 256  # bytes on either side of a buffer
GUARD_BYTE = 0xC5


class HostMemory:
    """Addresses and byte images of a plan's buffers; the storage stays the same until it is dropped."""

    def __init__(self, plan: Plan) -> None:
        """Allocate every buffer. Raises BackendError FH561 when memory is out."""
        self._slabs: dict[str, npt.NDArray[np.uint8]] = {}
        self.bytes: dict[str, npt.NDArray[np.uint8]] = {}
        self.addresses: dict[str, int] = {}
        self._ingest_rows = plan.ingest_rows
        for buffer in plan.buffers:
            self._add(buffer.name, buffer.count * DTYPES[buffer.dtype].size)

    def _add(self, name: str, size: int) -> None:
        try:
            slab = np.zeros(size + 2 * GUARD + ALIGNMENT, np.uint8)
        except MemoryError as error:
            message = f"out of memory for buffer {name} of {size / 2**20:,.0f} MiB"
            raise fail(BackendError, "FH561", message, help="Reduce the dims of its shape.") from error
        start = GUARD + -(slab.ctypes.data + GUARD) % ALIGNMENT
        slab[:start] = slab[start + size :] = GUARD_BYTE
        self._slabs[name] = slab
        self.bytes[name] = slab[start : start + size]
        self.addresses[name] = slab.ctypes.data + start

    def view(self, buffer: str, offset: int, count: int, dtype: str) -> npt.NDArray[Any]:
        """`count` elements from byte `offset`, not a copy."""
        kind = DTYPES[dtype]
        stop = offset + count * kind.size
        if offset < 0 or stop > self.bytes[buffer].size:
            raise ValueError(f"{buffer}: bytes {offset}..{stop} of {self.bytes[buffer].size}")
        return self.bytes[buffer][offset:stop].view(kind.numpy)

    def read(self, buffer: str, offset: int, count: int, dtype: str) -> npt.NDArray[Any]:
        """A copy of `count` elements from byte `offset`."""
        return self.view(buffer, offset, count, dtype).copy()

    def write(self, buffer: str, offset: int, array: npt.NDArray[Any]) -> None:
        """Copy `array` to byte `offset`."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if offset < 0 or offset + data.size > self.bytes[buffer].size:
            raise ValueError(f"{buffer}: bytes {offset}..{offset + data.size} of {self.bytes[buffer].size}")
        self.bytes[buffer][offset : offset + data.size] = data

    def ingest_row(self, row: int) -> npt.NDArray[np.float32]:
        """Row `row` of the ingest ring; empty where the plan has no host slots."""
        if INGEST not in self.bytes:
            return np.zeros(0, np.float32)
        ring = self.bytes[INGEST].view(np.float32)
        width = ring.size // self._ingest_rows
        return ring[row * width : (row + 1) * width]

    def publish_words(self) -> npt.NDArray[np.uint32]:
        """The publish ring."""
        return self.bytes[PUBLISH].view(np.uint32)

    def damaged_guard(self) -> str | None:
        """A buffer beside which something was written, or None."""
        for name, slab in self._slabs.items():
            start = self.addresses[name] - slab.ctypes.data
            stop = start + self.bytes[name].size
            if (slab[:start] != GUARD_BYTE).any() or (slab[stop:] != GUARD_BYTE).any():
                return name
        return None


def copy_rate(threads: int, nbytes: int = 1 << 27, repeats: int = 5) -> float:
    """Bytes a second, read and written ones together, of `threads` copying `nbytes` at once; the best of
    `repeats`.
    """
    source, target = np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    edges = [nbytes * k // threads for k in range(threads + 1)]

    def copy(k: int) -> None:
        np.copyto(target[edges[k] : edges[k + 1]], source[edges[k] : edges[k + 1]])

    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            start = time.perf_counter()
            list(pool.map(copy, range(threads)))
            best = min(best, time.perf_counter() - start)
    return 2 * nbytes / best

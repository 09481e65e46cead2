"""Device memory of one plan: one slab for every buffer, and mapped pinned host memory for the two rings."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foxhunt.backend.base import INGEST, PUBLISH
from foxhunt.backend.plan import Buffer, Plan
from foxhunt.diagnostics import BackendError, FoxhuntError, fail
from foxhunt.dtypes import DTYPES

ALIGNMENT = 256  # bytes; what cudaMalloc itself promises, so that 16-byte vector access always is aligned


class DeviceMemory:
    """Addresses of a plan's buffers, zero-filled. The slab is plain `cudaMalloc`ed memory, never managed."""

    def __init__(self, cupy: Any, plan: Plan) -> None:
        """Allocate everything at once. Raises BackendError FH581 when the device has not that much free."""
        self._runtime = cupy.cuda.runtime
        self._sizes = {b.name: b.count * DTYPES[b.dtype].size for b in plan.buffers}
        offsets, total = _offsets(plan.buffers)
        free, _ = self._runtime.memGetInfo()
        if total > free:
            raise self._oversize(total, free)
        try:
            self._slab = cupy.cuda.Memory(max(total, ALIGNMENT))
        except self._runtime.CUDARuntimeError as error:  # free, but not in one piece
            raise self._oversize(total, free) from error
        self._runtime.memset(self._slab.ptr, 0, max(total, ALIGNMENT))
        self.addresses = {name: self._slab.ptr + offset for name, offset in offsets.items()}
        self.rings: dict[str, npt.NDArray[np.uint8]] = {}
        for name in (INGEST, PUBLISH):
            if name in self._sizes:
                self._map_ring(cupy, name)

    def _map_ring(self, cupy: Any, name: str) -> None:
        runtime, size = self._runtime, self._sizes[name]
        pinned = cupy.cuda.PinnedMemory(max(size, 8), runtime.hostAllocMapped | runtime.hostAllocPortable)
        view = np.frombuffer(cupy.cuda.PinnedMemoryPointer(pinned, 0), np.uint8, size)
        view[:] = 0
        self.rings[name] = view
        self.addresses[name] = pinned.ptr  # unified addressing: the host's pointer is the device's

    def _oversize(self, total: int, free: int) -> FoxhuntError:
        largest = sorted(self._sizes.items(), key=lambda item: -item[1])[:3]
        names = ", ".join(f"{name} {size / 2**20:,.0f} MiB" for name, size in largest)
        return fail(
            BackendError,
            "FH581",
            f"the program needs {total / 2**20:,.0f} MiB of device memory, {free / 2**20:,.0f} MiB are free.",
            help=f"Reduce the dims of the largest buffers: {names}.",
        )

    def read(self, buffer: str, offset: int, count: int, dtype: str) -> npt.NDArray[Any]:
        """A copy of `count` elements from byte `offset`. The caller has synchronised."""
        out = np.empty(count, DTYPES[dtype].numpy)
        source = self._address(buffer, offset, out.nbytes)
        if buffer in self.rings:
            out.view(np.uint8)[:] = self.rings[buffer][offset : offset + out.nbytes]
        elif out.nbytes:
            self._runtime.memcpy(out.ctypes.data, source, out.nbytes, self._runtime.memcpyDeviceToHost)
        return out

    def write(self, buffer: str, offset: int, array: npt.NDArray[Any]) -> None:
        """Copy `array` to byte `offset`, into the same storage that captured graphs use."""
        data = np.ascontiguousarray(array)
        target = self._address(buffer, offset, data.nbytes)
        if buffer in self.rings:
            self.rings[buffer][offset : offset + data.nbytes] = data.reshape(-1).view(np.uint8)
        elif data.nbytes:
            self._runtime.memcpy(target, data.ctypes.data, data.nbytes, self._runtime.memcpyHostToDevice)

    def _address(self, buffer: str, offset: int, nbytes: int) -> int:
        if offset < 0 or offset + nbytes > self._sizes[buffer]:
            raise ValueError(f"{buffer}: bytes {offset}..{offset + nbytes} of {self._sizes[buffer]}")
        return int(self.addresses[buffer]) + offset


def _offsets(buffers: tuple[Buffer, ...]) -> tuple[dict[str, int], int]:
    """Byte offset of each buffer in the slab, rings left out, and the slab's size."""
    offsets: dict[str, int] = {}
    total = 0
    for buffer in buffers:
        if buffer.name not in (INGEST, PUBLISH):
            offsets[buffer.name] = total
            total += -(-buffer.count * DTYPES[buffer.dtype].size // ALIGNMENT) * ALIGNMENT
    return offsets, total

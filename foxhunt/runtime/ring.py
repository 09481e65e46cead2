"""The publish ring: what a step made visible to the host, read without waiting for the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.backend.plan import Plan


@dataclass(frozen=True)
class Snapshot:
    """State as one step published it: slots f32 [isv], counters i64 [n], health u32 [scratch, 2], found i64
    [3], or [0] without a sentinel.
    """

    step: int
    isv: NDArray[np.float32]
    counters: NDArray[np.int64]
    health: NDArray[np.uint32]  # (anomalies, skips) per scratch position, modulo 2³²
    found: NDArray[np.int64]  # the last step with NaN or inf, the first one, how many


class PublishRing:
    """Reader of the ring: `latest` as 64 bits, then equal rows; step k stands in row (k − 1) mod rows."""

    def __init__(
        self,
        words: Callable[[], NDArray[np.uint32]],
        rows: int,
        isv: int,
        counters: int,
        health: int,
        found: int = 0,
    ) -> None:
        """`words` gives the live memory; the other sizes are elements of `isv`, `counters`, `health` and of a
        row of the sentinel.
        """
        self._words, self._rows = words, rows
        self._sizes = (isv, counters, health, found)

    def latest(self) -> int:
        """The number of the newest whole step, 0 before the first."""
        return int(self._words()[:2].view(np.uint64)[0])

    def forget(self) -> None:
        """Say that nothing was published; only while no step is in flight."""
        self._words()[:2] = 0

    def read(self) -> Snapshot | None:
        """The newest whole row: a copy counts only if the writer cannot have come round to it meanwhile."""
        words = self._words()
        size = (len(words) - 2) // self._rows
        while latest := self.latest():
            start = 2 + (latest - 1) % self._rows * size
            row = words[start : start + size].copy()
            if self.latest() - latest < self._rows - 1:
                return self._parse(latest, row)
        return None

    def _parse(self, step: int, row: NDArray[np.uint32]) -> Snapshot:
        isv, counters, health, found = self._sizes
        after_isv = 2 + isv
        after_counters = after_isv + 2 * counters
        after_health = after_counters + health

        def part(start: int, stop: int, dtype: Any) -> NDArray[Any]:
            return np.frombuffer(row[start:stop].tobytes(), dtype)

        return Snapshot(
            step,
            part(2, after_isv, np.float32),
            part(after_isv, after_counters, np.int64),
            part(after_counters, after_health, np.uint32).reshape(-1, 2),
            part(after_health, after_health + 2 * found, np.int64),
        )


def ring_of(plan: Plan, words: Callable[[], NDArray[np.uint32]], found: int) -> PublishRing:
    """The ring of a plan; `found` is 3, or 0 without a sentinel."""
    sizes = {b.name: b.count for b in plan.buffers}
    isv, counters, health = (sizes.get(name, 0) for name in ("isv", "counters", "health"))
    return PublishRing(words, plan.publish_rows, isv, counters, health, found)

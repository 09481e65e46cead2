"""Who touched which bytes of one allocation last: disjoint intervals with a writer and the readers since."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class Intervals:
    """Half-open byte intervals, sorted; bytes that nobody touched are in none.

    Parallel lists, so that finding a place is one bisection. Launches are their numbers.
    """

    def __init__(self) -> None:
        """Nothing touched."""
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._writers: list[int | None] = []
        self._readers: list[list[int]] = []

    def overlapping(self, start: int, stop: int) -> Iterator[tuple[int, int, int | None, list[int]]]:
        """The touched parts of [start, stop): start, stop, last writer, readers since that write."""
        k = bisect_right(self._stops, start)
        while k < len(self._starts) and self._starts[k] < stop:
            low, high = max(start, self._starts[k]), min(stop, self._stops[k])
            yield low, high, self._writers[k], self._readers[k]
            k += 1

    def write(self, start: int, stop: int, launch: int) -> None:
        """`launch` becomes the last writer of [start, stop), read by nobody yet."""
        low, high = self._split(start), self._split(stop)
        self._replace(low, high, [(start, stop, launch, [])])

    def read(self, start: int, stop: int, launch: int) -> None:
        """`launch` reads [start, stop)."""
        low, high = self._split(start), self._split(stop)
        parts: list[tuple[int, int, int | None, list[int]]] = []
        position = start
        for k in range(low, high):
            if position < self._starts[k]:
                parts.append((position, self._starts[k], None, [launch]))
            readers = self._readers[k]
            if not readers or readers[-1] != launch:
                readers.append(launch)
            position = self._stops[k]
            parts.append((self._starts[k], position, self._writers[k], readers))
        if position < stop:
            parts.append((position, stop, None, [launch]))
        if len(parts) != high - low:
            self._replace(low, high, parts)

    def _split(self, at: int) -> int:
        """The number of intervals that end at or before `at`, after cutting the one that contains it."""
        k = bisect_left(self._stops, at)
        if k < len(self._starts) and self._stops[k] == at:
            return k + 1
        if k < len(self._starts) and self._starts[k] < at:
            readers = list(self._readers[k])
            self._starts.insert(k + 1, at)
            self._stops.insert(k, at)
            self._writers.insert(k, self._writers[k])
            self._readers.insert(k, readers)
            return k + 1
        return k

    def _replace(self, low: int, high: int, parts: list[tuple[int, int, int | None, list[int]]]) -> None:
        self._starts[low:high] = [p[0] for p in parts]
        self._stops[low:high] = [p[1] for p in parts]
        self._writers[low:high] = [p[2] for p in parts]
        self._readers[low:high] = [p[3] for p in parts]

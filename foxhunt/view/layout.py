"""Where the launches of a step stand in a drawing: rows by level, folded into columns like a newspaper.

Every edge points down its column or to a later one. Within a column an edge that passes rows gets a place
in each of them, so that it runs between the boxes; edges between columns use the gutters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from foxhunt.schedule.dag import Pair, ranks

ROW_GAP, BOX_GAP, GUTTER, MARGIN = 34.0, 26.0, 56.0, 24.0
PASSING = 14.0
"""The width that an edge takes in a row that it passes."""
ROW_BOXES = 6
"""Boxes side by side; a level of more becomes several rows."""
ASPECT = 1.5
"""Width to height that the number of columns aims at."""
SWEEPS = 4


@dataclass(frozen=True)
class Box:
    """A launch's rectangle."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """Boxes by launch, a polyline of points an edge, and the size of the whole."""

    boxes: tuple[Box, ...]
    paths: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


def layout(sizes: Sequence[tuple[float, float]], edges: Sequence[Pair], lanes: Sequence[int]) -> Layout:
    """Places for boxes of these (width, height) with these edges; a later lane stands further right.

    Equal input gives equal output. Linear in boxes and edges, but for sorting rows, and for the places that
    edges take in rows of their own column.
    """
    count = len(sizes)
    level = ranks([str(i) for i in range(count)], edges).level
    rows = _rows(level, lanes)
    columns = _fold(rows, sizes)
    boxes: list[Box] = [Box(0, 0, 0, 0)] * count
    paths: dict[int, tuple[tuple[float, float], ...]] = {}
    left, bottom = MARGIN, MARGIN
    spans: list[tuple[float, float]] = []
    column_of: dict[int, int] = {n: c for c, column in enumerate(columns) for row in column for n in row}
    for c, column in enumerate(columns):
        inside = [k for k, (a, b) in enumerate(edges) if column_of[a] == c == column_of[b]]
        placed = _Column(column, sizes, [edges[k] for k in inside], lanes)
        right = left + placed.width
        for node, x in placed.places.items():
            boxes[node] = Box(left + x, placed.top[node], *sizes[node])
        for k, bends in zip(inside, placed.bends, strict=True):
            a, b = edges[k]
            paths[k] = (_out(boxes[a]), *((left + x, y) for x, y in bends), _into(boxes[b]))
        spans.append((left, right))
        left, bottom = right + GUTTER, max(bottom, placed.height)
    for k, (a, b) in enumerate(edges):
        if k not in paths:
            paths[k] = _across(boxes[a], boxes[b], spans[column_of[a]], spans[column_of[b]], k)
    return Layout(
        tuple(boxes), tuple(paths[k] for k in range(len(edges))), left - GUTTER + MARGIN, bottom + MARGIN
    )


def _rows(level: Sequence[int], lanes: Sequence[int]) -> list[list[int]]:
    """Nodes by level; a wide level takes several rows, which do not depend on one another."""
    levels: dict[int, list[int]] = defaultdict(list)
    for node, at in enumerate(level):
        levels[at].append(node)
    rows = []
    for at in sorted(levels):
        nodes = sorted(levels[at], key=lambda n: (lanes[n], n))
        rows += [nodes[k : k + ROW_BOXES] for k in range(0, len(nodes), ROW_BOXES)]
    return rows


def _fold(rows: Sequence[list[int]], sizes: Sequence[tuple[float, float]]) -> list[list[list[int]]]:
    """The rows in columns of about equal height, as many as bring the drawing near its aspect."""
    heights = [max(sizes[n][1] for n in row) + ROW_GAP for row in rows]
    width = max((sum(sizes[n][0] + BOX_GAP for n in row) for row in rows), default=1.0) + GUTTER
    total = sum(heights)
    count = max(1, round((ASPECT * total / width) ** 0.5))
    columns: list[list[list[int]]] = [[]]
    filled = 0.0
    for row, height in zip(rows, heights, strict=True):
        if columns[-1] and filled + height / 2 > total / count * len(columns) and len(columns) < count:
            columns.append([])
        columns[-1].append(row)
        filled += height
    return columns


class _Column:
    """The rows of one column: an order in each row that crosses few edges, then places near neighbours."""

    def __init__(
        self,
        rows: Sequence[Sequence[int]],
        sizes: Sequence[tuple[float, float]],
        edges: Sequence[Pair],
        lanes: Sequence[int],
    ) -> None:
        self.rows: list[list[int]] = [list(row) for row in rows]
        self.widths = {n: sizes[n][0] + BOX_GAP for row in rows for n in row}
        self._lanes = lanes
        self._passing = 0
        self.top: dict[int, float] = {}
        at = {n: r for r, row in enumerate(rows) for n in row}
        y = MARGIN
        tops = []
        for row in rows:
            tops.append(y)
            for n in row:
                self.top[n] = y
            y += max(sizes[n][1] for n in row) + ROW_GAP
        self.height = y - ROW_GAP
        tops.append(y)
        self.before: dict[int, list[int]] = defaultdict(list)
        self.after: dict[int, list[int]] = defaultdict(list)
        chains = [self._chain(a, b, at) for a, b in edges]
        for _ in range(SWEEPS):
            self._sweep(range(1, len(self.rows)), self.before)
            self._sweep(range(len(self.rows) - 2, -1, -1), self.after)
        centres = self._centres()
        low = min((c - self.widths[n] / 2 for n, c in centres.items()), default=0.0)
        high = max((c + self.widths[n] / 2 for n, c in centres.items()), default=0.0)
        self.width = high - low
        self.places = {n: centres[n] - low - sizes[n][0] / 2 for row in rows for n in row}
        self.bends = [
            [
                p
                for n, r in chain
                for p in ((centres[n] - low, tops[r]), (centres[n] - low, tops[r + 1] - ROW_GAP))
            ]
            for chain in chains
        ]

    def _chain(self, a: int, b: int, at: dict[int, int]) -> list[tuple[int, int]]:
        """A passing place in every row between two boxes; places are numbered below zero."""
        chain = []
        last = a
        for r in range(at[a] + 1, at[b]):
            self._passing += 1
            place = -self._passing
            self.widths[place] = PASSING
            self.rows[r].append(place)
            self._join(last, place)
            chain.append((place, r))
            last = place
        self._join(last, b)
        return chain

    def _join(self, a: int, b: int) -> None:
        self.after[a].append(b)
        self.before[b].append(a)

    def _sweep(self, order: Sequence[int], neighbours: dict[int, list[int]]) -> None:
        """Sorts each row by the mean position of its neighbours in the row before; lanes stay apart."""
        position = {n: k / len(row) for row in self.rows for k, n in enumerate(row)}

        def key(n: int) -> tuple[int, float, float]:
            near = [position[m] for m in neighbours[n]]
            lane = self._lanes[n] if n >= 0 else 0
            return lane, sum(near) / len(near) if near else position[n], position[n]

        for r in order:
            row = sorted(self.rows[r], key=key)
            self.rows[r] = row
            position.update((n, k / len(row)) for k, n in enumerate(row))

    def _centres(self) -> dict[int, float]:
        centres: dict[int, float] = {}
        for row in self.rows:
            x = -sum(self.widths[n] for n in row) / 2
            for n in row:
                centres[n] = x + self.widths[n] / 2
                x += self.widths[n]
        for k in range(2 * SWEEPS):
            rows = self.rows if k % 2 == 0 else self.rows[::-1]
            near = self.before if k % 2 == 0 else self.after
            for row in rows:
                wanted = [
                    sum(centres[m] for m in near[n]) / len(near[n]) if near[n] else centres[n] for n in row
                ]
                centres.update(zip(row, spread(wanted, [self.widths[n] for n in row]), strict=True))
        return centres


def spread(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Centres nearest to the wanted ones (least squares) for things in this order that do not overlap.

    >>> spread([0.0, 0.0], [10.0, 10.0]), spread([0.0, 50.0], [10.0, 10.0])
    ([-5.0, 5.0], [0.0, 50.0])
    """
    offsets = [0.0]
    for a, b in pairwise(widths):
        offsets.append(offsets[-1] + (a + b) / 2)
    blocks: list[tuple[float, int]] = []  # mean and size of runs that touch
    for want, offset in zip(wanted, offsets, strict=False):
        mean, size = want - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, many = blocks.pop()
            mean, size = (before * many + mean * size) / (many + size), many + size
        blocks.append((mean, size))
    starts = [mean for mean, size in blocks for _ in range(size)]
    return [start + offset for start, offset in zip(starts, offsets, strict=False)]


def _out(box: Box) -> tuple[float, float]:
    return box.x + box.width / 2, box.y + box.height


def _into(box: Box) -> tuple[float, float]:
    return box.x + box.width / 2, box.y


def _across(
    a: Box, b: Box, mine: tuple[float, float], yours: tuple[float, float], k: int
) -> tuple[tuple[float, float], ...]:
    """From one column to a later one, through the gutters and, between far columns, above everything."""
    shift = (k % 7 - 3) * 3.0
    start, end = _out(a), _into(b)
    leave, enter = mine[1] + GUTTER / 2 + shift, yours[0] - GUTTER / 2 + shift
    low, high = start[1] + ROW_GAP / 2, end[1] - ROW_GAP / 2
    points = [start, (start[0], low), (leave, low)]
    if enter - leave > GUTTER:
        points += [(leave, MARGIN / 2 + shift), (enter, MARGIN / 2 + shift)]
    points += [(enter, high), (end[0], high), end]
    return tuple(points)

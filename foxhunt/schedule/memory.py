"""Places in the arena for everything that lives within one step.

Two allocations may share bytes only if every launch that touches one reaches, in the final graph, every
launch that touches the other; tasks of one device launch run side by side, so they never do. Allocations
are placed by their first launch. A run of bytes remembers its last occupant; because "comes wholly before"
is transitive, a newcomer that may follow the last occupant may follow all earlier ones, and only that one
is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from foxhunt.diagnostics import Location, SpecError, fail
from foxhunt.ir.types import Allocation, Lifetime
from foxhunt.schedule.dag import bits, descendants
from foxhunt.schedule.touch import touched
from foxhunt.schedule.types import ScheduledStep

ALIGNMENT = 256
ARENA_LIMIT = 1 << 38
"""256 GiB: more than a device has; a program past it is a mistake in its dims."""


def place(
    allocations: Iterable[Allocation],
    steps: Sequence[ScheduledStep],
    limit: int = ARENA_LIMIT,
    declared: Mapping[str, Location] | None = None,
) -> tuple[dict[str, int], int]:
    """Byte offsets of all step allocations, and the arena's size. Raises FH304 past `limit`, naming the
    largest, where the largest of those that are `declared` is.
    """
    sizes = {a.name: _aligned(a.nbytes) for a in allocations if a.lifetime is Lifetime.STEP}
    lives = _lives(sizes, steps)
    arena = _Arena()
    offsets = {name: arena.put(index, sizes[name], life) for index, (name, life) in enumerate(lives)}
    if arena.size > limit:
        raise _overflow(sizes, arena.size, limit, declared or {})
    return dict(sorted(offsets.items())), arena.size


def _aligned(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT


def _overflow(
    sizes: Mapping[str, int], total: int, limit: int, declared: Mapping[str, Location]
) -> SpecError:
    by_size = sorted(sizes, key=lambda n: (-sizes[n], n))
    error = fail(
        SpecError,
        "FH304",
        f"the step buffers need {total} bytes of arena, more than {limit}",
        at=next((declared[n] for n in by_size if n in declared), None),
        help="the largest: " + ", ".join(f"{n} ({sizes[n]} bytes)" for n in by_size[:3]),
    )
    assert isinstance(error, SpecError)
    return error


@dataclass
class _Life:
    """Seen from one allocation: which earlier-numbered ones are over before it starts, and in which steps
    it is used.
    """

    over: int = 0
    steps: int = 0


def _lives(sizes: Mapping[str, int], steps: Sequence[ScheduledStep]) -> list[tuple[str, _Life]]:
    """Allocations by first use (steps by name), each with its life; unused ones come last and share
    nothing.
    """
    ordered = sorted(steps, key=lambda s: s.name)
    uses = [_uses(sizes, step) for step in ordered]
    numbers: dict[str, int] = {}
    for use in uses:
        for name in sorted(use, key=lambda n: (use[n][0], -sizes[n], n)):
            numbers.setdefault(name, len(numbers))
    for name in sorted(sizes):
        numbers.setdefault(name, len(numbers))
    lives = [_Life(over=(1 << len(numbers)) - 1) for _ in numbers]
    for s, (step, use) in enumerate(zip(ordered, uses, strict=True)):
        here = _mask(numbers[n] for n in use)
        done = _done_before(step, use, numbers)
        for name, nodes in use.items():
            over = done[nodes[0]]
            for node in nodes[1:]:
                over &= done[node]
            life = lives[numbers[name]]
            life.over &= over | ~here
            life.steps |= 1 << s
    for life in lives:
        if not life.steps:
            life.over, life.steps = 0, (1 << len(ordered)) - 1
    return list(zip(numbers, lives, strict=True))


def _mask(positions: Iterable[int]) -> int:
    """An integer with these bits set, in linear time."""
    digits = bytearray()
    for p in positions:
        if p >> 3 >= len(digits):
            digits.extend(bytes((p >> 3) + 1 - len(digits)))
        digits[p >> 3] |= 1 << (p & 7)
    return int.from_bytes(digits, "little")


def _uses(sizes: Mapping[str, int], step: ScheduledStep) -> dict[str, list[int]]:
    """For each step allocation the positions of the device launches that touch it, ascending."""
    use: dict[str, list[int]] = defaultdict(list)
    for node, launch in enumerate(step.launches):
        for name in sorted({t.base for t in touched(launch)}):
            if name in sizes:
                use[name].append(node)
    return use


def _done_before(
    step: ScheduledStep, use: Mapping[str, Sequence[int]], numbers: Mapping[str, int]
) -> list[int]:
    """For each launch the allocations (as bits) whose every use strictly precedes it in the graph."""
    index = {n.name: i for i, n in enumerate(step.launches)}
    edges = [(index[e.before], index[e.after]) for e in step.edges]
    count = len(step.launches)
    reach = descendants(count, edges)
    starts: list[int] = [0] * count  # allocations that become free at this launch, seen from the graph
    for name, nodes in use.items():
        free = reach[nodes[0]]
        for node in nodes[1:]:
            free &= reach[node]
        while free:  # its first members; everything they reach inherits
            node = (free & -free).bit_length() - 1
            starts[node] |= 1 << numbers[name]
            free &= ~(reach[node] | (1 << node))
    done = starts
    after: dict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        after[a].append(b)
    for node in range(count):
        for then in after[node]:
            done[then] |= done[node]
    return done


@dataclass
class _Run:
    """Bytes [start, start + size) and the allocations that no other has followed there yet."""

    start: int
    size: int
    occupants: int


@dataclass
class _Arena:
    """Runs of bytes with their last occupants; grows at the end."""

    size: int = 0
    lives: list[_Life] = field(default_factory=list)
    runs: dict[int, _Run] = field(default_factory=dict)
    homes: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    current: int = 0  # allocations that occupy a run

    def put(self, number: int, size: int, life: _Life) -> int:
        """The offset for allocation `number`: the smallest row of adjacent runs that fits, else the arena's
        end.
        """
        self.lives.append(life)
        best: list[_Run] = []
        best_size = 0
        for row in self._free_rows(life):
            total = sum(run.size for run in row)
            if total >= size and (not best or total < best_size):
                best, best_size = row, total
        if not best:
            tail = self._free_tail(life)
            best, best_size = tail, sum(run.size for run in tail)
            if best_size < size:
                end = _Run(self.size, size - best_size, 0)
                self.runs[end.start] = end
                self.size += end.size
                best = [*tail, end]
        return self._occupy(best, size, number)

    def _free_runs(self, life: _Life) -> list[_Run]:
        starts: list[int] = []
        for occupant in bits(self.current & life.over):
            for start in self.homes[occupant]:
                if not self.runs[start].occupants & ~life.over:
                    starts.append(start)
        return [self.runs[s] for s in sorted(set(starts))]

    def _free_rows(self, life: _Life) -> Iterable[list[_Run]]:
        row: list[_Run] = []
        for run in self._free_runs(life):
            if row and row[-1].start + row[-1].size != run.start:
                yield row
                row = []
            row.append(run)
        if row:
            yield row

    def _free_tail(self, life: _Life) -> list[_Run]:
        row = (list(self._free_rows(life)) or [[]])[-1]
        return row if row and row[-1].start + row[-1].size == self.size else []

    def _occupy(self, row: Sequence[_Run], size: int, number: int) -> int:
        offset = row[0].start
        left = size
        for run in row:
            if not left:
                break
            if run.size > left:  # keep the rest as it was
                rest = _Run(run.start + left, run.size - left, run.occupants)
                run.size = left
                self.runs[rest.start] = rest
                for occupant in bits(rest.occupants):
                    self.homes[occupant].add(rest.start)
            self._follow(run, number)
            left -= run.size
        return offset

    def _follow(self, run: _Run, number: int) -> None:
        mine = self.lives[number].steps
        for occupant in list(bits(run.occupants)):
            if not self.lives[occupant].steps & ~mine:  # wholly followed
                run.occupants ^= 1 << occupant
                self.homes[occupant].discard(run.start)
                if not self.homes[occupant]:
                    self.current &= ~(1 << occupant)
        run.occupants |= 1 << number
        self.homes[number].add(run.start)
        self.current |= 1 << number

"""What the sentinel of each step reads, and what a step has to keep so that its update can be undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from foxhunt.dtypes import F32
from foxhunt.ir.access import traffic
from foxhunt.ir.intervals import Intervals
from foxhunt.ir.types import Access, Launch, Lifetime, Program, Range, Step, Watched

SHARE = 50
"""Beyond what it must, the sentinel reads a fiftieth of the bytes that a step's launches name, or `LEAST`."""
LEAST = 1 << 16
MOST = 192
"""Rows of one sentinel: each has two argument words, and a device launch takes about 500."""
UNDOING = ("skip-update", "stop")
"""The policies that put back what a step has updated."""


@dataclass(frozen=True)
class _Piece:
    """A part of an output that stands at the end of its step, and the launch that wrote it last."""

    launch: int  # place in the step
    order: int  # among all writes of the step
    range: Range
    updates: bool  # its writer changed what stood there
    before: tuple[str, ...] = ()  # launches that had written it, where the last one changed it


def watched(program: Program) -> tuple[Watched, ...]:
    """The outputs that the sentinels of a laid-out program read, step by step in program order, from row 1
    on; none with `health: {policy: off}`.

    They are what declared launches have left in f32 ranges at the end of the step: all that the policy may
    put back, and of the rest the smallest first. Observations are left out, since the applicator refuses what
    is not finite, and so are slots and what `ignore` names; moments too, which follow from gradients, unless
    they may be put back.
    """
    if policy(program) == "off":
        return ()
    chosen = [(s, p) for s in program.steps for p in _chosen(program, s)]
    return tuple(
        Watched(s.name, s.launches[p.launch].name, p.range, row, p.before, p.updates)
        for row, (s, p) in enumerate(chosen, start=1)
    )


def policy(program: Program) -> str:
    """What happens when a value is not finite: report, skip-update, stop or off."""
    return program.source.health.policy if program.source.health is not None else "report"


def ignored_names(program: Program) -> tuple[str, ...]:
    """What the sentinels leave out, sorted."""
    return tuple(sorted(program.source.health.ignore)) if program.source.health is not None else ()


def _chosen(program: Program, step: Step) -> list[_Piece]:
    moments = {b for b, suffix in _trained(program).items() if suffix}
    spans = kept(program, step)
    found = [p for s in _standing(step.launches) for p in _without(s, program.ignored)]
    must = [p for p in found if _inside(p.range, spans)]
    rest = [p for p in found if p.range.base not in moments and not _inside(p.range, spans)]
    if len(must) > MOST:
        must = _joined(must, step.launches)
    left = max(LEAST, sum(map(traffic, step.launches)) // SHARE)
    rest.sort(key=lambda p: (p.range.stop - p.range.start, p.order))
    for p in rest[: max(0, MOST - len(must))]:
        left -= p.range.stop - p.range.start
        if left < 0:
            break
        must.append(p)
    must.sort(key=lambda p: (p.order, p.range.start))
    return [_with_history(p, step.launches) for p in must]


def _standing(launches: Sequence[Launch]) -> list[_Piece]:
    """What each launch has left of f32 outputs at the end, after all that later ones wrote over it."""
    writes = _writes(launches)
    last: dict[str, Intervals] = {}
    for order, (_, r, _) in enumerate(writes):
        last.setdefault(r.base, Intervals()).write(r.start, r.stop, order)
    pieces = []
    for base, intervals in last.items():
        end = max(r.stop for _, r, _ in writes if r.base == base)
        for start, stop, writer, _ in intervals.overlapping(0, end):
            assert writer is not None, "nothing here is only read"
            k, r, access = writes[writer]
            if r.dtype is F32 and base not in ("isv", "scratch"):
                pieces.append(_Piece(k, writer, _part(r, start, stop), access is Access.UPDATE))
    return sorted(pieces, key=lambda p: (p.order, p.range.start))


def _writes(launches: Sequence[Launch]) -> list[tuple[int, Range, Access]]:
    return [
        (k, r, a.access)
        for k, n in enumerate(launches)
        for a in n.arguments
        for r in (a.ranges if a.access is not Access.READ else ())
        if r.count
    ]


def _with_history(piece: _Piece, launches: Sequence[Launch]) -> _Piece:
    """With the launches that wrote it before, back to the first that wrote all of it without reading it."""
    if not piece.updates or piece.before:
        return piece
    before: list[str] = []
    found = piece.range
    for k, r, access in reversed(_writes(launches)[: piece.order]):
        if r.base == found.base and r.start < found.stop and found.start < r.stop:
            before.append(launches[k].name)
            if access is Access.WRITE and r.start <= found.start and found.stop <= r.stop:
                break
    names = tuple(n for n in dict.fromkeys(reversed(before)) if n != launches[piece.launch].name)
    return _Piece(piece.launch, piece.order, found, True, names)


def _part(whole: Range, start: int, stop: int) -> Range:
    """The bytes [start, stop) of a range, under its own name if that is all of it."""
    size = whole.dtype.size
    if (start, stop) == (whole.start, whole.stop):
        return whole
    low, high = (start - whole.start) // size, (stop - whole.start) // size
    text = f"{whole.text} [{low}:{high})"
    return Range(whole.base, start // size, whole.dtype, (high - low,), text)


def _without(piece: _Piece, ignored: Sequence[Sequence[Range]]) -> Iterator[_Piece]:
    """What `ignore` leaves of a piece."""
    found = piece.range
    cuts = sorted((r.start, r.stop) for rs in ignored for r in rs if _overlap(r, found))
    at = found.start
    for start, stop in (*cuts, (found.stop, found.stop)):
        if at < start:
            yield _Piece(piece.launch, piece.order, _part(found, at, start), piece.updates)
        at = max(at, stop)


def _overlap(one: Range, other: Range) -> bool:
    return one.base == other.base and one.start < other.stop and other.start < one.stop


def _inside(found: Range, spans: Iterable[Range]) -> bool:
    return any(_overlap(found, s) for s in spans)


def _joined(pieces: Sequence[_Piece], launches: Sequence[Launch]) -> list[_Piece]:
    """Neighbours as one, where there are more than a launch takes: the last of their launches stands for all
    of them.
    """
    found: list[_Piece] = []
    for p in sorted(pieces, key=lambda p: (p.range.base, p.range.start)):
        last = found[-1] if found else None
        if last is None or last.range.base != p.range.base or last.range.stop != p.range.start:
            found.append(p)
            continue
        base, low, high = p.range.base, last.range.offset, p.range.offset + p.range.count
        joined = Range(base, low, F32, (high - low,), f"{base} [{low}:{high})")
        first, second = sorted((last, p), key=lambda p: p.order)
        names = dict.fromkeys((*last.before, launches[first.launch].name))
        names.pop(launches[second.launch].name, None)
        found[-1] = _Piece(second.launch, second.order, joined, True, tuple(names))
    return found


def idle(program: Program) -> Iterator[int]:
    """Places in `ignore` of what a sentinel of no policy would look at, or not since an earlier name."""
    pieces = [p for s in program.steps for p in _standing(s.launches)] if program.ignored else []
    for k, ranges in enumerate(program.ignored):
        left = (q.range for p in pieces for q in _without(p, program.ignored[:k]))
        if not any(_inside(r, ranges) for r in left):
            yield k


def kept(program: Program, step: Step) -> tuple[Range, ...]:
    """What `skip-update` and `stop` put back: for each allocation the run of bytes in which the step writes
    params, their moments, persistent floats that a launch makes from params (a target network, say), or those
    that a launch reads which writes params (a running bias correction).
    """
    if policy(program) not in UNDOING:
        return ()
    trained = _trained(program)
    state = {t.name for t in program.tensors if t.lifetime is Lifetime.PERSISTENT and t.dtype is F32}
    optimisers = [
        n
        for n in step.launches
        if any(r.base in trained for a in n.arguments if a.access is not Access.READ for r in a.ranges)
    ]
    fed = [r for n in optimisers for a in n.arguments for r in a.ranges if r.base in state]
    spans: dict[str, tuple[int, int]] = {}
    for launch in step.launches:
        updates = any(r.base in trained for a in launch.arguments for r in a.ranges)
        for a in launch.arguments:
            for r in a.ranges if a.access is not Access.READ else ():
                made = r.base in trained or (updates and r.base in state)
                if r.count and (made or _inside(r, fed)):
                    low, high = spans.get(r.base, (r.offset, r.offset))
                    spans[r.base] = min(low, r.offset), max(high, r.offset + r.count)
    return tuple(
        Range(base, low, F32, (high - low,), f"{base} [{low}:{high})")
        for base, (low, high) in sorted(spans.items())
    )


def unseen(program: Program) -> tuple[str, ...]:
    """The names in `ignore` of which the policy puts something back that it does not look at."""
    spans = [r for s in program.steps for r in kept(program, s)]
    health = program.source.health
    named = zip(health.ignore if health is not None else (), program.ignored, strict=True)
    return tuple(name for name, ranges in named if any(_inside(r, spans) for r in ranges))


def shadow(step: str, kept: Range) -> str:
    """The step allocation that holds what a range had at the start of the step."""
    return f"sentinel.{step}.{kept.base}"


def _trained(program: Program) -> Mapping[str, str]:
    """Allocations of params and moments, with "", "m" or "v"."""
    bases = ["params", *(t.name for t in program.tensors if t.separate)]
    return {(f"{b}.{suffix}" if suffix else b): suffix for b in bases for suffix in ("", "m", "v")}

"""The plan of a schedule: buffers, views and launches as the backends and the trainer want them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from foxhunt.backend import plan as planned
from foxhunt.contract.fingerprint import Fingerprint
from foxhunt.ir.system import row_of
from foxhunt.ir.types import Allocation, Lifetime, Program, Tensor
from foxhunt.ir.watch import policy, unseen
from foxhunt.schedule.abi import Word, entry_words
from foxhunt.schedule.build import ticket_offsets
from foxhunt.schedule.lanes import waits
from foxhunt.schedule.types import FusedLaunch, Schedule, ScheduledStep


def plan_of(schedule: Schedule, found: Fingerprint) -> planned.Plan:
    """The plan of a schedule: the value that its trainer.py spells out and that the backends execute."""
    laid_out = schedule.laid_out
    program = laid_out.program
    tickets = ticket_offsets(schedule.steps)
    repeats = {s.name: s.repeat for s in program.steps}
    return planned.Plan(
        program=program.name,
        variant=program.variant,
        precision=program.precision,
        layout_hash=found.layout,
        semantics_hash=found.semantics,
        layout_lines=found.lines,
        dims=program.dims,
        buffers=tuple(_buffers(schedule)),
        views=tuple(_views(schedule)),
        slots=tuple(
            planned.Slot(s.name, s.index or 0, s.count, s.source, s.init, s.sentinel, s.reset)
            for s in program.slots
            if s.retired is None
        ),
        counters=tuple(
            planned.Counter(c.name, laid_out.places[c.name].offset, c.advance, c.reset)
            for c in program.counters
        ),
        observations=tuple(_observations(program)),
        diagnostics=laid_out.diagnostics_words,
        steps=tuple(_step(schedule, s, tickets, repeats[s.name]) for s in schedule.steps),
        resets=tuple(_step(schedule, s, tickets, None) for s in schedule.resets),
        data=tuple(planned.DataSource(d.name, d.reader, d.path, d.options) for d in program.data),
        publish_words=row_of(laid_out).words,
        policy=policy(program),
        watched=tuple(planned.Watched(w.launch, w.range.text, w.before, w.updates) for w in laid_out.watched),
        given=program.given,
        unseen=unseen(program),
    )


_ROLES = {"isv": "isv", "wiener": "wiener", "scratch": "scratch", "arena": "arena"}
_ROLES |= {"params": "params", "params.m": "m", "params.v": "v"}
_LIFETIME_ROLES = {
    Lifetime.SYSTEM: "system",
    Lifetime.PERSISTENT: "state",
    Lifetime.RESIDENT: "resident",
    Lifetime.INPUT: "input",
}


def _buffers(schedule: Schedule) -> Iterator[planned.Buffer]:
    separate = {t.name for t in schedule.laid_out.program.tensors if t.separate}
    for a in schedule.allocations:
        if a.lifetime is not Lifetime.STEP:
            yield planned.Buffer(a.name, a.dtype.name, a.count, _role(a, separate), a.checkpoint)


def _role(allocation: Allocation, separate: set[str]) -> str:
    name, _, suffix = allocation.name.partition(".")
    if name in separate and suffix in ("", "m", "v"):
        return suffix or "params"
    return _ROLES.get(allocation.name) or _LIFETIME_ROLES[allocation.lifetime]


def _views(schedule: Schedule) -> Iterator[planned.View]:
    """All tensors by declaration, a param's gradient and moments after it, then groups of several params."""
    groups: dict[str, list[Tensor]] = {}
    for t in schedule.laid_out.program.tensors:
        if t.role == "workspace":
            continue
        yield _view(schedule, t.name, t, t.shape, init=t.init, reset=t.reset or "never", fill=t.fill)
        if t.retired is not None:  # still in every checkpoint, so that retiring keeps the layout
            for suffix in (".m", ".v"):
                yield _view(schedule, t.name + suffix, t, t.shape)
        elif t.role == "param":
            groups.setdefault(t.group or "", []).append(t)
            for suffix in (".g", ".m", ".v"):
                yield _view(schedule, t.name + suffix, t, t.shape)
    for group, members in groups.items():
        if len(members) > 1:  # a group of one is its param: no two names for one thing
            count = sum(t.count for t in members)
            for suffix in ("", ".g", ".m", ".v"):
                if group + suffix in schedule.laid_out.places:
                    yield _view(schedule, group + suffix, members[0], (count,))


def _view(
    schedule: Schedule,
    name: str,
    tensor: Tensor,
    shape: tuple[int, ...],
    init: str = "zeros",
    reset: str = "never",
    fill: str | None = None,
) -> planned.View:
    place = schedule.laid_out.places[name]
    buffer, offset = place.allocation, place.offset
    if buffer in schedule.arena:
        buffer, offset = "arena", schedule.arena[buffer] // tensor.dtype.size + offset
    return planned.View(name, buffer, offset, tensor.dtype.name, shape, init, reset, fill)


def _observations(program: Program) -> Iterator[planned.Observation]:
    first = {s.name: s.index or 0 for s in program.slots}
    for o in program.observations:
        if not o.retired:
            yield planned.Observation(o.producer, o.position or 0, first[o.slot] + o.element)


def _step(
    schedule: Schedule, step: ScheduledStep, tickets: Mapping[str, int], repeat: int | None
) -> planned.Step:
    waited = waits(step.launches, step.edges)
    launches = (_launch(schedule, n, tickets, waited.get(n.name, ())) for n in step.launches)
    return planned.Step(step.name, tuple(launches), repeat)


def _launch(
    schedule: Schedule, launch: FusedLaunch, tickets: Mapping[str, int], waited: tuple[str, ...]
) -> planned.Launch:
    args = tuple(_arg(schedule, word) for word in entry_words(launch, tickets))
    return planned.Launch(launch.name, launch.entry, launch.grid, launch.block, args, launch.lane, waited)


def _arg(schedule: Schedule, word: Word) -> planned.Arg:
    span = word.span
    if span is None:
        return planned.Scalar(word.value)
    offset = schedule.arena.get(span.base)
    buffer, start = (span.base, span.start) if offset is None else ("arena", offset + span.start)
    return planned.Pointer(buffer, start, span.count, span.dtype.name, word.access)

"""The rules that a laid-out program must keep, each with its code. Every finding of a program together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from foxhunt.diagnostics import Diagnostic
from foxhunt.ir.access import accesses, items
from foxhunt.ir.bounds import check_bounds
from foxhunt.ir.findings import Findings
from foxhunt.ir.intervals import Intervals
from foxhunt.ir.suppress import apply_suppressions
from foxhunt.ir.types import Access, LaidOutProgram, Launch, Lifetime, Range, Slot, StepGraph
from foxhunt.ir.usage import check_orphans

Rule = Callable[[LaidOutProgram, tuple[StepGraph, ...], Findings], None]


def verify(laid_out: LaidOutProgram, graphs: tuple[StepGraph, ...]) -> tuple[Diagnostic, ...]:
    """Checks every rule on a program and the graphs of all its steps; returns what its spec suppresses.

    Raises SpecError with all other findings.
    """
    findings = Findings()
    for rule in RULES:
        rule(laid_out, graphs, findings)
    suppressed = apply_suppressions(laid_out.program.source.suppress, findings)
    findings.raise_if_any()
    return suppressed


def check_steps(laid_out: LaidOutProgram, _: tuple[StepGraph, ...], findings: Findings) -> None:
    """There is something to run."""
    program = laid_out.program.source
    if not program.steps:
        hint = "add `steps:`; a folder of blocks alone compiles when another program `uses` it"
        findings.add("FH259", f"program {program.program} has no steps", program.spot("program"), hint)


def check_resets(laid_out: LaidOutProgram, _: tuple[StepGraph, ...], findings: Findings) -> None:
    """Every stateful entry names a reset policy."""
    program = laid_out.program
    stateful = [("slot", s.name, s.reset, s.at) for s in program.slots if s.retired is None]
    stateful += [("counter", c.name, c.reset, c.at) for c in program.counters]
    stateful += [
        ("param" if t.role == "param" else "persistent buffer", t.name, t.reset, t.at)
        for t in program.tensors
        if t.lifetime is Lifetime.PERSISTENT and t.retired is None
    ]
    for what, name, reset, at in stateful:
        if not reset:
            hint = "add `reset: never`, or the name of a policy such as `reset: fold`"
            findings.add("FH252", f"{what} {name} has no reset policy", at, hint)
        elif not reset.isidentifier():
            findings.add("FH252", f"reset policy `{reset}` of {name} is no identifier", at)


def check_feeds(laid_out: LaidOutProgram, graphs: tuple[StepGraph, ...], findings: Findings) -> None:
    """Every slot has exactly one source: a listed producer, one launch, or the host."""
    program = laid_out.program
    entries = {p.name: p for p in program.source.producers}
    listed = {o.producer for step in program.steps for o in step.observations}
    feeding: dict[str, dict[tuple[str, str], None]] = {}
    for o in program.observations:
        feeding.setdefault(o.slot, {})[o.producer, o.output] = None
    writers = _slot_writers(laid_out, graphs)
    for slot in program.slots:
        outputs = [f"{producer}.{output}" for producer, output in feeding.get(slot.name, {})]
        live = [p for p, _ in feeding.get(slot.name, {}) if entries[p].retired is None]
        if len(outputs) > 1:
            message = f"slot {slot.name} has {len(outputs)} producers: {', '.join(outputs)}"
            findings.add("FH253", message, slot.at, "one slot, one producer")
        if slot.retired is not None:
            for producer in live:
                message = f"producer {producer} feeds {slot.name}, which is retired: {slot.retired}"
                findings.add("FH204", message, entries[producer].at, "retire the producer too")
        elif slot.source == "producer" and not live:
            message = f"slot {slot.name} has no producer and is not set by the host"
            hint = "declare a producer with `out: {…: " + slot.name + "}`, or give the slot another `source:`"
            findings.add("FH203", message, slot.at, hint)
        elif slot.source == "producer" and not listed.intersection(live):
            message = f"slot {slot.name}: no step lists its producer {live[0]}"
            findings.add("FH203", message, slot.at, f"add `- {{producers: [{live[0]}]}}` to a step")
        elif slot.source == "kernel":
            _check_writers(slot, writers.get(slot.name, []), findings)


def _slot_writers(
    laid_out: LaidOutProgram, graphs: tuple[StepGraph, ...]
) -> Mapping[str, list[tuple[Launch, Range]]]:
    owner = {(s.index or 0) + k: s.name for s in laid_out.program.slots for k in range(s.count)}
    writers: dict[str, list[tuple[Launch, Range]]] = {}
    for graph in graphs:
        for launch in items(graph):
            for touch in accesses(launch):
                if touch.slot_write:
                    writers.setdefault(owner[touch.range.offset], []).append((launch, touch.range))
    return writers


def _check_writers(slot: Slot, writers: list[tuple[Launch, Range]], findings: Findings) -> None:
    if not writers:
        message = f"slot {slot.name} has source kernel, but no launch writes it"
        findings.add("FH203", message, slot.at, "write it in a step, or give it another `source:`")
        return
    first: dict[int, Launch] = {}
    for launch, written in writers:
        for element in range(written.offset, written.offset + written.count):
            other = first.setdefault(element, launch)
            if other is not launch:
                message = f"slot {slot.name} is written by {other.name} and {launch.name}"
                hint = "an element of a kernel slot has one writer in the program"
                findings.add("FH253", message, launch.at, hint, ((other.at, "the first of them"),))
                return
    if len(first) < slot.count:
        text = ", ".join(written.text for _, written in writers[:4])
        message = f"only {text} of slot {slot.name} is written"
        findings.add("FH203", message, writers[0][0].at, "its writers together write all of a slot")


def check_reads(laid_out: LaidOutProgram, graphs: tuple[StepGraph, ...], findings: Findings) -> None:
    """What lives within a step is written in that step before it is read."""
    lifetimes = {a.name: a.lifetime for a in laid_out.allocations}
    for graph in graphs:
        written: dict[str, Intervals] = {}
        for launch in items(graph):
            touches = [t for t in accesses(launch) if lifetimes[t.range.base] is Lifetime.STEP]
            for touch in touches:
                known = written.setdefault(touch.range.base, Intervals())
                spans = known.overlapping(touch.range.start, touch.range.stop)
                covered = sum(stop - start for start, stop, *_ in spans)
                if touch.reads and covered < touch.range.stop - touch.range.start:
                    how = "reads" if touch.access is Access.READ else "updates"
                    message = f"{launch.name} {how} {touch.range.text}, which nothing has written before"
                    hint = "step buffers hold nothing at the start of a step: write all of it first"
                    findings.add("FH251", message, launch.at, hint)
            for touch in touches:
                if touch.access is Access.WRITE:
                    written[touch.range.base].write(touch.range.start, touch.range.stop, 0)


def check_host_data(laid_out: LaidOutProgram, graphs: tuple[StepGraph, ...], findings: Findings) -> None:
    """What the host feeds is never written by a launch."""
    why = {
        Lifetime.INPUT: "an input buffer, which the host feeds",
        Lifetime.RESIDENT: "a resident buffer, which is filled once and not checkpointed",
    }
    lifetimes = {a.name: a.lifetime for a in laid_out.allocations}
    for graph in graphs:
        for launch in items(graph):
            for touch in accesses(launch):
                lifetime = lifetimes[touch.range.base]
                if touch.writes and lifetime in why:
                    message = f"{launch.name} writes {touch.range.text}, {why[lifetime]}"
                    findings.add("FH254", message, launch.at, "write a step or persistent buffer")


def check_overlaps(_: LaidOutProgram, graphs: tuple[StepGraph, ...], findings: Findings) -> None:
    """A written range overlaps no other argument of its launch."""
    for graph in graphs:
        for launch in items(graph):
            found = [
                (r.base, r.start, r.stop, a.access is not Access.READ, a.name, r.text)
                for a in launch.arguments
                for r in a.ranges
                if r.count
            ]
            found.sort(key=lambda f: f[:3])
            for one, two in _clashes(found):
                message = f"{launch.name}: {one[4]} = {one[5]} and {two[4]} = {two[5]} overlap"
                hint = "a written range overlaps no other argument; to change in place, declare `update`"
                findings.add("FH256", message, launch.at, hint)


_Span = tuple[str, int, int, bool, str, str]


def _clashes(spans: list[_Span]) -> Iterator[tuple[_Span, _Span]]:
    """Pairs of overlapping spans of which one is written: each span against the furthest before it."""
    furthest: _Span | None = None
    written: _Span | None = None
    for span in spans:
        before = furthest if span[3] else written
        if before is not None and before[0] == span[0] and before[2] > span[1]:
            yield before, span
        if furthest is None or furthest[0] != span[0] or span[2] > furthest[2]:
            furthest = span
        if span[3] and (written is None or written[0] != span[0] or span[2] > written[2]):
            written = span


RULES: tuple[Rule, ...] = (
    check_steps,
    check_resets,
    check_feeds,
    check_reads,
    check_host_data,
    check_overlaps,
    check_bounds,
    check_orphans,
)

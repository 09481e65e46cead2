"""Positions: slots on the bus, scratch and Wiener triples, counters, params and moments, state, diagnostics.

A position is the written `index`, else the one in the lock, else the lowest free run behind the written ones.
Retired entries keep all their positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from foxhunt.diagnostics import Location
from foxhunt.dtypes import F32, I64, U32, DType
from foxhunt.ir.findings import Findings
from foxhunt.ir.producers import scratch_name
from foxhunt.ir.runs import Placement, Run, place_runs
from foxhunt.ir.sizes import LIMIT
from foxhunt.ir.system import FOUND, INGEST_ROWS, PUBLISH_ROWS, STEP_COUNTER, host_slots, publish_row
from foxhunt.ir.types import (
    Allocation,
    Argument,
    LaidOutProgram,
    Launch,
    LayoutEntry,
    Lifetime,
    Observation,
    Place,
    Program,
    Range,
    Slot,
    Step,
    Tensor,
)
from foxhunt.ir.watch import idle, kept, shadow, watched

GROUP_ALIGNMENT = 64
"""Elements: a group of params starts on a 256-byte line."""

MAX_SLOTS = 2**24
"""Elements of the bus: each of the 16 rows that steps publish holds it: then 1 GiB of pinned memory."""


@dataclass(frozen=True)
class Lock:
    """The layout that was committed last, with its two hashes; `lines` are the places of entries, by kind and
    name, in a lock that was read from a file.
    """

    entries: tuple[LayoutEntry, ...]
    layout: str = ""
    semantics: str = ""
    lines: Mapping[tuple[str, str], Location] = field(default_factory=dict, hash=False, compare=False)


def lay_out(program: Program, lock: Lock | None = None) -> LaidOutProgram:
    """Every entity at its place, every range on its allocation, and the lines of the layout.

    Raises SpecError for explicit positions that overlap and for totals that pass 64 bits.
    """
    findings = Findings()
    layout = _Layout(program, lock, findings)
    findings.raise_if_any()
    result = layout.result()
    findings.raise_if_any()
    return result


class _Layout:
    """The positions of one program."""

    def __init__(self, program: Program, lock: Lock | None, findings: Findings) -> None:
        self.program = program
        self.findings = findings
        self.locked: dict[str, dict[str, LayoutEntry]] = {}
        for entry in lock.entries if lock else ():
            self.locked.setdefault(entry.kind, {})[entry.name] = entry
        self.places: dict[str, Place] = {}
        self.slots = self._place_slots()
        self.observations, self.kept = self._place_observations()
        self.counters = self._place_counters()
        self.params_total = self._place_params()
        self.state = self._place_state()
        self._place_step_tensors()

    def _lock_position(self, kind: str, name: str, was: str | None = None) -> int | None:
        """The locked position of an entry, under its old name after a declared rename."""
        entries = self.locked.get(kind, {})
        found = entries.get(name) or (entries.get(was) if was else None)
        return found.position if found else None

    def _place_slots(self) -> dict[str, Slot]:
        runs = [
            Run(s.name, s.count, s.index, self._lock_position("isv", s.name, s.was), at=s.at)
            for s in self.program.slots
        ]
        placed = place_runs(runs, "index", self.findings)
        self.isv_total = placed.total
        self._check_bus(placed)
        self.places |= {name: Place("isv", start) for name, start in placed.starts.items()}
        return {s.name: replace(s, index=placed.starts[s.name]) for s in self.program.slots}

    def _check_bus(self, placed: Placement) -> None:
        """A slot past the end of the bus is a finding; one that was put behind it is not another."""
        outside = [s for s in self.program.slots if placed.starts[s.name] + s.count > MAX_SLOTS]
        for slot in [s for s in outside if s.index is not None] or outside[:1]:
            last = placed.starts[slot.name] + slot.count - 1
            message = f"slot {slot.name} would end at {last} of the bus, which has 2^24 elements at most"
            hint = "leave `index:` out and the next free place is found"
            self.findings.add("FH216", message, slot.at, hint if slot.index is not None else "lower a dim")

    def _place_observations(self) -> tuple[tuple[Observation, ...], tuple[LayoutEntry, ...]]:
        """Scratch positions, and the triples of retired slots whose producer is no longer declared."""
        outputs: dict[tuple[str, str], list[Observation]] = {}
        for o in self.program.observations:
            outputs.setdefault((o.producer, o.output), []).append(o)
        slots = {s.name: s for s in self.program.slots}
        fed = {found[0].slot for found in outputs.values()}
        kept = tuple(
            entry
            for name, entry in self.locked.get("wiener", {}).items()
            if name in slots and slots[name].retired is not None and name not in fed
        )
        runs = [Run(f"kept {e.name}", e.shape[0], e.position // 3, at=slots[e.name].at) for e in kept]
        for key, found in outputs.items():
            slot = slots[found[0].slot]
            position = self._lock_position("wiener", slot.name, slot.was)
            locked = position // 3 if position is not None else None
            runs.append(Run(scratch_name(*key), len(found), None, locked, at=slot.at))
        placed = place_runs(runs, "scratch position", self.findings, after_written=False)
        self.scratch_total = placed.total
        self.places |= {
            scratch_name(*key): Place("scratch", placed.starts[scratch_name(*key)]) for key in outputs
        }
        starts = {found[0].slot: placed.starts[scratch_name(*key)] for key, found in outputs.items()}
        positions = (
            replace(o, position=placed.starts[scratch_name(*key)] + k)
            for key, found in outputs.items()
            for k, o in enumerate(found)
        )
        self.first = starts  # slot → scratch position of its element 0
        return tuple(positions), kept

    def _place_counters(self) -> int:
        runs = [Run(STEP_COUNTER, 1, 0)]
        runs += [
            Run(c.name, 1, None, self._lock_position("counter", c.name, c.was), at=c.at)
            for c in self.program.counters
        ]
        placed = place_runs(runs, "counter position", self.findings)
        self.places |= {name: Place("counters", start) for name, start in placed.starts.items()}
        return placed.total

    def _params(self) -> list[Tensor]:
        return [t for t in self.program.tensors if t.role == "param"]

    def _place_params(self) -> int:
        """Groups are one run each; params follow one another inside in declaration order."""
        groups: dict[str, list[Tensor]] = {}
        for param in self._params():
            if not param.separate:
                groups.setdefault(param.group or "", []).append(param)
        runs = []
        for group, members in groups.items():
            first = members[0]
            locked = self._lock_position("param", first.name, first.was)
            if locked is not None and locked % GROUP_ALIGNMENT:
                locked = None  # it stood inside a group, which has lost its first param or has been split
            size = sum(p.count for p in members)
            runs.append(Run(group, size, first.index, locked, GROUP_ALIGNMENT, first.at))
        placed = place_runs(runs, "param index", self.findings)
        broken = {p.group for p in self._params() if p.retired is not None or p.separate}
        for group, members in groups.items():
            self._place_group(group, members, placed, group not in broken)
        return placed.total

    def _place_group(self, group: str, members: list[Tensor], placed: Placement, whole: bool) -> None:
        """`whole` says that the group is one range, so that it has a place under its own name."""
        start = placed.starts[group]
        if start % GROUP_ALIGNMENT:
            message = f"index {start} of {members[0].name} is no multiple of {GROUP_ALIGNMENT}"
            self.findings.add("FH231", message, members[0].at, "a group of params starts on a 256-byte line")
        for suffix in ("", ".g", ".m", ".v"):
            offset = start
            if whole:
                self.places[group + suffix] = Place("params" + suffix, start)
            for param in members:
                self.places[param.name + suffix] = Place("params" + suffix, offset)
                offset += param.count
        for param in members:
            derived = self.places[param.name].offset
            if param.index is not None and param.index != derived:
                message = f"index {param.index} of param {param.name}: group {group} puts it at {derived}"
                self.findings.add("FH231", message, param.at, "give an index to the group's first param only")

    def _own(self) -> list[tuple[str, Tensor, Lifetime]]:
        """Tensors with an allocation of their own, in declaration order, with its name and lifetime."""
        found = []
        for tensor in self.program.tensors:
            if tensor.role != "param":
                found.append((tensor.name, tensor, tensor.lifetime))
            elif tensor.separate:
                names = [tensor.name, f"{tensor.name}.g", f"{tensor.name}.m", f"{tensor.name}.v"]
                lifetimes = (Lifetime.PERSISTENT, Lifetime.STEP, Lifetime.PERSISTENT, Lifetime.PERSISTENT)
                found += [(n, tensor, life) for n, life in zip(names, lifetimes, strict=True)]
        return found

    def _place_state(self) -> dict[str, tuple[int, Tensor]]:
        """Ordinals of the checkpointed tensors that have an allocation of their own."""
        runs, tensors = [], {}
        for name, tensor, lifetime in self._own():
            if lifetime is Lifetime.PERSISTENT and tensor.checkpoint:
                old = tensor.was + name.removeprefix(tensor.name) if tensor.was else None
                runs.append(Run(name, 1, None, self._lock_position("state", name, old), at=tensor.at))
                tensors[name] = tensor
        placed = place_runs(runs, "state position", self.findings)
        return {name: (placed.starts[name], tensor) for name, tensor in tensors.items()}

    def _place_step_tensors(self) -> None:
        for name, _, _ in self._own():
            self.places[name] = Place(name, 0)

    def result(self) -> LaidOutProgram:
        """The laid-out program."""
        program = replace(
            self.program,
            slots=tuple(self.slots[s.name] for s in self.program.slots),
            observations=self.observations,
            steps=tuple(self._step(s) for s in self.program.steps),
            ignored=tuple(tuple(map(self._range, ranges)) for ranges in self.program.ignored),
        )
        self._check_ignored(program)
        diagnostics = self._diagnostics_words()
        looked_at = watched(program)
        return LaidOutProgram(
            program=program,
            allocations=self._allocations(program, sum(words for _, _, words in diagnostics), len(looked_at)),
            places=self.places,
            entries=tuple(sorted(self._entries(), key=lambda e: (e.kind, e.position, e.name))),
            isv_total=self.isv_total,
            scratch_total=self.scratch_total,
            diagnostics_words=diagnostics,
            watched=looked_at,
        )

    def _check_ignored(self, program: Program) -> None:
        health = program.source.health
        for k in idle(program):
            assert health is not None
            message = f"to ignore {health.ignore[k]} leaves nothing out that a sentinel would look at"
            hint = "remove it, or name f32 that a launch writes and that no earlier name covers"
            self.findings.add("FH261", message, health.spot("ignore", k), hint)

    def _step(self, step: Step) -> Step:
        producers = {o.producer for o in step.observations}
        observed = tuple(o for o in self.observations if o.producer in producers)
        return replace(step, launches=tuple(map(self._launch, step.launches)), observations=observed)

    def _launch(self, launch: Launch) -> Launch:
        return replace(launch, arguments=tuple(map(self._argument, launch.arguments)))

    def _argument(self, argument: Argument) -> Argument:
        triple = None
        if argument.kind == "bound":
            triple = self._triple(argument.ranges[0])
        a = argument
        return Argument(a.name, a.kind, a.access, a.many, tuple(map(self._range, a.ranges)), triple, a.floor)

    def _range(self, found: Range) -> Range:
        place = self.places[found.base]
        return Range(place.allocation, place.offset + found.offset, found.dtype, found.shape, found.text)

    def _triple(self, slot: Range) -> Range | None:
        position = self.first.get(slot.base)
        if position is None:
            return None
        return Range("wiener", 3 * (position + slot.offset), F32, (slot.count, 3), slot.text)

    def _diagnostics_words(self) -> tuple[tuple[str, int, int], ...]:
        words = {s.name: s.count for s in self.program.slots} | {c.name: 2 for c in self.program.counters}
        offset, found = 0, []
        for name in self.program.diagnostics:
            found.append((name, offset, words[name]))
            offset += words[name]
        return tuple(found)

    def _allocations(self, program: Program, diagnostics: int, watched: int) -> tuple[Allocation, ...]:
        found = FOUND if watched else 0
        row = publish_row(self.isv_total, self.counters, self.scratch_total, found, diagnostics)
        hosts = sum(s.count for s in host_slots(self.program.slots))
        system: list[tuple[str, DType, int, Lifetime, bool]] = [
            ("isv", F32, self.isv_total, Lifetime.SYSTEM, True),
            ("wiener", F32, 3 * self.scratch_total, Lifetime.SYSTEM, True),
            ("scratch", F32, self.scratch_total, Lifetime.SYSTEM, False),
            ("health", I64, 2 * self.scratch_total, Lifetime.SYSTEM, False),
            ("counters", I64, self.counters, Lifetime.SYSTEM, True),
            ("seed", I64, 1, Lifetime.SYSTEM, True),
            ("ring.ingest", F32, INGEST_ROWS * hosts, Lifetime.SYSTEM, False),
            ("ring.publish", U32, PUBLISH_ROWS * row.words + 2, Lifetime.SYSTEM, False),
            ("params", F32, self.params_total, Lifetime.PERSISTENT, True),
            ("params.m", F32, self.params_total, Lifetime.PERSISTENT, True),
            ("params.v", F32, self.params_total, Lifetime.PERSISTENT, True),
            ("params.g", F32, self.params_total, Lifetime.STEP, False),
        ]
        own = [
            (name, tensor.dtype, tensor.count, life, life is Lifetime.PERSISTENT and tensor.checkpoint)
            for name, tensor, life in self._own()
        ]
        if watched:
            system.append(("sentinel.rows", I64, FOUND * (watched + 1), Lifetime.SYSTEM, False))
        own += [
            (shadow(step.name, r), r.dtype, r.count, Lifetime.STEP, False)
            for step in program.steps
            for r in (kept(program, step) if watched else ())
        ]
        allocations = tuple(Allocation(*fields) for fields in (*system, *own))
        for allocation in allocations:
            if allocation.nbytes >= LIMIT:
                message = f"{allocation.name} would have {allocation.nbytes} bytes, above 2^63 - 1"
                self.findings.add("FH216", message, self.program.source.at, "lower a dim")
        return allocations

    def _entries(self) -> Iterator[LayoutEntry]:
        """The lines of the layout: what a checkpoint holds, and nothing else."""
        retired = {s.name: _note(s.retired, s.was) for s in self.slots.values()}
        for slot in self.slots.values():
            yield LayoutEntry("isv", slot.index or 0, slot.name, "f32", (slot.count,), retired[slot.name])
        for name, position in self.first.items():
            yield LayoutEntry("wiener", 3 * position, name, "f32", (self.slots[name].count, 3), retired[name])
        for entry in self.kept:
            yield replace(entry, note=retired[entry.name])
        yield LayoutEntry("counter", 0, STEP_COUNTER, "i64", (1,))
        for counter in self.program.counters:
            position = self.places[counter.name].offset
            yield LayoutEntry("counter", position, counter.name, "i64", (1,), _note(None, counter.was))
        for param in self._params():
            if not param.separate:
                yield from self._param_entries(param)
        for name, (position, tensor) in self.state.items():
            note = _note(tensor.retired, tensor.was)
            yield LayoutEntry("state", position, name, tensor.dtype.name, tensor.shape, note)

    def _param_entries(self, param: Tensor) -> Iterator[LayoutEntry]:
        position, note = self.places[param.name].offset, _note(param.retired, param.was)
        yield LayoutEntry("param", position, param.name, "f32", param.shape, note)
        for moment in ("m", "v"):
            yield LayoutEntry("moment", position, f"{param.name}.{moment}", "f32", param.shape, note)


def _note(retired: str | None, was: str | None) -> str:
    """What stands behind a line without being hashed: one line of text, whatever the reason holds."""
    parts = [f"retired: {retired}"] if retired is not None else []
    parts += [f"was: {was}"] if was else []
    return " ".join("; ".join(parts).split())

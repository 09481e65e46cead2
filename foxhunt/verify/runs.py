"""Runs of one program that have to leave the same bits, and the first launch after which they do not."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.backend.base import Backend, BuildProgress
from foxhunt.backend.host import HostBackend
from foxhunt.backend.plan import Launch as DeviceLaunch
from foxhunt.backend.plan import Plan
from foxhunt.dtypes import DTYPES
from foxhunt.ir.system import NAMES
from foxhunt.ir.types import Access, Launch, Range
from foxhunt.runtime.trainer import Trainer
from foxhunt.schedule.types import Schedule

State = dict[str, NDArray[Any]]
Key = tuple[str, str, int]
"""Launch, argument and row."""
FLEETING = ("arena", "tickets", "ring.ingest", "ring.publish")
"""Buffers whose contents mean nothing between steps."""


@dataclass(frozen=True)
class Script:
    """What every run does: each step `executions` times, in `rounds`, after each with other host slots."""

    executions: int = 3
    rounds: int = 2
    seed: int = 0
    resume: Path | None = None  # the checkpoint that a run starts from

    def play(self, trainer: Trainer, per_graph: int = 1) -> None:
        """Run all steps. Inputs are random numbers; whole numbers, which may be positions, stay 0."""
        if self.resume is not None:
            trainer.load(self.resume)
        for number in range(self.rounds):
            self._feed(trainer, number)
            for step in trainer.plan.steps:
                trainer.run(self.executions, step.name, per_graph)
        trainer.sync()

    def _feed(self, trainer: Trainer, number: int) -> None:
        for view in trainer.plan.views:
            role = next(b.role for b in trainer.plan.buffers if b.name == view.buffer)
            if role == "input" and view.dtype == "f32":
                rng = np.random.default_rng((self.seed, number, zlib.crc32(view.name.encode())))
                trainer.write_tensor(view.name, rng.standard_normal(view.shape))
            elif role == "input":
                trainer.write_tensor(view.name, np.zeros(view.shape, bool))
        for slot in trainer.plan.slots if number else ():
            if slot.source == "host":
                trainer.signals[slot.name] = moved(slot.init)


def moved(value: float) -> float:
    """Another value of a host slot, no further from what it is for."""
    return 0.75 * value if value else 2.0**-6


@dataclass(frozen=True)
class Output:
    """One range that a declared launch writes, and where that is in memory."""

    launch: Launch = field(repr=False)
    argument: str
    row: int  # of a `many` argument
    text: str  # the reference as written
    buffer: str
    offset: int  # bytes
    count: int
    dtype: str
    ignored: tuple[tuple[int, int], ...] = ()  # elements that `health: {ignore}` names, as [first, end)

    @property
    def key(self) -> Key:
        """The same range in every form of the program."""
        return (self.launch.name, self.argument, self.row)

    def read(self, backend: Backend) -> NDArray[Any]:
        """What stands there."""
        return backend.read(self.buffer, self.offset, self.count, self.dtype)

    def strange(self, values: NDArray[Any]) -> int | None:
        """The first element that is NaN or inf and is not ignored; none where those have a meaning."""
        if values.dtype.kind != "f" or self.buffer == "scratch":  # of an observation it says "skip"
            return None
        bad = ~np.isfinite(values)
        for first, end in self.ignored:
            bad[first:end] = False
        return int(np.argmax(bad)) if bad.any() else None


def outputs(schedule: Schedule) -> dict[str, tuple[Output, ...]]:
    """Device launch → what its declared launches have written once it has ended, rings left out."""
    found: dict[str, tuple[Output, ...]] = {}
    for step in schedule.steps:
        last = {n.name: f.name for f in step.launches for t in f.tasks for n in t.launches}
        for fused in step.launches:
            ended = {n.name: n for t in fused.tasks for n in t.launches if last[n.name] == fused.name}
            found[fused.name] = tuple(o for n in ended.values() for o in _written(schedule, n))
    return found


def _written(schedule: Schedule, launch: Launch) -> Iterator[Output]:
    for a in launch.arguments:
        for row, r in enumerate(a.ranges if a.access is not Access.READ else ()):
            if r.base in FLEETING or not r.count:
                continue
            place = schedule.arena.get(r.base)
            buffer, start = (r.base, r.start) if place is None else ("arena", place + r.start)
            spans = tuple(_overlaps(r, schedule.laid_out.program.ignored))
            yield Output(launch, a.name, row, r.text, buffer, start, r.count, r.dtype.name, spans)


def _overlaps(found: Range, ignored: Iterable[Iterable[Range]]) -> Iterator[tuple[int, int]]:
    for r in (r for ranges in ignored for r in ranges if r.base == found.base):
        first, end = max(0, r.offset - found.offset), min(found.count, r.offset + r.count - found.offset)
        if first < end:
            yield first, end


@dataclass
class DifferenceError(Exception):
    """The first range that holds other bits: after which execution of its launch."""

    output: Output
    execution: int  # from 0
    found: NDArray[Any]


@dataclass
class FoundError(Exception):
    """The contents that were looked for; ends a run."""

    values: NDArray[Any]


Watch = Callable[[Output, int, Backend], None]


@dataclass(frozen=True)
class Form:
    """One form of a program: a schedule, its emitted folder, and a plan, which may be in another order."""

    schedule: Schedule
    plan: Plan
    folder: Path
    progress: BuildProgress | None = None

    def run(self, script: Script, watch: Watch | None = None, debug: bool = False) -> State:
        """Play the script launch by launch on the host; `watch` sees each output once it is written.

        Returns what stands in all buffers that outlive a step. Raises BackendError where a debug build finds
        an access that is not declared.
        """
        written = outputs(self.schedule)
        seen: Counter[str] = Counter()

        def after(_: str, launch: DeviceLaunch) -> None:
            for output in written[launch.name] if watch and launch.name in written else ():
                assert watch is not None
                watch(output, seen[launch.name], backend)
            seen[launch.name] += 1

        backend = HostBackend(progress=self.progress, watch=after)
        with self.trainer(backend, script.seed, debug) as trainer:
            script.play(trainer)
            return state(trainer)

    def trainer(self, backend: Backend, seed: int, debug: bool = False) -> Trainer:
        """A trainer that neither warns of NaN nor stops at it: what is not finite is a finding of its own."""
        plan = replace(self.plan, policy="off")
        return Trainer(plan, self.folder, backend=backend, seed=seed, debug=debug)


def state(trainer: Trainer) -> State:
    """A copy of every buffer that outlives a step."""
    return {
        b.name: trainer.backend.read(b.name, 0, b.count, b.dtype)
        for b in trainer.plan.buffers
        if b.name not in FLEETING
    }


@dataclass
class Baseline:
    """The run that others are held against: eager, in declared order, nothing fused."""

    form: Form
    script: Script
    digests: dict[tuple[Key, int], bytes] = field(default_factory=dict)
    strange: tuple[Output, int, int, object] | None = None  # first NaN or inf: execution, element, value
    state: State = field(default_factory=dict)

    def record(self) -> None:
        """Run it, and remember what each launch wrote."""

        def remember(output: Output, execution: int, backend: Backend) -> None:
            values = output.read(backend)
            self.digests[output.key, execution] = digest(values)
            element = output.strange(values) if self.strange is None else None
            if element is not None:
                self.strange = (output, execution, element, values[element])

        self.state = self.form.run(self.script, remember)

    def compare(self, form: Form, debug: bool = False) -> State:
        """Run another form to its end. Raises DifferenceError at the first launch that leaves other bits."""

        def check(output: Output, execution: int, backend: Backend) -> None:
            values = output.read(backend)
            if digest(values) != self.digests[output.key, execution]:
                raise DifferenceError(output, execution, values)

        return form.run(self.script, check, debug)

    def values(self, key: Key, execution: int) -> NDArray[Any]:
        """What a range held after an execution of its launch: another run, up to there."""

        def stop(output: Output, number: int, backend: Backend) -> None:
            if output.key == key and number == execution:
                raise FoundError(output.read(backend))

        try:
            self.form.run(self.script, stop)
        except FoundError as found:
            return found.values
        raise KeyError(key)


def digest(values: NDArray[Any]) -> bytes:
    """A fingerprint of an array's bytes."""
    return hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=16).digest()


def first_difference(one: NDArray[Any], other: NDArray[Any]) -> int | None:
    """The first element whose bits differ, if any."""
    size = one.dtype.itemsize
    left, right = (np.ascontiguousarray(a).view(np.uint8).reshape(-1, size) for a in (one, other))
    unequal = (left != right).any(axis=1)
    return int(unequal.argmax()) if unequal.any() else None


def state_difference(one: State, other: State, *, across: bool = False) -> tuple[str, int] | None:
    """The first buffer and element that differ, if any.

    `across` devices one NaN is as good as another: processors make different ones.
    """
    for name, values in one.items():
        reached = other[name]
        if across and values.dtype.kind == "f":
            reached = np.where(np.isnan(values) & np.isnan(reached), values, reached)
        at = first_difference(values, reached)
        if at is not None:
            return name, at
    return None


def members(schedule: Schedule) -> dict[str, tuple[str, Launch]]:
    """Launch → its step and itself, foxhunt's own included."""
    found: dict[str, tuple[str, Launch]] = {}
    for step in schedule.steps:
        for task in (t for f in step.launches for t in f.tasks):
            found |= {n.name: (step.name, n) for n in task.launches}
    return found


def declared(launch: Launch) -> bool:
    """Whether a person declared the launch; the others are foxhunt's own."""
    return launch.kernel.kernel not in NAMES


def place_of(plan: Plan, buffer: str, element: int) -> str:
    """An element of a buffer under the name of the smallest tensor or slot that it belongs to."""
    if buffer == "isv":
        for slot in plan.slots:
            if slot.index <= element < slot.index + slot.count:
                return f"{slot.name}[{element - slot.index}]"
    views = [
        v
        for v in plan.views
        if v.buffer == buffer and v.offset <= element < v.offset + int(np.prod(v.shape, dtype=np.int64))
    ]
    if not views:
        return f"{buffer}[{element}]"
    view = min(views, key=lambda v: int(np.prod(v.shape, dtype=np.int64)))
    return f"{view.name}[{element - view.offset}]"


def writers(schedule: Schedule, buffer: str, element: int) -> Iterator[Launch]:
    """The declared launches that write an element of a buffer, in schedule order."""
    for found in outputs(schedule).values():
        for o in found:
            first = o.offset // DTYPES[o.dtype].size
            if o.buffer == buffer and first <= element < first + o.count:
                yield o.launch

"""Whether what may change between two replays is looked at in each of them.

Each launch that takes a slot, a counter or random numbers is run from the same memory with another value of
that one thing, and has to leave other bits: a value that was captured, cached or written into a template
leaves the same ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.backend.host import HostBackend
from foxhunt.backend.plan import Launch as DeviceLaunch
from foxhunt.diagnostics import Diagnostic
from foxhunt.ir.types import Access, Argument
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.models import Kernel
from foxhunt.verify.runs import Form, Output, Script, State, declared, digest, members, outputs

Digests = dict[str, list[bytes]]
Change = Callable[[Any], Any]
REALS: tuple[Change, ...] = (lambda v: 0.75 * v + 2.0**-6, lambda v: 4.0 * v + 1.0, lambda v: 0.0 * v)
WHOLES: tuple[Change, ...] = (lambda v: v + 3, lambda v: 0 * v)
"""A value near the one that there is, then those that matter where that does not: a counter's first."""


@dataclass(frozen=True, order=True)
class Source:
    """Something that may change between replays: a slot's range in the bus, a counter, or the seed."""

    buffer: str
    offset: int  # elements
    count: int
    text: str


def frozen_values(form: Form, script: Script, acts: Callable[[Kernel, str], bool]) -> Iterator[Diagnostic]:
    """A finding for each launch and value that it takes without ever acting on it.

    `acts` says whether a kernel acts on a parameter at its examples. Where it does, the program's state may
    be one in which the value makes no difference: a limit that nothing comes near.
    """
    takers = _takers(form)
    probe = _Probe(form)
    with form.trainer(probe.backend, script.seed) as trainer:
        deaf = {(launch, source) for source, launches in takers.items() for launch in launches}
        for _ in range(script.rounds):
            script.play(trainer)
            for source in sorted({s for _, s in deaf}):
                hearing = probe.hearing(trainer, source, set(takers[source]))
                deaf -= {(launch, source) for launch in hearing}
    launches = members(form.schedule)
    for name, source in sorted(deaf):
        launch = launches[name][1]
        if not any(acts(launch.kernel, argument) for argument in takers[source][name]):
            yield Diagnostic(
                "FH704",
                f"{name} leaves the same bits whatever {source.text} is, and so does {launch.kernel.kernel} "
                "at all its examples",
                launch.at,
                f"Read {source.text} in each launch, or do not pass it.",
            )


def _takers(form: Form) -> dict[Source, dict[str, list[str]]]:
    """Source → the launches that take it → as which arguments."""
    found: dict[Source, dict[str, list[str]]] = defaultdict(dict)
    for name, (_, launch) in members(form.schedule).items():
        for argument in launch.arguments if declared(launch) else ():
            for source in _sources(argument):
                found[source].setdefault(name, []).append(argument.name)
    return dict(found)


def _sources(argument: Argument) -> Iterator[Source]:
    if argument.kind == "rng":
        yield Source("seed", 0, 1, "the seed")
    if argument.kind in ("slot", "counter") and argument.access is Access.READ:
        for r in argument.ranges:
            yield Source(r.base, r.offset, r.count, r.text)


class _Probe:
    """Runs steps from one memory with one thing changed."""

    def __init__(self, form: Form) -> None:
        self._outputs = outputs(form.schedule)
        self._digests: Digests = {}
        self.backend = HostBackend(watch=self._after)
        self._step = {name: step for name, (step, _) in members(form.schedule).items()}

    def _after(self, _: str, launch: DeviceLaunch) -> None:
        for output in self._outputs.get(launch.name, ()):
            self._remember(output)

    def _remember(self, output: Output) -> None:
        self._digests.setdefault(output.launch.name, []).append(digest(output.read(self.backend)))

    def hearing(self, trainer: Trainer, source: Source, launches: set[str]) -> set[str]:
        """Which of the launches leave other bits when the source changes. Memory is as before afterwards."""
        buffers = [b for b in trainer.plan.buffers if not b.name.startswith("ring.")]
        image = {b.name: self.backend.read(b.name, 0, b.count, b.dtype) for b in buffers}
        found = set()
        for step in sorted({self._step[n] for n in launches}):
            usual = self._run(trainer, step, image, None, source)
            for change in REALS if source.buffer == "isv" else WHOLES:
                other = self._run(trainer, step, image, change, source)
                found |= {n for n in launches if usual.get(n) != other.get(n)}
        self._restore(image)
        return found

    def _run(
        self,
        trainer: Trainer,
        step: str,
        image: State,
        change: Change | None,
        source: Source,
    ) -> Digests:
        self._restore(image)
        isv = image["isv"].copy() if "isv" in image else np.zeros(0, np.float32)
        if change is not None:
            values = image[source.buffer].copy()
            place = slice(source.offset, source.offset + source.count)
            values[place] = change(values[place])
            self.backend.write(source.buffer, 0, values)
            isv = values if source.buffer == "isv" else isv
        self._host_rows(trainer, isv)
        self._digests = {}
        self.backend.run(step, 1)
        return self._digests

    def _restore(self, image: State) -> None:
        for name, values in image.items():
            self.backend.write(name, 0, values)

    def _host_rows(self, trainer: Trainer, isv: NDArray[Any]) -> None:
        """Every row of the ingest ring as the bus has the host slots, whichever the step reads."""
        hosts = [s for s in trainer.plan.slots if s.source == "host"]
        if hosts:
            values = np.concatenate([isv[s.index : s.index + s.count] for s in hosts])
            for row in range(trainer.plan.ingest_rows):
                self.backend.ingest_row(row)[:] = values

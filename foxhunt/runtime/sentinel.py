"""What the sentinels of a program have found: which outputs held NaN or inf, from which step on."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from foxhunt.backend.base import Backend
from foxhunt.backend.plan import Plan
from foxhunt.diagnostics import TrainerError, fail

log = logging.getLogger(__name__)
ROWS = "sentinel.rows"
FOUND = 3
"""i64 of a row: the last step with NaN or inf, the first one, how many."""


_SHOWN = 4
Stop = Literal["raise", "once", "log", "pass"]
"""What a look does under the policy `stop`: raise, raise if no look has, log if none has, or nothing."""


@dataclass(frozen=True)
class Place:
    """A watched output that held NaN or inf at the end of `steps` steps, of which `first` was the first.

    `launch` wrote it last. Where it `updates` the output, what it found there may have been NaN or inf
    already: from a launch of `before` or, if there is none, from before the step.
    """

    launch: str
    buffer: str
    first: int
    steps: int
    before: tuple[str, ...] = ()
    updates: bool = False

    def __str__(self) -> str:
        """One clause of a message."""
        when = f"in step {self.first} of all"
        if not self.updates:
            return f"{self.launch} left NaN or inf in {self.buffer} {when}"
        more = f" and {len(self.before) - _SHOWN} more" if len(self.before) > _SHOWN else ""
        earlier = f"before by {', '.join(self.before[:_SHOWN])}{more}" if self.before else "in place"
        return f"NaN or inf was left in {self.buffer} {when}, written last by {self.launch}, {earlier}"


@dataclass(frozen=True)
class NotFinite:
    """Everything that was found: in how many steps, and where, by first step and then in the order of the
    launches that wrote last. `unseen` has the ignored names of which the policy puts something back.
    """

    steps: int = 0
    places: tuple[Place, ...] = ()
    policy: str = "report"
    unseen: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line: the first place, how often, and what was done; empty when nothing was found."""
        if not self.places:
            return ""
        count = f"{self.steps} step{'s' * (self.steps != 1)} had some"
        done = {
            "skip-update": ", and did not update params",
            "stop": f", and params are as before step {self.places[0].first}",
        }.get(self.policy, "")
        if done and self.unseen:
            done += f"; ignored, so perhaps not finite for longer: {', '.join(self.unseen)}"
        others = f"; the first by last writer of {len(self.places)} outputs" if len(self.places) > 1 else ""
        return f"{self.places[0]}{others}; {count}{done}"


class Sentinel:
    """Follows row 0 of `sentinel.rows` as steps publish it, and reads the others when that has moved."""

    def __init__(self, plan: Plan, backend: Backend) -> None:
        """`backend` has the plan's memory."""
        self._plan, self._backend = plan, backend
        self._size = FOUND * (len(plan.watched) + 1) if plan.watched else 0
        self._known = self._nothing()
        self._next, self._raised = 1, False

    @property
    def words(self) -> int:
        """i64 that a step publishes: row 0, or none where nothing is watched."""
        return min(FOUND, self._size)

    def row(self) -> NDArray[np.int64]:
        """Row 0 as it is now, after everything enqueued has run."""
        return self._read()[: self.words]

    def forget(self) -> None:
        """Nothing was found: the state is another one now."""
        if self._size:
            self._backend.write(ROWS, 0, np.zeros(self._size, np.int64))
        self._known, self._next, self._raised = self._nothing(), 1, False

    def found(self, published: NDArray[np.int64]) -> NotFinite:
        """What was found up to the step that published row 0."""
        steps = int(published[2]) if published.size else 0
        if steps != self._known.steps:
            self._known = self._parse(self._read().reshape(-1, FOUND)) if steps else self._nothing()
        return self._known

    def check(self, published: NDArray[np.int64], stop: Stop = "raise") -> None:
        """Look at a published row 0; waits for the device only if there is something to say.

        Logs a warning when the steps with NaN or inf have reached 1, 2, 4, 8, …. Under the policy `stop`
        raises TrainerError FH552 or not, as `stop` says.
        """
        steps = int(published[2]) if published.size else 0
        if not steps or self._plan.policy == "off":
            return
        stops = self._plan.policy == "stop"
        if stops and (stop == "raise" or (stop == "once" and not self._raised)):
            found = self.found(published)
            self._raised = True
            help = f"{advice(self._plan, found)} Load a checkpoint or reset to go on; saving is allowed."
            raise fail(TrainerError, "FH552", found.text, help=help)
        if steps >= self._next and (not stops or (stop == "log" and not self._raised)):
            found = self.found(published)
            log.warning("%s. %s", found.text, advice(self._plan, found))
            self._next = 1 << found.steps.bit_length()

    def _nothing(self) -> NotFinite:
        return NotFinite(policy=self._plan.policy, unseen=self._plan.unseen)

    def _read(self) -> NDArray[np.int64]:
        return self._backend.read(ROWS, 0, self._size, "i64") if self._size else np.zeros(0, np.int64)

    def _parse(self, rows: NDArray[np.int64]) -> NotFinite:
        named = zip(self._plan.watched, rows[1:], strict=True)
        places = [
            Place(w.launch, w.buffer, int(first), int(n), w.before, w.updates)
            for w, (_, first, n) in named
            if n
        ]
        places.sort(key=lambda p: p.first)
        return replace(self._nothing(), steps=int(rows[0, 2]), places=tuple(places))


def advice(plan: Plan, found: NotFinite) -> str:
    """How to find out more: from a state before the first such step, if the fault shows there."""
    before = f" from a checkpoint of before step {found.places[0].first}" if found.places else ""
    return f"`{verify_command(plan)}` seeks launch and element{before}, in a few steps on random inputs."


def verify_command(plan: Plan) -> str:
    """The `foxhunt verify` that seeks NaN and inf in this program, at its dims."""
    variant = f" --variant {plan.variant}" if plan.variant != "default" else ""
    dims = "".join(f" --dim {name}={value}" for name, value in plan.given)
    return f"foxhunt verify {plan.program}{variant}{dims} --only finite --resume CHECKPOINT"

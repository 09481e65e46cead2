"""What the sentinels of a program have found: which outputs held NaN or inf, from which step on."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foxhunt.backend.base import Backend
from foxhunt.backend.plan import Plan
from foxhunt.diagnostics import TrainerError, fail

log = logging.getLogger(__name__)
ROWS = "sentinel.rows"
FOUND = 3
"""i64 of a row: the last step with NaN or inf, the first one, how many."""


@dataclass(frozen=True)
class Place:
    """A watched output that held NaN or inf at the end of `steps` steps, of which `first` was the first."""

    launch: str
    buffer: str
    first: int
    steps: int

    def __str__(self) -> str:
        """One clause of a message."""
        return f"{self.launch} left NaN or inf in {self.buffer} in step {self.first}"


@dataclass(frozen=True)
class NotFinite:
    """Everything that was found: in how many steps, and where, by first step and then in launch order."""

    steps: int = 0
    places: tuple[Place, ...] = ()
    policy: str = "report"

    @property
    def text(self) -> str:
        """One line: the first place, how often, and what was done; empty when nothing was found."""
        if not self.places:
            return ""
        count = f"{self.steps} step{'s' * (self.steps != 1)} had some"
        done = {
            "skip-update": ", and did not update params",
            "stop": ", and params are as before the first of them",
        }.get(self.policy, "")
        others = f", first of {len(self.places)} watched outputs" if len(self.places) > 1 else ""
        return f"{self.places[0]}{others}; {count}{done}"


class Sentinel:
    """Follows row 0 of `sentinel.rows` as steps publish it, and reads the others when that has moved."""

    def __init__(self, plan: Plan, backend: Backend) -> None:
        """`backend` has the plan's memory."""
        self._plan, self._backend = plan, backend
        self._size = FOUND * (len(plan.watched) + 1) if plan.watched else 0
        self._known = NotFinite()
        self._warned = False

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
        self._known, self._warned = NotFinite(), False

    def found(self, published: NDArray[np.int64]) -> NotFinite:
        """What was found up to the step that published row 0."""
        steps = int(published[2]) if published.size else 0
        if steps != self._known.steps:
            self._known = self._parse(self._read().reshape(-1, FOUND)) if steps else NotFinite()
        return self._known

    def check(self, published: NDArray[np.int64]) -> None:
        """Warn of the first find, or raise TrainerError FH552 of it, as the policy says."""
        if self._plan.policy == "off" or not (found := self.found(published)).places:
            return
        help = f"`foxhunt verify {self._plan.program} --only finite --resume CHECKPOINT` names the element."
        if self._plan.policy == "stop":
            help = f"{help} Load a checkpoint or reset to go on; saving is allowed."
            raise fail(TrainerError, "FH552", found.text, help=help)
        if not self._warned:
            log.warning("%s. %s", found.text, help)
            self._warned = True

    def _read(self) -> NDArray[np.int64]:
        return self._backend.read(ROWS, 0, self._size, "i64") if self._size else np.zeros(0, np.int64)

    def _parse(self, rows: NDArray[np.int64]) -> NotFinite:
        named = zip(self._plan.watched, rows[1:], strict=True)
        places = [Place(w.launch, w.buffer, int(first), int(n)) for w, (_, first, n) in named if n]
        places.sort(key=lambda p: p.first)
        return NotFinite(int(rows[0, 2]), tuple(places), self._plan.policy)

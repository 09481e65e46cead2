"""What a step reads although nothing was put there: inputs, and what only steps that have not run write."""

from __future__ import annotations

from collections.abc import Iterator

from foxhunt.backend.plan import Plan, Pointer, Step


class Feeding:
    """Who has written a plan's buffers so far; a step is judged when it runs first."""

    def __init__(self, plan: Plan) -> None:
        """Nothing was written, no step has run."""
        self._kept = {b.name for b in plan.buffers if b.checkpoint}
        self._reads = {s.name: _touched(s, "write") for s in plan.steps}
        self._writes = {s.name: _touched(s, "read") for s in plan.steps}
        self._roles = {b.name: b.role for b in plan.buffers}
        self._written: set[str] = set()
        self._ran: set[str] = set()

    def wrote(self, buffer: str) -> None:
        """Somebody has written a buffer from outside."""
        self._written.add(buffer)

    def loaded(self) -> None:
        """A checkpoint has been loaded: what it holds counts as written."""
        self._written |= self._kept

    def warnings(self, step: Step) -> Iterator[str]:
        """What to say before a step runs: of its inputs without values, and of its empty state."""
        if step.name in self._ran:
            return
        read = sorted(self._reads[step.name] - self._written)
        self._ran.add(step.name)
        if unfed := [b for b in read if self._roles[b] == "input"]:
            names = ", ".join(unfed)
            yield f"step {step.name} reads zeros where no input was written (write_tensor): {names}"
        writers = {b: self._writers(b) for b in read if self._roles[b] == "state"}
        empty = [b for b, names in writers.items() if names and not self._ran.intersection(names)]
        if empty:
            others = list(dict.fromkeys(name for b in empty for name in writers[b]))
            yield (
                f"step {step.name} reads what only other steps write, none of which has run "
                f"({', '.join(others)}): {', '.join(empty)}"
            )

    def _writers(self, buffer: str) -> list[str]:
        return [name for name, written in self._writes.items() if buffer in written]


def _touched(step: Step, but: str) -> set[str]:
    """The buffers that a step touches, apart from accesses of one kind."""
    pointers = (a for n in step.launches for a in n.args if isinstance(a, Pointer))
    return {a.buffer for a in pointers if a.access != but}

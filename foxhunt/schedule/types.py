"""What the scheduler decides: order, fused launches, lanes and places in the arena."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foxhunt.ir.types import Allocation, Edge, LaidOutProgram, Launch


@dataclass(frozen=True)
class FusedLaunch:
    """One device launch that runs `tasks` side by side: consecutive block ranges, one per task.

    A statistic group is one task per pass: its members share one sweep (`statistics` names them) and the
    pass number.
    """

    name: str  # the task's launch name, or "<step>.fused_<k>"
    entry: str  # C symbol
    tasks: tuple[Task, ...]
    block: int
    lane: int = 0

    @property
    def grid(self) -> int:
        """Blocks of all tasks."""
        return sum(t.grid for t in self.tasks)


@dataclass(frozen=True)
class Task:
    """One body or gemm launch, or one pass over one domain for a group of statistics."""

    launches: tuple[Launch, ...]  # one, or the merged statistics
    pass_index: int
    grid: int
    block: int


@dataclass(frozen=True)
class ScheduledStep:
    """One step in execution order."""

    name: str
    launches: tuple[FusedLaunch, ...]
    edges: tuple[Edge, ...]  # between fused launches, by name
    declared: int  # launches before merging and fusion


@dataclass(frozen=True)
class Schedule:
    """Everything that emission and the backends need."""

    laid_out: LaidOutProgram
    steps: tuple[ScheduledStep, ...]
    resets: tuple[ScheduledStep, ...]  # one per reset policy, named by it
    arena: Mapping[str, int] = field(hash=False)  # step allocation → byte offset
    arena_bytes: int = 0
    allocations: tuple[
        Allocation, ...
    ] = ()  # laid_out.allocations plus schedule-owned ones (partials, tickets)

"""Measured times of a step's launches beside what the scheduler knew: rates, the critical path, a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foxhunt.ir.access import traffic
from foxhunt.schedule.estimate import microseconds
from foxhunt.view.index import Index, flops, members


@dataclass(frozen=True)
class Timing:
    """One device launch. Times are microseconds from the step's start."""

    name: str
    entry: str  # the kernel's name in Nsight and perf
    kernels: tuple[str, ...]
    launches: tuple[str, ...]
    lane: int
    start: float  # where the schedule puts it: after what it waits for, and what its lane ran before
    microseconds: float  # measured
    estimated: float
    bytes: int  # distinct ranges that it names, once
    flops: int
    critical: bool  # on the longest chain of launches that wait for one another

    @property
    def bytes_per_second(self) -> float:
        """Bytes over measured time; caches can lift it above the copy rate."""
        return self.bytes / self.microseconds * 1e6 if self.microseconds else 0.0

    @property
    def flops_per_second(self) -> float:
        """Declared operations over measured time."""
        return self.flops / self.microseconds * 1e6 if self.microseconds else 0.0


@dataclass(frozen=True)
class Profile:
    """A step on one backend."""

    program: str
    step: str
    backend: str
    timings: tuple[Timing, ...]  # execution order
    step_microseconds: float  # of whole steps, run as usual
    copy_rate: float  # bytes a second

    @property
    def sum_microseconds(self) -> float:
        """All launches one after the other."""
        return sum(t.microseconds for t in self.timings)

    @property
    def critical_microseconds(self) -> float:
        """The longest chain: no number of lanes makes a step shorter."""
        return sum(t.microseconds for t in self.timings if t.critical)


def profile(
    index: Index,
    step: str,
    times: Mapping[str, float],
    step_microseconds: float,
    backend: str,
    copy_rate: float,
) -> Profile:
    """What `times` (microseconds by device launch) mean for a step's graph."""
    scheduled = index.steps[step]
    launches = scheduled.launches
    before: dict[str, list[str]] = {}
    for e in scheduled.edges:
        before.setdefault(e.after, []).append(e.before)
    critical = _critical(tuple(n.name for n in launches), before, times)
    ends: dict[str, float] = {}
    free: dict[int, float] = {}
    timings = []
    for fused in launches:
        start = max([free.get(fused.lane, 0.0), *(ends[n] for n in before.get(fused.name, ()))])
        ends[fused.name] = free[fused.lane] = start + times[fused.name]
        inside = members(fused)
        timings.append(
            Timing(
                fused.name,
                fused.entry,
                tuple(dict.fromkeys(n.kernel.kernel for n in inside)),
                tuple(dict.fromkeys(n.name for n in inside)),
                fused.lane,
                start,
                times[fused.name],
                max(microseconds(n) for n in inside),
                sum(traffic(n) for n in inside),
                sum(flops(n) for n in inside),
                fused.name in critical,
            )
        )
    return Profile(index.program, step, backend, tuple(timings), step_microseconds, copy_rate)


def _critical(
    order: tuple[str, ...], before: Mapping[str, list[str]], times: Mapping[str, float]
) -> frozenset[str]:
    """The launches of the longest path; `order` is topological."""
    length: dict[str, float] = {}
    came: dict[str, str | None] = {}
    for name in order:
        came[name] = max(before.get(name, ()), key=lambda n: length[n], default=None)
        length[name] = times[name] + length.get(came[name] or "", 0.0)
    at = max(length, key=lambda n: length[n], default=None)
    path = set()
    while at is not None:
        path.add(at)
        at = came[at]
    return frozenset(path)


def trace(measured: Profile) -> dict[str, Any]:
    """The step for chrome://tracing and ui.perfetto.dev: a track a lane."""
    events: list[dict[str, Any]] = [
        {
            "ph": "M",
            "pid": 0,
            "name": "process_name",
            "args": {"name": f"{measured.program} on {measured.backend}"},
        }
    ]
    for lane in sorted({t.lane for t in measured.timings}):
        events.append(
            {"ph": "M", "pid": 0, "tid": lane, "name": "thread_name", "args": {"name": f"lane {lane}"}}
        )
    for t in measured.timings:
        events.append(
            {
                "ph": "X",
                "pid": 0,
                "tid": t.lane,
                "ts": round(t.start, 3),
                "dur": round(t.microseconds, 3),
                "name": t.name,
                "cat": "critical" if t.critical else "launch",
                "args": {
                    "entry": t.entry,
                    "kernels": ", ".join(t.kernels),
                    "launches": ", ".join(t.launches),
                    "bytes": t.bytes,
                    "bytes_per_second": round(t.bytes_per_second),
                    "share_of_copy_rate": round(t.bytes_per_second / measured.copy_rate, 4),
                    "flops": t.flops,
                    "estimated_us": round(t.estimated, 3),
                    "on_critical_path": t.critical,
                },
            }
        )
    return {"displayTimeUnit": "ns", "traceEvents": events, "otherData": {"step": measured.step}}

"""What the sentinel of each step reads, and what a step has to keep so that its update can be undone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from foxhunt.dtypes import F32
from foxhunt.ir.access import traffic
from foxhunt.ir.intervals import Intervals
from foxhunt.ir.types import Access, Launch, Lifetime, Program, Range, Step, Watched

SHARE = 50
"""The sentinel reads a fiftieth of the bytes that a step's launches name, or `LEAST` where that is more."""
LEAST = 1 << 16
MOST = 192
"""Rows of one sentinel: each has two argument words, and a device launch takes about 500."""
ANY = "any output"
"""What row 0 stands for: it is set with every other row."""


def watched(program: Program) -> tuple[Watched, ...]:
    """The outputs that the sentinels of a laid-out program read, step by step in program order, from row 1
    on; none with `health: {policy: off}`.

    They are the f32 outputs of declared launches that stand at the end of the step, the smallest first.
    Observations are left out, since the applicator refuses what is not finite, and so are slots, moments of
    params (they follow from gradients) and the buffers that `ignore` names.
    """
    if policy(program) == "off":
        return ()
    health = program.source.health
    ignored = frozenset(health.ignore if health is not None else ())
    moments = {b for b, suffix in _trained(program).items() if suffix in ("m", "v")}
    chosen = [(s.name, n, r) for s in program.steps for n, r in _chosen(s, moments, ignored)]
    return tuple(Watched(step, launch, r, k) for k, (step, launch, r) in enumerate(chosen, start=1))


def policy(program: Program) -> str:
    """What happens when a value is not finite: report, skip-update, stop or off."""
    return program.source.health.policy if program.source.health is not None else "report"


def _chosen(step: Step, moments: Collection[str], ignored: Collection[str]) -> list[tuple[str, Range]]:
    found = [
        (r.stop - r.start, k, place, r)
        for place, (k, r) in enumerate(_standing(step.launches))
        if r.dtype is F32
        and r.base not in ("isv", "scratch")
        and r.base not in moments
        and r.text.partition("[")[0] not in ignored
    ]
    left = max(LEAST, sum(map(traffic, step.launches)) // SHARE)
    kept = []
    for size, k, place, r in sorted(found, key=lambda f: f[:2])[:MOST]:
        left -= size
        if left < 0:
            break
        kept.append((k, place, r))
    kept.sort(key=lambda f: f[:2])
    return [(step.launches[k].name, r) for k, _, r in kept]


def _standing(launches: Sequence[Launch]) -> Iterator[tuple[int, Range]]:
    """Outputs that no later launch writes into: they show what their launch has left."""
    later: dict[str, Intervals] = {}
    for k in range(len(launches) - 1, -1, -1):
        outputs = [
            r for a in launches[k].arguments if a.access is not Access.READ for r in a.ranges if r.count
        ]
        for r in outputs:
            if not any(later.setdefault(r.base, Intervals()).overlapping(r.start, r.stop)):
                yield k, r
        for r in outputs:
            later[r.base].write(r.start, r.stop, k)


def kept(program: Program, step: Step) -> tuple[Range, ...]:
    """What `skip-update` and `stop` put back: for each allocation the run of bytes in which the step writes
    params, their moments, or persistent floats that a launch makes from params (a target network, say).
    """
    if policy(program) not in ("skip-update", "stop"):
        return ()
    trained = _trained(program)
    state = {t.name for t in program.tensors if t.lifetime is Lifetime.PERSISTENT and t.dtype is F32}
    spans: dict[str, tuple[int, int]] = {}
    for launch in step.launches:
        updates = any(r.base in trained for a in launch.arguments for r in a.ranges)
        for a in launch.arguments if updates else ():
            for r in a.ranges if a.access is not Access.READ else ():
                if r.count and (r.base in trained or r.base in state):
                    low, high = spans.get(r.base, (r.offset, r.offset))
                    spans[r.base] = min(low, r.offset), max(high, r.offset + r.count)
    return tuple(
        Range(base, low, F32, (high - low,), f"{base} [{low}:{high})")
        for base, (low, high) in sorted(spans.items())
    )


def shadow(step: str, kept: Range) -> str:
    """The step allocation that holds what a range had at the start of the step."""
    return f"sentinel.{step}.{kept.base}"


def _trained(program: Program) -> Mapping[str, str]:
    """Allocations of params and moments, with "", "m" or "v"."""
    bases = ["params", *(t.name for t in program.tensors if t.separate)]
    return {(f"{b}.{suffix}" if suffix else b): suffix for b in bases for suffix in ("", "m", "v")}

"""What the last step left in its gradients: an optimiser such as adamw skips NaN and inf without a word."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.backend.plan import Launch, Plan, Pointer, Step, View
from foxhunt.diagnostics import Diagnostic
from foxhunt.dtypes import DTYPES

_SHOWN = 5


def left_gradients(plan: Plan, step: Step) -> tuple[View, ...]:
    """The gradients of params and groups that still stand in memory when `step` has ended.

    That is a view `<param>.g` which a launch reads that updates the param, and over which no later launch of
    the step writes: step buffers share memory.
    """
    views = {view.name: view for view in plan.views}
    ranges = [{_range(a): a.access for a in n.args if isinstance(a, Pointer)} for n in step.launches]
    found = []
    for name, gradient in views.items():
        param = views.get(name.removesuffix(".g"))
        if param is None or param is gradient:
            continue
        pair = _range_of(gradient), _range_of(param)
        used = [k for k, r in enumerate(ranges) if (r.get(pair[0]), r.get(pair[1])) == ("read", "update")]
        if used and not any(_writes(n, pair[0]) for n in step.launches[used[-1] + 1 :]):
            found.append(gradient)
    return tuple(found)


def skipped(plan: Plan, step: Step, read: Callable[[View], NDArray[Any]]) -> tuple[Diagnostic, ...]:
    """A warning of gradients with NaN or inf after `step`, with the inputs and data that hold some too."""
    bad = _not_finite(left_gradients(plan, step), read)
    if not bad:
        return ()
    message = f"the last step {step.name} had NaN or inf in its gradients: {_listed(bad)}."
    given = {b.name for b in plan.buffers if b.role in ("input", "resident") and b.dtype == "f32"}
    fed = _not_finite((v for v in plan.views if v.buffer in given), read)
    source = f" So have these inputs: {_listed(fed)}." if fed else ""
    help = "adamw leaves such elements of a param as they are, so they do not train."
    if plan.policy in ("skip-update", "stop"):
        help = f"The policy {plan.policy} has not let that step update params."
    return (Diagnostic("FH551", message + source, None, help, "warning"),)


_Range = tuple[str, int, int]


def _range(pointer: Pointer) -> _Range:
    """(buffer, first byte, byte after the last)."""
    end = pointer.offset + pointer.count * DTYPES[pointer.dtype].size
    return pointer.buffer, pointer.offset, end


def _range_of(view: View) -> _Range:
    size = DTYPES[view.dtype].size
    return view.buffer, view.offset * size, (view.offset + prod(view.shape)) * size


def _writes(launch: Launch, range: _Range) -> bool:
    buffer, start, end = range
    pointers = (a for a in launch.args if isinstance(a, Pointer) and a.access != "read")
    return any(b == buffer and s < end and start < e for b, s, e in map(_range, pointers))


def _not_finite(views: Iterable[View], read: Callable[[View], NDArray[Any]]) -> list[str]:
    counts = ((v.name, int(np.count_nonzero(~np.isfinite(read(v)))), prod(v.shape)) for v in views)
    return [f"{name} ({bad} of {count})" for name, bad, count in counts if bad]


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more

"""Finding a plan's names: nearest spellings, and the views that cover a buffer once."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from foxhunt.backend.plan import Plan, Step, View
from foxhunt.diagnostics import FoxhuntError, TrainerError, closest, fail


def unknown(code: str, kind: str, name: object, known: Iterable[str]) -> FoxhuntError:
    """The error for a name that does not exist, or is none at all, offering the nearest one that does."""
    names = list(known)
    near = closest(name, names, cutoff=0.5) if isinstance(name, str) else None
    help = f"Did you mean {near}?" if near else f"Known: {', '.join(names[:20]) or 'none'}."
    return fail(TrainerError, code, f"there is no {kind} {name!r:.60}", help=help)


def step_of(plan: Plan, name: str | None) -> Step:
    """The step of that name, or the program's first. Raises TrainerError FH543."""
    steps = {s.name: s for s in plan.steps}
    if name is None and steps:
        return plan.steps[0]
    if not isinstance(name, str) or name not in steps:
        raise unknown("FH543", "step", "" if name is None else name, steps)
    return steps[name]


def finest_views(plan: Plan, buffer: str) -> list[View]:
    """The views of a buffer that cover it once: not a group, which starts with its first param."""
    chosen: list[View] = []
    views = [v for v in plan.views if v.buffer == buffer]
    for view in sorted(views, key=lambda v: (v.offset, prod(v.shape), v.name)):
        if not chosen or view.offset >= chosen[-1].offset + prod(chosen[-1].shape):
            chosen.append(view)
    return chosen

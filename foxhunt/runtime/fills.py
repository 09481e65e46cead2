"""What buffers hold at first: arrays of data sources, which must fit, and initial values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from foxhunt.backend.plan import Plan, View
from foxhunt.diagnostics import DataError, Diagnostic
from foxhunt.dtypes import DTYPES
from foxhunt.runtime.data import load_source
from foxhunt.runtime.init import initial
from foxhunt.runtime.views import finest_views


def load_fills(plan: Plan, folder: Path) -> list[tuple[View, NDArray[Any]]]:
    """The resident buffers that a data source fills, with their arrays. Raises DataError."""
    wanted = [v for v in plan.views if v.fill]
    used = {str(v.fill).partition(".")[0] for v in wanted}
    arrays = {
        f"{s.name}.{key}": a for s in plan.data if s.name in used for key, a in load_source(s, folder).items()
    }
    problems = [p for v in wanted if (p := _fill_problem(v, arrays))]
    if problems:
        raise DataError(tuple(problems))
    return [(v, arrays[str(v.fill)]) for v in wanted]


def first_values(plan: Plan, seed: int, policy: str | None) -> Iterator[tuple[View, NDArray[Any]]]:
    """First values of all params and persistent buffers, or of those with one reset policy."""
    for buffer in plan.buffers:
        for view in finest_views(plan, buffer.name) if buffer.role in ("params", "state") else ():
            if view.reset == policy or (policy is None and view.init != "zeros"):
                values = initial(view.init, view.shape, seed, view.name)
                yield view, values.astype(DTYPES[view.dtype].numpy)


def _fill_problem(view: View, arrays: dict[str, NDArray[Any]]) -> Diagnostic | None:
    array = arrays.get(str(view.fill))
    dtype = DTYPES[view.dtype].numpy
    if array is None:
        message = f"{view.name}: no data source gives {view.fill}; there are {', '.join(arrays)}"
        return Diagnostic("FH526", message, about=view.name)
    if array.shape != view.shape or array.dtype != dtype:
        message = (
            f"{view.name} is {dtype} {list(view.shape)}, {view.fill} gives {array.dtype} {list(array.shape)}"
        )
        help = "Set the program's dims to the sizes of the data."
        return Diagnostic("FH526", message, help=help, about=view.name)
    return None

"""What a trainer's methods accept: a wrong argument is refused with its reason before anything changes."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foxhunt.backend.plan import View
from foxhunt.diagnostics import FoxhuntError, TrainerError, fail
from foxhunt.dtypes import DTYPES


def whole(value: Any) -> int | None:
    """The number that a Python or NumPy integer is; None for all else, also for True and False."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def seed_of(value: Any) -> int:
    """A seed. Raises TrainerError FH542 for what is no integer of 64 bits."""
    seed = whole(value)
    if seed is None or not -(2**63) <= seed < 2**63:
        raise fail(
            TrainerError, "FH542", f"the seed must be a whole number that fits in 64 bits, not {value!r:.60}"
        )
    return seed


def path_of(value: Any, kind: type[FoxhuntError], code: str) -> Path:
    """A path. Raises `kind` with `code` for what is neither text nor a path."""
    try:
        return Path(value)
    except TypeError as error:
        raise fail(kind, code, f"a path is text or a pathlib.Path, not {value!r:.60}") from error


def values_of(view: View, values: ArrayLike) -> NDArray[Any]:
    """Values for a tensor, in its dtype and shape. NaN and inf pass.

    Raises TrainerError FH544 for values of another shape or kind, or too large for the dtype.
    """
    dtype = np.dtype(DTYPES[view.dtype].numpy)
    wanted = f"{view.name} is {dtype} {list(view.shape)}"
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise fail(TrainerError, "FH544", f"{wanted}, and these values are no array: {error}") from error
    fits = array.dtype.kind in "biuf" and np.can_cast(array.dtype, dtype, "same_kind")
    if array.shape != view.shape or not fits:
        raise fail(TrainerError, "FH544", f"{wanted}, not {array.dtype} {list(array.shape)}")
    with np.errstate(over="ignore"):
        cast: NDArray[Any] = array.astype(dtype)
    changed = np.isfinite(cast) != np.isfinite(array) if dtype.kind == "f" else cast != array
    if changed.any():
        example = array[changed].flat[0]
        raise fail(TrainerError, "FH544", f"{wanted}, which has no room for {example}")
    return cast

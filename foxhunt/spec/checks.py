"""Validators of single values, for the models: each returns its value or raises with a code of its own."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Set as AbstractSet

from pydantic_core import PydanticCustomError

from foxhunt import expr
from foxhunt.spec.names import reason_against
from foxhunt.spec.text import preview

_REST = re.compile(r"\.\.\.([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)


def _refuse(code: str, message: str, help: str = "", column: int = 1) -> PydanticCustomError:
    """An error that `spec.explain` turns into a diagnostic; the message is data, never a template."""
    return PydanticCustomError(
        "foxhunt", "{message}", {"message": message, "code": code, "help": help, "column": column}
    )


def check_name(name: str) -> str:
    """A name that C++, CUDA and Python leave free."""
    reason = reason_against(name)
    if reason:
        raise _refuse("FH113", f"the name {preview(name)} {reason}", "choose another name")
    return name


def check_size(size: int | str) -> int | str:
    """An integer from 0 to 2**63 - 1, or a text that parses as a size expression."""
    try:
        if isinstance(size, int):
            expr.evaluate(size, {})
        else:
            expr.symbols(size)
    except expr.ExprError as error:
        raise _refuse("FH112", f"bad size: {error.message}", error.help, error.column) from None
    return size


def check_extent(size: int | str) -> int | str:
    """An element of a shape: a size, or `...n` (any rank)."""
    if isinstance(size, str) and size.startswith("..."):
        if not _REST.fullmatch(size):
            raise _refuse("FH112", f"{preview(size)} must be `...` and a symbol")
        return size
    return check_size(size)


def check_shape(shape: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """`...n` stands alone."""
    if len(shape) > 1 and any(isinstance(size, str) and size.startswith("...") for size in shape):
        raise _refuse("FH112", "`...n` takes all of a shape and stands alone in it")
    return shape


def check_number(value: float) -> float:
    """A number that float32 can hold: finite, not flushed to 0, and not rounded to 1."""
    if not math.isfinite(value):
        raise _refuse("FH112", f"{value} is not a finite number")
    try:
        (single,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        raise _refuse("FH112", f"{value!r} is outside the range of float32") from None
    if value != 0.0 and single == 0.0:
        raise _refuse("FH112", f"{value!r} becomes 0 in float32")
    if value != 1.0 and single == 1.0:
        raise _refuse("FH112", f"{value!r} becomes 1 in float32", "use 1.0, or a number further from it")
    return value


_FORMS = {
    "kernel": ("args", "bind", "as_", "after"),
    "use": ("with_", "as_", "after"),
    "producers": ("after",),
}


def check_item(given: AbstractSet[str]) -> None:
    """Exactly one form, with that form's own keys. `given` are the field names that the item sets."""
    forms = [form for form in _FORMS if form in given]
    if len(forms) != 1:
        seen = " and ".join(f"`{form}`" for form in forms) or "none of them"
        raise _refuse(
            "FH114", f"an item is exactly one of `kernel`, `use` and `producers`; this one is {seen}"
        )
    for key in ("args", "with_", "bind", "as_", "after"):
        if key in given and key not in _FORMS[forms[0]]:
            allowed = ", ".join(f"`{k.rstrip('_')}`" for k in _FORMS[forms[0]])
            message = f"an item with `{forms[0]}` takes no `{key.rstrip('_')}`"
            raise _refuse("FH114", message, f"it may have {allowed}")

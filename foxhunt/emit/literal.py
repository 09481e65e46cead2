"""A frozen dataclass value as Python text that evaluates to an equal value."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

WIDTH = 100


def literal(value: Any, indent: int = 0, lead: int = 0) -> str:
    """Python text of dataclasses, tuples, numbers, texts and None, one line if it is short.

    It starts on a line with `lead` characters behind `indent` blanks. Fields without a default stand by
    position on one line, by name on several; defaults left alone are left out.

    >>> literal((1, -0.0, "a", None, float("inf")))
    '(1, -0.0, "a", None, float("inf"))'
    """
    flat = _flat(value, WIDTH - indent - lead)
    if flat is not None:
        return flat
    pad = " " * (indent + 4)
    if isinstance(value, tuple):
        rows = [literal(v, indent + 4) for v in value]
        return "(\n" + "".join(f"{pad}{r},\n" for r in rows) + " " * indent + ")"
    if _is_record(value):
        rows = [f"{n}={literal(v, indent + 4, len(n) + 1)}" for n, v, _ in _fields(value)]
        return f"{type(value).__name__}(\n" + "".join(f"{pad}{r},\n" for r in rows) + " " * indent + ")"
    return _atom(value)


def names(value: Any, text: str) -> list[str]:
    """The dataclasses of `value`'s module that its text calls, sorted: what has to be imported."""
    module = vars(sys.modules[type(value).__module__])
    return sorted(n for n, v in module.items() if dataclasses.is_dataclass(v) and f"{n}(" in text)


def _is_record(value: Any) -> bool:
    return hasattr(type(value), "__dataclass_fields__")


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((f.name, f.default) for f in dataclasses.fields(kind))


def _fields(value: Any) -> Iterator[tuple[str, Any, bool]]:
    """Name, value, and whether the field has no default; defaults that were left alone are skipped."""
    for name, default in _defaults(type(value)):  # type: ignore[arg-type]  # a class is hashable
        found = getattr(value, name)
        required = default is dataclasses.MISSING
        if required or found != default or _atom(found) != _atom(default):
            yield name, found, required


def _flat(value: Any, room: int) -> str | None:
    """One line of text, or None where it would be longer than `room`."""
    if isinstance(value, tuple):
        found = _parts((("", v) for v in value), room - 2)
        return None if found is None else f"({found},)" if len(value) == 1 else f"({found})"
    if _is_record(value):
        name = type(value).__name__
        found = _parts((("" if r else f"{n}=", v) for n, v, r in _fields(value)), room - len(name) - 2)
        return None if found is None else f"{name}({found})"
    text = _atom(value)
    return text if len(text) <= room else None


def _parts(values: Iterator[tuple[str, Any]], room: int) -> str | None:
    """Values behind their labels, joined by commas; None as soon as there is no room."""
    parts: list[str] = []
    for label, value in values:
        part = _flat(value, room - len(label))
        if part is None:
            return None
        parts.append(label + part)
        room -= len(parts[-1]) + 2
        if room < -2:
            return None
    return ", ".join(parts)


def _atom(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str) and value.isprintable() and not set(value) & {'"', "\\"}:
        return f'"{value}"'
    return repr(value)

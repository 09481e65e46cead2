"""A frozen dataclass value as Python text that evaluates to an equal value."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

WIDTH = 100


def literal(value: Any, indent: int = 0) -> str:
    """Python text of dataclasses, tuples, numbers, texts and None, one line if it is short.

    A dataclass with defaults left alone leaves them out; fields without a default stand by position where the
    value fits a line, by name otherwise.

    >>> literal((1, -0.0, "a", None, float("inf")))
    '(1, -0.0, "a", None, float("inf"))'
    """
    flat = _flat(value, WIDTH - indent)
    if flat is not None:
        return flat
    pad = " " * (indent + 4)
    if dataclasses.is_dataclass(value):
        rows = [f"{n}={literal(v, indent + 4)}" for n, v, _ in _fields(value)]
        return f"{type(value).__name__}(\n" + "".join(f"{pad}{r},\n" for r in rows) + " " * indent + ")"
    if isinstance(value, tuple):
        rows = [literal(v, indent + 4) for v in value]
        return "(\n" + "".join(f"{pad}{r},\n" for r in rows) + " " * indent + ")"
    return _atom(value)


def names(value: Any) -> set[str]:
    """The names of all dataclasses inside a value."""
    if isinstance(value, tuple):
        return set().union(*map(names, value)) if value else set()
    if dataclasses.is_dataclass(value):
        return {type(value).__name__}.union(
            *(names(getattr(value, f.name)) for f in dataclasses.fields(value))
        )
    return set()


def _fields(value: Any) -> Iterator[tuple[str, Any, bool]]:
    """Name, value, and whether the field has no default; defaults that were left alone are skipped."""
    for f in dataclasses.fields(value):
        found = getattr(value, f.name)
        required = f.default is dataclasses.MISSING
        if required or found != f.default or _atom(found) != _atom(f.default):
            yield f.name, found, required


def _flat(value: Any, room: int) -> str | None:
    """One line of text, or None where it would be longer than `room`."""
    if isinstance(value, tuple):
        parts = []
        for v in value:
            part = _flat(v, room)
            room -= len(part) + 2 if part is not None else room + 1
            if part is None or room < 0:
                return None
            parts.append(part)
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if dataclasses.is_dataclass(value):
        parts = []
        for name, v, required in _fields(value):
            part = _flat(v, room)
            if part is None:
                return None
            parts.append(part if required else f"{name}={part}")
        text = f"{type(value).__name__}({', '.join(parts)})"
        return text if len(text) <= room else None
    text = _atom(value)
    return text if len(text) <= room else None


def _atom(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str) and value.isprintable() and not set(value) & {'"', "\\"}:
        return f'"{value}"'
    return repr(value)

"""Values of a spec in words, for messages: short, on one line, without control characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foxhunt.diagnostics import closest


def describe(value: Any) -> str:
    """What a value is, in a spec author's words."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, tuple | list):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    return f"the text {preview(value)}" if isinstance(value, str) else preview(value)


def preview(value: Any) -> str:
    """A value as Python writes it, cut to one short line."""
    plain = isinstance(value, str) and value.isprintable()
    return shorten(repr(value) if plain else ascii(value))


def shorten(text: str, width: int = 70) -> str:
    """A text cut to `width` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def nearest(name: str, allowed: Iterable[str], noun: str = "allowed here") -> str:
    """The mend for a misspelt name: the nearest right one, or all of them where none is near."""
    known = sorted(allowed)
    near = closest(name, known)
    if near is not None:
        return f"did you mean `{near}`?"
    return f"{noun}: {', '.join(f'`{k}`' for k in known)}" if known else ""

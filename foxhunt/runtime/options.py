"""Options of a data source, as a reader's dataclass: unknown names and wrong values are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from foxhunt.diagnostics import DataError, Location, closest, fail

Options = Mapping[str, int | float | str]
Chosen = TypeVar("Chosen")


def read_options(reader: str, kind: type[Chosen], options: Options, path: Path) -> Chosen:
    """The dataclass `kind`, whose fields are `int` or `float` with defaults, with the options given.

    Every value must be finite and above 0, whole where the field is. Raises DataError FH527 at `path`.
    """
    known = {f.name: f.type for f in fields(kind)}  # type: ignore[arg-type]
    for name, value in options.items():
        if name not in known:
            near = closest(name, known)
            help = f"Did you mean {near}?" if near else f"Options: {', '.join(known)}."
            message = f"reader {reader} has no option {name!r}"
            raise fail(DataError, "FH527", message, at=Location(str(path)), help=help)
        whole = known[name] == "int"
        sound = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not sound or not 0 < float(value) < math.inf:
            wanted = "a positive whole number" if whole else "a positive number"
            message = f"option {name} must be {wanted}, not {value!r}"
            raise fail(DataError, "FH527", message, at=Location(str(path)))
    values: dict[str, Any] = dict(options)
    return kind(**values)

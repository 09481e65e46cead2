"""What an emitted source includes by quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from foxhunt.diagnostics import BuildError, Location, fail

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def included(path: Path, text: str, folders: Sequence[Path] = ()) -> list[Path]:
    """The files that `text`, the source at `path`, includes from its own folder or from `folders`, in order.

    Headers that are in none of these are the compiler's own. Raises BuildError FH464 for an emitted one
    (`.cuh`), which has been deleted.
    """
    found = []
    for name in _INCLUDE.findall(text):
        places = [(folder / name).resolve() for folder in (path.parent, *folders)]
        there = [place for place in places if place.is_file()]
        if not there and name.endswith(".cuh"):
            message = f"{places[0].name} is missing in {places[0].parent}"
            at = Location(str(places[0]))
            raise fail(BuildError, "FH464", message, at=at, help="Run `foxhunt compile` again.")
        found += there
    return found

"""Programs compiled in memory, with every intermediate value, for the commands that look inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from foxhunt.cli.compile import generated_beside

if TYPE_CHECKING:
    from foxhunt.view.index import Index


def open_programs(
    specs: Path,
    programs: Iterable[str] | None,
    variant: str = "default",
    dims: Mapping[str, int] | None = None,
) -> list[Index]:
    """The programs named, or all, by name, at the positions of their committed locks; nothing is written.

    Raises SpecError and EmissionError with all findings.
    """
    from foxhunt.contract.lock import LOCK_FILE
    from foxhunt.pipeline import compile_program, project_templates
    from foxhunt.pipeline.cached import committed_lock, whole_programs
    from foxhunt.spec.load import load_specs
    from foxhunt.view.index import Index

    loaded = load_specs(specs)
    templates = project_templates(specs)
    found = []
    for name in whole_programs(loaded) if programs is None else programs:
        lock = committed_lock(generated_beside(specs) / name / LOCK_FILE)
        found.append(Index(loaded, compile_program(loaded, name, variant, dims, templates, lock)))
    return found


def write_file(path: Path, text: str) -> None:
    """Write a result, whole or not at all, with the folders it needs. Raises EmissionError FH495."""
    from foxhunt.diagnostics import EmissionError, Location, fail
    from foxhunt.runtime.atomic import write_atomic

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # a pipe or device is written to, never replaced
            path.write_bytes(text.encode())
        else:
            write_atomic(path, text.encode())
    except OSError as error:
        message = f"the file cannot be written: {error.strerror}"
        raise fail(EmissionError, "FH495", message, at=Location(str(path))) from error

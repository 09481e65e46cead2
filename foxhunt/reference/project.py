"""The references of a project's own kernels: the Python files of `reference/` beside its specs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from foxhunt.diagnostics import Location, SpecError, fail


def load_project_references(specs: Path) -> None:
    """Put the functions that `<project>/reference/*.py` decorate with `@reference` into `REFERENCES`.

    A file sees the library's registry, as `from foxhunt.reference.registry import reference`; a reference of
    a name that the library has takes its place. Raises SpecError FH567 for a file that does not run.
    """
    for path in sorted((specs.resolve().parent / "reference").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"project_reference_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except Exception as error:
            line = _line(error, path)
            message = f"the reference does not run: {type(error).__name__}: {error}"
            raise fail(SpecError, "FH567", message, at=Location(str(path), line)) from error


def _line(error: Exception, path: Path) -> int:
    """The last line of the file that the error passed through."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    found, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            found = trace.tb_lineno
        trace = trace.tb_next
    return found

"""Specs written into a temporary folder, loaded, and their findings as a person sees them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from foxhunt.diagnostics import Diagnostic, SpecError, render_text
from foxhunt.spec.load import load_specs

KERNEL = """\
kernel: rms
kind: statistic
doc: Root mean square of the finite elements.
params:
  x: {access: read, dtype: f32, shape: [...n]}
  y: {access: write, dtype: f32, shape: [1]}
degenerate: zero
reference: rms
examples: [{n: 4096, x: normal}, {n: 1, x: [3.5]}]
tolerance: {rtol: 1.0e-6}
"""


@pytest.fixture(autouse=True)
def no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests speak of their own files only; reading the library would take most of their time."""
    monkeypatch.setattr("foxhunt.spec.load.library_root", lambda: tmp_path / "no library")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str | bytes]], Path]:
    """Writes files below `specs/` of a fresh working directory and returns `specs` as a relative path."""
    monkeypatch.chdir(tmp_path)

    def write_files(files: dict[str, str | bytes]) -> Path:
        for name, content in files.items():
            path = Path("specs", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return Path("specs")

    return write_files


@pytest.fixture
def findings(write) -> Callable[[dict[str, str | bytes]], tuple[Diagnostic, ...]]:
    """The findings of loading these files; none if they are right."""

    def load(files: dict[str, str | bytes]) -> tuple[Diagnostic, ...]:
        try:
            load_specs(write(files))
        except SpecError as error:
            return error.diagnostics
        return ()

    return load


@pytest.fixture
def told(findings) -> Callable[..., str]:
    """The findings of these files, or of one text as program `p`, as a person reads them."""

    def text(files: dict[str, str | bytes] | str) -> str:
        found = findings({"p/program.yaml": files} if isinstance(files, str) else files)
        paths = {d.location.path for d in found if d.location and os.path.isfile(d.location.path)}
        return render_text(found, {p: Path(p).read_text("utf-8-sig", "replace") for p in paths})

    return text

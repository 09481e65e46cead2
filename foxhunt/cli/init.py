"""`foxhunt init`: a working project in a folder of its own."""

from __future__ import annotations

import json
import re
import shlex
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

import click

from foxhunt.cli.compile import write
from foxhunt.diagnostics import EmissionError, Location, fail
from foxhunt.pipeline import compile_specs
from foxhunt.spec.library import library_root

_HIDDEN = {"gitignore": ".gitignore", "github": ".github"}
"""Names that a package had better not carry as they are."""


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Make a working project in DIR, which must be new or empty.

    \b
        foxhunt init mine && cd mine
        uv run foxhunt train fit
        uv run pytest

    It has specs/, templates/ and references of its own, the built-in kernels behind them, compiled files,
    tests and a CI file. Its program fits a plane; start from it, or replace it.
    """
    if folder.exists() and (not folder.is_dir() or any(p.name != ".git" for p in folder.iterdir())):
        help = "Name a new or empty folder; nothing was written."
        raise fail(EmissionError, "FH613", "there is something already", at=Location(str(folder)), help=help)
    files = skeleton() | {"pyproject.toml": pyproject(folder.resolve().name)}
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"the project cannot be written: {error.strerror}"
        raise fail(EmissionError, "FH613", message, at=Location(str(error.filename or folder))) from error
    for result in compile_specs(folder / "specs", folder / "generated"):
        write(result, folder / "generated" / result.summary.program)
    click.echo(f"{folder}: a project with the program `fit`, compiled. Next:\n")
    click.echo(f"    cd {shlex.quote(str(folder))}\n    uv run foxhunt train fit\n    uv run pytest\n")
    click.echo("README.md there says where everything is.")


def skeleton() -> dict[str, str]:
    """Path → text of the files that every project starts with, but for pyproject.toml."""
    root = library_root() / "skeleton"
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            parts = path.relative_to(root).parts
            found["/".join((_HIDDEN.get(parts[0], parts[0]), *parts[1:]))] = path.read_text(encoding="utf-8")
    return found


def pyproject(name: str) -> str:
    """The project's pyproject.toml; foxhunt comes from where this one does."""
    project = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "project"
    source = _source()
    sources = f"\n[tool.uv.sources]\nfoxhunt = {source}\n" if source else ""
    return (
        f'[project]\nname = "{project}"\nversion = "0.1.0"\nrequires-python = ">=3.11"\n'
        'dependencies = ["foxhunt"]\n\n'
        "[project.optional-dependencies]\n"
        'cuda12 = ["foxhunt[cuda12]"]\ncuda13 = ["foxhunt[cuda13]"]\n\n'
        '[dependency-groups]\ndev = ["pytest>=8.3"]\n\n'
        "[tool.uv]\npackage = false\n"
        'conflicts = [[{ extra = "cuda12" }, { extra = "cuda13" }]]\n'
        f"{sources}\n"
        '[tool.pytest.ini_options]\ntestpaths = ["tests"]\naddopts = "-q"\n'
    )


def _source() -> str:
    """Where uv finds this foxhunt, when it was not installed from an index."""
    try:
        told = json.loads(metadata.distribution("foxhunt").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return ""
    url, vcs = str(told.get("url", "")), told.get("vcs_info", {})
    if url.startswith("file:"):
        editable = ", editable = true" if told.get("dir_info", {}).get("editable") else ""
        return f"{{ path = {json.dumps(unquote(urlparse(url).path))}{editable} }}"
    if vcs.get("vcs") == "git":
        return f"{{ git = {json.dumps(url)}, rev = {json.dumps(vcs.get('commit_id', 'HEAD'))} }}"
    return ""

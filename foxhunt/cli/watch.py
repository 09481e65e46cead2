"""`foxhunt watch`: compile on every change of specs or templates, and say what the change means."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from foxhunt.cli.compile import generated_beside, program_option, specs_argument, write
from foxhunt.diagnostics import DriftError, FoxhuntError, render_text
from foxhunt.pipeline import compile_specs

_ENDINGS = (".yaml", ".yml", ".j2", ".cuh")
Stamp = dict[str, tuple[int, int]]


@click.command()
@specs_argument
@program_option
@click.option("--interval", default=0.5, show_default=True, type=click.FloatRange(0.05, 60), help="Seconds.")
def watch(specs: Path, programs: tuple[str, ...], interval: float) -> None:
    """Compile SPECS now and on every change, and print what changed and what it means.

    Mistakes are printed and nothing is written, as with a layout break until `foxhunt compile --break NAME`
    accepts it. Ctrl-C ends it.
    """
    folders = (specs, specs.resolve().parent / "templates")
    click.echo(f"watching {specs} and its templates; Ctrl-C ends it")
    follow(specs, programs, changes(folders, interval))


def follow(specs: Path, programs: tuple[str, ...], rounds: Iterable[None]) -> None:
    """Compile once a round; a finding is printed and the next round awaited."""
    for _ in rounds:
        start = time.perf_counter()
        try:
            text = compiled(specs, programs)
        except DriftError as error:
            text = f"{_difference(specs, programs)}\n{_findings(error)}\nnothing was written"
        except FoxhuntError as error:
            text = _findings(error)
        click.echo(f"\n{time.strftime('%H:%M:%S')}  {time.perf_counter() - start:.2f} s\n{text}")


def compiled(specs: Path, programs: tuple[str, ...]) -> str:
    """Compile and write; what changed since the last compile, in words."""
    generated = generated_beside(specs)
    results = compile_specs(specs, generated, programs or None)
    text = _difference(specs, programs)
    for result in results:
        write(result, generated / result.summary.program)
    return text


def _difference(specs: Path, programs: tuple[str, ...]) -> str:
    from foxhunt.cli.diff_views import as_text
    from foxhunt.contract.lock import LOCK_FILE
    from foxhunt.pipeline.contracts import compare, from_folder, from_specs

    generated = generated_beside(specs)
    try:
        old = from_folder(generated) if any(generated.glob(f"*/{LOCK_FILE}")) else {}
    except FoxhuntError as error:
        return f"what was compiled last cannot be read: {_findings(error)}"
    if programs:
        old = {name: found for name, found in old.items() if name in programs}
    return as_text(compare(old, from_specs(specs, generated, programs or None), specs))


def _findings(error: FoxhuntError) -> str:
    from foxhunt.cli import sources_of

    return render_text(error.diagnostics, sources_of(error))


def changes(folders: Iterable[Path], interval: float) -> Iterator[None]:
    """Once at the start, then whenever files below the folders have changed and been still for a moment."""
    known: Stamp | None = None
    while True:
        found = stamp(folders)
        if found != known:
            time.sleep(min(interval, 0.1))  # an editor may save several files
            if stamp(folders) == found:
                known = found
                yield
        time.sleep(interval)


def stamp(folders: Iterable[Path]) -> Stamp:
    """Time and size of every spec and template below the folders."""
    found = {}
    for folder in folders:
        for base, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(base, name)
                if name.endswith(_ENDINGS) and not name.startswith("."):
                    try:
                        state = os.stat(path)
                    except OSError:
                        continue  # gone since it was listed
                    found[path] = (state.st_mtime_ns, state.st_size)
    return found

"""`foxhunt verify`: evidence that the emitted program does what its specs say."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foxhunt.cli.compile import dim_overrides, generated_beside
from foxhunt.cli.output import format_option, show_findings
from foxhunt.diagnostics import Diagnostic, sort_diagnostics
from foxhunt.formats import as_json

if TYPE_CHECKING:
    from rich.console import Console

    from foxhunt.backend.base import BuildProgress
    from foxhunt.verify.checks import Check
    from foxhunt.verify.program import Job, Options, Subject
    from foxhunt.verify.runs import Script

CHECKS = ("kernels", "gradients", "access", "finite", "orders", "fusion", "replay", "frozen")


@click.command()
@click.argument("program")
@click.option(
    "--specs", default="specs", show_default=True, type=click.Path(path_type=Path), help="Specs folder."
)
@click.option("--variant", default="default", show_default=True, help="A variant of the program's dims.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Override one dim; may be repeated.")
@click.option(
    "--steps", default=3, show_default=True, type=click.IntRange(1, 10_000), help="Executions of each step."
)
@click.option(
    "--orders", default=3, show_default=True, type=click.IntRange(0, 1000), help="Random legal orders."
)
@click.option("--resume", type=click.Path(path_type=Path), help="Start every run from this checkpoint.")
@click.option("--seed", default=0, show_default=True, help="Of the parameters, the inputs and the orders.")
@click.option("--backend", default="auto", show_default=True, type=click.Choice(["auto", "host", "cuda"]))
@click.option("--only", multiple=True, type=click.Choice(CHECKS), help="This check alone; may be repeated.")
@format_option()
def verify(
    program: str,
    specs: Path,
    variant: str,
    dims: tuple[str, ...],
    steps: int,
    orders: int,
    resume: Path | None,
    seed: int,
    backend: str,
    only: tuple[str, ...],
    style: str,
) -> None:
    """Run PROGRAM in ways that have to agree, and its kernels against their references.

    \b
        foxhunt verify aux --variant tiny
        foxhunt verify aux --only kernels --backend cuda
        foxhunt verify aux --only finite --resume runs/1/checkpoint.safetensors

    \b
    kernels    each against its float64 reference: examples, odd sizes, special values
    gradients  slopes that specs declare with `gradient_of`, against central differences
    access     each launch touches what it declares, and writes all of it
    finite     the first launch that leaves NaN or inf, and where: a warning
    orders     unfused, in other legal orders: the same bits after every launch
    fusion     the fused launches: the same bits again
    replay     as in training; on a GPU captured, with 1, 2 and 3 executions a graph, against the host's bits
    frozen     each slot, counter and seed that a launch takes has an effect

    Runs twice the --steps executions of every step, with other host slots the second time. A small variant
    shows as much as a large one, sooner. Exits 1 on findings.
    """
    from rich.console import Console

    from foxhunt.verify.runs import Script

    subject = _subject(specs, program, variant, dim_overrides(dims))
    console = Console(stderr=style != "text")
    chosen = tuple(c for c in CHECKS if c in only) or CHECKS
    script = Script(steps, seed=seed, resume=resume)
    options = _options(backend, script, orders, chosen)
    found = merged(_run(subject, options, console))
    findings = sort_diagnostics(d for check in found for d in check.findings)
    if style == "text":
        _show(console, program, found)
    if style == "json":
        table = [{"check": c.name, "extent": c.extent, "findings": len(c.findings)} for c in found]
        click.echo(json.dumps({"checks": table, "diagnostics": [as_json(d) for d in findings]}, indent=2))
    elif findings or style != "text":
        show_findings(findings, style, _sources(findings))
    if any(d.severity == "error" for d in findings):
        raise click.exceptions.Exit(1)


def _subject(specs: Path, program: str, variant: str, dims: dict[str, int]) -> Subject:
    from foxhunt.contract.lock import LOCK_FILE
    from foxhunt.pipeline import project_templates
    from foxhunt.pipeline.cached import committed_lock
    from foxhunt.reference.project import load_project_references
    from foxhunt.spec.load import load_specs
    from foxhunt.verify.program import Subject

    loaded = load_specs(specs)
    load_project_references(specs)
    lock = committed_lock(generated_beside(specs) / program / LOCK_FILE)
    return Subject(loaded, program, variant, dims, project_templates(specs), lock)


def _options(backend: str, script: Script, orders: int, only: tuple[str, ...]) -> Options:
    from foxhunt.backend.base import make_backend
    from foxhunt.verify.program import Options

    name = backend
    if backend == "auto":
        from foxhunt.backend.cuda import unavailable

        name = "host" if unavailable() else "cuda"
    return Options(script, orders, name, lambda: make_backend(name), only)


def _run(subject: Subject, options: Options, console: Console) -> list[Check]:
    """Every check in turn, under a bar that names the one at work and what it is compiling."""
    from foxhunt.verify.program import jobs

    found: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="foxhunt-") as folder, _bar(console) as (say, building):
        todo: list[Job] = list(jobs(subject, Path(folder), replace(options, progress=building)))
        for number, (name, check) in enumerate(todo):
            say(number, len(todo), name)
            found.append(check())
    return found


@contextmanager
def _bar(console: Console) -> Iterator[tuple[Callable[[int, int, str], None], BuildProgress]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("verifying"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        at = ""

        def say(done: int, total: int, name: str) -> None:
            nonlocal at
            at = name
            progress.update(task, completed=done, total=total, description=name)

        def building(done: int, total: int, entry: str) -> None:
            progress.update(task, description=f"{at}: compiled {entry} ({done} of {total})")

        yield say, building


def merged(checks: list[Check]) -> list[Check]:
    """Checks of one name as one line: the kernels."""
    from foxhunt.verify.checks import Check

    found: dict[str, list[Check]] = {}
    for check in checks:
        found.setdefault(check.name, []).append(check)
    return [
        same[0]
        if len(same) == 1
        else Check(name, f"{len(same)} kernels", tuple(d for c in same for d in c.findings))
        for name, same in found.items()
    ]


def _show(console: Console, program: str, checks: list[Check]) -> None:
    from foxhunt.cli.tables import Table, show_table

    rows = tuple((c.name, c.extent, str(len(c.findings)) if c.findings else "ok") for c in checks)
    show_table(console, Table(program, ("check", "of", "found"), rows))


def _sources(findings: tuple[Diagnostic, ...]) -> dict[str, str]:
    from foxhunt.cli import sources_of
    from foxhunt.diagnostics import DriftError

    return sources_of(DriftError(findings))

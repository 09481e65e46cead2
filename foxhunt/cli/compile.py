"""`foxhunt compile`, `check` and `fingerprint`: specs to generated folders, and whether those are fresh."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foxhunt.cli.output import format_option, show_findings
from foxhunt.diagnostics import BuildError, Diagnostic, DriftError, Location, fail
from foxhunt.formats import as_json
from foxhunt.pipeline import Result, compile_specs

if TYPE_CHECKING:
    from foxhunt.cli.tables import Table

specs_argument = click.argument("specs", default="specs", type=click.Path(path_type=Path))
program_option = click.option("--program", "programs", multiple=True, help="Only this one; may be repeated.")
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where programs go; `generated` beside the specs unless given.",
)


@click.command("compile")
@specs_argument
@program_option
@out_option
@click.option("--variant", default="default", show_default=True, help="A variant of the dims; needs --out.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Override one dim; needs --out.")
@click.option("--break", "breaks", multiple=True, metavar="NAME", help="Allow this layout break.")
@click.option("--cubin", metavar="ARCH", help="Also compile every kernel for a GPU (sm_90); needs no GPU.")
@format_option()
def compile(
    specs: Path,
    programs: tuple[str, ...],
    out: Path | None,
    variant: str,
    dims: tuple[str, ...],
    breaks: tuple[str, ...],
    cubin: str | None,
    style: str,
) -> None:
    """Compile SPECS (a folder, `specs` unless given) into generated/<program>/.

    \b
        foxhunt compile specs/
        foxhunt compile specs/ --program aux --cubin sm_90
        foxhunt compile specs/ --variant demo --out /tmp/demo

    layout.lock, kept beside the generated files, holds every position. Appending and retiring update it;
    moving, reshaping, renaming or deleting what a checkpoint holds exits 1 unless --break names it.
    """
    if (variant != "default" or dims) and out is None:
        raise click.UsageError("--variant and --dim need --out: generated/ is for the default variant")
    root = out or generated_beside(specs)
    start = time.perf_counter()
    results = compile_specs(specs, root, programs or None, variant, dim_overrides(dims), breaks)
    for result in results:
        write(result, root / result.summary.program)
    if style == "text":
        _show(results, time.perf_counter() - start)
    else:
        _show_for_machines(results, style)
    if cubin:
        for result in results:
            _cubins(root / result.summary.program, cubin, style != "text")


@click.command()
@specs_argument
@program_option
@out_option
@format_option()
def check(specs: Path, programs: tuple[str, ...], out: Path | None, style: str) -> None:
    """For CI: exit 1, naming what differs, unless generated files and lock are what SPECS say.

    Catches a hand-edited generated file, a moved slot, a changed template, a forgotten compile.
    """
    root = out or generated_beside(specs)
    results = compile_specs(specs, root, programs or None)
    findings = [d for r in results for d in _stale(r, root / r.summary.program)]
    if not programs:
        findings += _leftovers(root, {r.summary.program for r in results})
    if findings:
        help = f"`foxhunt compile {specs}` mends them; change specs or templates, not generated files"
        raise DriftError((*findings[:-1], replace(findings[-1], help=findings[-1].help or help)))
    if style != "text":
        _show_for_machines(results, style)
        return
    for result in results:
        click.echo(f"{result.summary.program}: fresh, layout {result.summary.layout}{_passed(result)}")


@click.command()
@specs_argument
@program_option
def fingerprint(specs: Path, programs: tuple[str, ...]) -> None:
    """Print each program's layout hash and semantics hash.

    Equal layout hashes exchange checkpoints. The semantics hash also covers kernels, smoothing and resets.
    """
    for result in compile_specs(specs, generated_beside(specs), programs or None):
        summary = result.summary
        click.echo(f"{summary.program} layout {summary.layout} semantics {summary.semantics}")


def compile_one(specs: Path, program: str, variant: str, dims: Mapping[str, int]) -> Result:
    """Compile one program for a run, at the positions of the committed lock as far as the variant fits."""
    (result,) = compile_specs(specs, generated_beside(specs), (program,), variant, dims, None)
    return result


def write(result: Result, folder: Path) -> None:
    """Make `folder` hold the generated files."""
    from foxhunt.emit.store import store

    store(result.files, folder)


def dim_overrides(texts: Iterable[str]) -> dict[str, int]:
    """`NAME=N` texts as a mapping. Raises click.BadParameter."""
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not value.strip().isdecimal() or int(value) >= 2**63:
            hint = "with a number from 0 to 2**63 - 1, such as B=256"
            raise click.BadParameter(f"{text!r} is not NAME=NUMBER {hint}", param_hint="--dim")
        found[name.strip()] = int(value)
    return found


def generated_beside(specs: Path) -> Path:
    """The folder of generated programs that belongs to a specs folder."""
    return specs.parent / "generated" if specs.name else specs.resolve().parent / "generated"


def summary_table(results: Sequence[Result]) -> Table:
    """What was compiled, a row a program."""
    from foxhunt.cli.tables import Table

    heads = ("program", "slots", "producers", "Wiener", "params", "kernels", "launches", "arena", "layout")
    return Table("", heads, tuple(_summary(r) for r in results), dense=True)


def _show_for_machines(results: Sequence[Result], style: str) -> None:
    suppressed = [d for r in results for d in r.suppressed]
    if style != "json":
        show_findings(suppressed, style, {})
        return
    programs = [asdict(r.summary) | {"changes": r.changes} for r in results]
    data = {"programs": programs, "diagnostics": [as_json(d) for d in suppressed]}
    click.echo(json.dumps(data, indent=2))


def _passed(result: Result) -> str:
    count = len(result.suppressed)
    return f", {count} suppressed finding{'s' * (count > 1)}" if count else ""


def _summary(result: Result) -> tuple[str, ...]:
    s = result.summary
    return (
        s.program if s.variant == "default" else f"{s.program} ({s.variant})",
        str(s.slots),
        str(s.producers),
        str(s.wiener),
        f"{s.params:,}",
        str(s.kernels),
        f"{s.declared} → {s.launches}",
        _bytes(s.arena_bytes),
        s.layout[:8],
    )


def _bytes(count: int) -> str:
    size, units = float(count), iter(("B", "KiB", "MiB", "GiB"))
    unit = next(units)
    while size >= 1024 and (larger := next(units, None)):
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _show(results: Sequence[Result], seconds: float) -> None:
    from rich.console import Console

    from foxhunt.cli.tables import show_table

    changes = [f"{r.summary.program}: {change}" for r in results for change in r.changes]
    passed = [
        f"{r.summary.program}: {d.code} {d.message}; suppressed: {d.suppressed}"
        for r in results
        for d in r.suppressed
    ]
    note = "\n".join([*changes, *passed, f"compiled in {seconds:.2f} s"])
    show_table(Console(), replace(summary_table(results), note=note))


def _stale(result: Result, folder: Path) -> Iterator[Diagnostic]:
    from foxhunt.contract.lock import LOCK_FILE
    from foxhunt.emit.store import stale

    for change in result.changes:
        yield Diagnostic(
            "FH604", f"the specs say more than the lock: {change}", Location(str(folder / LOCK_FILE))
        )
    for difference in stale(result.files, folder):
        message = f"{difference.path} {difference.reason}"
        yield Diagnostic("FH605", message, Location(str(folder / difference.path), difference.line))


def _leftovers(root: Path, programs: set[str]) -> Iterator[Diagnostic]:
    for name in sorted({p.parent.name for p in root.glob("*/manifest.json")} - programs):
        help = "Delete the folder, or bring its specs back."
        yield Diagnostic("FH606", f"{name} has no specs any more", Location(str(root / name)), help)


def _cubins(folder: Path, arch: str, aside: bool) -> None:
    from foxhunt.backend.cache import write_atomically
    from foxhunt.backend.cubin import compile_cubins

    cubins = compile_cubins(folder, arch)
    target = folder / "cubin" / arch
    try:
        for entry, data in cubins.items():
            write_atomically(target / f"{entry}.cubin", data)
    except OSError as error:
        message = f"the cubins cannot be written: {error.strerror}"
        raise fail(BuildError, "FH483", message, at=Location(str(target))) from error
    click.echo(f"{target}: {len(cubins)} cubins, {sum(map(len, cubins.values())):,} bytes", err=aside)

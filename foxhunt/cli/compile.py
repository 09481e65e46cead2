"""`foxhunt compile`, `check` and `fingerprint`: specs to generated folders, and whether those are fresh."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foxhunt.diagnostics import (
    Diagnostic,
    DriftError,
    FoxhuntError,
    Location,
    SpecError,
    fail,
)

if TYPE_CHECKING:
    from foxhunt.cli.report import Table
    from foxhunt.ir.layout import Lock
    from foxhunt.pipeline import Compiled
    from foxhunt.spec.models import SpecSet

specs_argument = click.argument("specs", default="specs", type=click.Path(path_type=Path))
program_option = click.option(
    "--program", "programs", multiple=True, help="Only this program; may be repeated."
)
generated_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder of generated programs; `generated` beside the specs unless given.",
)


@dataclass(frozen=True)
class Timed:
    """A compiled program and how long that took."""

    compiled: Compiled
    seconds: float

    @property
    def plan_name(self) -> str:
        """The program's name."""
        return self.compiled.plan.program

    def write(self, folder: Path) -> Path:
        """Store the generated files in `folder` and return it."""
        from foxhunt.emit.store import store

        store(self.compiled.files, folder)
        return folder


@click.command("compile")
@specs_argument
@program_option
@generated_option
@click.option(
    "--variant", default="default", show_default=True, help="A variant of the programs' dims; needs --out."
)
@click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Override one dim; needs --out.")
@click.option(
    "--break",
    "breaks",
    multiple=True,
    metavar="NAME",
    help="Allow a move, reshape, rename or delete of NAME.",
)
@click.option(
    "--cubin", metavar="ARCH", help="Also compile every kernel for a GPU, such as sm_90; no GPU is needed."
)
def compile(
    specs: Path,
    programs: tuple[str, ...],
    out: Path | None,
    variant: str,
    dims: tuple[str, ...],
    breaks: tuple[str, ...],
    cubin: str | None,
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
    overrides = dim_overrides(dims)

    def one(loaded: SpecSet, name: str) -> Timed:
        start = time.perf_counter()
        lock = read_lock(root / name)
        compiled = _compile(loaded, name, variant, overrides, lock)
        if lock is not None:
            from foxhunt.contract.lock import check_allowed, compare

            check_allowed(compare(lock, compiled.laid_out), breaks)
        return Timed(compiled, time.perf_counter() - start)

    results = _each(specs, programs, one)
    for result in results:
        result.write(root / result.plan_name)
    _show(results)
    if cubin:
        _cubins([root / r.plan_name for r in results], cubin)


@click.command()
@specs_argument
@program_option
@generated_option
def check(specs: Path, programs: tuple[str, ...], out: Path | None) -> None:
    """For CI: exit 1, naming what differs, unless generated files and lock are what SPECS say.

    Catches a hand-edited generated file, a moved slot, a changed template, a forgotten compile.
    """
    root = out or generated_beside(specs)
    results = _each(specs, programs, lambda loaded, name: _checked(loaded, name, root / name))
    if not programs:
        _no_leftovers(root, {r.plan_name for r in results})
    for result in results:
        found = result.compiled.fingerprint
        click.echo(f"{result.plan_name}: fresh, layout {found.layout}")


@click.command()
@specs_argument
@program_option
def fingerprint(specs: Path, programs: tuple[str, ...]) -> None:
    """Print each program's layout hash and semantics hash.

    Equal layout hashes exchange checkpoints. The semantics hash also covers kernels, smoothing and resets.
    """
    root = generated_beside(specs)

    def one(loaded: SpecSet, name: str) -> Timed:
        return Timed(_compile(loaded, name, "default", {}, read_lock(root / name)), 0.0)

    for result in _each(specs, programs, one):
        found = result.compiled.fingerprint
        click.echo(f"{result.plan_name} layout {found.layout} semantics {found.semantics}")


def compile_into(specs: Path, program: str, variant: str, dims: Mapping[str, int]) -> Timed:
    """Compile one program for a run, at the positions of the committed lock."""
    start = time.perf_counter()
    loaded = _load(specs)
    _known(loaded, (program,))
    lock = read_lock(generated_beside(specs) / program)
    return Timed(_compile(loaded, program, variant, dims, lock), time.perf_counter() - start)


def dim_overrides(texts: Iterable[str]) -> dict[str, int]:
    """`NAME=N` texts as a mapping. Raises click.BadParameter."""
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not value.strip().isdecimal() or len(value) > 19:
            raise click.BadParameter(f"{text!r} is not NAME=NUMBER, such as B=256", param_hint="--dim")
        found[name.strip()] = int(value)
    return found


def generated_beside(specs: Path) -> Path:
    """The folder of generated programs that belongs to a specs folder."""
    return specs.absolute().parent / "generated" if specs.is_absolute() else specs.parent / "generated"


def read_lock(folder: Path) -> Lock | None:
    """The committed positions, None before the first compile. Raises SpecError for a damaged lock."""
    from foxhunt.contract.lock import LOCK_FILE, parse_lock

    path = folder / LOCK_FILE
    try:
        return parse_lock(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise fail(SpecError, "FH601", f"the lock cannot be read: {error}", at=Location(str(path))) from error


def summary_table(results: Sequence[Timed]) -> Table:
    """What was compiled, a row a program."""
    from foxhunt.cli.report import Table

    heads = ("program", "slots", "params", "kernels", "launches", "arena", "layout", "time")
    return Table("Compiled", heads, tuple(_summary(r) for r in results))


def _summary(result: Timed) -> tuple[str, ...]:
    schedule, program = result.compiled.schedule, result.compiled.laid_out.program
    declared = sum(s.declared for s in schedule.steps)
    fused = sum(len(s.launches) for s in schedule.steps)
    kernels = {n.kernel.kernel for s in program.steps for n in s.launches}
    trainable = sum(t.count for t in program.tensors if t.role == "param" and t.retired is None)
    return (
        program.name if program.variant == "default" else f"{program.name} ({program.variant})",
        str(result.compiled.laid_out.isv_total),
        f"{trainable:,}",
        str(len(kernels)),
        f"{declared} → {fused}",
        _bytes(schedule.arena_bytes),
        result.compiled.fingerprint.layout[:12],
        f"{result.seconds:.2f} s",
    )


def _bytes(count: int) -> str:
    size, units = float(count), iter(("B", "KiB", "MiB", "GiB"))
    unit = next(units)
    while size >= 1024 and (larger := next(units, None)):
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _show(results: Sequence[Timed]) -> None:
    from rich.console import Console

    from foxhunt.cli.session import show_table

    show_table(Console(), summary_table(results))


def _load(specs: Path) -> SpecSet:
    from foxhunt.spec.load import load_specs

    return load_specs(specs)


def _compile(
    loaded: SpecSet, name: str, variant: str, dims: Mapping[str, int], lock: Lock | None
) -> Compiled:
    from foxhunt.pipeline import compile_program

    return compile_program(loaded, name, variant, dims, lock=lock)


def _known(loaded: SpecSet, programs: Iterable[str]) -> None:
    import difflib

    for name in programs:
        if name not in loaded.programs:
            near = difflib.get_close_matches(name, loaded.programs, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(sorted(loaded.programs))}."
            raise click.UsageError(f"{loaded.root} has no program {name!r}. {hint}")


def _each(specs: Path, programs: tuple[str, ...], one: Callable[[SpecSet, str], Timed]) -> list[Timed]:
    """`one` for every program, or for the named ones; the findings of all of them together."""
    loaded = _load(specs)
    _known(loaded, programs)
    results: list[Timed] = []
    errors: list[FoxhuntError] = []
    for name in programs or sorted(loaded.programs):
        try:
            results.append(one(loaded, name))
        except FoxhuntError as error:
            errors.append(error)
    if errors:
        worst = max(errors, key=lambda e: e.exit_code)
        worst.diagnostics = tuple(dict.fromkeys(d for e in errors for d in e.diagnostics))
        raise worst
    return results


def _checked(loaded: SpecSet, name: str, folder: Path) -> Timed:
    from foxhunt.contract.lock import LOCK_FILE, compare
    from foxhunt.emit.store import stale

    lock = read_lock(folder)
    compiled = _compile(loaded, name, "default", {}, lock)
    findings = [
        Diagnostic(
            "FH604", f"layout.lock is not what the specs say: {c}", c.at or Location(str(folder / LOCK_FILE))
        )
        for c in (compare(lock, compiled.laid_out) if lock else ())
    ]
    findings += [
        Diagnostic("FH605", f"{d.path} {d.reason}", Location(str(folder / d.path)))
        for d in stale(compiled.files, folder)
    ]
    if findings:
        help = f"`foxhunt compile {loaded.root}` brings them up to date; change specs or templates, not generated files"
        raise DriftError((*findings[:-1], replace(findings[-1], help=help)))
    return Timed(compiled, 0.0)


def _no_leftovers(root: Path, programs: set[str]) -> None:
    folders = {p.parent.name for p in root.glob("*/manifest.json")} - programs
    if folders:
        help = "Delete the folder, or bring its specs back."
        raise DriftError(
            tuple(
                Diagnostic("FH606", f"{n} has no specs any more", Location(str(root / n)), help)
                for n in sorted(folders)
            )
        )


def _cubins(folders: Sequence[Path], arch: str) -> None:
    from foxhunt.backend.cubin import compile_cubins

    for folder in folders:
        cubins = compile_cubins(folder, arch)
        target = folder / "cubin" / arch
        target.mkdir(parents=True, exist_ok=True)
        for entry, data in cubins.items():
            (target / f"{entry}.cubin").write_bytes(data)
        click.echo(f"{target}: {len(cubins)} cubins, {sum(map(len, cubins.values())):,} bytes")

"""`foxhunt migrate`: a checkpoint carried over to the present layout of its program."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from foxhunt.cli.tables import Table, show_table
from foxhunt.contract.migrate import Carry
from foxhunt.diagnostics import DriftError, TrainerError, closest, fail
from foxhunt.pipeline.migrate import Migration
from foxhunt.pipeline.migrate import migrate as carried
from foxhunt.runtime import checkpoint


@click.command()
@click.argument("ckpt", type=click.Path(path_type=Path))
@click.option(
    "--to", "program", required=True, help="A compiled program: its folder, or its name in generated/."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="CKPT with `-migrated` before its ending unless given."
)
@click.option("--drop", multiple=True, metavar="NAME", help="Lose these values, or let them start anew.")
@click.option("--dry-run", is_flag=True, help="Print what would become of each entry; write nothing.")
def migrate(ckpt: Path, program: str, out: Path | None, drop: tuple[str, ...], dry_run: bool) -> None:
    """Carry the checkpoint CKPT over to the layout that PROGRAM has now.

    \b
        foxhunt migrate runs/a/checkpoint.safetensors --to aux --dry-run
        foxhunt migrate runs/a/checkpoint.safetensors --to aux
        foxhunt train aux --resume runs/a/checkpoint-migrated.safetensors

    Slots, params with their moments, buffers and counters go by name, renamed ones by their `was:`. What
    is new starts as in a new run: a slot at its sentinel with a zero triple, so that its first observation
    counts in full. What cannot be carried is refused by name (exit 1) unless --drop gives it up. CKPT
    stays as it is.
    """
    console = Console()
    target = out or ckpt.with_name(f"{ckpt.stem}-migrated{ckpt.suffix or '.safetensors'}")
    if not dry_run and target.resolve() == ckpt.resolve():
        raise click.UsageError("--out is CKPT itself; name another file")
    try:
        result = carried(ckpt, program_folder(program), drop)
    except DriftError as error:
        refused = {d.message.partition(":")[0].partition(" ")[2] for d in error.diagnostics}
        click.echo(f"{ckpt} is not carried over: {len(refused)} entries have no place", err=True)
        raise
    _warn(result, drop)
    if dry_run or any(c.action != "keep" for c in result.carries):
        show_table(console, _table(result))
    if dry_run:
        return
    checkpoint.save(target, result.plan, result.tensors)
    console.print(f"checkpoint  {target}", soft_wrap=True)


def program_folder(program: str) -> Path:
    """The folder of a compiled program that was named by its path, or by its name in generated/.

    Raises TrainerError FH546 for neither.
    """
    named = Path("generated") / program
    if Path(program).is_dir():
        return Path(program)
    if named.is_dir():
        return named
    known = sorted(p.parent.name for p in Path("generated").glob("*/trainer.py"))
    near = closest(program, known)
    help = f"did you mean `{near}`? " if near else ""
    help += f"in generated/: {', '.join(known) or 'nothing; run `foxhunt compile`'}"
    raise fail(TrainerError, "FH546", f"there is no compiled program {program}", help=help)


def _warn(result: Migration, drop: tuple[str, ...]) -> None:
    if result.written_by != result.plan.program:
        click.echo(f"the checkpoint is of program {result.written_by}, not {result.plan.program}", err=True)
    lost = {name for c in result.carries if c.action in ("drop", "restart") for name in _names(c)}
    for name in drop:
        if name not in lost:
            click.echo(f"--drop {name}: nothing of that name had to be given up", err=True)


def _names(carry: Carry) -> set[str]:
    found = {e.name for e in (carry.before, carry.after) if e is not None}
    return found | {name.partition(".")[0] for name in found}


def _table(result: Migration) -> Table:
    kept = sum(c.action == "keep" for c in result.carries)
    rows = [
        (c.action, c.entry.kind, c.entry.name, _place(c.before), _place(c.after), c.reason)
        for c in result.carries
        if c.action != "keep"
    ]
    note = f"{kept} entries keep their place"
    return Table("", ("action", "kind", "name", "before", "after", "reason"), tuple(rows), note)


def _place(entry: object) -> str:
    position = getattr(entry, "position", None)
    return "" if position is None else str(position)

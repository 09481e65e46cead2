"""`foxhunt diff`: what changed between two states of a project, and what each change means."""

from __future__ import annotations

import json
from pathlib import Path

import click

from foxhunt.cli.compile import generated_beside, program_option
from foxhunt.cli.diff_views import as_json, as_markdown, as_text
from foxhunt.cli.output import format_option, show_findings
from foxhunt.contract.diff import ProgramDiff, findings
from foxhunt.contract.lock import LOCK_FILE, unused_names
from foxhunt.diagnostics import SpecError, sort_diagnostics
from foxhunt.pipeline.contracts import Contracts, compare, from_folder, from_revision, from_specs


@click.command()
@click.argument("old", required=False, type=click.Path(path_type=Path))
@click.argument("new", required=False, type=click.Path(path_type=Path))
@click.option("--against", metavar="REF", help="Take what was committed at this git revision as OLD.")
@program_option
@click.option("--allow", multiple=True, metavar="NAME", help="Accept this layout break; may be repeated.")
@format_option("markdown")
def diff(
    old: Path | None,
    new: Path | None,
    against: str | None,
    programs: tuple[str, ...],
    allow: tuple[str, ...],
    style: str,
) -> None:
    """Name and class each change from OLD to NEW, with its effect on hashes, checkpoints and signals.

    \b
        foxhunt diff                                  generated/ (compiled last) → specs/
        foxhunt diff --against origin/main            a git revision → specs/
        foxhunt diff --against v1.2 lib/specs         the same, of another specs folder
        foxhunt diff ../before/specs specs            two specs or generated folders
        foxhunt diff --against main --format markdown > comment.md

    Exits 1 on a layout break (move, rename, reshape, retype, delete) unless --allow names it, and 2 when
    --allow names what breaks nothing.
    """
    if against is not None and new is not None:
        raise click.UsageError("--against takes the place of OLD: name NEW only")
    target = (old if against is not None else new) or Path("specs")
    before = _before(old, against, target)
    after, specs = _side(target, programs)
    if programs:
        before = {name: contract for name, contract in before.items() if name in programs}
        after = {name: contract for name, contract in after.items() if name in programs}
    found = compare(before, after, specs)
    broken = {name for one in found for d in one.breaks() for name in d.names}
    if unused := tuple(unused_names("--allow", allow, broken)):
        raise SpecError(unused)
    _show(found, allow, style)
    if any(d.breaks(allow) for d in found):
        raise click.exceptions.Exit(1)


def _before(old: Path | None, against: str | None, target: Path) -> Contracts:
    if against is not None:
        generated = generated_beside(target) if not _is_generated(target) else target
        committed = from_revision(against, generated)
        if not committed:
            click.echo(f"{against} has no {generated.name}/ folder, so every program is new", err=True)
        return committed
    if old is not None:
        return _side(old, ())[0]
    generated = generated_beside(target)
    return from_folder(generated) if _is_generated(generated) else {}


def _side(path: Path, programs: tuple[str, ...]) -> tuple[Contracts, Path | None]:
    """The contracts at a path, and the specs folder that they come from."""
    folder = path.parent if path.name == LOCK_FILE else path
    if _is_generated(folder):
        return from_folder(folder), None
    return from_specs(path, generated_beside(path), programs or None), path


def _is_generated(folder: Path) -> bool:
    return (folder / LOCK_FILE).is_file() or any(folder.glob(f"*/{LOCK_FILE}"))


def _show(found: tuple[ProgramDiff, ...], allow: tuple[str, ...], style: str) -> None:
    if style == "text":
        click.echo(as_text(found, allow))
    elif style == "markdown":
        click.echo(as_markdown(found, allow))
    elif style == "json":
        click.echo(json.dumps(as_json(found, allow), indent=2))
    else:
        show_findings(sort_diagnostics(d for one in found for d in findings(one, allow)), style, {})

"""`foxhunt explain`: what a name of the specs became, and why."""

from __future__ import annotations

from pathlib import Path

import click

from foxhunt.cli.compile import dim_overrides
from foxhunt.cli.whole import open_programs


@click.command()
@click.argument("name")
@click.option(
    "--specs", default="specs", show_default=True, type=click.Path(path_type=Path), help="Specs folder."
)
@click.option("--program", "programs", multiple=True, help="Only this one; may be repeated.")
@click.option("--variant", default="default", show_default=True, help="A variant of the dims.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Override one dim; may be repeated.")
def explain(name: str, specs: Path, programs: tuple[str, ...], variant: str, dims: tuple[str, ...]) -> None:
    """Say where NAME is declared, where it landed, who writes and reads it, and why.

    NAME is a slot, tensor, counter, producer, kernel, step, launch, rule, or a pair of launches.

    \b
        foxhunt explain TRUNK_WEIGHT_BOUND
        foxhunt explain forward.l1
        foxhunt explain 'forward.l1 -> optimise.adamw'     why one waits for the other, or why not
        foxhunt explain FH203

    A launch may be named by the end of its name; bytes, operations and times are the scheduler's estimates.
    """
    from foxhunt.view.explain import explain as explained
    from foxhunt.view.explain import is_rule, rule_facts

    if is_rule(name):
        click.echo(rule_facts(name).text())
        return
    indexes = open_programs(specs, programs or None, variant, dim_overrides(dims))
    click.echo("\n\n".join(f.text() for f in explained(name, indexes)))

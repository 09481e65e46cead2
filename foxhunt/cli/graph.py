"""`foxhunt graph`: a program's steps as a page to explore, a drawing, a text for other tools, or a tree."""

from __future__ import annotations

from pathlib import Path

import click

from foxhunt.cli.compile import dim_overrides
from foxhunt.cli.whole import open_programs, write_file


@click.command()
@click.argument("program")
@click.option(
    "--specs", default="specs", show_default=True, type=click.Path(path_type=Path), help="Specs folder."
)
@click.option("--variant", default="default", show_default=True, help="A variant of the program's dims.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Override one dim; may be repeated.")
@click.option("--step", help="Which step to draw, or a page opens at; the program's first unless given.")
@click.option("--html", "form", flag_value="html", default=True, help="An interactive page (the default).")
@click.option("--svg", "form", flag_value="svg", help="A drawing of one step.")
@click.option("--dot", "form", flag_value="dot", help="For Graphviz.")
@click.option("--mermaid", "form", flag_value="mermaid", help="For Markdown.")
@click.option(
    "--tree", "form", flag_value="tree", help="For the terminal, every step unless --step is given."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write; a page goes to runs/<program>.html unless given.",
)
def graph(
    program: str,
    specs: Path,
    variant: str,
    dims: tuple[str, ...],
    step: str | None,
    form: str,
    out: Path | None,
) -> None:
    """Show the steps of PROGRAM: launches, hazards with their reasons, lanes, fused groups, the arena, slots.

    \b
        foxhunt graph aux                       a page that works offline: runs/aux.html
        foxhunt graph aux --tree
        foxhunt graph aux --svg --out step.svg
        foxhunt graph aux --dot | dot -Tpdf > step.pdf
    """
    from foxhunt.view import text
    from foxhunt.view.page import page
    from foxhunt.view.picture import picture
    from foxhunt.view.svg import svg

    (index,) = open_programs(specs, [program], variant, dim_overrides(dims))
    chosen = [step or next(iter(index.steps))] if step or form != "tree" else list(index.steps)
    index.demand_step(chosen[0])
    if form == "html":
        out = out or Path("runs") / f"{program}.html"
        result = page(index, step)
    elif form == "svg":
        result = svg(picture(index, chosen[0]))
    elif form == "dot":
        result = text.dot(picture(index, chosen[0])) + "\n"
    elif form == "mermaid":
        result = text.mermaid(picture(index, chosen[0])) + "\n"
    else:
        result = "\n\n".join(text.tree(picture(index, name), index) for name in chosen) + "\n"
    if out is None:
        click.echo(result, nl=False)
        return
    write_file(out, result)
    click.echo(
        f"{out}: {len(result.encode()):,} bytes" + ("; open it in a browser" if form == "html" else "")
    )

"""`foxhunt schema` and `foxhunt rule`: what specs may say and what findings mean."""

from __future__ import annotations

import json

import click

from foxhunt import rules
from foxhunt.diagnostics import closest


@click.command()
@click.option("--markdown", is_flag=True, help="Print the spec reference (docs/spec-reference.md) instead.")
@click.option("--library", is_flag=True, help="Print the kernels that come with foxhunt (docs/library.md).")
def schema(markdown: bool, library: bool) -> None:
    """Print the JSON Schema of spec files.

    An editor with the YAML language server checks and completes specs with it:

    \b
        foxhunt schema > foxhunt.schema.json
        # yaml-language-server: $schema=foxhunt.schema.json    (first line of a spec)
    """
    from foxhunt.spec.library import library_root
    from foxhunt.spec.load import load_specs
    from foxhunt.spec.schema import json_schema, library_markdown, reference_markdown

    if library:
        specs = load_specs(library_root() / "specs")
        known = {name: k for name, k in specs.kernels.items() if name in specs.library}
        click.echo(library_markdown(known), nl=False)
        return
    click.echo(reference_markdown() if markdown else json.dumps(json_schema(), indent=2))


@click.command()
@click.argument("code", required=False)
@click.option("--markdown", is_flag=True, help="Print the whole list as docs/rules.md.")
def rule(code: str | None, markdown: bool) -> None:
    """Explain the rule CODE (such as FH203), or list all rules.

    \b
        foxhunt rule              every code with its summary
        foxhunt rule FH203        why it exists and how to mend it
    """
    if markdown:
        click.echo(rules.markdown(), nl=False)
        return
    if code is None:
        click.echo("\n".join(f"{r.code}  {r.name}: {r.summary}" for r in rules.RULES.values()))
        return
    found = rules.RULES.get(code.upper())
    if found is None:
        near = closest(code, rules.RULES)
        hint = f" Did you mean {near}?" if near else ""
        raise click.UsageError(f"there is no rule `{code}`.{hint} `foxhunt rule` lists them.")
    click.echo(f"{found.code} {found.name}\n\n{found.summary}\n\nTo mend it: {found.mend}")

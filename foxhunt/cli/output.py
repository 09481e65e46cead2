"""`--format`: one option of every checking command, known also to what prints a command's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from foxhunt.diagnostics import Diagnostic
from foxhunt.formats import FORMATS, render_findings

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Output:
    """How the running command prints; the root context's object, so that an error is printed alike."""

    style: str = "text"

    @property
    def is_text(self) -> bool:
        """Whether a person reads it: errors then go to standard error."""
        return self.style == "text"


def format_option(*more: str) -> Callable[[F], F]:
    """The option `--format`, passed on as `style`, with styles of the command's own after the common ones."""

    def remember(context: click.Context, _: click.Parameter, value: str) -> str:
        output = context.find_object(Output)
        if output is not None:
            output.style = value if value in FORMATS else "text"
        return value

    return click.option(
        "--format",
        "style",
        type=click.Choice([*FORMATS, *more]),
        default="text",
        show_default=True,
        callback=remember,
        help="`github` annotates a pull request; `sarif` is for code scanning.",
    )


def show_findings(diagnostics: Iterable[Diagnostic], style: str, sources: dict[str, str]) -> None:
    """Print findings to standard output, also where there are none: a machine reads an empty list."""
    text = render_findings(diagnostics, style, sources)
    if text:
        click.echo(text)

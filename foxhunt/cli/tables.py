"""Tables: titled text cells, shown on a terminal or put into a report."""

from __future__ import annotations

from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable


@dataclass(frozen=True)
class Table:
    """A titled table of text cells."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    dense: bool = False  # one space between columns, for many short ones


def show_table(console: Console, table: Table) -> None:
    """A report's table on the terminal."""
    shown = RichTable(
        title=table.title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=0 if table.dense else (0, 1),
    )
    for head in table.heads:
        shown.add_column(head, justify="left" if head == table.heads[0] else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)
    if table.note:
        console.print(table.note, style="dim")

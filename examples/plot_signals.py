"""Draws every signal of a run over its steps, one panel for the elements of a slot.

    python examples/plot_signals.py runs/planted_edge.jsonl runs/planted_edge.svg

Reads the JSONL that `foxhunt train` and examples/planted_edge.py write. Slots that never change are left out;
those whose values are positive and span more than a factor of a hundred get a logarithmic axis.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import click
import matplotlib
from matplotlib.figure import Figure

from foxhunt.diagnostics import FoxhuntError
from foxhunt.runtime.telemetry import read_metrics

COLUMNS = 4
WIDTH, HEIGHT = 3.2, 1.9  # inches of a panel
DOTS = 75  # an inch, of a PNG


def families(records: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Keys of the records by slot, `NAME[0]`, `NAME[1]`, … together, without slots that stay as they are."""
    groups: dict[str, list[str]] = {}
    for key in records[0]:
        if key not in ("step", "seconds"):
            groups.setdefault(key.partition("[")[0], []).append(key)
    return {
        slot: keys for slot, keys in groups.items() if any(len({r[k] for r in records}) > 1 for k in keys)
    }


def values(records: list[dict[str, Any]], key: str) -> list[float]:
    """A key of every record; NaN where a record holds null."""
    return [math.nan if (value := record[key]) is None else value for record in records]


def draw(records: list[dict[str, Any]]) -> Figure:
    """One panel for each slot."""
    groups = families(records)
    rows = -(-len(groups) // COLUMNS)
    figure = Figure(figsize=(COLUMNS * WIDTH, rows * HEIGHT), layout="constrained")
    steps = values(records, "step")
    for place, (slot, keys) in enumerate(groups.items(), 1):
        axes = figure.add_subplot(rows, COLUMNS, place)
        curves = [values(records, key) for key in keys]
        for curve in curves:
            axes.plot(steps, curve, linewidth=0.8)
        sizes = [abs(v) for curve in curves for v in curve if v]
        if sizes and min(v for curve in curves for v in curve if v) > 0 and max(sizes) > 100 * min(sizes):
            axes.set_yscale("log")
        axes.set_title(slot if len(keys) == 1 else f"{slot}[{len(keys)}]", fontsize=7, loc="left")
        axes.tick_params(labelsize=6)
        axes.yaxis.get_offset_text().set_fontsize(6)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


HELP = (__doc__ or "").replace("\n\n    ", "\n\n\b\n    ")  # \b: click leaves those lines as they are


@click.command(help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("metrics", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("image", type=click.Path(dir_okay=False, writable=True, path_type=Path))
def main(metrics: Path, image: Path) -> None:
    """Read, draw, write."""
    if image.suffix not in (".png", ".svg"):
        raise click.UsageError(f"{image}: name the image .png or .svg")
    try:
        records = read_metrics(metrics)
        if not records or not families(records):
            raise click.UsageError(f"{metrics}: no signal changes in its {len(records)} records")
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "foxhunt"}):
            stamp = {"Date": None} if image.suffix == ".svg" else None
            draw(records).savefig(image, dpi=DOTS, metadata=stamp)
    except (FoxhuntError, OSError) as error:
        sys.exit(str(error))
    print(f"{image}: {len(records)} records")


if __name__ == "__main__":
    main()

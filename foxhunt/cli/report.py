"""A run as one self-contained HTML page: a summary, a table and curves drawn as inline SVG."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from foxhunt.cli.tables import Table
from foxhunt.diagnostics import Location, TrainerError, fail
from foxhunt.runtime.atomic import write_atomic


@dataclass(frozen=True)
class Report:
    """What the page says above its curves."""

    title: str
    subtitle: str
    summary: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]


def render_report(report: Report, metrics: Sequence[Mapping[str, Any]]) -> str:
    """The page as text. Every numeric key of the JSONL records but `step` and `seconds` becomes a curve."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    page = Path(__file__).with_name("report.html.j2").read_text(encoding="utf-8")
    return environment.from_string(page).render(report=report, curves=_curves(metrics))


def write_report(path: Path, report: Report, metrics: Sequence[Mapping[str, Any]]) -> None:
    """Write the page to `path`, whole or not at all. Raises TrainerError FH548."""
    text = render_report(report, metrics)
    try:
        write_atomic(path, text.encode())
    except OSError as error:
        message = f"the report cannot be written: {error.strerror}"
        raise fail(TrainerError, "FH548", message, at=Location(str(path))) from error


def _curves(metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(
        key for record in metrics for key, value in record.items() if isinstance(value, int | float)
    )
    groups: dict[str, list[str]] = {}
    for name in names:
        if name not in ("step", "seconds"):
            groups.setdefault(name.partition("[")[0], []).append(name)
    return [_curve(title, members, metrics) for title, members in groups.items()]


def _curve(title: str, members: Sequence[str], metrics: Sequence[Mapping[str, Any]]) -> str:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "foxhunt", "font.size": 9}):
        figure = Figure(figsize=(5.2, 2.6), layout="constrained")
        axes = figure.add_subplot()
        for name in members:
            points = [(r["step"], r[name]) for r in metrics if r.get(name) is not None]
            label = name.removeprefix(title) if len(members) > 1 else None
            axes.plot([x for x, _ in points], [y for _, y in points], linewidth=1.2, label=label)
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_xlabel("step")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        if len(members) > 1:
            axes.legend(frameon=False, fontsize=7, ncols=min(4, len(members)))
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]

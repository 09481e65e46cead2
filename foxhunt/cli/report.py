"""A run as one self-contained HTML page: a summary, a table and curves drawn as inline SVG."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ report.title }}</title>
<style>
:root { color-scheme: light; --ink: #1c2733; --soft: #5b6b7b; --line: #d9e0e7; --paper: #fff; --accent: #b4521e; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68rem;
       margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.soft { color: var(--soft); } .curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 6px; padding: .5rem; } svg { width: 100%; height: auto; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); }
td { font-variant-numeric: tabular-nums; } code { font-size: .9em; overflow-wrap: anywhere; }
</style></head><body>
<h1>{{ report.title }}</h1>
<p class="soft">{{ report.subtitle }}</p>
<table>{% for name, value in report.summary %}<tr><th>{{ name }}</th><td><code>{{ value }}</code></td></tr>{% endfor %}</table>
{% for table in report.tables %}
<h2>{{ table.title }}</h2>
<table><tr>{% for head in table.heads %}<th>{{ head }}</th>{% endfor %}</tr>
{% for row in table.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}</table>
{% if table.note %}<p class="soft">{{ table.note }}</p>{% endif %}
{% endfor %}
<h2>Curves</h2>
<div class="curves">{% for curve in curves %}<figure>{{ curve }}</figure>{% endfor %}</div>
</body></html>
"""


@dataclass(frozen=True)
class Table:
    """A titled table of text cells."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Report:
    """What the page says above its curves."""

    title: str
    subtitle: str
    summary: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]


def render_report(report: Report, metrics: Sequence[Mapping[str, Any]]) -> str:
    """The page as text. `metrics` are JSONL records; every numeric key but `step` and `seconds` becomes a curve."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    curves = [jinja2.filters.Markup(svg) for svg in _curves(metrics)]
    return environment.from_string(PAGE).render(report=report, curves=curves)


def write_report(path: Path, report: Report, metrics: Sequence[Mapping[str, Any]]) -> None:
    """Write the page to `path`, whole or not at all."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(render_report(report, metrics), encoding="utf-8")
    temporary.replace(path)


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

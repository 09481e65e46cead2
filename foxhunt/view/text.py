"""A picture as text: a tree for the terminal, DOT for Graphviz, Mermaid for Markdown."""

from __future__ import annotations

from foxhunt.view.facts import total_cost
from foxhunt.view.index import Index
from foxhunt.view.picture import Link, Picture
from foxhunt.view.svg import COLOURS


def tree(picture: Picture, index: Index) -> str:
    """The step in execution order: cost and hazards of each device launch, its members below it."""
    step = index.steps[picture.step]
    head = (
        f"{picture.program}.{picture.step}: {picture.declared} declared → {len(picture.nodes)} on the device"
    )
    lines = [head]
    width = max((len(n.title) for n in picture.nodes), default=0)
    costs = [total_cost(n) for n in step.launches]
    wide = max(map(len, costs), default=0)
    for k, node in enumerate(picture.nodes):
        last = k == len(picture.nodes) - 1
        lane = f" lane {node.lane}" if node.lane else ""
        waits = ", ".join(_wait(picture, e) for e in picture.links if e.after == k)
        text = f"{'└' if last else '├'}─ {node.title:<{width}}  {costs[k]:<{wide}}{lane}"
        lines.append(f"{text}  ← {waits}" if waits else text.rstrip())
        for n, name in enumerate(node.members):
            end = n == len(node.members) - 1
            lines.append(f"{' ' if last else '│'}  {'└' if end else '├'}─ {name}")
    return "\n".join(lines)


def dot(picture: Picture) -> str:
    """The step for Graphviz: `foxhunt graph aux --dot | dot -Tpdf`."""
    lines = [
        f"digraph {_quoted(f'{picture.program}.{picture.step}')} {{",
        '  node [shape=box, style=rounded, fontname="monospace", fontsize=10];',
        '  edge [fontname="monospace", fontsize=8];',
    ]
    for k, node in enumerate(picture.nodes):
        label = "\n".join([node.title, *(f"· {m}" for m in node.members)])
        lines.append(f"  n{k} [label={_quoted(label)}{', style=dashed' if node.lane else ''}];")
    for e in picture.links:
        colour = COLOURS[e.kind]
        label = _quoted(f"{e.kind} {e.reason}")
        lines.append(f'  n{e.before} -> n{e.after} [label={label}, color="{colour}", fontcolor="{colour}"];')
    return "\n".join([*lines, "}"])


def mermaid(picture: Picture) -> str:
    """The step as a Mermaid flowchart, which Markdown on GitHub and GitLab draws."""
    lines = ["flowchart TD"]
    for k, node in enumerate(picture.nodes):
        label = "<br/>".join(_entities(text) for text in (node.title, *(f"· {m}" for m in node.members)))
        lines.append(f'  n{k}["{label}"]')
    for e in picture.links:
        arrow = "-.->" if e.kind == "ORDER" else "-->"
        lines.append(f'  n{e.before} {arrow}|"{_entities(f"{e.kind} {e.reason}")}"| n{e.after}')
    lanes = [f"n{k}" for k, node in enumerate(picture.nodes) if node.lane]
    if lanes:
        lines += ["  classDef lane stroke-dasharray: 5 3;", f"  class {','.join(lanes)} lane;"]
    return "\n".join(lines)


def _wait(picture: Picture, link: Link) -> str:
    return f"{picture.nodes[link.before].title} {link.kind} {link.reason}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _entities(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")

"""One step as a picture: its device launches as boxes, the hazards between them, and what they look like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from foxhunt.ir.system import NAMES
from foxhunt.ir.types import Edge
from foxhunt.schedule.estimate import microseconds
from foxhunt.schedule.types import FusedLaunch
from foxhunt.view.index import Index, members
from foxhunt.view.layout import Layout, layout

HEAD, LINE, WIDTH, SHOWN = 26.0, 15.0, 236.0, 8
"""Height of a box's title and of a member's line, its width, and how many members it shows."""
KINDS = ("RAW", "WAR", "WAW", "ORDER")


@dataclass(frozen=True)
class Node:
    """A device launch."""

    name: str
    title: str  # without the step
    members: tuple[str, ...]  # declared launches of a fused one, without the step
    lane: int
    block: str  # the outermost block that all its launches stand in, "" for none
    microseconds: float  # estimated
    system: bool  # foxhunt's own


@dataclass(frozen=True)
class Link:
    """An edge between two device launches, by number, with the hazards of declared launches behind it."""

    before: int
    after: int
    kind: str
    reason: str
    hazards: tuple[Edge, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Every kind of hazard behind it."""
        return tuple(k for k in KINDS if k == self.kind or any(h.kind == k for h in self.hazards))


@dataclass(frozen=True)
class Picture:
    """A step in execution order."""

    program: str
    step: str
    declared: int
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    layout: Layout

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks that boxes are coloured by, in order of appearance."""
        return tuple(dict.fromkeys(n.block for n in self.nodes if n.block))


def picture(index: Index, step: str) -> Picture:
    """The picture of a step. Raises KeyError for a step that the program does not have."""
    scheduled = index.steps[step]
    nodes = tuple(_node(step, n) for n in scheduled.launches)
    number = {n.name: k for k, n in enumerate(scheduled.launches)}
    behind = _hazards(index, step, number)
    links = tuple(
        Link(a, b, e.kind, e.reason, tuple(behind[a, b]))
        for e in scheduled.edges
        for a, b in [(number[e.before], number[e.after])]
    )
    placed = layout(
        [(WIDTH, height(n)) for n in nodes], [(e.before, e.after) for e in links], [n.lane for n in nodes]
    )
    return Picture(index.program, step, scheduled.declared, nodes, links, placed)


def height(node: Node) -> float:
    """How high a box is: its title, and a line for each member that is shown."""
    lines = min(len(node.members), SHOWN) + (len(node.members) > SHOWN)
    return HEAD + (lines * LINE + 6 if lines else 0)


def _node(step: str, fused: FusedLaunch) -> Node:
    inside = members(fused)
    blocks = {n.blocks[0] if n.blocks else "" for n in inside}
    names = dict.fromkeys(_short(step, n.name) for n in inside)
    alone = len(names) == 1
    return Node(
        fused.name,
        _short(step, fused.name),
        () if alone else tuple(names),
        fused.lane,
        blocks.pop() if len(blocks) == 1 else "",
        max(microseconds(n) for n in inside),
        all(n.kernel.kernel in NAMES for n in inside),
    )


def _short(step: str, name: str) -> str:
    return name.removeprefix(f"{step}.")


def _hazards(index: Index, step: str, number: Mapping[str, int]) -> Mapping[tuple[int, int], list[Edge]]:
    """The hazards of declared launches by the device launches that they lead from and to."""
    found: dict[tuple[int, int], list[Edge]] = defaultdict(list)
    for e in index.graphs[step].edges:
        last = number[index.homes[e.before].launches[-1].name]
        first = number[index.homes[e.after].launches[0].name]
        found[last, first].append(e)
    return found

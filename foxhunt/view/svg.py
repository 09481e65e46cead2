"""A picture as SVG: a drawing of its own, and what the interactive page moves about."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from foxhunt.view.layout import Box
from foxhunt.view.picture import HEAD, KINDS, LINE, SHOWN, Node, Picture

COLOURS = {"RAW": "#2f6f9f", "WAR": "#b4521e", "WAW": "#8a3ffc", "ORDER": "#8b98a5"}
"""A colour a kind of hazard."""
HUES = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b")
"""The stripes of blocks; further blocks start over."""
PLAIN = "#a9b4bf"

STYLE = """\
svg.step text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,monospace;fill:#1c2733}
svg.step .t{font-weight:600}svg.step .m,svg.step .u{font-size:10.5px;fill:#5b6b7b}svg.step .u{text-anchor:end}
svg.step .b{fill:#fff;stroke:#c3cdd6}svg.step .s .b{fill:#f2f5f8}svg.step .l1 .b{stroke-dasharray:5 3}
svg.step .e{fill:none;stroke-width:1.4;opacity:.75}
"""


def svg(picture: Picture) -> str:
    """The drawing as a file of its own: white ground, a legend, no script, no reference to anything."""
    wide, high = picture.layout.width, picture.layout.height
    title = f"{picture.program}: step {picture.step}"
    note = f"{picture.declared} launches declared, {len(picture.nodes)} on the device"
    legend = [_legend(picture, 20, 34)]
    wide = max(wide, 620.0)
    return (
        f'<svg class="step" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(wide)} {_n(high + 56)}" '
        f'width="{_n(wide)}" height="{_n(high + 56)}" role="img" aria-label="{escape(title)}">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="100%" height="100%" fill="#fff"/>\n'
        f'<text x="20" y="20"><tspan class="t">{escape(title)}</tspan>'
        f'<tspan fill="#5b6b7b"> · {note}</tspan></text>\n'
        + "".join(legend)
        + f'<g transform="translate(0 46)">\n{content(picture)}</g>\n</svg>\n'
    )


def content(picture: Picture) -> str:
    """Edges, then boxes: `g.n` with `data-n`, `path.e` with `data-e` and its kinds as classes."""
    heads = "".join(
        f'<marker id="{picture.step}-{kind}" viewBox="0 0 8 8" refX="7" refY="4" '
        f'markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{COLOURS[kind]}"/></marker>'
        for kind in KINDS
    )
    lines = [f"<defs>{heads}</defs>\n"]
    for k, (link, points) in enumerate(zip(picture.links, picture.layout.paths, strict=True)):
        ends = f"{picture.nodes[link.before].title} → {picture.nodes[link.after].title}"
        kind = link.kind
        lines.append(
            f'<path class="e {" ".join(link.kinds)}" data-e="{k}" d="{curve(points)}" '
            f'stroke="{COLOURS[kind]}" marker-end="url(#{picture.step}-{kind})">'
            f"<title>{escape(f'{ends}: {kind} {link.reason}')}</title></path>\n"
        )
    hues = {block: HUES[k % len(HUES)] for k, block in enumerate(picture.blocks)}
    for k, (node, box) in enumerate(zip(picture.nodes, picture.layout.boxes, strict=True)):
        lines.append(_node(k, node, box, hues.get(node.block, PLAIN)))
    return "".join(lines)


def curve(points: tuple[tuple[float, float], ...]) -> str:
    """A path through the points: vertical at both ends of every rise, straight along a gutter.

    >>> curve(((0, 0), (0, 10), (5, 10)))
    'M0 0L0 10L5 10'
    >>> curve(((0, 0), (10, 20)))
    'M0 0C0 10 10 10 10 20'
    """
    parts = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 == x1 or y0 == y1:
            parts.append(f"L{_n(x1)} {_n(y1)}")
        else:
            middle = _n((y0 + y1) / 2)
            parts.append(f"C{_n(x0)} {middle} {_n(x1)} {middle} {_n(x1)} {_n(y1)}")
    return "".join(parts)


def _node(number: int, node: Node, box: Box, hue: str) -> str:
    kind = "n" + (" s" if node.system else "") + (f" l{node.lane}" if node.lane else "")
    tip = f"{node.name}: {node.microseconds:.1f} µs estimated" + (f", lane {node.lane}" if node.lane else "")
    lines = [
        f'<g class="{kind}" data-n="{number}" transform="translate({_n(box.x)} {_n(box.y)})">'
        f"<title>{escape(tip)}</title>"
        f'<rect class="b" width="{_n(box.width)}" height="{_n(box.height)}" rx="5"/>'
        f'<rect class="k" width="5" height="{_n(box.height)}" rx="2.5" fill="{hue}"/>'
        f'<text class="t" x="13" y="17.5">{escape(fit(node.title, 22))}</text>'
        f'<text class="u" x="{_n(box.width - 8)}" y="17.5">{"lane 1 · " if node.lane else ""}'
        f"{node.microseconds:.1f} µs</text>"
    ]
    shown = [*node.members[:SHOWN]]
    if len(node.members) > SHOWN:
        shown.append(f"and {len(node.members) - SHOWN} more")
    for k, name in enumerate(shown):
        lines.append(f'<text class="m" x="22" y="{_n(HEAD + 8 + k * LINE)}">{escape(fit(name, 32))}</text>')
    return "".join(lines) + "</g>\n"


def _legend(picture: Picture, x: float, y: float) -> str:
    parts = []
    used = {k for link in picture.links for k in link.kinds}
    for kind in (k for k in KINDS if k in used):
        parts.append(f'<path d="M{_n(x)} {_n(y - 4)}h18" stroke="{COLOURS[kind]}" stroke-width="2"/>')
        parts.append(f'<text class="m" x="{_n(x + 23)}" y="{_n(y)}">{kind}</text>')
        x += 36 + 7 * len(kind)
    for k, block in enumerate(picture.blocks[: len(HUES)]):
        hue = HUES[k % len(HUES)]
        parts.append(f'<rect x="{_n(x)}" y="{_n(y - 10)}" width="5" height="12" rx="2.5" fill="{hue}"/>')
        parts.append(f'<text class="m" x="{_n(x + 10)}" y="{_n(y)}">{escape(fit(block, 16))}</text>')
        x += 26 + 7 * min(len(block), 16)
    return "".join(parts) + "\n"


def fit(text: str, width: int) -> str:
    """A name cut in its middle to `width` characters.

    >>> fit("forward.l1", 22), fit("optimise.trunk_weight_p99.long", 16)
    ('forward.l1', 'optimis…p99.long')
    """
    if len(text) <= width:
        return text
    half = width // 2
    return text[: width - half - 1] + "…" + text[-half:]


def _n(value: float) -> str:
    """A coordinate in as few digits as a tenth of a pixel needs."""
    return f"{value:.1f}".rstrip("0").rstrip(".")

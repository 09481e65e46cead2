"""Differences of programs as text for a terminal, Markdown for a pull request, and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from foxhunt.contract.diff import Difference, ProgramDiff

_WIDE = 100


def as_text(found: Sequence[ProgramDiff], allowed: Iterable[str] = ()) -> str:
    """Every difference with its effects, then what breaks and how to accept it."""
    lines = []
    for diff in found:
        if not diff.differences:
            lines.append(f"{diff.program}: no change, layout {diff.layout[1][:12]}")
            continue
        lines.append(f"{diff.program}: layout {_hashes(diff.layout)}, semantics {_hashes(diff.semantics)}")
        for d in diff.differences:
            lines += _difference(d)
    broken = [d for diff in found for d in diff.breaks(allowed)]
    counts = Counter(d.kind for diff in found for d in diff.differences)
    if counts:
        lines.append(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    if broken:
        names = list(dict.fromkeys(d.name for d in broken))
        allow = " ".join(f"--allow {name}" for name in names)
        lines.append(f"layout breaks: {', '.join(names)}; put them back, or accept them with {allow}")
    return "\n".join(lines)


def _hashes(pair: tuple[str, str]) -> str:
    before, after = (text[:12] or "none" for text in pair)
    return f"{before} (same)" if before == after else f"{before} → {after}"


def _difference(d: Difference) -> list[str]:
    head = f"  {d.kind:<9} {d.what} {d.name}"
    if len(head) + len(d.text) <= _WIDE:
        lines = [f"{head}: {d.text}"]
    else:
        rows = (("-", d.before), ("+", d.after))
        lines = [head, *(f"            {sign} {text}" for sign, text in rows if text)]
    return [
        *lines,
        f"            hashes: {d.hashes}",
        f"            checkpoints: {d.checkpoints}",
        f"            signals: {d.signals}",
    ]


def as_markdown(found: Sequence[ProgramDiff], allowed: Iterable[str] = ()) -> str:
    """A table a program; breaks in bold."""
    lines = ["### foxhunt diff", ""]
    for diff in found:
        if not diff.differences:
            lines += [f"**{diff.program}**: no change", ""]
            continue
        broken = set(diff.breaks(allowed))
        layout, semantics = _hashes(diff.layout), _hashes(diff.semantics)
        lines += [f"**{diff.program}**: layout `{layout}`, semantics `{semantics}`", ""]
        heads = ("change", "what", "before", "after", "hashes", "checkpoints", "signals")
        lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for d in diff.differences:
            kind = f"**{d.kind} (breaks)**" if d in broken else d.kind
            places = (_code(d.name), _code(d.before), _code(d.after))
            cells = (kind, f"{d.what} {places[0]}", *places[1:], d.hashes, d.checkpoints, d.signals)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _code(text: str) -> str:
    """Text as code inside a table's cell."""
    shown = text.replace("|", "\\|").replace("`", "'").replace("\n", " ")
    return f"`{shown}`" if shown else ""


def as_json(found: Sequence[ProgramDiff], allowed: Iterable[str] = ()) -> dict[str, Any]:
    """Everything, as JSON values; an empty hash means that there is no such program on that side."""
    allowed = tuple(allowed)
    return {
        "breaks": [d.name for diff in found for d in diff.breaks(allowed)],
        "programs": [
            {
                "program": diff.program,
                "layout": {"old": diff.layout[0], "new": diff.layout[1]},
                "semantics": {"old": diff.semantics[0], "new": diff.semantics[1]},
                "changes": [_change(d, d in diff.breaks(allowed)) for d in diff.differences],
            }
            for diff in found
        ],
    }


def _change(d: Difference, breaks: bool) -> dict[str, Any]:
    return {
        "kind": d.kind,
        "what": d.what,
        "name": d.name,
        "before": d.before,
        "after": d.after,
        "hashes": [name for name, changed in (("layout", d.layout), ("semantics", d.semantics)) if changed],
        "checkpoints": d.checkpoints,
        "signals": d.signals,
        "breaks": breaks,
        "path": d.at.path if d.at else None,
        "line": (d.at.line or None) if d.at else None,
    }

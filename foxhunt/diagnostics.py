"""Locations, diagnostics and the error tree that every stage raises for a user's mistake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, order=True)
class Location:
    """A position in a file that a person wrote; line and column count from 1, 0 means the whole file."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """`path:line:col`, without the parts that are not known."""
        return ":".join([self.path, *(str(n) for n in (self.line, self.column) if n)])


@dataclass(frozen=True)
class Diagnostic:
    """One finding: a stable code, what is wrong, where, and how to mend it.

    `severity` is `error`, `warning` or `note`. `about` is the declared entry that it speaks of, where the
    rule can be suppressed; `suppressed` is the reason that the spec gives for letting it pass.
    """

    code: str
    message: str
    location: Location | None = None
    help: str = ""
    severity: str = "error"
    related: tuple[tuple[Location, str], ...] = ()
    about: str = ""
    suppressed: str = ""


@dataclass(eq=False)
class FoxhuntError(Exception):
    """A user's mistake or an unusable environment; never a bug of ours. Carries all findings of the stage."""

    diagnostics: tuple[Diagnostic, ...]
    exit_code: ClassVar[int] = 2

    def __str__(self) -> str:
        """All findings, one per paragraph, without source lines."""
        return render_text(self.diagnostics, {})


class SpecError(FoxhuntError):
    """The specs cannot be compiled."""


class DriftError(FoxhuntError):
    """Generated files, layout or fingerprint differ from what the specs say."""

    exit_code = 1


class EmissionError(FoxhuntError):
    """A template is missing or wrong, a kernel breaks a rule, or a generated file cannot be written."""


class BuildError(FoxhuntError):
    """A compiler is missing or refused an emitted kernel."""


class BackendError(FoxhuntError):
    """A device, a launch or a capture failed."""


class CheckpointError(FoxhuntError):
    """A checkpoint is damaged or belongs to another layout."""


class DataError(FoxhuntError):
    """A data file is missing, malformed or too short."""


class TrainerError(FoxhuntError):
    """A trainer was asked for something that its program does not have or does not allow."""


def fail(
    kind: type[FoxhuntError], code: str, message: str, *, at: Location | None = None, help: str = ""
) -> FoxhuntError:
    """The error `kind` with one diagnostic, ready to raise."""
    return kind((Diagnostic(code, message, at, help),))


def closest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of `names` that a misspelt name may mean: the same in another case before a similar one.

    >>> closest("epsilon", ["position", "EPSILON"]), closest("AUX_W4", ["aux_w3", "LR"]), closest("x", ["LR"])
    ('EPSILON', 'aux_w3', None)
    """
    from difflib import get_close_matches  # a run without mistakes does not wait for it

    folded = {other.casefold(): other for other in names}
    asked = name[:100].casefold()
    near = [asked] if asked in folded else get_close_matches(asked, list(folded), 1, cutoff)
    return folded[near[0]] if near else None


def extra(name: str) -> str:
    """How to install an optional part of foxhunt, the same wherever it is missed.

    >>> extra("parquet")
    "`uv sync --extra parquet`, or `pip install 'foxhunt[parquet]'`"
    """
    return f"`uv sync --extra {name}`, or `pip install 'foxhunt[{name}]'`"


def sort_diagnostics(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Distinct findings in reading order: by place, then code, then message."""

    def key(d: Diagnostic) -> tuple[object, ...]:
        at = d.location or Location("")
        return (at.path, at.line, at.column, d.code, d.message)

    return tuple(sorted(dict.fromkeys(diagnostics), key=key))


def render_text(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> str:
    """Findings as text: `path:line:col: error[FHnnn] message`, the source line with a caret, the mend.

    `sources` maps a path to its text; a path that is missing there gets no source line.
    """
    blocks = []
    for d in diagnostics:
        where = f"{d.location}: " if d.location else ""
        lines = [f"{where}{d.severity}[{d.code}] {d.message}"]
        lines += _excerpt(d.location, sources)
        lines += [f"  note: {at}: {text}" for at, text in d.related]
        if d.help:
            lines.append(f"  help: {d.help}")
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def _excerpt(at: Location | None, sources: Mapping[str, str]) -> list[str]:
    text = sources.get(at.path) if at else None
    if at is None or text is None or not at.line:
        return []
    rows = text.splitlines()
    if at.line > len(rows):
        return []
    row, column = rows[at.line - 1], max(at.column, 1)
    start = max(0, column - 60)
    shown = row[start : start + 100].replace("\t", " ")
    gutter = f"{at.line:>5} | "
    return [gutter + shown, " " * (len(gutter) - 2) + "| " + " " * (column - 1 - start) + "^"]

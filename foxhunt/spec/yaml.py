"""YAML text to positioned values: YAML 1.2 scalars, duplicate keys refused, bounded in time and memory.

The tree is built from the parser's events and not by PyYAML's composer: events come without recursion, so
depth is checked before anything is nested, and a circular alias is seen while its anchor is open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml import events

from foxhunt.diagnostics import Diagnostic, Location
from foxhunt.spec.positions import Map, Mark, Seq
from foxhunt.spec.scalars import BadScalar, resolve_plain
from foxhunt.spec.text import describe, preview, shorten

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 50
MAX_NODES = 500_000
MAX_FINDINGS = 50

Findings = tuple[Diagnostic, ...]


def parse_bytes(data: bytes, path: str) -> tuple[str, Map | None, Findings]:
    """The text of a spec file (LF line ends, no byte order mark), its top mapping, and what is wrong with it.

    The mapping is None where the file cannot be read on; lesser findings leave it usable.
    """
    if len(data) > MAX_BYTES:
        finding = _found("FH104", f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB", Location(path))
        return "", None, (finding,)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return "", None, (_undecodable(data, error, path),)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    root, findings = parse(text, path)
    return text, root, findings


def parse(text: str, path: str) -> tuple[Map | None, Findings]:
    """The top mapping of a spec file's text, and what is wrong with it."""
    bad = _UNWANTED.search(text)
    if bad:
        at = _place(text, bad.start(), path)
        message = f"the character U+{ord(bad.group()):04X} is not allowed in a spec"
        return None, (_found("FH103", message, at, "remove it, or escape it in a double-quoted text"),)
    builder = _Builder(path)
    try:
        for event in _events(text):
            builder.take(event)
    except _Stop as stop:
        return None, (*builder.findings, stop.finding)
    except yaml.MarkedYAMLError as error:
        return None, (*builder.findings, _syntax(error, text, path))
    return builder.result()


# Control characters, line ends that editors do not count, the byte order mark inside a text, and characters
# that make a text look different from what it is.
_UNWANTED = re.compile(
    "[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u2028-\u202e\u2066-\u2069\ufeff]"
)


def _events(text: str) -> Iterator[Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.parse(text, Loader=loader)


class _Stop(Exception):  # noqa: N818 - it carries a finding; it is not an error of ours
    """The file cannot be read on."""

    def __init__(self, finding: Diagnostic) -> None:
        self.finding = finding


def _found(
    code: str, message: str, at: Location, help: str = "", related: Location | None = None
) -> Diagnostic:
    notes = ((related, "first written here"),) if related else ()
    return Diagnostic(code, message, at, help, related=notes)


@dataclass
class _Frame:
    """A collection that is still open. `keys` is None for a sequence."""

    at: Location
    anchor: str | None
    marks: dict[str, Mark] | None
    items: dict[str, Any] = field(default_factory=dict)
    elements: list[Any] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    key: str | None = None
    key_at: tuple[int, int] = (0, 0)
    weight: int = 1


class _Builder:
    """Takes events in turn; collections under construction are a stack."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.findings: list[Diagnostic] = []
        self.frames: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, int, Location] | None] = {}
        self.documents = 0
        self.root: Any = None
        self.root_at = Location(path)

    def result(self) -> tuple[Map | None, Findings]:
        """The top mapping, if the file has one."""
        if self.documents == 0 or self.root is None:
            if not self.findings:
                finding = _found(
                    "FH108", "the file is empty", Location(self.path), "write a section, or delete the file"
                )
                self.findings.append(finding)
            return None, tuple(self.findings)
        if not isinstance(self.root, Map):
            message = f"a spec file is a mapping of sections, not {describe(self.root)}"
            self.findings.append(_found("FH112", message, self.root_at))
            return None, tuple(self.findings)
        return self.root, tuple(self.findings)

    def take(self, event: Any) -> None:
        """Handle one event."""
        match event:
            case events.ScalarEvent():
                self.scalar(event)
            case events.CollectionStartEvent():
                self.open(event)
            case events.CollectionEndEvent():
                self.close()
            case events.AliasEvent():
                self.alias(event)
            case events.DocumentStartEvent():
                self.document(event)

    def at(self, event: Any) -> Location:
        mark = event.start_mark
        return Location(self.path, mark.line + 1, mark.column + 1)

    def find(
        self, code: str, message: str, at: Location, help: str = "", first: Location | None = None
    ) -> None:
        """Note a mistake and read on; a file full of mistakes is not read to its end."""
        if len(self.findings) == MAX_FINDINGS:
            raise _Stop(_found("FH104", f"more than {MAX_FINDINGS} mistakes; the rest is not read", at))
        self.findings.append(_found(code, message, at, help, first))

    def stop(self, code: str, message: str, event: Any, help: str = "") -> _Stop:
        return _Stop(_found(code, message, self.at(event), help))

    def document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            raise self.stop("FH106", "a second document starts here", event, "one file holds one document")
        if event.version not in (None, (1, 2)):
            raise self.stop("FH106", "specs are YAML 1.2", event, "remove the %YAML line")

    def scalar(self, event: Any) -> None:
        if event.tag is not None:
            raise self.stop("FH106", f"tags are not supported: {preview(event.tag)}", event, "remove the tag")
        mark, style = event.start_mark, event.style
        quoted = style in ("'", '"')
        place = (mark.line + 1, mark.column + 1 + quoted)
        value: Any = event.value
        if not style:
            try:
                value = resolve_plain(value)
            except BadScalar as bad:
                value = 0  # fits where a number does, so that no second finding follows
                at = Location(self.path, *place)
                self.find("FH107", str(bad), at, bad.help)
        self.add(value, place, event, 1)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, 1, Location(self.path, *place))

    def open(self, event: Any) -> None:
        if event.tag is not None:
            raise self.stop("FH106", f"tags are not supported: {preview(event.tag)}", event, "remove the tag")
        if len(self.frames) >= MAX_DEPTH:
            raise self.stop("FH104", f"nested deeper than {MAX_DEPTH}", event)
        frame = self.frames[-1] if self.frames else None
        if frame is not None and frame.marks is not None and frame.key is None:
            raise self.not_a_key("a collection", event)
        is_map = isinstance(event, events.MappingStartEvent)
        self.frames.append(_Frame(self.at(event), event.anchor, {} if is_map else None))
        if event.anchor is not None:
            self.anchors[event.anchor] = None

    def close(self) -> None:
        frame = self.frames.pop()
        value: Map | Seq
        if frame.marks is not None:
            value = Map(frame.items, frame.at, frame.marks)
        else:
            value = Seq.of(frame.elements, frame.at, frame.places)
        if frame.anchor is not None:
            self.anchors[frame.anchor] = (value, frame.weight, frame.at)
        self.add(value, (frame.at.line, frame.at.column), None, frame.weight)

    def alias(self, event: Any) -> None:
        frame = self.frames[-1] if self.frames else None
        if frame is not None and frame.marks is not None and frame.key is None:
            raise self.not_a_key("an alias", event)
        if event.anchor not in self.anchors:
            raise self.stop(
                "FH106", f"there is no anchor `&{shorten(event.anchor)}` before this alias", event
            )
        anchored = self.anchors[event.anchor]
        if anchored is None:
            raise self.stop("FH106", f"the alias `*{shorten(event.anchor)}` contains itself", event)
        value, weight, _ = anchored
        self.add(value, (event.start_mark.line + 1, event.start_mark.column + 1), event, weight)

    def not_a_key(self, what: str, event: Any) -> _Stop:
        help = "quote `{{ … }}` if it is meant as text" if what == "a collection" else ""
        return self.stop("FH106", f"{what} cannot be a key; keys are text", event, help)

    def add(self, value: Any, place: tuple[int, int], event: Any, weight: int) -> None:
        """Put a finished value into the open collection."""
        if not self.frames:
            self.root, self.root_at = value, Location(self.path, *place)
            return
        frame = self.frames[-1]
        frame.weight += weight
        if frame.weight > MAX_NODES:
            message = f"more than {MAX_NODES:,} values after aliases are expanded"
            raise _Stop(_found("FH104", message, Location(self.path, *place)))
        if frame.marks is None:
            frame.elements.append(value)
            frame.places.append(place)
        elif frame.key is None:
            frame.key, frame.key_at = self.key(value, event, frame), place
        else:
            self.entry(frame, value, place)

    def key(self, value: Any, event: Any, frame: _Frame) -> str:
        if not isinstance(value, str):
            shown = event.value or "nothing"
            raise self.stop(
                "FH106", f"`{shown}` cannot be a key; keys are text", event, f'quote it: "{shown}"'
            )
        if not value or not value.isprintable():
            raise self.stop("FH106", f"a key must be printable text, not {preview(value)}", event)
        return value

    def entry(self, frame: _Frame, value: Any, place: tuple[int, int]) -> None:
        key, marks = frame.key, frame.marks
        assert key is not None
        assert marks is not None
        frame.key = None
        mark = Mark(self.path, *frame.key_at, *place)
        if key in marks:
            message = f"the key `{shorten(key)}` stands twice in one mapping"
            first = marks[key].key
            help = f"remove it here or in line {first.line}"
            self.find("FH105", message, mark.key, help, first)
        elif key == "<<":
            marks[key] = mark
            self.find("FH106", "merge keys `<<` are not supported", mark.key, "write the entries out")
        elif value is None:
            message = f"`{shorten(key)}` has no value"
            self.find("FH112", message, mark.key, "write one, or remove the key")
        else:
            frame.items[key] = value
            marks[key] = mark


def _place(text: str, index: int, path: str) -> Location:
    start = text.rfind("\n", 0, index) + 1
    return Location(path, text.count("\n", 0, index) + 1, index - start + 1)


def _undecodable(data: bytes, error: UnicodeDecodeError, path: str) -> Diagnostic:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _found("FH103", "the file is UTF-16, not UTF-8", Location(path), "save it as UTF-8")
    before = data[: error.start].decode("utf-8", "replace").replace("\r\n", "\n")
    at = _place(before, len(before), path)
    return _found("FH103", f"the byte 0x{data[error.start]:02x} is not UTF-8", at, "save the file as UTF-8")


def _syntax(error: yaml.MarkedYAMLError, text: str, path: str) -> Diagnostic:
    mark = error.problem_mark or error.context_mark
    lines = text.split("\n")
    if mark is None:
        return _found("FH102", f"not YAML: {error.problem}", Location(path))
    line, column = mark.line, mark.column
    if line >= len(lines) or (line == len(lines) - 1 and not lines[line] and line > 0):
        line = max(n for n, row in enumerate(lines) if row or n == 0)
        column = len(lines[line])
    at = Location(path, line + 1, column + 1)
    if "maximum nesting depth" in (error.problem or error.context or ""):
        return _found("FH104", f"nested deeper than {MAX_DEPTH}", at)
    here = lines[line][column : column + 1]
    helps = {
        "\t": "indent with spaces, not tabs",
        "@": "quote a text that starts with @",
        "`": "quote a text that starts with `",
        "%": "quote a text that starts with %",
    }
    message = " ".join(part for part in ("not YAML:", error.context, error.problem) if part)
    notes: tuple[tuple[Location, str], ...] = ()
    if error.context_mark is not None and error.context_mark.line != mark.line:
        start = error.context_mark
        notes = ((Location(path, start.line + 1, start.column + 1), "it starts here"),)
    return Diagnostic("FH102", message, at, helps.get(here, ""), related=notes)

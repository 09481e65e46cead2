"""`layout.lock`: the committed layout as text, and what has changed since."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from foxhunt.contract.fingerprint import Fingerprint, layout_hash, layout_line, layout_lines
from foxhunt.diagnostics import Diagnostic, DriftError, Location, SpecError, fail, sort_diagnostics
from foxhunt.dtypes import DTYPES
from foxhunt.ir.layout import Lock
from foxhunt.ir.types import LaidOutProgram, LayoutEntry

LOCK_FILE = "layout.lock"
KINDS = ("counter", "isv", "moment", "param", "state", "wiener")
MAX_LINES = 1_000_000
ChangeKind = Literal["append", "retire", "move", "reshape", "retype", "rename", "delete"]
SAFE: frozenset[ChangeKind] = frozenset(("append", "retire"))

_LINE = re.compile(
    r"(?P<kind>[a-z]+) (?P<position>\d{1,19}) (?P<name>[A-Za-z_][A-Za-z0-9_.]{0,255}) "
    r"(?P<dtype>[a-z0-9]+) \[(?P<shape>(?:\d{1,19}(?:,\d{1,19}){0,31})?)\](?: # (?P<note>.*))?",
    re.ASCII,
)
_HASH = re.compile(r"(layout|semantics) ([0-9a-f]{64})")


@dataclass(frozen=True)
class Change:
    """One difference between the lock and the specs. `name` is the entry's name now, or what it was.

    `at` is where the entry is declared, of a deleted one its line in the lock.
    """

    kind: ChangeKind
    name: str
    before: LayoutEntry | None
    after: LayoutEntry | None
    at: Location | None = None

    def __str__(self) -> str:
        """The change in words."""
        return self.text

    @property
    def text(self) -> str:
        """The change in words."""
        if self.before is None:
            return f"{self.kind} {_shown(self.after)}"
        if self.after is None or self.kind == "retire":
            return f"{self.kind} {_shown(self.before)}"
        return f"{self.kind} {_shown(self.before)} → {_shown(self.after)}"

    @property
    def owners(self) -> frozenset[str]:
        """The declared names that this change belongs to: of a moment, its param."""
        names = {e.name for e in (self.before, self.after) if e is not None}
        return frozenset(names | {name.partition(".")[0] for name in names})


def _shown(entry: LayoutEntry | None) -> str:
    return layout_line(entry) if entry is not None else ""


def render_lock(laid_out: LaidOutProgram, fingerprint: Fingerprint) -> str:
    """The text of `layout.lock`."""
    entries = sorted(laid_out.entries, key=lambda e: (e.kind, e.position, e.name))
    lines = [
        f"# Layout of program {laid_out.program.name}: every place that a checkpoint depends on.",
        "# Written by `foxhunt compile`, and read by it: a place that stands here is kept. Commit this file.",
        "# One line an entry: <kind> <position> <name> <dtype> <shape>. What follows ` # ` is not hashed.",
        f"layout {fingerprint.layout}",
        f"semantics {fingerprint.semantics}",
        *(f"{layout_line(e)} # {e.note}" if e.note else layout_line(e) for e in entries),
    ]
    return "\n".join(lines) + "\n"


def parse_lock(text: str, path: str = LOCK_FILE) -> Lock:
    """The lock in `text`; `path` is named in errors.

    Raises SpecError for text that is no lock, DriftError for one whose lines do not have its layout hash.
    """
    entries: list[LayoutEntry] = []
    hashes: dict[str, str] = {}
    seen: dict[tuple[str, str], Location] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        at = Location(path, number)
        found = _HASH.fullmatch(line.rstrip())
        if found is not None:
            hashes[found[1]] = found[2]
            continue
        entry = _parse_line(line.rstrip(), at)
        first = seen.setdefault((entry.kind, entry.name), at)
        if first != at:
            raise _damaged(f"{entry.kind} {entry.name} stands twice, first in line {first.line}", at)
        if number > MAX_LINES:
            raise _damaged(f"the lock has more than {MAX_LINES} lines", at)
        entries.append(entry)
    if set(hashes) != {"layout", "semantics"}:
        raise _damaged("the lock has no `layout` and `semantics` hash", Location(path))
    if layout_hash(layout_lines(entries)) != hashes["layout"]:
        message = "the lines of the lock do not have the layout hash that it states"
        help = "the file was edited by hand or merged: restore it from version control"
        raise fail(DriftError, "FH602", message, at=Location(path), help=help)
    return Lock(tuple(entries), hashes["layout"], hashes["semantics"], seen)


def parse_lines(lines: Iterable[str], at: Location) -> tuple[LayoutEntry, ...]:
    """The entries of a layout's lines, as a checkpoint carries them. Raises SpecError FH601."""
    return tuple(_parse_line(line, at) for line in lines)


def _parse_line(line: str, at: Location) -> LayoutEntry:
    found = _LINE.fullmatch(line)
    if found is None:
        raise _damaged(f"`{ascii(line[:60])[1:-1]}` is no line of a lock", at)
    kind, dtype = found["kind"], found["dtype"]
    if kind not in KINDS or dtype not in DTYPES:
        raise _damaged(f"unknown {'kind ' + kind if kind not in KINDS else 'dtype ' + dtype}", at)
    shape = tuple(int(extent) for extent in found["shape"].split(",")) if found["shape"] else ()
    position = int(found["position"])
    if kind == "wiener" and (len(shape) != 2 or shape[1] != 3 or position % 3):
        raise _damaged("a wiener line has a position that is a multiple of 3 and a shape [count,3]", at)
    return LayoutEntry(kind, position, found["name"], dtype, shape, found["note"] or "")


def _damaged(message: str, at: Location) -> SpecError:
    help = "restore the file from version control, or delete it to lay the program out anew"
    error = fail(SpecError, "FH601", message, at=at, help=help)
    assert isinstance(error, SpecError)
    return error


def compare(lock: Lock, laid_out: LaidOutProgram) -> tuple[Change, ...]:
    """What has changed since the lock, by (kind, position); nothing for equal layouts and notes."""
    places = _declared(laid_out)
    changes = compare_entries(lock.entries, laid_out.entries)
    return tuple(
        replace(c, at=_place(places, c.name) if c.after else lock.lines.get(_key(c.before))) for c in changes
    )


def compare_entries(old: Iterable[LayoutEntry], new: Iterable[LayoutEntry]) -> tuple[Change, ...]:
    """What differs between two layouts, by (kind, position)."""
    changes = []
    for before, after in match_entries(old, new):
        entry, kind = after or before, _kind(before, after)
        if kind is not None and entry is not None:
            changes.append(Change(kind, entry.name, before, after))
    return tuple(sorted(changes, key=_order))


def match_entries(
    old: Iterable[LayoutEntry], new: Iterable[LayoutEntry]
) -> Iterator[tuple[LayoutEntry | None, LayoutEntry | None]]:
    """Each entry of either layout with what it was, or became; None where there is no such.

    An entry is known by its name, or by the former name that its note gives; a param that gets an allocation
    of its own, or loses it, stays the same entry.
    """
    olds = {(_family(e.kind), e.name): e for e in old}
    news = {(_family(e.kind), e.name): e for e in new}
    for (family, name), after in news.items():
        before = olds.pop((family, name), None)
        renamed = former_name(after)
        if before is None and renamed is not None and (family, renamed) not in news:
            before = olds.pop((family, renamed), None)
        yield before, after
    for before in olds.values():
        yield before, None


def _key(entry: LayoutEntry | None) -> tuple[str, str]:
    return (entry.kind, entry.name) if entry is not None else ("", "")


def _family(kind: str) -> str:
    """Entries of one family are told apart by their names."""
    return "tensor" if kind in ("param", "moment", "state") else kind


def _declared(laid_out: LaidOutProgram) -> dict[str, Location]:
    program = laid_out.program
    found = {s.name: s.at for s in program.slots} | {c.name: c.at for c in program.counters}
    return found | {t.name: t.at for t in program.tensors if t.role != "workspace"}


def _place(places: dict[str, Location], name: str) -> Location | None:
    return places.get(name) or places.get(name.rpartition(".")[0])


def _order(change: Change) -> tuple[str, int, str]:
    entry = change.after or change.before
    assert entry is not None
    return (entry.kind, entry.position, entry.name)


def former_name(entry: LayoutEntry) -> str | None:
    """What the entry was called, when its declaration says `was:`; of a moment, with its suffix."""
    match = re.search(r"(?:^|; )was: ([A-Za-z0-9_]+)$", entry.note)
    if match is None:
        return None
    _, dot, suffix = entry.name.partition(".")
    return match[1] + dot + suffix


def _kind(before: LayoutEntry | None, after: LayoutEntry | None) -> ChangeKind | None:
    if after is None:
        return "delete"
    if before is None:
        return "append"
    if before.dtype != after.dtype:
        return "retype"
    if before.shape != after.shape:
        return "reshape"
    if (before.kind, before.position) != (after.kind, after.position):
        return "move"
    if before.name != after.name:
        return "rename"
    retired = [e.note.startswith("retired:") for e in (before, after)]
    if retired[0] != retired[1]:
        return "retire" if retired[1] else "append"
    return None


def check_allowed(changes: Collection[Change], breaks: Collection[str] = ()) -> None:
    """Raises DriftError for each change that checkpoints do not survive, unless `breaks` names its entry."""
    refused = [c for c in changes if c.kind not in SAFE and not c.owners.intersection(breaks)]
    if refused:
        raise DriftError(sort_diagnostics(_findings(refused, _new_names(changes))))


def unused_breaks(changes: Collection[Change], breaks: Iterable[str]) -> Iterator[Diagnostic]:
    """A finding for each name in `breaks` of which no change asks to be allowed."""
    broken = {name for c in changes if c.kind not in SAFE for name in c.owners}
    return unused_names("--break", breaks, broken)


def unused_names(option: str, names: Iterable[str], broken: Collection[str]) -> Iterator[Diagnostic]:
    """A finding FH609 for each of `names`, given with `option`, that is none of the `broken`."""
    for name in names:
        if name not in broken:
            help = f"what breaks the layout: {', '.join(sorted(broken)) or 'nothing'}"
            yield Diagnostic("FH609", f"{option} {name}: nothing of that name breaks the layout", None, help)


def _new_names(changes: Iterable[Change]) -> dict[tuple[str, str], str]:
    """What a deleted entry may be called now: one that was added, where no other pair is so alike."""
    alike: dict[tuple[str, str, tuple[int, ...]], tuple[list[str], list[str]]] = {}
    for change in changes:
        entry = change.before if change.kind == "delete" else change.after
        if entry is not None and (change.before is None or change.kind == "delete"):
            pair = alike.setdefault((entry.kind, entry.dtype, entry.shape), ([], []))
            pair[change.before is None].append(entry.name)
    return {
        (kind, gone[0]): new[0] for (kind, _, _), (gone, new) in alike.items() if len(gone) == len(new) == 1
    }


def _findings(changes: list[Change], new_names: Mapping[tuple[str, str], str]) -> Iterator[Diagnostic]:
    params = {c.name for c in changes if "param" in {e.kind for e in (c.before, c.after) if e}}
    for change in changes:
        name = min(change.owners, key=len)
        if name in params and change.name != name:
            continue  # a moment that goes where its param goes
        help = f"put it back, or accept that older checkpoints do not load: `--break {name}`"
        if change.kind == "delete" and (new := new_names.get(_key(change.before))):
            help += f"; or is {new} its new name? then write `was: {change.name}`"
        yield Diagnostic(
            "FH603", f"the layout would change: {change}", change.at or Location(LOCK_FILE), help
        )

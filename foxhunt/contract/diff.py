"""What a change of specs or templates means: for the two hashes, for checkpoints, and for running signals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from foxhunt.contract.effects import CHECKPOINTS, meaning_signal, place_signal
from foxhunt.contract.lock import SAFE, Change, compare_entries
from foxhunt.diagnostics import Diagnostic, Location
from foxhunt.ir.layout import Lock
from foxhunt.ir.types import LayoutEntry

SLOT_FIELDS = ("source", "init", "sentinel", "floor", "reset")


@dataclass(frozen=True)
class Contract:
    """What one compiled program promises: its layout, what its entries mean, and its kernels' texts."""

    program: str
    lock: Lock
    meanings: Mapping[str, str] = field(hash=False)  # see `contract.meaning.meanings`
    kernels: Mapping[str, str] = field(hash=False)  # kernel → comment-stripped text


@dataclass(frozen=True)
class Difference:
    """One change of one declared thing, with its effects in words.

    `kind` is a layout change (append, retire, move, reshape, retype, rename, delete) or a change of meaning
    (producer, smoothing, reset, values, template, launch).
    """

    kind: str
    what: str  # slot | triple | param | buffer | counter | kernel | launch | program
    name: str
    before: str
    after: str
    layout: bool  # changes the layout hash
    semantics: bool  # changes the semantics hash
    checkpoints: str
    signals: str
    names: frozenset[str]  # what `--allow` may call it
    at: Location | None = None

    @property
    def breaks(self) -> bool:
        """Whether checkpoints do not survive it as they are."""
        return self.kind in ("move", "reshape", "retype", "rename", "delete")

    @property
    def hashes(self) -> str:
        """Which of the two hashes it changes."""
        changed = [name for name, does in (("layout", self.layout), ("semantics", self.semantics)) if does]
        return " and ".join(changed) + f" change{'s' * (len(changed) == 1)}" if changed else "both stay"

    @property
    def text(self) -> str:
        """Before and after in one line."""
        return f"{self.before} → {self.after}" if self.before and self.after else self.before or self.after


@dataclass(frozen=True)
class ProgramDiff:
    """All differences of one program; a hash is empty where there is no such program."""

    program: str
    layout: tuple[str, str]
    semantics: tuple[str, str]
    differences: tuple[Difference, ...]

    def breaks(self, allowed: Iterable[str] = ()) -> tuple[Difference, ...]:
        """The layout breaks that `allowed` does not name."""
        named = frozenset(allowed)
        return tuple(d for d in self.differences if d.breaks and not d.names & named)


def diff_programs(old: Mapping[str, Contract], new: Mapping[str, Contract]) -> tuple[ProgramDiff, ...]:
    """The differences of every program of either side, by name."""
    return tuple(_diff(name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()))


def _diff(name: str, old: Contract | None, new: Contract | None) -> ProgramDiff:
    layout = (old.lock.layout if old else "", new.lock.layout if new else "")
    semantics = (old.lock.semantics if old else "", new.lock.semantics if new else "")
    if old is not None and new is not None:
        return ProgramDiff(name, layout, semantics, (*_layout(old, new), *_meanings(old, new)))
    side = old or new
    assert side is not None
    kind, signals = ("append", "all start anew") if new else ("delete", "none are left")
    checkpoints = "there are none yet" if new else "none of them has a program any more"
    text, names = f"{len(side.lock.entries)} entries", frozenset((name,))
    before, after = ("", text) if new else (text, "")
    whole = Difference(kind, "program", name, before, after, True, True, checkpoints, signals, names)
    return ProgramDiff(name, layout, semantics, (whole,))


def _layout(old: Contract, new: Contract) -> Iterator[Difference]:
    """Changes of places: a slot with its triple and a param with its moments are one difference a kind."""
    groups: dict[tuple[str, str], list[Change]] = {}
    moments = _moments((*old.lock.entries, *new.lock.entries))
    for change in compare_entries(old.lock.entries, new.lock.entries):
        owner = change.name.rpartition(".")[0] if change.name in moments else change.name
        groups.setdefault((owner, change.kind), []).append(change)
    for (name, kind), changes in groups.items():
        what = _what(changes)
        before, after = (
            _places(e for e in side if e is not None and e.name not in moments)
            for side in ([c.before for c in changes], [c.after for c in changes])
        )
        if kind == "retire":
            after = ""
        yield Difference(
            kind=kind,
            what=what,
            name=name,
            before=before,
            after=after,
            layout=kind != "retire" and _lines_differ(changes),
            semantics=what in ("slot", "triple", "counter") or _meaning_differs(old, new, changes),
            checkpoints="load as before" if not _lines_differ(changes) else CHECKPOINTS[kind],
            signals=place_signal(kind, what, new.meanings.get(f"slot {name}", "")),
            names=frozenset().union(*(c.owners for c in changes)),
        )


def _lines_differ(changes: Iterable[Change]) -> bool:
    return any(
        c.before is None or c.after is None or replace(c.before, note="") != replace(c.after, note="")
        for c in changes
    )


def _moments(entries: Collection[LayoutEntry]) -> frozenset[str]:
    """Names of moments: in their arena, or of a param that has an allocation of its own."""
    tensors = {e.name for e in entries if e.kind in ("param", "state")}
    suffixed = {n for n in tensors if n.endswith((".m", ".v")) and n.rpartition(".")[0] in tensors}
    return frozenset(suffixed | {e.name for e in entries if e.kind == "moment"})


def _what(changes: Iterable[Change]) -> str:
    kinds = {e.kind for c in changes for e in (c.before, c.after) if e is not None}
    for kind, what in (("isv", "slot"), ("param", "param"), ("wiener", "triple"), ("counter", "counter")):
        if kind in kinds:
            return what
    return "buffer"


def _places(entries: Iterable[LayoutEntry]) -> str:
    shown = [
        f"{e.kind} {e.position} {e.name} {e.dtype} [{','.join(map(str, e.shape))}]"
        for e in sorted(entries, key=lambda e: (e.kind == "wiener", e.kind, e.name))
    ]
    return ", ".join(shown)


def _meaning_differs(old: Contract, new: Contract, changes: Iterable[Change]) -> bool:
    names = {e.name for c in changes for e in (c.before, c.after) if e is not None}
    keys = {f"{kind} {name}" for kind in ("tensor", "counter") for name in names}
    return any(old.meanings.get(k) != new.meanings.get(k) for k in keys)


def _meanings(old: Contract, new: Contract) -> Iterator[Difference]:
    """Changes of meaning, of what has a place on both sides, under its new name."""
    renamed = {
        c.before.name: c.after.name
        for c in compare_entries(old.lock.entries, new.lock.entries)
        if c.before is not None and c.after is not None and c.before.name != c.after.name
    }
    was = {_renamed(key, renamed): text for key, text in old.meanings.items()}
    users = _users(new.meanings)
    for key in sorted(was.keys() | new.meanings.keys()) if was and new.meanings else ():
        before, after = was.get(key, ""), new.meanings.get(key, "")
        if before != after:
            swapped = {_kernel(before), _kernel(after)} & (old.kernels.keys() ^ new.kernels.keys())
            yield from _meaning(key, before, after, bool(swapped))
    for kernel in sorted(old.kernels.keys() & new.kernels.keys()):
        if old.kernels[kernel] != new.kernels[kernel]:
            lines = _changed_lines(old.kernels[kernel], new.kernels[kernel])
            fed = ", ".join(users.get(kernel, ()))
            yield _changed("template", "kernel", kernel, *lines, meaning_signal("template", fed))


def _renamed(key: str, renamed: Mapping[str, str]) -> str:
    kind, _, name = key.partition(" ")
    return f"{kind} {renamed.get(name, name)}" if name else key


def _users(meanings: Mapping[str, str]) -> dict[str, list[str]]:
    """Kernel → the slots whose producers launch it."""
    found: dict[str, list[str]] = {}
    for key, text in sorted(meanings.items()):
        if key.startswith("producer "):
            found.setdefault(_kernel(text), []).append(key.removeprefix("producer "))
    return found


def _changed_lines(old: str, new: str) -> tuple[str, str]:
    """The first line that differs, on both sides."""
    pairs = zip(old.split("\n"), new.split("\n"), strict=False)
    return next(((a, b) for a, b in pairs if a != b), ("(shorter)", "(longer)"))


def _kernel(text: str) -> str:
    """The kernel that a producer's or launch's meaning names."""
    return text.rpartition(" = ")[2].partition("(")[0]


def _meaning(key: str, before: str, after: str, swapped: bool) -> Iterator[Difference]:
    """`swapped` says that a kernel came or went with the change, which the semantics hash sees."""
    kind, _, name = key.partition(" ")
    if kind == "slot":
        if before and after:
            yield from _slot(name, before.split(" "), after.split(" "))
    elif kind == "producer":
        if before and after:
            signals = meaning_signal("producer")
            yield _changed("producer", "slot", name, before, after, signals, hashed=swapped)
    elif kind == "smoothing":
        if before and after:
            yield _changed("smoothing", "slot", name, before, after, meaning_signal("smoothing"))
    elif kind in ("tensor", "counter"):
        if before and after:
            yield from _entry(kind, name, before.split(" "), after.split(" "))
    elif kind == "launch":
        yield _changed("launch", "launch", name, before, after, meaning_signal("launch"), hashed=swapped)
    elif kind == "system":
        role = {"apply": "smoothing", "reset": "reset"}.get(name, "template")
        signal = meaning_signal("smoothing all" if name == "apply" else "system")
        looks = name.startswith("sentinel")  # changes no result
        yield _changed(role, "kernel", name, before, after, signal, hashed=not looks)
    elif kind in ("health", "ignore"):  # what a report ignores changes no result
        if before and after:
            signal, hashed = meaning_signal("health"), kind == "health"
            yield _changed("values", "program", "health", before, after, signal, hashed=hashed)
    else:  # prelude, precision
        yield _changed("template", "program", kind, before, after, meaning_signal("system"))


def _slot(name: str, before: list[str], after: list[str]) -> Iterator[Difference]:
    for label, one, two in zip(SLOT_FIELDS, before, after, strict=True):
        if one != two:
            if label in ("init", "sentinel", "floor"):
                one, two = _number(one), _number(two)
            kind = "reset" if label == "reset" else "producer" if label == "source" else "values"
            shown = f"{label} {one}", f"{label} {two}"
            yield _changed(kind, "slot", name, *shown, meaning_signal(label))


def _number(text: str) -> str:
    return "none" if text == "-" else f"{float.fromhex(text):g}"


def _entry(kind: str, name: str, before: list[str], after: list[str]) -> Iterator[Difference]:
    """A param's or buffer's `<init> <reset>`, a counter's `<advance> <reset>`."""
    what = "counter" if kind == "counter" else "tensor"
    first = "advance" if kind == "counter" else "init"
    for label, one, two in zip((first, "reset"), before, after, strict=True):
        if one != two:
            role = "reset" if label == "reset" else "values"
            yield _changed(role, what, name, f"{label} {one}", f"{label} {two}", meaning_signal(label))


def _changed(
    kind: str, what: str, name: str, before: str, after: str, signals: str, *, hashed: bool = True
) -> Difference:
    checkpoints = CHECKPOINTS["meaning" if hashed else "wiring"]
    return Difference(
        kind, what, name, before, after, False, hashed, checkpoints, signals, frozenset((name,))
    )


def findings(found: ProgramDiff, allowed: Iterable[str] = ()) -> Iterator[Diagnostic]:
    """The differences as findings: breaks are errors (notes where allowed), changes of meaning warnings."""
    broken = set(found.breaks(allowed))
    for d in found.differences:
        message = f"{found.program}: {d.kind} {d.what} {d.name}: {d.text}"
        effects = f"hashes: {d.hashes}; checkpoints: {d.checkpoints}; signals: {d.signals}"
        if d in broken:
            help = f"{effects}. Put it back, or accept it with `--allow {d.name}`"
            yield Diagnostic("FH603", message, d.at, help)
        elif d.breaks or d.kind in SAFE:
            yield Diagnostic("FH608", message, d.at, effects, "note")
        else:
            yield Diagnostic("FH607", message, d.at, effects, "warning")

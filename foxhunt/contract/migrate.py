"""Which values of an older layout a newer one takes over, by name, and which it cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from foxhunt.contract.lock import match_entries
from foxhunt.diagnostics import Diagnostic, Location
from foxhunt.ir.types import LayoutEntry

Action = Literal["keep", "move", "rename", "new", "restart", "drop", "refuse"]
CARRIED: tuple[Action, ...] = ("keep", "move", "rename")


@dataclass(frozen=True)
class Carry:
    """What becomes of one layout entry. `before` is its place in the checkpoint, `after` in the program."""

    action: Action
    before: LayoutEntry | None
    after: LayoutEntry | None
    reason: str = ""

    @property
    def entry(self) -> LayoutEntry:
        """Where it will be, or was."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def owner(self) -> str:
        """The declared name: of a moment, its param."""
        name = self.entry.name
        moment = self.entry.kind in ("moment", "state") and name.endswith((".m", ".v"))
        return name.rpartition(".")[0] if moment else name


def plan_migration(
    old: Iterable[LayoutEntry], new: Iterable[LayoutEntry], drops: Collection[str] = ()
) -> tuple[Carry, ...]:
    """What becomes of every entry of either layout, by (kind, position).

    Carried by name, or by the former name that `was:` declares: what kept its dtype and, but for axes of
    extent 1, its shape. What is new starts as in a new run; a slot whose triple is new or gone restarts,
    since another source writes it. Values without a place are refused, unless `drops` names them: then they
    are lost, or start anew where the shape or dtype changed.
    """
    pairs = list(match_entries(old, new))
    renewed = _renewed(pairs)
    carries = [_carry(before, after, drops, renewed) for before, after in pairs]
    return tuple(sorted(carries, key=lambda c: (c.entry.kind, c.entry.position, c.entry.name)))


def _renewed(pairs: Iterable[tuple[LayoutEntry | None, LayoutEntry | None]]) -> dict[str, str]:
    """Slots of both layouts that have a triple in one of them only, by either name → why they restart."""
    slots, triples = {}, set()
    for before, after in pairs:
        if before is not None and after is not None:
            if before.kind == "isv":
                slots[after.name] = before.name
            elif before.kind == "wiener":
                triples.add(after.name)
    found: dict[str, str] = {}
    for before, after in pairs:
        entry = after or before
        if entry is None or entry.kind != "wiener" or entry.name in triples:
            continue
        for now, was in slots.items():
            if entry.name == (now if after is not None else was):
                reason = "it has a producer now" if after is not None else "it has no producer any more"
                found |= {now: reason, was: reason}
    return found


def _carry(
    before: LayoutEntry | None, after: LayoutEntry | None, drops: Collection[str], renewed: dict[str, str]
) -> Carry:
    entry = after or before
    assert entry is not None
    named = {name for e in (before, after) if e is not None for name in (e.name, e.name.partition(".")[0])}
    dropped = bool(named & set(drops))
    if entry.kind in ("isv", "wiener") and entry.name in renewed:
        action: Action = "restart" if after is not None else "drop"
        return Carry(action, before, after, renewed[entry.name])
    if before is None:
        return Carry("new", before, after)
    if after is None:
        return Carry("drop" if dropped else "refuse", before, after, "the program has no such entry")
    if before.dtype != after.dtype or _long(before.shape) != _long(after.shape):
        reason = f"{_shape(before)} does not fit {_shape(after)}"
        return Carry("restart" if dropped else "refuse", before, after, reason)
    if before.name != after.name:
        return Carry("rename", before, after, f"was {before.name}")
    if (before.kind, before.position, before.shape) != (after.kind, after.position, after.shape):
        return Carry("move", before, after, f"from {before.kind} {before.position}")
    return Carry("keep", before, after)


def _long(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without axes of extent 1, which do not change the order of elements."""
    return tuple(extent for extent in shape if extent != 1)


def _shape(entry: LayoutEntry) -> str:
    return f"{entry.dtype} [{','.join(map(str, entry.shape))}]"


def refusals(carries: Iterable[Carry], at: Location) -> Iterator[Diagnostic]:
    """A finding for each declared entry whose values cannot be carried."""
    seen: set[str] = set()
    for carry in carries:
        if carry.action == "refuse" and carry.owner not in seen:
            seen.add(carry.owner)
            end = "lose its values" if carry.after is None else "let it start anew"
            help = f"say `was:` if it was renamed, or retire it; `--drop {carry.owner}` to {end}"
            yield Diagnostic("FH611", f"{carry.entry.kind} {carry.owner}: {carry.reason}", at, help)

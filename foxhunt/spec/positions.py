"""Mappings and sequences that remember where they were written; immutable, so an alias may share them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

from foxhunt.diagnostics import Location

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dict that cannot be changed and therefore can be hashed."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        """The hash of the items, in no order."""
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and pickles are built anew, since items cannot be set."""
        return type(self), (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is immutable")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class Mark(NamedTuple):
    """Where a key and its value start."""

    path: str
    key_line: int
    key_column: int
    line: int
    column: int

    @property
    def key(self) -> Location:
        """The key's place."""
        return Location(self.path, self.key_line, self.key_column)

    @property
    def value(self) -> Location:
        """The value's place."""
        return Location(self.path, self.line, self.column)


class Map(FrozenDict[str, Any]):
    """A YAML mapping: `at` is its start, `marks` the places of its keys and values."""

    __slots__ = ("at", "marks")

    def __init__(self, items: dict[str, Any], at: Location, marks: dict[str, Mark]) -> None:
        """The mapping of `items`."""
        super().__init__(items)
        self.at = at
        self.marks = marks

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and pickles are built anew, since items cannot be set."""
        return type(self), (dict(self), self.at, self.marks)


class Seq(tuple[Any, ...]):
    """A YAML sequence: `at` is its start, `places` the start of each element."""

    at: Location
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, items: Iterable[Any], at: Location, places: Iterable[tuple[int, int]]) -> Seq:
        """The sequence of `items`, whose (line, column) are `places`."""
        seq = cls(items)
        seq.at = at
        seq.places = tuple(places)
        return seq


def locate(node: Map | Seq, path: Sequence[str | int], *, key: bool = False) -> Location:
    """The place of the value (with `key`: of its key) at `path`, or of its nearest written parent."""
    at, current = node.at, node  # type: Location, Any
    for n, step in enumerate(path):
        if isinstance(current, Map) and isinstance(step, str) and step in current:
            mark = current.marks[step]
            at = mark.key if key and n == len(path) - 1 else mark.value
            current = current[step]
        elif isinstance(current, Seq) and str(step).isdecimal() and int(step) < len(current):
            at = Location(current.at.path, *current.places[int(step)])
            current = current[int(step)]
        else:
            break
    return at

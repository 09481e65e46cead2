"""Names of entities and the references to them: `name`, `name[i]`, `name[i:j]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from foxhunt.diagnostics import Location
from foxhunt.dtypes import F32, I64, DType
from foxhunt.ir.findings import Findings
from foxhunt.ir.sizes import Sizes
from foxhunt.ir.types import Counter, Range, Slot, Tensor

Kind = Literal["slot", "counter", "tensor"]
RESERVED = frozenset(
    [
        "isv",
        "wiener",
        "scratch",
        "health",
        "counters",
        "seed",
        "params",
        "tickets",
        "arena",
        "foxhunt",
        "ring",
        "sentinel",
    ]
)
"""foxhunt's own allocations, which no entity may be called."""


@dataclass(frozen=True)
class Entity:
    """A name that a reference may use. A group of several runs has one range for each."""

    name: str
    kind: Kind
    ranges: tuple[Range, ...]
    at: Location
    retired: str | None = None
    slot: Slot | None = None


@dataclass(frozen=True)
class Reference:
    """A resolved reference: ranges of one kind. `entity` is set when it names the whole of one."""

    kind: Kind
    ranges: tuple[Range, ...]
    entity: str | None = None
    slot: Slot | None = None


@dataclass(frozen=True)
class Written:
    """A reference taken apart: `name`, `name[start]` (stop is None) or `name[start:stop]`."""

    name: str
    start: str | None = None
    stop: str | None = None


_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE = re.compile(rf"\s*({_NAME}(?:\.{_NAME})*)\s*(?:\[([^\[\]:]+)(?::([^\[\]:]+))?\])?\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[-+]?(\d|\.\d|\.?inf|\.?nan)", re.IGNORECASE)


@lru_cache(maxsize=65536)
def parse_reference(text: str) -> Written | None:
    """The parts of a reference, or None when it is none."""
    found = _REFERENCE.fullmatch(text)
    return Written(*found.groups()) if found else None


def is_number(text: str) -> bool:
    """Whether a person wrote a number where a reference belongs."""
    return bool(_NUMBER.match(text))


class Names:
    """The one namespace of slots, counters, params, buffers and groups, unique ignoring case."""

    def __init__(self, findings: Findings, sizes: Sizes) -> None:
        """Empty."""
        self.findings = findings
        self.sizes = sizes
        self.entities: dict[str, Entity] = {}
        self.broken: set[str] = set()  # declared with a mistake that has its own finding
        self._folded: dict[str, Entity] = {}

    def declare(self, entity: Entity) -> bool:
        """Adds an entity unless its name is taken or reserved."""
        fold = entity.name.casefold()
        taken = self._folded.get(fold)
        if fold in RESERVED:
            self.findings.add(
                "FH205", f"the name {entity.name} is foxhunt's own", entity.at, "choose another name"
            )
        elif taken is not None:
            self.findings.add(
                "FH202",
                f"the name {entity.name} is taken"
                + (f" by {taken.name}" if taken.name != entity.name else ""),
                entity.at,
                "slots, counters, params, buffers and groups share one namespace, which ignores case",
                related=((taken.at, "first declared here"),),
            )
            self.broken |= {entity.name, taken.name}  # which of them a reference means, nobody knows
            self.entities.pop(taken.name, None)
        else:
            self.entities[entity.name] = self._folded[fold] = entity
            return True
        return False

    def add_slot(self, slot: Slot) -> None:
        """Declares a slot."""
        ranges = (Range(slot.name, 0, F32, (slot.count,), slot.name),)
        self.declare(Entity(slot.name, "slot", ranges, slot.at, slot.retired, slot))

    def add_counter(self, counter: Counter) -> None:
        """Declares a counter."""
        self.declare(
            Entity(counter.name, "counter", (Range(counter.name, 0, I64, (1,), counter.name),), counter.at)
        )

    def add_tensor(self, tensor: Tensor) -> bool:
        """Declares a param with its gradient and moments, or a buffer."""
        names = [tensor.name]
        if tensor.role == "param":
            names += [f"{tensor.name}.{suffix}" for suffix in "gmv"]
        return all(self._add(name, tensor.dtype, tensor.shape, tensor) for name in names)

    def _add(self, name: str, dtype: DType, shape: tuple[int, ...], tensor: Tensor) -> bool:
        ranges = (Range(name, 0, dtype, shape, name),)
        return self.declare(Entity(name, "tensor", ranges, tensor.at, tensor.retired))

    def add_groups(self, params: Iterable[Tensor]) -> None:
        """Declares each group of params, its gradient and moments: flat, one range per contiguous run."""
        groups: dict[str, list[Tensor]] = {}
        for param in params:
            groups.setdefault(param.group or "", []).append(param)
        for group, members in groups.items():
            runs = _runs(members)
            for suffix in ("", ".g", ".m", ".v") if runs else ():
                ranges = tuple(
                    Range(run[0].name + suffix, 0, F32, (sum(p.count for p in run),), group + suffix)
                    for run in runs
                )
                if not self.declare(Entity(group + suffix, "tensor", ranges, members[0].at)):
                    break  # what is derived from a taken name is taken too

    def lookup(self, name: str, scopes: Iterable[str] = ("",)) -> Entity | None:
        """The entity `name`, seen from the innermost of `scopes` outwards (`""` or `"l1."`)."""
        for scope in scopes:
            found = self.entities.get(scope + name)
            if found is not None:
                return found
        return None

    def unknown(self, name: str, at: Location, formals: Iterable[str]) -> None:
        """Reports a name that nobody declared."""
        if name.partition(".")[0] in self.broken:
            return
        hint = self.findings.nearest(name, [*self.entities, *formals])
        self.findings.add("FH201", f"unknown name {name}", at, hint)


def _runs(members: list[Tensor]) -> list[list[Tensor]]:
    """Neighbouring live members; a retired param leaves a gap, a separate one stands alone."""
    runs: list[list[Tensor]] = []
    joined = False
    for param in members:
        if param.retired is not None:
            joined = joined and param.separate
            continue
        if joined and not param.separate:
            runs[-1].append(param)
        else:
            runs.append([param])
        joined = not param.separate
    return runs


class Scope:
    """Resolves references seen from one place: formals, then locals of enclosing blocks, then the program."""

    def __init__(
        self,
        names: Names,
        prefixes: tuple[str, ...] = ("",),
        formals: Mapping[str, Reference] | None = None,
        indices: Mapping[str, int] | None = None,
    ) -> None:
        """`prefixes` from the innermost block outwards, `""` last; `indices` are foreach values."""
        self.names = names
        self.prefixes = prefixes
        self.formals = formals or {}
        self.indices = indices or {}

    def resolve(self, text: str, at: Location, retired: bool = False) -> Reference | None:
        """The ranges that `text` means, or None and a finding. `retired` admits retired entries."""
        written = parse_reference(text)
        if written is None:
            hint = "a reference is `name`, `name[i]` or `name[i:j]`"
            self.names.findings.add("FH205", f"`{text}` is no reference", at, hint)
            return None
        base = self._base(written.name, at, retired)
        if base is None or written.start is None:
            return base
        return self._indexed(base, written, text, at)

    def _base(self, name: str, at: Location, retired: bool) -> Reference | None:
        head, dot, rest = name.partition(".")
        formal = self.formals.get(head)
        if formal is not None and not dot:
            return formal
        if formal is not None and formal.entity is not None:
            name = f"{formal.entity}.{rest}"
        entity = self.names.lookup(name, self.prefixes)
        if entity is None:
            self.names.unknown(name, at, self.formals)
            return None
        if entity.retired is not None and not retired:
            message = f"{name} is retired: {entity.retired}"
            self.names.findings.add("FH204", message, at, "nothing may read, write or alias a retired entry")
            return None
        return Reference(entity.kind, entity.ranges, entity.name, entity.slot)

    def _indexed(self, base: Reference, written: Written, text: str, at: Location) -> Reference | None:
        findings, sizes = self.names.findings, self.names.sizes
        if len(base.ranges) != 1:
            findings.add("FH205", f"`{text}` indexes a list of ranges", at, "index one tensor")
            return None
        whole = base.ranges[0]
        assert written.start is not None
        start = sizes.size(written.start, at, self.indices, literal=True)
        stop = sizes.size(written.stop, at, self.indices, literal=True) if written.stop is not None else start
        if start is None or stop is None:
            return None
        length = whole.shape[0] if whole.shape else 0
        stop = stop + 1 if written.stop is None else stop
        if not start <= stop <= length or (written.stop is None and start >= length):
            message = f"`{text}` is outside {written.name}, whose first axis has {length}"
            findings.add("FH209", message, at, f"valid are 0 to {length - 1}" if length else "")
            return None
        inner = whole.shape[1:]
        shape = (stop - start, *inner)
        if written.stop is None:
            shape = inner or (1,)
        stride = whole.count // length if length else 0
        shown = str(start) if written.stop is None else f"{start}:{stop}"
        offset, label = whole.offset + start * stride, f"{whole.text}[{shown}]"
        part = replace(whole, offset=offset, shape=shape, text=label)
        return Reference(base.kind, (part,), None, base.slot)

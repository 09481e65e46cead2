"""The intermediate representations between specs and emitted files: frozen values, nothing else.

Three forms follow one another. `Program` (from resolve): every name is a range of the *entity* it belongs
to. `LaidOutProgram` (from lay out): the same launches with ranges of real *allocations*, plus positions.
`StepGraph` (from graph): the launches of one step, system launches included, with every hazard and its
reason. The schedule is in `foxhunt.schedule.types`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod

from foxhunt.diagnostics import Location
from foxhunt.dtypes import DType
from foxhunt.spec import models as spec


class Lifetime(StrEnum):
    """How long the contents of an allocation live, and who fills it."""

    PERSISTENT = "persistent"  # survives steps; checkpointed unless opted out
    RESIDENT = "resident"  # filled once from a data source
    INPUT = "input"  # fed from the host between steps
    STEP = "step"  # lives within one step, placed in the arena
    SYSTEM = "system"  # foxhunt's own: isv, wiener, counters, scratch, rings, tickets


class Access(StrEnum):
    """What a launch may do with a range."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"


@dataclass(frozen=True)
class Range:
    """A contiguous run of elements. `base` is an entity name before layout, an allocation name after it."""

    base: str
    offset: int  # elements from the start of base
    dtype: DType
    shape: tuple[int, ...]
    text: str  # the reference as written, "ATOM_POS_BOUND[2]"

    @property
    def count(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def start(self) -> int:
        """First byte."""
        return self.offset * self.dtype.size

    @property
    def stop(self) -> int:
        """One past the last byte."""
        return (self.offset + self.count) * self.dtype.size


@dataclass(frozen=True)
class Argument:
    """What one kernel parameter is bound to in one launch.

    `ranges` has one entry unless the parameter is `many`. A `bound` or `slot` argument has the slot's range;
    a bound's Wiener triple range is in `triple` after layout. An `rng` argument has no range.
    """

    name: str
    kind: spec.ParamKind
    access: Access
    many: bool
    ranges: tuple[Range, ...]
    triple: Range | None = None
    floor: float = 0.0  # bound: the slot's floor


@dataclass(frozen=True)
class Launch:
    """One kernel on one set of arguments."""

    name: str  # qualified, unique in the program: "train.l1.linear_elu"
    step: str
    kernel: spec.Kernel
    arguments: tuple[Argument, ...]  # sorted by parameter name
    dims: tuple[tuple[str, int], ...]  # kernel symbol → value, sorted by symbol
    grid: int
    block: int
    at: Location
    after: tuple[str, ...] = ()  # qualified launch names that must come first
    producer: str | None = None  # set when the launch observes for a producer
    blocks: tuple[str, ...] = ()  # the `as` names of the enclosing blocks, outermost first


@dataclass(frozen=True)
class Slot:
    """An ISV entry; `positions` are filled by layout."""

    name: str
    count: int
    source: str  # producer | host | kernel
    index: int | None  # first position; explicit before layout, always set after
    init: float
    sentinel: float
    floor: float | None  # None: the slot cannot be a bound
    reset: str
    retired: str | None
    was: str | None
    at: Location


@dataclass(frozen=True)
class Tensor:
    """A param or buffer entity (a param's .g/.m/.v and a group are entities too, see `Program.entities`)."""

    name: str
    role: str  # param | buffer | workspace
    dtype: DType
    shape: tuple[int, ...]
    lifetime: Lifetime
    init: str
    reset: str
    checkpoint: bool
    at: Location
    group: str | None = None
    separate: bool = False
    index: int | None = None
    fill: str | None = None
    retired: str | None = None
    was: str | None = None

    @property
    def count(self) -> int:
        """Elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class Counter:
    """A 64-bit counter."""

    name: str
    advance: str | None
    reset: str
    at: Location
    was: str | None = None


@dataclass(frozen=True)
class Observation:
    """One scratch position: output `output` of `producer` at foreach index `index`, folded into `slot`."""

    producer: str  # the declared name, without foreach index
    output: str
    output_order: int
    index: int  # flattened foreach index
    slot: str  # entity name
    element: int  # element of the slot entity
    degenerate_zero: bool
    retired: bool
    position: int | None = None  # scratch position, set by layout


@dataclass(frozen=True)
class Step:
    """A step in program order. `observations` are the producers' outputs that its applicator folds."""

    name: str
    repeat: int | None
    launches: tuple[Launch, ...]
    observations: tuple[Observation, ...]
    at: Location


@dataclass(frozen=True)
class DataSource:
    """A data reader call with evaluated options."""

    name: str
    reader: str
    path: str | None
    options: tuple[tuple[str, int | float | str], ...]
    at: Location


@dataclass(frozen=True)
class Program:
    """A program with every name resolved; ranges refer to entities."""

    name: str
    variant: str
    precision: str
    dims: tuple[tuple[str, int], ...]  # in declaration order
    slots: tuple[Slot, ...]
    tensors: tuple[Tensor, ...]  # params and buffers in declaration order, then workspaces
    counters: tuple[Counter, ...]
    observations: tuple[Observation, ...]  # every producer, retired ones included, in scratch order
    steps: tuple[Step, ...]
    diagnostics: tuple[str, ...]
    data: tuple[DataSource, ...]
    source: spec.Program
    kernels: Mapping[str, spec.Kernel] = field(hash=False)
    given: tuple[tuple[str, int], ...] = ()  # dims set on top of the variant's
    ignored: tuple[tuple[Range, ...], ...] = ()  # for each name in `health: {ignore}`


@dataclass(frozen=True)
class Allocation:
    """A named piece of device memory. Step allocations are placed in the arena by the schedule."""

    name: str
    dtype: DType
    count: int
    lifetime: Lifetime
    checkpoint: bool

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return self.count * self.dtype.size


@dataclass(frozen=True)
class Place:
    """Where an entity lives: `offset` elements into `allocation`."""

    allocation: str
    offset: int


@dataclass(frozen=True)
class LayoutEntry:
    """One line of the layout: `<kind> <position> <name> <dtype> <shape>`; retired and was are not hashed."""

    kind: str  # isv | wiener | param | moment | state | counter
    position: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    note: str = ""  # "retired: …", "was: …"


@dataclass(frozen=True)
class Watched:
    """An output that the sentinel of a step looks at; `row` of `sentinel.rows` says what it found."""

    step: str
    launch: str
    range: Range
    row: int
    before: tuple[str, ...] = ()  # where `launch` changed what stood there: the launches that wrote that
    updates: bool = False  # whether `launch` changed what stood there


@dataclass(frozen=True)
class LaidOutProgram:
    """A program with every position derived; its launches' ranges refer to allocations."""

    program: Program  # slots, observations and steps rewritten with positions and physical ranges
    allocations: tuple[Allocation, ...]
    places: Mapping[str, Place] = field(hash=False)  # entity → place
    entries: tuple[LayoutEntry, ...] = ()
    isv_total: int = 0
    scratch_total: int = 0
    diagnostics_words: tuple[tuple[str, int, int], ...] = ()  # (name, word offset, words)
    watched: tuple[Watched, ...] = ()  # in the order of their rows


@dataclass(frozen=True)
class Edge:
    """`before` must end before `after` starts, and why."""

    before: str
    after: str
    kind: str  # RAW | WAR | WAW | ORDER
    reason: str  # "h1 [0:65536)" or "after: l1"


@dataclass(frozen=True)
class StepGraph:
    """One step's launches (ingest first, applicator and publish last) and a hazard-covering set of edges."""

    step: str
    launches: tuple[Launch, ...]  # program order
    edges: tuple[Edge, ...]

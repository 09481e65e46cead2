"""The plan: what a generated `trainer.py` spells out and what both backends execute. Pure data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Buffer:
    """One device allocation of `count` elements of `dtype` (names of `foxhunt.dtypes`)."""

    name: str
    dtype: str
    count: int
    role: str  # isv | wiener | scratch | params | m | v | state | resident | input | arena | system
    checkpoint: bool = False


@dataclass(frozen=True)
class View:
    """A named tensor inside a buffer: how Python code reads and writes it."""

    name: str
    buffer: str
    offset: int  # elements of the view's dtype from the buffer's start (for the arena: bytes // dtype size)
    dtype: str
    shape: tuple[int, ...]
    init: str = "zeros"  # zeros | ones | normal | he | glorot | orthogonal
    reset: str = "never"
    fill: str | None = None  # "source.array" for a resident buffer


@dataclass(frozen=True)
class Pointer:
    """A launch argument: the address `buffer + offset` bytes, valid for `count` elements of `dtype`."""

    buffer: str
    offset: int
    count: int
    dtype: str
    access: str  # read | write | update


@dataclass(frozen=True)
class Scalar:
    """A launch argument known when compiling: a 64-bit integer (dims, grids, floor bits, rng hashes)."""

    value: int


Arg = Pointer | Scalar


@dataclass(frozen=True)
class Launch:
    """One device launch. Every argument is one 8-byte word, in the entry's parameter order."""

    name: str
    entry: str  # C symbol, defined in launches/<entry>.cu
    grid: int
    block: int
    args: tuple[Arg, ...]
    lane: int = 0
    waits: tuple[str, ...] = ()  # launches on other lanes that must end first


@dataclass(frozen=True)
class Step:
    """The launches of one step, or of `reset("<policy>")`, in execution order."""

    name: str
    launches: tuple[Launch, ...]
    repeat: int | None = None


@dataclass(frozen=True)
class Slot:
    """An ISV slot run."""

    name: str
    index: int
    count: int
    source: str  # producer | host | kernel
    init: float
    sentinel: float
    reset: str


@dataclass(frozen=True)
class Counter:
    """A 64-bit counter at `index` of the `counters` buffer."""

    name: str
    index: int
    advance: str | None
    reset: str


@dataclass(frozen=True)
class Observation:
    """One scratch position and the slot position that it feeds."""

    producer: str
    position: int
    slot: int  # ISV index


@dataclass(frozen=True)
class Watched:
    """An output that a sentinel looks at; its place in the plan is its row, from 1 on."""

    launch: str
    buffer: str  # the reference as written
    before: tuple[str, ...] = ()  # where `launch` changed what stood there: the launches that wrote that
    updates: bool = False  # whether `launch` changed what stood there


@dataclass(frozen=True)
class DataSource:
    """A reader of `foxhunt.runtime.data` and its options."""

    name: str
    reader: str
    path: str | None
    options: tuple[tuple[str, int | float | str], ...] = ()


@dataclass(frozen=True)
class Plan:
    """Everything that a trainer needs besides the emitted sources."""

    program: str
    variant: str
    precision: str
    layout_hash: str
    semantics_hash: str
    layout_lines: tuple[str, ...]
    dims: tuple[tuple[str, int], ...]
    buffers: tuple[Buffer, ...]
    views: tuple[View, ...]
    slots: tuple[Slot, ...]
    counters: tuple[Counter, ...]
    observations: tuple[Observation, ...]
    diagnostics: tuple[tuple[str, int, int], ...]  # (name, word offset, words)
    steps: tuple[Step, ...]  # the declared steps
    resets: tuple[Step, ...]  # one per reset policy, named by it
    data: tuple[DataSource, ...]
    ingest_rows: int = 64
    publish_rows: int = 16
    publish_words: int = 0
    given: tuple[tuple[str, int], ...] = ()  # dims set on top of the variant's
    unseen: tuple[str, ...] = ()  # ignored names of which the policy puts something back
    policy: str = "off"  # report | skip-update | stop | off: what happens when a value is not finite
    watched: tuple[Watched, ...] = ()

"""Frozen pydantic models of everything that a spec file may say.

A `Size` is a dim name, an expression of dims (`"ceil_div(B * H2, 256)"`) or an integer; which integers are allowed where
is a rule of `ir.resolve`, not of the model. Every entry knows where it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from foxhunt.diagnostics import Location

Size = int | str
Shape = tuple[Size, ...]
DTypeName = Literal["f32", "i32", "u32", "i64", "u8"]
Access = Literal["read", "write", "update"]
ParamKind = Literal["data", "slot", "bound", "counter", "rng"]
Lifetime = Literal["persistent", "resident", "input", "step"]
NOWHERE = Location("<memory>")


class Entry(BaseModel):
    """A mapping in a spec file. `at` is its position; `spots` maps a dotted path inside it to a position."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    at: SkipJsonSchema[Annotated[Location, Field(exclude=True, repr=False)]] = NOWHERE
    spots: SkipJsonSchema[Annotated[Mapping[str, Location], Field(exclude=True, repr=False)]] = {}

    def spot(self, *path: str | int) -> Location:
        """The position of the value at `path` (`spot("args", "x")`), or of its nearest written parent."""
        keys = [str(p) for p in path]
        while keys:
            found = self.spots.get(".".join(keys))
            if found is not None:
                return found
            keys.pop()
        return self.at


class KernelParam(Entry):
    """A parameter of a kernel: what it may do with which shape of which element type."""

    access: Access = "read"
    kind: ParamKind = "data"
    dtype: DTypeName = "f32"
    shape: Shape = (1,)
    many: bool = False
    doc: str = ""


class Workspace(Entry):
    """Scratch memory of one launch that the compiler allocates in the step arena."""

    dtype: DTypeName = "f32"
    shape: Shape


class Tolerance(Entry):
    """How far a kernel may be from its float64 reference."""

    rtol: float = 1e-6
    atol: float = 0.0


class Kernel(Entry):
    """One entry of the kernel library: `specs/kernels/<kernel>.yaml`."""

    kernel: str
    kind: Literal["body", "statistic", "gemm"]
    doc: str
    params: dict[str, KernelParam]
    outputs: tuple[str, ...] = ()
    """The written parameters in output order; by name when left out."""
    static: tuple[str, ...] = ()
    block: int = 256
    """Threads per block, a multiple of 32 up to 1024."""
    grid: Size = 1
    """Blocks of one launch, an expression of the kernel's own shape symbols (body and gemm kinds)."""
    consts: dict[str, float | int] = {}
    workspace: dict[str, Workspace] = {}
    tickets: Size = 0
    """How many wrapping integer tickets a launch needs."""
    passes: int = 1
    """Passes over the data (statistic kind)."""
    degenerate: Literal["zero"] | None = None
    flops: Size = 0
    reference: str
    examples: tuple[dict[str, Any], ...] = ()
    tolerance: Tolerance = Tolerance()


class Slot(Entry):
    """One named signal, or a run of `count` of them, on the ISV bus."""

    name: str
    count: Size = 1
    index: int | None = None
    source: Literal["producer", "host", "kernel"] = "producer"
    init: float | None = None
    sentinel: float = 0.0
    floor: float | None = None
    reset: str | None = None
    retired: str | None = None
    was: str | None = None
    doc: str = ""


class Param(Entry):
    """A trainable tensor; its `.g`, `.m` and `.v` are derived."""

    name: str
    shape: Shape
    group: str
    init: Literal["zeros", "ones", "normal", "he", "glorot", "orthogonal"] = "zeros"
    reset: str | None = None
    separate: bool = False
    index: int | None = None
    retired: str | None = None
    was: str | None = None
    doc: str = ""


class Buffer(Entry):
    """A tensor that is no parameter."""

    name: str
    shape: Shape
    dtype: DTypeName = "f32"
    lifetime: Lifetime
    init: Literal["zeros", "ones"] = "zeros"
    reset: str | None = None
    checkpoint: bool = True
    fill: str | None = None
    """`source.array` of a data source that fills a resident buffer once."""
    was: str | None = None
    doc: str = ""


class Counter(Entry):
    """A 64-bit integer that advances once per execution of a step."""

    name: str
    advance: str | None = None
    reset: str | None = None
    was: str | None = None
    doc: str = ""


class Producer(Entry):
    """A kernel whose observations are folded into slots at the end of each step that lists it."""

    name: str
    foreach: dict[str, Size] = {}
    kernel: str
    args: dict[str, str | tuple[str, ...]]
    out: dict[str, str]
    bind: dict[str, Size] = {}
    retired: str | None = None
    doc: str = ""


class Item(Entry):
    """One line of a block or step: exactly one of `kernel`, `use` and `producers`."""

    kernel: str | None = None
    use: str | None = None
    producers: tuple[str, ...] | None = None
    args: dict[str, str | tuple[str, ...]] = {}
    with_: dict[str, str | tuple[str, ...]] = Field(default={}, alias="with")
    bind: dict[str, Size] = {}
    """Compile-time values for kernel symbols that no shape binds."""
    as_: str | None = Field(default=None, alias="as")
    after: tuple[str, ...] = ()


class Block(Entry):
    """A reusable run of items with formal names."""

    name: str
    formals: tuple[str, ...] = ()
    locals: tuple[Buffer, ...] = ()
    items: tuple[Item, ...]
    doc: str = ""


class Step(Entry):
    """A captured graph: items in program order. `repeat` is how often `foxhunt train` runs it by default."""

    name: str
    repeat: Size | None = None
    items: tuple[Item, ...]
    doc: str = ""


class Diagnostic(Entry):
    """One entry of the published diagnostics record: a slot or a counter."""

    name: str


class DataSource(Entry):
    """Where resident buffers come from: a reader of `runtime.data` and its file."""

    name: str
    reader: str
    path: str | None = None
    options: dict[str, int | float | str] = {}
    """Numbers, or dim expressions as text; evaluated like sizes where they name dims."""


class Program(Entry):
    """A program folder: every file's sections put together."""

    program: str
    doc: str = ""
    precision: Literal["fp32", "tf32", "bf16"] = "fp32"
    uses: tuple[str, ...] = ()
    dims: dict[str, Size] = {}
    variants: dict[str, dict[str, Size]] = {}
    data: tuple[DataSource, ...] = ()
    isv: tuple[Slot, ...] = ()
    params: tuple[Param, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    counters: tuple[Counter, ...] = ()
    producers: tuple[Producer, ...] = ()
    blocks: tuple[Block, ...] = ()
    steps: tuple[Step, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


class SpecSet(BaseModel):
    """All programs and kernels below one specs folder, and the text of every file for error excerpts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: str
    programs: dict[str, Program]
    kernels: dict[str, Kernel]
    sources: dict[str, str]
    """Path as written in locations → text."""

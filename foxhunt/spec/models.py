"""Frozen pydantic models of everything that a spec file may say.

A `Size` is a dim name, an expression of dims (`"ceil_div(B * H2, 256)"`) or an integer; which integers are
allowed where is a rule of `ir.resolve`, not of the model. Every entry knows where it was written. The text
below a field is its description in the JSON Schema and in docs/spec-reference.md.
"""

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from foxhunt.diagnostics import Location
from foxhunt.spec.checks import check_extent, check_item, check_name, check_number, check_shape, check_size
from foxhunt.spec.positions import FrozenDict, Map, locate

V = TypeVar("V")

Name = Annotated[
    str, AfterValidator(check_name), Field(json_schema_extra={"pattern": "^[A-Za-z][A-Za-z0-9_]*$"})
]
Size = Annotated[int | str, AfterValidator(check_size)]
Shape = Annotated[tuple[Annotated[int | str, AfterValidator(check_extent)], ...], AfterValidator(check_shape)]
Number = Annotated[float, AfterValidator(check_number)]
Names = tuple[Name, ...]
Table = Annotated[dict[str, V], AfterValidator(FrozenDict)]
Frozen = Annotated[dict[Name, V], AfterValidator(FrozenDict)]
Reference = str | tuple[str, ...]
Index = Annotated[int, Field(ge=0, lt=2**48)]

DTypeName = Literal["f32", "i32", "u32", "i64", "u8"]
Access = Literal["read", "write", "update"]
ParamKind = Literal["data", "slot", "bound", "counter", "rng"]
Lifetime = Literal["persistent", "resident", "input", "step"]
NOWHERE = Location("<memory>")

_AT, _WRITTEN = "\0at", "\0written"  # no key of a YAML file can be these


class Entry(BaseModel):
    """A mapping in a spec file. `at` is its position; `written` has the position of every part."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    at: SkipJsonSchema[Annotated[Location, Field(validation_alias=_AT, exclude=True, repr=False)]] = NOWHERE
    written: SkipJsonSchema[Annotated[Any, Field(validation_alias=_WRITTEN, exclude=True, repr=False)]] = None

    @model_validator(mode="before")
    @classmethod
    def _take_position(cls, data: Any) -> Any:
        return {**data, _AT: data.at, _WRITTEN: data} if isinstance(data, Map) else data

    def spot(self, *path: str | int) -> Location:
        """The position of the value at `path` (`spot("args", "x")`), or of its nearest written parent."""
        return self.at if self.written is None else locate(self.written, path)


class KernelParam(Entry):
    """A parameter of a kernel: what it may do with which shape of which element type."""

    access: Access = "read"
    """`read`; `write`: every element is written and none is read; `update`: may read, may leave elements."""
    kind: ParamKind = "data"
    """`data` is a tensor; `slot`, `bound` and `counter` accept only those; `rng` takes no argument."""
    dtype: DTypeName = "f32"
    """Element type."""
    shape: Shape = (1,)
    """Sizes in the kernel's own symbols; a bare symbol binds at first use; `[...n]` takes any rank."""
    many: bool = False
    """Takes a list of references: a table of (pointer, count) rows, where count 0 is a no-op."""
    doc: str = ""
    """What it is, with its unit."""


class Workspace(Entry):
    """Scratch memory of one launch that the compiler allocates in the step arena."""

    dtype: DTypeName = "f32"
    """Element type."""
    shape: Shape
    """Sizes in the kernel's own symbols."""


class Tolerance(Entry):
    """How far a kernel may be from its float64 reference."""

    rtol: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1e-6
    """Relative tolerance."""
    atol: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Absolute tolerance."""


class GradientOf(Entry):
    """What a kernel gives the slopes of, so that `foxhunt verify` can hold them against differences.

    They are those of L, the sum of all products of a slope that comes in with its tensor, and of all
    weighted means of losses. Parameters of one name are the same tensor in both kernels.
    """

    kernel: Name
    """The forward kernel: another one, or the kernel itself where it computes a loss with its slopes."""
    slopes: Frozen[Name] = FrozenDict()
    """Parameter that brings a slope → the forward's parameter, read or written, whose slope it is."""
    losses: Frozen[Number | Name] = FrozenDict()
    """Output of the forward that is a loss a sample → slot parameter or number that weighs its mean in L."""
    gives: Frozen[Name]
    """Output → the forward's input whose slope it is."""
    args: Frozen[Name] = FrozenDict()
    """Parameter → the forward's parameter that it is, where names differ."""
    before: Frozen[Literal["elu", "softmax"]] = FrozenDict()
    """The forward's parameter → what gave it. Slopes of an input, given, and of an output, brought, are
    those before that."""


class Kernel(Entry):
    """One entry of the kernel library: `specs/kernels/<kernel>.yaml`."""

    kernel: Name
    """The kernel's name: that of its file, its template and (by default) its reference."""
    kind: Literal["body", "statistic", "gemm"]
    """`body`: free CUDA code; `statistic`: passes of observe, combine, finish; `gemm`: tiled products."""
    doc: str
    """What it computes, as a formula."""
    params: Frozen[KernelParam]
    """Parameters by name; their order means nothing."""
    outputs: Names = ()
    """The written parameters in output order; by name when left out."""
    static: Names = ()
    """Symbols that become constants of the compiled kernel."""
    block: Annotated[int, Field(ge=32, le=1024, multiple_of=32)] = 256
    """Threads per block, a multiple of 32 up to 1024."""
    grid: Size = 1
    """Blocks of one launch, an expression of the kernel's own shape symbols (body and gemm kinds)."""
    consts: Frozen[Number | int] = FrozenDict()
    """Named constants of the body."""
    workspace: Frozen[Workspace] = FrozenDict()
    """Scratch tensors by name."""
    tickets: Size = 0
    """How many wrapping integer tickets a launch needs."""
    passes: Annotated[int, Field(ge=1, le=8)] = 1
    """Passes over the data (statistic kind)."""
    degenerate: Literal["zero"] | None = None
    """`zero`: an observation of exactly 0 means that there was nothing to learn, and is skipped."""
    flops: Size = 0
    """Floating-point operations of one launch, for the schedule's estimates."""
    reference: Name
    """The function of `foxhunt.reference` that computes the same in float64."""
    examples: tuple[dict[str, Any], ...] = ()
    """Inputs that the kernel is tested with: symbols to sizes, parameters to values or fillings."""
    tolerance: Tolerance = Tolerance()
    """How far results may be from the reference."""
    gradient_of: GradientOf | None = None
    """The forward whose slopes it gives."""


class Slot(Entry):
    """One named signal, or a run of `count` of them, on the ISV bus."""

    name: Name
    """Unique among slots, params, buffers and counters, ignoring case."""
    count: Size = 1
    """How many elements: a dim, an expression of dims, or 1."""
    index: Index | None = None
    """First position on the bus, which has 2^24 at most; derived when left out."""
    source: Literal["producer", "host", "kernel"] = "producer"
    """`producer`: observed and smoothed; `host`: set from Python; `kernel`: written by one launch."""
    init: Number | None = None
    """Value before anything was set (host and kernel slots)."""
    sentinel: Number = 0.0
    """Value that means: never observed."""
    floor: Number | None = None
    """The least limit that a bound parameter takes from this slot."""
    reset: Name | None = None
    """Reset policy: `never`, or the name that `reset("…")` is called with."""
    retired: str | None = None
    """Why the slot is no longer used; its positions stay reserved."""
    was: Name | None = None
    """The slot's former name."""
    doc: str = ""
    """What it is, with its unit."""


class Param(Entry):
    """A trainable tensor; its `.g`, `.m` and `.v` are derived."""

    name: Name
    """Unique among slots, params, buffers and counters, ignoring case."""
    shape: Shape
    """Dims, or expressions of dims."""
    group: Name
    """The parameter group; groups are contiguous and have names of their own."""
    init: Literal["zeros", "ones", "normal", "he", "glorot", "orthogonal"] = "zeros"
    """How the values start."""
    reset: Name | None = None
    """Reset policy of the values and moments."""
    separate: bool = False
    """Keep the tensor in an allocation of its own."""
    index: Index | None = None
    """First position in the parameter arena; derived when left out."""
    retired: str | None = None
    """Why the tensor is no longer used; its positions stay reserved."""
    was: Name | None = None
    """The tensor's former name."""
    doc: str = ""
    """What it is."""


class Buffer(Entry):
    """A tensor that is no parameter."""

    name: Name
    """Unique among slots, params, buffers and counters, ignoring case."""
    shape: Shape
    """Dims, or expressions of dims."""
    dtype: DTypeName = "f32"
    """Element type."""
    lifetime: Lifetime
    """`persistent` (checkpointed), `resident` (filled once from data), `input` (fed), `step` (one step)."""
    init: Literal["zeros", "ones"] = "zeros"
    """How the values of a persistent buffer start."""
    reset: Name | None = None
    """Reset policy (persistent buffers)."""
    checkpoint: bool = True
    """`false` keeps a persistent buffer out of checkpoints; resuming is then not bit-identical."""
    fill: str | None = None
    """`source.array` of a data source that fills a resident buffer once."""
    was: Name | None = None
    """The buffer's former name."""
    doc: str = ""
    """What it is, with its unit."""


class Counter(Entry):
    """A 64-bit integer that advances once per execution of a step."""

    name: Name
    """Unique among slots, params, buffers and counters, ignoring case."""
    advance: Name | None = None
    """The step that adds 1."""
    reset: Name | None = None
    """Reset policy."""
    was: Name | None = None
    """The counter's former name."""
    doc: str = ""
    """What it counts."""


class Each(Entry):
    """One reference for every index of a producer's `foreach`, where an index picks a name."""

    each: tuple[Reference, ...]
    """As many as there are indices, in their order; a list among them is for a `many` parameter."""


class Producer(Entry):
    """A kernel whose observations are folded into slots at the end of each step that lists it."""

    name: Name
    """Unique among producers."""
    foreach: Frozen[Size] = FrozenDict()
    """Index names and their bounds: one launch for each combination."""
    kernel: Name
    """A kernel of the library."""
    args: Frozen[Reference | Each]
    """Kernel parameter to reference: `name`, `name[i]`, `name[i:j]`, a list where it is `many`, or
    `{each: […]}`."""
    out: Frozen[str]
    """Output parameter to the slot that it observes."""
    bind: Frozen[Size] = FrozenDict()
    """Values of kernel symbols that no shape binds."""
    retired: str | None = None
    """Why the producer no longer runs; its scratch positions stay reserved."""
    doc: str = ""
    """What is observed."""


class Item(Entry):
    """One line of a block or step: exactly one of `kernel`, `use` and `producers`."""

    kernel: Name | None = None
    """A kernel to launch, with `args`."""
    use: Name | None = None
    """A block to expand, with `with`."""
    producers: Names | None = None
    """Producers to launch here; their slots are folded at the end of the step."""
    args: Frozen[Reference] = FrozenDict()
    """Kernel parameter to reference."""
    with_: Frozen[Reference] = Field(default=FrozenDict(), alias="with")
    """Formal name of the block to reference."""
    bind: Frozen[Size] = FrozenDict()
    """Compile-time values for kernel symbols that no shape binds."""
    as_: Name | None = Field(default=None, alias="as")
    """The launch's or block's name; required where a kernel or block appears twice."""
    after: Names = ()
    """Items that must come first though no data says so."""

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        check_item(self.model_fields_set)
        return self


class Block(Entry):
    """A reusable run of items with formal names."""

    name: Name
    """Unique among the blocks of the program and of the programs that it uses."""
    formals: Names = ()
    """Names that `with` binds."""
    locals: tuple[Buffer, ...] = ()
    """Buffers of each use of the block, named `<as>.<local>`."""
    items: tuple[Item, ...]
    """What it does, in program order."""
    doc: str = ""
    """What it computes."""


class Step(Entry):
    """A captured graph: items in program order."""

    name: Name
    """Unique among steps."""
    repeat: Size | None = None
    """How often `foxhunt train` runs the step by default: a dim."""
    items: tuple[Item, ...]
    """What it does, in program order."""
    doc: str = ""
    """What one execution means."""


class Diagnostic(Entry):
    """One entry of the published diagnostics record: a slot or a counter."""

    name: Name
    """The slot or counter."""


class Health(Entry):
    """What the sentinel of each step looks at for NaN and inf, and what happens when it finds some."""

    policy: Literal["report", "skip-update", "stop", "off"] = "report"
    """`report` warns and goes on; `skip-update` also puts params, moments and target networks back to what
    they were before that step; `stop` does so too, and from then on, and raises FH552; `off` looks at
    nothing."""
    ignore: tuple[str, ...] = ()
    """Params, buffers, groups or parts of them (`name[i:j]`) that may hold NaN or inf, such as masked logits;
    a block's local is `<as>.<local>`. A name that leaves nothing out is FH261."""


class Suppression(Entry):
    """A finding of a rule of judgement (FH250, FH255) that is meant. What suppresses nothing is a finding."""

    rule: Annotated[str, Field(pattern=r"^FH\d{3}$")]
    """The rule's code."""
    name: Name
    """The entry that the finding is about."""
    reason: Annotated[str, Field(min_length=1)]
    """Why it is meant."""


class DataSource(Entry):
    """Where resident buffers come from: a reader of `runtime.data` and its file."""

    name: Name
    """The source's name in `fill`."""
    reader: Name
    """A reader of `foxhunt.runtime.data`."""
    path: str | None = None
    """The file, relative to the project."""
    options: Frozen[int | Annotated[float, Field(allow_inf_nan=False)] | str] = FrozenDict()
    """Numbers, or dim expressions as text; evaluated like sizes where they name dims."""


class Program(Entry):
    """A program folder: every file's sections put together. Each section stands whole in one file."""

    program: Name
    """The program's name: that of its folder. One file of the folder says it."""
    doc: str = ""
    """What the program trains."""
    precision: Literal["fp32"] = "fp32"
    """The tier of matrix products: the same bits on both backends. Others are refused until they exist."""
    uses: Names = ()
    """Program folders whose blocks are imported; never their slots."""
    dims: Frozen[Size] = FrozenDict()
    """Named sizes."""
    variants: Frozen[Frozen[Size]] = FrozenDict()
    """Named sets of overridden dims."""
    data: tuple[DataSource, ...] = ()
    """Data sources."""
    isv: tuple[Slot, ...] = ()
    """Slots of the signal bus, in order of position."""
    params: tuple[Param, ...] = ()
    """Trainable tensors, in arena order."""
    buffers: tuple[Buffer, ...] = ()
    """All other tensors."""
    counters: tuple[Counter, ...] = ()
    """Counters."""
    producers: tuple[Producer, ...] = ()
    """What observes for slots, in scratch order."""
    blocks: tuple[Block, ...] = ()
    """Reusable runs of items."""
    steps: tuple[Step, ...] = ()
    """Captured graphs."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Slots and counters of the published record, in order."""
    health: Health | None = None
    """What happens when a value is not finite; `policy: report` where it is left out."""
    suppress: tuple[Suppression, ...] = ()
    """Findings that are meant, each with its reason."""


class SpecSet(BaseModel):
    """All programs and kernels below one specs folder, and the text of every file for error excerpts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: str
    programs: Table[Program]
    kernels: Table[Kernel]
    sources: Table[str]
    """Path as written in locations → text."""
    library: frozenset[str] = frozenset()
    """Names of the kernels that come with foxhunt; a program need not use them."""

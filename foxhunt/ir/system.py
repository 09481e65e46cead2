"""foxhunt's own kernels and launches: ingest, apply, publish, and the reset of one policy.

They are ordinary `spec.Kernel` values with ordinary ranges, so hazards need no special case. Their
`many` arguments are runs of neighbouring elements merged into one range. What goes where inside those
ranges is a table that emission takes from `host_table`, `counter_table`, `apply_table` and
`reset_table`; all positions in tables are absolute element offsets in the allocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from foxhunt.diagnostics import Location
from foxhunt.dtypes import DTYPES, F32, I64, U32
from foxhunt.ir.types import Access, Argument, LaidOutProgram, Launch, Lifetime, Observation, Range
from foxhunt.spec import models as spec

INGEST_ROWS = 64
PUBLISH_ROWS = 16
STEP_COUNTER = "foxhunt.step"
HERE = Location("<foxhunt>")


def _kernel(name: str, doc: str, **params: spec.KernelParam) -> spec.Kernel:
    return spec.Kernel(kernel=name, kind="body", doc=doc, params=params, reference=name, block=256)


def _many(access: spec.Access, dtype: spec.DTypeName) -> spec.KernelParam:
    return spec.KernelParam(access=access, dtype=dtype, shape=("...n",), many=True)


INGEST = _kernel(
    "ingest",
    "Copies row foxhunt.step mod 64 of the host ring into the host slots, then advances the counters.",
    ring=_many("read", "f32"),
    isv=_many("update", "f32"),
    counters=_many("update", "i64"),
)
APPLY = _kernel(
    "apply",
    "Folds each observation of the step into its slot and Wiener triple; counts anomalies and skips.",
    scratch=_many("read", "f32"),
    isv=_many("update", "f32"),
    wiener=_many("update", "f32"),
    health=_many("update", "i64"),
)
PUBLISH = _kernel(
    "publish",
    "Writes slots, counters, health and diagnostics to the next row of the ring, then moves `latest`.",
    isv=_many("read", "f32"),
    counters=_many("read", "i64"),
    health=_many("read", "i64"),
    ring=_many("update", "u32"),
)
RESET = _kernel(
    "reset",
    "Puts every entry of one reset policy back to its first value: slot and Wiener triple together.",
    **{dtype: _many("update", dtype) for dtype in ("f32", "i32", "u32", "i64", "u8")},
)
KERNELS = {k.kernel: k for k in (INGEST, APPLY, PUBLISH, RESET)}


@dataclass(frozen=True)
class ApplyEntry:
    """One observation and its slot; the triple of scratch position p starts at 3p, its health pair at 2p."""

    scratch: int
    slot: int  # ISV index
    sentinel: float
    degenerate_zero: bool


@dataclass(frozen=True)
class ResetEntry:
    """`count` elements from `offset` of `allocation` become `value`."""

    allocation: str
    offset: int
    count: int
    dtype: str
    value: float


@dataclass(frozen=True)
class PublishLayout:
    """Word offsets inside one published row (u32 words; i64 values are two words, low first).

    The row is: `isv` f32[isv_total], `counters` i64[counters], `health` i64[2·scratch] as (anomalies,
    skips), then the diagnostics record of `LaidOutProgram.diagnostics_words`. Row r starts at word
    2 + r·words of `ring.publish`.
    """

    isv: int
    counters: int
    health: int
    diagnostics: int
    words: int


def publish_layout(isv: int, counters: int, scratch: int, diagnostics: int) -> PublishLayout:
    """The published row for that many slots, counters, scratch positions and diagnostics words."""
    after_counters = isv + 2 * counters
    after_health = after_counters + 4 * scratch
    return PublishLayout(0, isv, after_counters, after_health, after_health + diagnostics)


def publish_row(laid_out: LaidOutProgram) -> PublishLayout:
    """The published row of a laid-out program."""
    return publish_layout(
        laid_out.isv_total,
        len(laid_out.program.counters) + 1,
        laid_out.scratch_total,
        sum(words for _, _, words in laid_out.diagnostics_words),
    )


def host_table(laid_out: LaidOutProgram) -> tuple[int, ...]:
    """The ISV index of each element of an ingest row: all elements of live host slots, ascending."""
    return tuple(
        sorted(
            slot.index + k
            for slot in laid_out.program.slots
            if slot.source == "host" and slot.retired is None and slot.index is not None
            for k in range(slot.count)
        )
    )


def counter_table(laid_out: LaidOutProgram, step: str) -> tuple[int, ...]:
    """Positions in `counters` that the ingest of `step` advances by one; 0 (`foxhunt.step`) is first."""
    places = laid_out.places
    advanced = (places[c.name].offset for c in laid_out.program.counters if c.advance == step)
    return (0, *sorted(advanced))


def apply_table(laid_out: LaidOutProgram, step: str) -> tuple[ApplyEntry, ...]:
    """What the applicator of `step` folds, by scratch position."""
    slots = {s.name: s for s in laid_out.program.slots}
    found = next(s for s in laid_out.program.steps if s.name == step)

    def entry(o: Observation) -> ApplyEntry:
        slot = slots[o.slot]
        assert slot.index is not None
        assert o.position is not None
        return ApplyEntry(o.position, slot.index + o.element, slot.sentinel, o.degenerate_zero)

    return tuple(sorted(map(entry, found.observations), key=lambda e: e.scratch))


def reset_policies(laid_out: LaidOutProgram) -> tuple[str, ...]:
    """Every policy that some entry names, sorted; `never` is none."""
    program = laid_out.program
    named = {e.reset for entries in (program.slots, program.tensors, program.counters) for e in entries}
    return tuple(sorted(named - {"never", ""}))


def reset_table(laid_out: LaidOutProgram, policy: str) -> tuple[ResetEntry, ...]:
    """What `reset(policy)` clears, by (allocation, offset), neighbours of one value merged.

    Slots go to their first value (a producer slot's is its sentinel) and their Wiener triples to zero,
    counters to 0, persistent buffers to their init, moments of params to 0. The values of params are the
    runtime's to draw again.
    """
    return tuple(
        _merge_entries(sorted(_reset_entries(laid_out, policy), key=lambda e: (e.allocation, e.offset)))
    )


def _reset_entries(laid_out: LaidOutProgram, policy: str) -> Iterator[ResetEntry]:
    program, places = laid_out.program, laid_out.places
    cleared = {s.name: s for s in program.slots if s.reset == policy and s.retired is None}
    for slot in cleared.values():
        assert slot.index is not None
        yield ResetEntry("isv", slot.index, slot.count, "f32", slot.init)
    for o in program.observations:
        if o.slot in cleared and not o.retired:
            assert o.position is not None
            yield ResetEntry("wiener", 3 * o.position, 3, "f32", 0.0)
    for counter in program.counters:
        if counter.reset == policy:
            yield ResetEntry("counters", places[counter.name].offset, 1, "i64", 0.0)
    for tensor in program.tensors:
        if tensor.reset != policy or tensor.retired is not None:
            continue
        if tensor.role == "param":
            for moment in (places[f"{tensor.name}.m"], places[f"{tensor.name}.v"]):
                yield ResetEntry(moment.allocation, moment.offset, tensor.count, "f32", 0.0)
        elif tensor.lifetime is Lifetime.PERSISTENT:
            place, value = places[tensor.name], float(tensor.init == "ones")
            yield ResetEntry(place.allocation, place.offset, tensor.count, tensor.dtype.name, value)


def _merge_entries(entries: Iterable[ResetEntry]) -> Iterator[ResetEntry]:
    last: ResetEntry | None = None
    for entry in entries:
        if last and _continues(last, entry):
            last = ResetEntry(last.allocation, last.offset, last.count + entry.count, last.dtype, last.value)
        else:
            if last:
                yield last
            last = entry
    if last:
        yield last


def _continues(last: ResetEntry, entry: ResetEntry) -> bool:
    same_kind = (last.allocation, last.dtype) == (entry.allocation, entry.dtype)
    same_value = str(last.value) == str(entry.value)  # -0.0 is not 0.0
    return same_kind and same_value and last.offset + last.count == entry.offset


def ingest_launch(laid_out: LaidOutProgram, step: str) -> Launch:
    """The first launch of `step`: one block, as the row number is read before `foxhunt.step` advances."""
    hosts = host_table(laid_out)
    return _launch(
        INGEST,
        step,
        {
            "ring": _runs("ring.ingest", range(INGEST_ROWS * len(hosts)), "f32"),
            "isv": _runs("isv", hosts, "f32"),
            "counters": _runs("counters", counter_table(laid_out, step), "i64"),
        },
        grid=1,
    )


def apply_launch(laid_out: LaidOutProgram, step: str) -> Launch | None:
    """The applicator of `step`, one thread per observation; None when the step lists no producers."""
    table = apply_table(laid_out, step)
    if not table:
        return None
    positions = [e.scratch for e in table]
    return _launch(
        APPLY,
        step,
        {
            "scratch": _runs("scratch", positions, "f32"),
            "isv": _runs("isv", sorted(e.slot for e in table), "f32"),
            "wiener": _runs("wiener", (3 * p + k for p in positions for k in range(3)), "f32"),
            "health": _runs("health", (2 * p + k for p in positions for k in range(2)), "i64"),
        },
        grid=-(-len(table) // APPLY.block),
    )


def publish_launch(laid_out: LaidOutProgram, step: str) -> Launch:
    """The last launch of `step`: one block, because its fence and barrier order the row before `latest`."""
    row = publish_row(laid_out)
    return _launch(
        PUBLISH,
        step,
        {
            "isv": _runs("isv", range(laid_out.isv_total), "f32"),
            "counters": _runs("counters", range(len(laid_out.program.counters) + 1), "i64"),
            "health": _runs("health", range(2 * laid_out.scratch_total), "i64"),
            "ring": _runs("ring.publish", range(PUBLISH_ROWS * row.words + 2), "u32"),
        },
        grid=1,
    )


def reset_launch(laid_out: LaidOutProgram, policy: str) -> Launch:
    """The one launch of `reset(policy)`; its argument for a dtype lists the cleared ranges of that dtype."""
    table = reset_table(laid_out, policy)
    ranges: dict[str, tuple[Range, ...]] = {
        dtype: tuple(
            Range(e.allocation, e.offset, DTYPES[dtype], (e.count,), e.allocation)
            for e in table
            if e.dtype == dtype
        )
        for dtype in RESET.params
    }
    elements = sum(e.count for e in table)
    blocks = max(1, min(1024, -(-elements // (4 * RESET.block))))
    return _launch(RESET, "reset", ranges, grid=blocks, name=f"reset.{policy}")


def _launch(
    kernel: spec.Kernel, step: str, ranges: dict[str, tuple[Range, ...]], grid: int, name: str | None = None
) -> Launch:
    arguments = tuple(
        Argument(key, "data", Access(kernel.params[key].access), True, ranges[key])
        for key in sorted(kernel.params)
    )
    return Launch(
        name=name or f"{step}.{kernel.kernel}",
        step=step,
        kernel=kernel,
        arguments=arguments,
        dims=(),
        grid=grid,
        block=kernel.block,
        at=HERE,
    )


def _runs(allocation: str, elements: Iterable[int], dtype: str) -> tuple[Range, ...]:
    """Ascending element positions as the fewest ranges."""
    if isinstance(elements, range) and elements.step == 1:
        bounds = [(elements.start, elements.stop)] if elements else []
    else:
        bounds = _bounds(elements)
    kind = {"f32": F32, "i64": I64, "u32": U32}[dtype]
    return tuple(Range(allocation, start, kind, (stop - start,), allocation) for start, stop in bounds)


def _bounds(elements: Iterable[int]) -> list[tuple[int, int]]:
    bounds: list[tuple[int, int]] = []
    for element in elements:
        if bounds and bounds[-1][1] == element:
            bounds[-1] = (bounds[-1][0], element + 1)
        else:
            bounds.append((element, element + 1))
    return bounds

"""foxhunt's own kernels: ingest, apply, publish, and the reset of one policy, with their launches and tables.

They are ordinary `spec.Kernel` values whose arguments are whole allocations, so that hazards, schedule and
emission need no special case. What goes where inside the allocations is a table of constants, from which
emission renders one body per launch; every position in a table is an absolute element offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from foxhunt.diagnostics import Location
from foxhunt.ir.types import Access, Allocation, Argument, LaidOutProgram, Launch, Lifetime, Range, Slot
from foxhunt.spec import models as spec

INGEST_ROWS = 64
PUBLISH_ROWS = 16
STEP_COUNTER = "foxhunt.step"
FOUND = 3
"""i64 of a row of `sentinel.rows`: the last step with NaN or inf, the first one, how many."""
NAMES = ("ingest", "apply", "publish", "reset", "sentinel", "sentinel_keep", "sentinel_undo")
HERE = Location("<foxhunt>")
_BLOCK = 256
_RESET_GRID = 64


@dataclass(frozen=True)
class PublishRow:
    """Word offsets in one published row (u32 words; an i64 is two words, low first).

    The row is the step number, `isv` f32[isv_total], `counters` i64[counters], the low words of `health`
    i64[2·scratch] as (anomalies, skips), row 0 of `sentinel.rows` i64[3] where there is one, then the
    diagnostics record. Row r starts at word 2 + r·words of `ring.publish`; the ring's first two words are
    `latest`.
    """

    isv: int
    counters: int
    health: int
    found: int
    diagnostics: int
    words: int


def publish_row(isv: int, counters: int, scratch: int, found: int, diagnostics: int) -> PublishRow:
    """The row for that many slots, counters (with `foxhunt.step`), scratch positions, i64 of the sentinel,
    diagnostics words.
    """
    after_isv = 2 + isv
    after_counters = after_isv + 2 * counters
    after_health = after_counters + 2 * scratch
    after_found = after_health + 2 * found
    return PublishRow(2, after_isv, after_counters, after_health, after_found, after_found + diagnostics)


def host_slots(slots: Iterable[Slot]) -> tuple[Slot, ...]:
    """The live host slots in declaration order: an ingest row holds their elements one after another."""
    return tuple(s for s in slots if s.source == "host" and s.retired is None)


def ingest_table(laid_out: LaidOutProgram, step: str) -> dict[str, Any]:
    """`hosts`: ring column to ISV index by slot; `counters`: `foxhunt.step`, then those that advance."""
    hosts = host_slots(laid_out.program.slots)
    elements = [(s.name, _index(s) + k) for s in hosts for k in range(s.count)]
    advanced = sorted(
        (laid_out.places[c.name].offset, c.name) for c in laid_out.program.counters if c.advance == step
    )
    return {
        "hosts": tuple(
            {"slot": name, "index": index, "column": column} for column, (name, index) in enumerate(elements)
        ),
        "n_hosts": len(elements),
        "counters": tuple({"name": n, "index": i} for i, n in [(0, STEP_COUNTER), *advanced]),
    }


def apply_table(laid_out: LaidOutProgram, step: str) -> dict[str, Any]:
    """`rows`: each observation that the applicator of `step` folds, by scratch position p.

    Its Wiener triple (S, D, lag) starts at 3p of `wiener`, its health pair at 2p of `health`.
    """
    slots = {s.name: s for s in laid_out.program.slots}
    found = next(s for s in laid_out.program.steps if s.name == step)
    rows = [
        {
            "scratch": _known(o.position),
            "slot": _index(slots[o.slot]) + o.element,
            "triple": 3 * _known(o.position),
            "sentinel": slots[o.slot].sentinel,
            "degenerate_zero": o.degenerate_zero,
            "name": o.slot if slots[o.slot].count == 1 else f"{o.slot}[{o.element}]",
        }
        for o in found.observations
    ]
    return {"rows": tuple(sorted(rows, key=lambda row: row["scratch"]))}


def publish_table(laid_out: LaidOutProgram, step: str) -> dict[str, Any]:
    """Totals of the row, and `fields`: where each diagnostics entry comes from and its word in the row."""
    program = laid_out.program
    counters = len(program.counters) + 1
    row = row_of(laid_out)
    named = {s.name: ("isv", _index(s)) for s in program.slots}
    named |= {c.name: ("counters", laid_out.places[c.name].offset) for c in program.counters}
    fields = tuple(
        {
            "name": name,
            "source": named[name][0],
            "index": named[name][1],
            "word": row.diagnostics + offset,
            "words": words,
        }
        for name, offset, words in laid_out.diagnostics_words
    )
    return {
        "isv_total": laid_out.isv_total,
        "counters_total": counters,
        "found": FOUND if laid_out.watched else 0,
        "words": row.words,
        "fields": fields,
    }


def reset_policies(laid_out: LaidOutProgram) -> tuple[str, ...]:
    """Every policy that some entry names, sorted; `never` is none."""
    program = laid_out.program
    named = {e.reset for entries in (program.slots, program.tensors, program.counters) for e in entries}
    return tuple(sorted(named - {"never", ""}))


def reset_table(laid_out: LaidOutProgram, policy: str) -> dict[str, Any]:
    """What `reset(policy)` clears.

    `slots` go to their first value (a producer slot's is its sentinel) and their Wiener triples to zero
    together, `counters` to 0, `fills` (persistent buffers to their init, moments of params to 0) to `value`.
    The values of params are the runtime's to draw again.
    """
    program = laid_out.program
    slots = [s for s in program.slots if s.reset == policy and s.retired is None]
    triples: dict[str, list[int]] = {s.name: [] for s in slots}
    for o in program.observations:
        if o.slot in triples and not o.retired:
            triples[o.slot].append(_known(o.position))
    return {
        "slots": tuple(
            {
                "index": _index(s),
                "count": s.count,
                "value": s.init,
                "triples": tuple(sorted(triples[s.name])),
            }
            for s in slots
        ),
        "counters": tuple(
            sorted(laid_out.places[c.name].offset for c in program.counters if c.reset == policy)
        ),
        "fills": tuple(
            {"param": f"fill_{k}", "value": value, "count": target.count}
            for k, (target, value) in enumerate(_fills(laid_out, policy))
        ),
    }


def _fills(laid_out: LaidOutProgram, policy: str) -> list[tuple[Range, float]]:
    """Whole buffers and runs of moments, and the value that they go back to, by (allocation, offset)."""

    def targets() -> Iterator[tuple[Range, float]]:
        for tensor in laid_out.program.tensors:
            if tensor.reset != policy or tensor.retired is not None:
                continue
            names: tuple[str, ...] = ()
            value = 0.0
            if tensor.role == "param":
                names = (f"{tensor.name}.m", f"{tensor.name}.v")
            elif tensor.lifetime is Lifetime.PERSISTENT:
                names, value = (tensor.name,), float(tensor.init == "ones")
            for name in names:
                place = laid_out.places[name]
                yield Range(place.allocation, place.offset, tensor.dtype, (tensor.count,), name), value

    merged: list[tuple[Range, float]] = []
    for found, value in sorted(targets(), key=lambda t: (t[0].base, t[0].offset)):
        last, last_value = merged[-1] if merged else (found, value)
        if merged and last_value == value and last.base == found.base and last.stop == found.start:
            run = Range(found.base, last.offset, found.dtype, (last.count + found.count,), found.base)
            merged[-1] = (run, value)
        else:
            merged.append((found, value))
    return merged


def ingest_launch(laid_out: LaidOutProgram, step: str) -> Launch:
    """The first launch of `step`: one block, as the row number is read before `foxhunt.step` advances."""
    bases = {"counters": "counters", "isv": "isv", "ring": "ring.ingest"}
    return _launch(laid_out, "ingest", step, bases, reads={"ring"}, grid=1)


def apply_launch(laid_out: LaidOutProgram, step: str) -> Launch | None:
    """The applicator of `step`, one thread per observation; None when the step lists no producers."""
    found = next(s for s in laid_out.program.steps if s.name == step)
    bases = {"health": "health", "isv": "isv", "scratch": "scratch", "wiener": "wiener"}
    grid = -(-len(found.observations) // _BLOCK)
    return _launch(laid_out, "apply", step, bases, reads={"scratch"}, grid=grid) if grid else None


def publish_launch(laid_out: LaidOutProgram, step: str) -> Launch:
    """The last launch of `step`: one block, because its fence and barrier order the row before `latest`."""
    bases = {"counters": "counters", "health": "health", "isv": "isv", "ring": "ring.publish"}
    if laid_out.watched:
        bases["found"] = "sentinel.rows"
    return _launch(laid_out, "publish", step, bases, reads={"counters", "health", "isv"}, grid=1)


def reset_launch(laid_out: LaidOutProgram, policy: str) -> Launch:
    """The one launch of `reset(policy)`: it has parameters only for what the policy touches."""
    table = reset_table(laid_out, policy)
    bases = {}
    if table["counters"]:
        bases["counters"] = "counters"
    if table["slots"]:
        bases["isv"] = "isv"
    if any(slot["triples"] for slot in table["slots"]):
        bases["wiener"] = "wiener"
    fills = {f"fill_{k}": target for k, (target, _) in enumerate(_fills(laid_out, policy))}
    return _launch(laid_out, "reset", f"reset_{policy}", bases, set(), _RESET_GRID, fills)


def _launch(
    laid_out: LaidOutProgram,
    name: str,
    step: str,
    bases: dict[str, str],
    reads: set[str],
    grid: int,
    extra: dict[str, Range] | None = None,
) -> Launch:
    allocations = {a.name: a for a in laid_out.allocations}
    ranges = {param: whole(allocations[base]) for param, base in bases.items()} | (extra or {})
    params = {
        key: spec.KernelParam.model_validate(
            {"access": "read" if key in reads else "update", "dtype": r.dtype.name, "shape": (f"n_{key}",)}
        )
        for key, r in sorted(ranges.items())
    }
    return Launch(
        name=f"{step}.{name}",
        step=step,
        kernel=spec.Kernel(
            kernel=name, kind="body", doc=_DOCS[name], params=params, reference=name, block=_BLOCK
        ),
        arguments=tuple(
            Argument(key, "data", Access(param.access), False, (ranges[key],))
            for key, param in params.items()
        ),
        dims=tuple((f"n_{key}", ranges[key].count) for key in params),
        grid=grid,
        block=_BLOCK,
        at=HERE,
    )


_DOCS = {
    "ingest": "Copies this step's row of the host ring into the host slots, then advances counters.",
    "apply": "Folds each observation of the step into slot and Wiener triple; counts anomalies and skips.",
    "publish": "Writes slots, counters, health, diagnostics to the next row of the ring; moves `latest`.",
    "reset": "Puts every entry of one reset policy back to its first value, slot and Wiener triple together.",
}


def whole(allocation: Allocation) -> Range:
    """All of an allocation as one range."""
    return Range(allocation.name, 0, allocation.dtype, (allocation.count,), allocation.name)


def row_of(laid_out: LaidOutProgram) -> PublishRow:
    """The published row of a program."""
    diagnostics = sum(words for _, _, words in laid_out.diagnostics_words)
    counters, found = len(laid_out.program.counters) + 1, FOUND if laid_out.watched else 0
    return publish_row(laid_out.isv_total, counters, laid_out.scratch_total, found, diagnostics)


def _index(slot: Slot) -> int:
    return _known(slot.index)


def _known(position: int | None) -> int:
    assert position is not None, "layout sets every position"
    return position

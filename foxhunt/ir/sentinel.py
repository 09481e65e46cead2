"""The sentinel's launches: it looks for NaN and inf at the end of a step, and may undo the step's update.

`sentinel.rows` has three i64 for each row: the last step in which something was not finite, the first such
step, and how many there were. The sentinel writes the first of them, every thread the same value, so that no
order matters; `publish` counts. Row 0 stands for all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from foxhunt.dtypes import I64
from foxhunt.ir.system import FOUND, HERE, STEP_COUNTER
from foxhunt.ir.types import Access, Argument, LaidOutProgram, Launch, Range
from foxhunt.ir.watch import kept, policy, shadow
from foxhunt.spec import models as spec

ROWS = "sentinel.rows"
PART = 4096
"""Elements that one block looks at."""
KERNELS = ("sentinel", "sentinel_keep", "sentinel_undo")
_BLOCK = 256
_Ranges = Mapping[str, tuple[spec.Access, tuple[Range, ...]]]
_MOST_BLOCKS = 2112
_DOCS = {
    "sentinel": "Notes the step in the row of each watched output that holds NaN or inf.",
    "sentinel_keep": "Copies what the step's update will change.",
    "sentinel_undo": "Puts back what the update changed, when the sentinel has found NaN or inf.",
}


def sentinel_launch(laid_out: LaidOutProgram, step: str) -> Launch | None:
    """Reads every watched output of the step, each block a part of one; None where nothing is watched."""
    ranges = tuple(w.range for w in laid_out.watched if w.step == step)
    if not ranges:
        return None
    grid = sum(_parts(r) for r in ranges)
    return _launch("sentinel", step, {"found": ("update", _rows(laid_out)), "xs": ("read", ranges)}, grid)


def update_launches(laid_out: LaidOutProgram, step: str) -> tuple[Launch, ...]:
    """The launch that copies what the step updates and the one that may put it back, where the policy asks
    for them and the step updates something.
    """
    declared = next(s for s in laid_out.program.steps if s.name == step)
    ranges = kept(laid_out.program, declared) if laid_out.watched else ()
    if not ranges:
        return ()
    copies = tuple(Range(shadow(step, r), 0, r.dtype, r.shape, shadow(step, r)) for r in ranges)
    count = sum(r.count for r in ranges)
    grid = max(1, min(-(-count // (4 * _BLOCK)), _MOST_BLOCKS))
    keep = _launch("sentinel_keep", step, {"copies": ("write", copies), "xs": ("read", ranges)}, grid)
    arguments: dict[str, tuple[spec.Access, tuple[Range, ...]]] = {
        "copies": ("read", copies),
        "found": ("read", _rows(laid_out)),
        "xs": ("update", ranges),
    }
    if _advanced(laid_out, step):
        whole = Range("counters", 0, I64, (len(laid_out.program.counters) + 1,), "counters")
        arguments["counters"] = ("update", (whole,))
    return keep, _launch("sentinel_undo", step, arguments, grid)


def sentinel_table(laid_out: LaidOutProgram, step: str) -> dict[str, Any]:
    """`rows`: for each watched output its row and the first block that looks at it; `grid`, `part`."""
    at, rows = 0, []
    for w in laid_out.watched:
        if w.step == step:
            rows.append({"row": w.row, "first": at, "launch": w.launch, "buffer": w.range.text})
            at += _parts(w.range)
    return {"rows": tuple(rows), "grid": at, "part": PART, "words": FOUND}


def update_table(laid_out: LaidOutProgram, step: str) -> dict[str, Any]:
    """`rows` that are copied; `latched`: whether what was found in an earlier step counts too; `counters`
    that go back by the one that the step has advanced them.
    """
    declared = next(s for s in laid_out.program.steps if s.name == step)
    rows = len(kept(laid_out.program, declared))
    latched = policy(laid_out.program) == "stop"
    return {"rows": rows, "latched": latched, "counters": _advanced(laid_out, step)}


def _advanced(laid_out: LaidOutProgram, step: str) -> tuple[int, ...]:
    """Counters that go back with an update under `stop`. Under `skip-update` they go on: a counter may choose
    the next batch.
    """
    if policy(laid_out.program) != "stop":
        return ()
    return tuple(
        sorted(laid_out.places[c.name].offset for c in laid_out.program.counters if c.advance == step)
    )


def _parts(watched: Range) -> int:
    return -(-watched.count // PART)


def _rows(laid_out: LaidOutProgram) -> tuple[Range, ...]:
    return (Range(ROWS, 0, I64, (FOUND * (len(laid_out.watched) + 1),), ROWS),)


def _launch(kernel: str, step: str, ranges: _Ranges, grid: int) -> Launch:
    if kernel != "sentinel_keep":
        ranges = {"counters": ("read", (Range("counters", 0, I64, (1,), STEP_COUNTER),)), **ranges}
    params = {name: _param(name, access, found) for name, (access, found) in sorted(ranges.items())}
    return Launch(
        name=f"{step}.{kernel}",
        step=step,
        kernel=spec.Kernel(
            kernel=kernel, kind="body", doc=_DOCS[kernel], params=params, reference=kernel, block=_BLOCK
        ),
        arguments=tuple(
            Argument(name, "data", Access(param.access), param.many, ranges[name][1])
            for name, param in params.items()
        ),
        dims=(),
        grid=grid,
        block=_BLOCK,
        at=HERE,
    )


def _param(name: str, access: spec.Access, ranges: Iterable[Range]) -> spec.KernelParam:
    dtype = next(iter(ranges)).dtype.name
    many = name in ("copies", "xs")
    return spec.KernelParam.model_validate(
        {"access": access, "dtype": dtype, "shape": ("...n",) if many else (f"n_{name}",), "many": many}
    )

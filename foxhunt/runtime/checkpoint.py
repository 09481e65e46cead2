"""Checkpoints: all persistent state of a trainer, tied to the layout that it was written with."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.backend.plan import Plan
from foxhunt.diagnostics import CheckpointError, Diagnostic, Location
from foxhunt.dtypes import DTYPES
from foxhunt.runtime.sentinel import verify_command
from foxhunt.runtime.tensorfile import Tensors, read_tensors, write_tensors
from foxhunt.runtime.views import finest_views

log = logging.getLogger(__name__)
FORMAT = 1
_SHOWN = 5
_KINDS = ("param", "isv", "state", "counter", "wiener", "moment")  # what a person looks for first


@dataclass(frozen=True)
class Entity:
    """A stored tensor: its name in the file and its place in a buffer."""

    name: str
    buffer: str
    offset_bytes: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Elements."""
        return prod(self.shape)


def entities(plan: Plan) -> tuple[Entity, ...]:
    """What a checkpoint of `plan` holds: whole system buffers, and each tensor of the others by its own name.

    Views over other views (a group over its params) are left out: every byte is stored once.
    """
    found = []
    for buffer in plan.buffers:
        if not buffer.checkpoint:
            continue
        parts = finest_views(plan, buffer.name)
        if buffer.role in ("isv", "wiener", "system") or not parts:
            found.append(Entity(buffer.name, buffer.name, 0, buffer.dtype, (buffer.count,)))
        else:
            found += [
                Entity(v.name, v.buffer, v.offset * DTYPES[v.dtype].size, v.dtype, v.shape) for v in parts
            ]
    return tuple(found)


def save(path: Path, plan: Plan, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write a checkpoint atomically; `tensors` has one array an entity. Raises CheckpointError."""
    metadata = {
        "format": FORMAT,
        "program": plan.program,
        "layout": plan.layout_hash,
        "semantics": plan.semantics_hash,
        "lines": list(plan.layout_lines),
    }
    write_tensors(path, tensors, metadata)


def load(path: Path, plan: Plan) -> tuple[Tensors, tuple[Diagnostic, ...]]:
    """(tensors, warnings) of a checkpoint that fits `plan` exactly.

    Raises CheckpointError for a damaged file, another layout (naming the first differing entries) or wrong
    tensors.
    """
    tensors, metadata = read_tensors(path)
    at = Location(str(path))
    problems = _layout_problems(metadata, plan, at) or _tensor_problems(tensors, plan, at)
    if problems:
        raise CheckpointError(problems)
    return tensors, _warnings(metadata, plan, at) + not_finite(plan, tensors, path)


def not_finite(plan: Plan, tensors: Mapping[str, NDArray[Any]], path: Path) -> tuple[Diagnostic, ...]:
    """A warning that names the params and moments with NaN or inf in them; none when all are finite.

    One NaN in an input reaches every weight within a step, and no later step brings it back.
    """
    learnt = {b.name for b in plan.buffers if b.role in ("params", "m", "v")}
    bad = {
        e.name: f"{e.name} ({n} of {e.count})"
        for e in entities(plan)
        if e.buffer in learnt and (n := int(np.count_nonzero(~np.isfinite(tensors[e.name]))))
    }
    if not bad:
        return ()
    more = f" and {len(bad) - _SHOWN} more tensors" if len(bad) > _SHOWN else ""
    message = f"{path} holds NaN or inf: {', '.join(list(bad.values())[:_SHOWN])}{more}."
    help = f"Continue from an earlier one, from which `{verify_command(plan)}` seeks the launch."
    return (Diagnostic("FH536", message, Location(str(path)), help, "warning"),)


def log_warnings(warnings: Iterable[Diagnostic]) -> None:
    """One line of log for each."""
    for warning in warnings:
        log.warning("%s", f"{warning.message} {warning.help}".rstrip())


def _layout_problems(metadata: Mapping[str, Any], plan: Plan, at: Location) -> tuple[Diagnostic, ...]:
    if metadata.get("format") != FORMAT:
        message = f"checkpoint format {metadata.get('format')!r}; this foxhunt reads {FORMAT}"
        return (Diagnostic("FH532", message, at),)
    if metadata.get("layout") == plan.layout_hash:
        return ()
    raw = metadata.get("lines")
    theirs, ours = _by_entry(raw if isinstance(raw, list) else []), _by_entry(plan.layout_lines)
    keys = sorted((theirs.keys() | ours.keys()), key=lambda k: (_KINDS.index(k[0]), k[1]))
    different = [k for k in keys if theirs.get(k) != ours.get(k)]
    shown = [
        f"  {sign} {side[key]}"
        for key in different[:_SHOWN]
        for sign, side in (("-", theirs), ("+", ours))
        if key in side
    ]
    more = [f"  and {len(different) - _SHOWN} more entries"] if len(different) > _SHOWN else []
    first = "the checkpoint (-) has another layout than the program (+)"
    if isinstance(other := metadata.get("program"), str) and other != plan.program:
        first = f"this is a checkpoint of program {other} (-), not {plan.program} (+)"
    message = "\n".join([first, *shown, *more])
    help = "Compile the specs it was trained with, or carry it over with `foxhunt migrate`."
    return (Diagnostic("FH532", message, at, help),)


def _by_entry(lines: Iterable[Any]) -> dict[tuple[str, str], str]:
    """(kind, name) → layout line `<kind> <position> <name> <dtype> <shape>`, without the note after ` # `."""
    entries = {}
    for line in map(str, lines):
        words = line.partition(" # ")[0].split()
        if len(words) == 5 and words[0] in _KINDS:
            entries[words[0], words[2]] = " ".join(words)
    return entries


def _tensor_problems(tensors: Tensors, plan: Plan, at: Location) -> tuple[Diagnostic, ...]:
    wanted = {e.name: e for e in entities(plan)}
    problems = [f"{name} is missing" for name in wanted if name not in tensors]
    problems += [f"{name} is not of this program" for name in tensors if name not in wanted]
    for name, entity in wanted.items():
        have = tensors.get(name)
        dtype = np.dtype(DTYPES[entity.dtype].numpy)
        if have is not None and (have.shape != entity.shape or have.dtype != dtype):
            problems.append(f"{name} is {have.dtype} {list(have.shape)}, not {dtype} {list(entity.shape)}")
    return tuple(Diagnostic("FH533", f"tensor {p}", at) for p in problems[:_SHOWN])


def _warnings(metadata: Mapping[str, Any], plan: Plan, at: Location) -> tuple[Diagnostic, ...]:
    warnings = []
    if metadata.get("semantics") != plan.semantics_hash:
        message = "written by kernels that computed differently: training continues, but not bit-identically"
        warnings.append(Diagnostic("FH534", message, at, severity="warning"))
    opted_out = [b.name for b in plan.buffers if b.role == "state" and not b.checkpoint]
    if opted_out:
        names = ", ".join(opted_out)
        message = f"not in the checkpoint, so what depends on it is not resumed bit-identically: {names}"
        warnings.append(Diagnostic("FH534", message, at, severity="warning"))
    return tuple(warnings)

"""A checkpoint carried over to a program whose layout has changed since."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.backend.plan import Plan
from foxhunt.contract.fingerprint import layout_hash, layout_lines
from foxhunt.contract.lock import LOCK_FILE, parse_lines, parse_lock
from foxhunt.contract.migrate import CARRIED, Carry, plan_migration, refusals
from foxhunt.diagnostics import CheckpointError, DriftError, Location, SpecError, TrainerError, fail
from foxhunt.dtypes import DTYPES
from foxhunt.ir.types import LayoutEntry
from foxhunt.runtime.checkpoint import FORMAT, Entity, entities
from foxhunt.runtime.init import initial
from foxhunt.runtime.load import load_plan
from foxhunt.runtime.tensorfile import Tensors, read_tensors

_WHOLE = {"isv": "isv", "wiener": "wiener", "counter": "counters"}
"""Layout kinds that are parts of one tensor of a checkpoint."""


@dataclass(frozen=True)
class Migration:
    """A checkpoint's values at their new places, and what became of each entry."""

    plan: Plan
    written_by: str  # the program of the checkpoint
    carries: tuple[Carry, ...]
    tensors: Tensors


def migrate(path: Path, folder: Path, drops: Collection[str] = ()) -> Migration:
    """The checkpoint at `path` for the program compiled in `folder`; writes nothing.

    New slots start at their sentinel or init with a zero triple, new params and buffers as in a new run of
    the checkpoint's seed. Raises CheckpointError for a file that is damaged or of another format,
    TrainerError for a folder without a program, DriftError FH611 with everything that cannot be carried.
    """
    tensors, metadata = read_tensors(path)
    old = _entries(metadata, tensors, Location(str(path)))
    plan, new = _target(folder)
    carries = plan_migration(old, new, drops)
    refused = tuple(refusals(carries, Location(str(path))))
    if refused:
        raise DriftError(refused)
    return Migration(plan, str(metadata.get("program")), carries, _carried(tensors, plan, carries))


def _entries(metadata: Mapping[str, Any], tensors: Tensors, at: Location) -> tuple[LayoutEntry, ...]:
    """The layout that a checkpoint states, checked against its own hash and tensors."""
    if metadata.get("format") != FORMAT:
        message = f"checkpoint format {metadata.get('format')!r}; this foxhunt reads {FORMAT}"
        raise fail(CheckpointError, "FH532", message, at=at)
    lines = metadata.get("lines")
    try:
        entries = parse_lines(map(str, lines), at) if isinstance(lines, list) else ()
    except SpecError:
        entries = ()
    if not entries or layout_hash(layout_lines(entries)) != metadata.get("layout"):
        raise fail(CheckpointError, "FH531", "damaged checkpoint: its layout is not what it states", at=at)
    for entry in entries:
        name = _WHOLE.get(entry.kind, entry.name)
        have, dtype = tensors.get(name), np.dtype(DTYPES[entry.dtype].numpy)
        whole = entry.kind in _WHOLE
        fits = have is not None and have.dtype == dtype
        if have is not None and fits:
            end = entry.position + int(np.prod(entry.shape, dtype=np.int64))
            fits = have.ndim == 1 and end <= have.size if whole else have.shape == entry.shape
        if not fits:
            raise fail(CheckpointError, "FH533", f"tensor {name} does not hold {entry.name}", at=at)
    return entries


def _target(folder: Path) -> tuple[Plan, tuple[LayoutEntry, ...]]:
    plan = load_plan(folder)
    path = folder / LOCK_FILE
    try:
        lock = parse_lock(path.read_text(encoding="utf-8"), str(path))
    except (OSError, ValueError) as error:
        raise fail(
            TrainerError, "FH546", f"layout.lock cannot be read: {error}", at=Location(str(path))
        ) from error
    if lock.layout != plan.layout_hash:
        help = "Compile it again."
        message = "trainer.py and layout.lock are of two compiles"
        raise fail(TrainerError, "FH546", message, at=Location(str(folder)), help=help)
    return plan, lock.entries


def _carried(old: Tensors, plan: Plan, carries: tuple[Carry, ...]) -> Tensors:
    seed = old.get("seed", np.zeros(1, np.int64))
    new = {e.name: _first(e, plan, int(seed[0]) if seed.size else 0) for e in entities(plan)}
    if "seed" in new and seed.shape == new["seed"].shape:
        new["seed"] = seed.astype(np.int64)
    for carry in carries:
        before, after = carry.before, carry.after
        if carry.action not in CARRIED or before is None or after is None:
            continue
        values = _values(old, before)
        if after.kind in _WHOLE:
            new[_WHOLE[after.kind]][after.position : after.position + values.size] = values.ravel()
        else:
            new[after.name] = values.reshape(after.shape)
    return new


def _values(tensors: Tensors, entry: LayoutEntry) -> NDArray[Any]:
    if entry.kind not in _WHOLE:
        return tensors[entry.name]
    count = int(np.prod(entry.shape, dtype=np.int64))
    return tensors[_WHOLE[entry.kind]][entry.position : entry.position + count]


def _first(entity: Entity, plan: Plan, seed: int) -> NDArray[Any]:
    """What a stored tensor holds at the start of a new run."""
    dtype = DTYPES[entity.dtype].numpy
    view = next((v for v in plan.views if v.name == entity.name), None)
    if view is not None and view.init != "zeros":
        return initial(view.init, view.shape, seed, view.name).astype(dtype)
    values: NDArray[Any] = np.zeros(entity.shape, dtype)
    if entity.name == "isv":
        for slot in plan.slots:
            values[slot.index : slot.index + slot.count] = slot.init
    return values

"""Rule wire-everything: what is declared is used.

A diagnostics listing is a use; that a slot is written is none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from foxhunt.ir.access import accesses, items
from foxhunt.ir.findings import Findings
from foxhunt.ir.types import LaidOutProgram, Place, StepGraph
from foxhunt.spec import models as spec

_HINT = "use it, or remove it"
Spans = dict[str, list[tuple[int, int]]]


def check_orphans(laid_out: LaidOutProgram, graphs: tuple[StepGraph, ...], findings: Findings) -> None:
    """Every slot, counter, param, buffer, producer, block and data source is used."""
    program = laid_out.program
    touched = _touched(graphs)
    listed = set(program.diagnostics)
    places = laid_out.places
    for slot in program.slots:
        read = _overlaps(touched, places[slot.name], slot.count)
        if slot.retired is None and slot.name not in listed and not read:
            message = f"slot {slot.name} is read by no launch and not listed under diagnostics"
            findings.add("FH250", message, slot.at, _HINT, about=slot.name)
    for counter in program.counters:
        if counter.name not in listed and not _overlaps(touched, places[counter.name], 1):
            findings.add(
                "FH250", f"counter {counter.name} is used by no launch", counter.at, _HINT, about=counter.name
            )
    for tensor in program.tensors:
        if tensor.role == "workspace" or tensor.retired is not None:
            continue
        names = [tensor.name]
        if tensor.role == "param":
            names += [f"{tensor.name}.{suffix}" for suffix in "gmv"]
        if not any(_overlaps(touched, places[n], tensor.count) for n in names):
            findings.add(
                "FH250",
                f"{tensor.role} {tensor.name} is used by no launch",
                tensor.at,
                _HINT,
                about=tensor.name,
            )
    _check_source(program.source, {o.producer for s in program.steps for o in s.observations}, findings)


def _check_source(source: spec.Program, observed: set[str], findings: Findings) -> None:
    for producer in source.producers:
        if producer.retired is None and producer.name not in observed:
            message = f"producer {producer.name} is listed in no step"
            hint = f"add `- {{producers: [{producer.name}]}}` to a step"
            findings.add("FH250", message, producer.at, hint, about=producer.name)
    used = _used_blocks(source)
    for block in source.blocks:
        if block.name not in used:
            findings.add("FH250", f"block {block.name} is used by no step", block.at, _HINT, about=block.name)
    filling = {b.fill.partition(".")[0] for b in source.buffers if b.fill is not None}
    for data in source.data:
        if data.name not in filling:
            findings.add("FH250", f"data source {data.name} fills no buffer", data.at, _HINT, about=data.name)


def _used_blocks(source: spec.Program) -> set[str]:
    blocks = {b.name: b for b in source.blocks}
    waiting = [i.use for s in source.steps for i in s.items if i.use is not None]
    used: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in used and name in blocks:
            waiting += [i.use for i in blocks[name].items if i.use is not None]
        used.add(name)
    return used


def _touched(graphs: tuple[StepGraph, ...]) -> Spans:
    """Elements of each allocation that a declared launch touches, merged; of slots, those that one reads."""
    found: dict[str, set[tuple[int, int]]] = {}
    for graph in graphs:
        for launch in items(graph):
            for touch in accesses(launch):
                part = touch.range
                if part.base != "isv" or touch.reads:
                    found.setdefault(part.base, set()).add((part.offset, part.offset + part.count))
    return {base: _merged(sorted(spans)) for base, spans in found.items()}


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _overlaps(touched: Spans, place: Place, count: int) -> bool:
    spans = touched.get(place.allocation, [])
    k = bisect_left(spans, (place.offset + count, -1))
    return k > 0 and spans[k - 1][1] > place.offset

"""The interactive page of a program's steps: one HTML file that needs neither server nor network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from foxhunt.ir.types import Lifetime
from foxhunt.schedule.touch import touched
from foxhunt.view.facts import Facts, device_facts, kernel_facts, launch_facts, slot_facts, tensor_facts
from foxhunt.view.index import Index, human_bytes, members
from foxhunt.view.picture import KINDS, Picture, picture
from foxhunt.view.svg import COLOURS, STYLE, content


def page(index: Index, first: str | None = None) -> str:
    """The page of all steps: drawings, lists with search, what `foxhunt explain` says, and all sources.

    It opens at step `first`, the program's first unless given.
    """
    pictures = [picture(index, step) for step in index.steps]
    known = dict(_facts(index))
    program = index.compiled.laid_out.program
    data = {
        "steps": [_step(index, p) for p in pictures],
        "first": list(index.steps).index(first) if first else 0,
        "arena": index.compiled.schedule.arena_bytes,
        "facts": {key: _plain(f) for key, f in known.items()},
        "names": {key.partition(":")[2]: key for key in reversed(known)},
        "touches": {key: _touches(index, key.partition(":")[2]) for key in known if _has_place(key)},
        "slots": [_slot(index, name) for name in index.slots],
        "tensors": [_tensor(index, name) for name in index.views],
        "sources": _sources(index, known),
    }
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_read("page.html.j2")).render(
        title=f"foxhunt graph {program.name}",
        program=program.name if program.variant == "default" else f"{program.name} ({program.variant})",
        pictures=pictures,
        contents=[Markup(content(p)) for p in pictures],
        kinds=[(kind, COLOURS[kind]) for kind in KINDS],
        style=Markup(STYLE),
        page_style=Markup(_read("page.css")),
        script=Markup(_read("page.js")),
        data=Markup(_embedded(data)),
    )


def _embedded(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _facts(index: Index) -> Iterator[tuple[str, Facts]]:
    """Facts by key, in the order in which a name is looked up. A box of one launch shows that launch."""
    for step in index.steps.values():
        for fused in step.launches:
            lone = index.launches.get(fused.name) if len(members(fused)) == 1 else None
            yield (
                f"device:{fused.name}",
                launch_facts(index, lone) if lone else device_facts(index, step, fused),
            )
    for slot in index.slots.values():
        yield f"slot:{slot.name}", slot_facts(index, slot)
    for name in index.views:
        yield f"tensor:{name}", tensor_facts(index, name)
    for name, launch in index.launches.items():
        yield f"launch:{name}", launch_facts(index, launch)
    for name, kernel in sorted(index.compiled.laid_out.program.kernels.items()):
        yield f"kernel:{name}", kernel_facts(index, kernel)


def _plain(known: Facts) -> dict[str, Any]:
    at = None if known.at is None else [known.at.path, known.at.line]
    rows = [[label, list(values)] for label, values in known.rows]
    return {"title": known.title, "rows": rows, "at": at, "emitted": list(known.emitted)}


def _step(index: Index, shown: Picture) -> dict[str, Any]:
    step = index.steps[shown.step]
    nodes = [
        {
            "name": node.name,
            "title": node.title,
            "launches": list(dict.fromkeys(n.name for n in members(fused))),
            "kernels": sorted({n.kernel.kernel for n in members(fused)}),
            "us": node.microseconds,
            "x": box.x,
            "y": box.y,
            "w": box.width,
            "h": box.height,
        }
        for node, fused, box in zip(shown.nodes, step.launches, shown.layout.boxes, strict=True)
    ]
    links = [
        {
            "before": e.before,
            "after": e.after,
            "kind": e.kind,
            "kinds": e.kinds,
            "reason": e.reason,
            "hazards": [[h.before, h.after, h.kind, h.reason] for h in e.hazards],
        }
        for e in shown.links
    ]
    return {
        "name": shown.step,
        "declared": shown.declared,
        "width": shown.layout.width,
        "height": shown.layout.height,
        "nodes": nodes,
        "links": links,
        "arena": _arena(index, shown.step),
    }


def _arena(index: Index, step: str) -> list[list[Any]]:
    """Each buffer of the arena that a step uses: name, offset, bytes, first and last launch."""
    schedule = index.compiled.schedule
    sizes = {a.name: a.nbytes for a in schedule.allocations if a.lifetime is Lifetime.STEP}
    lives: dict[str, list[int]] = {}
    for number, fused in enumerate(index.steps[step].launches):
        for name in {t.base for t in touched(fused)} & sizes.keys():
            lives.setdefault(name, [number, number])[1] = number
    return [[name, schedule.arena[name], sizes[name], *lives[name]] for name in sorted(lives)]


def _has_place(key: str) -> bool:
    return key.startswith(("slot:", "tensor:"))


def _touches(index: Index, name: str) -> dict[str, list[list[int]]]:
    """For each step the device launches that touch an entity, with 1 for those that write it."""
    found: dict[str, dict[int, int]] = {}
    for use in index.uses_of(name):
        for number in index.homes[use.launch.name].numbers:
            step = found.setdefault(use.launch.step, {})
            step[number] = max(step.get(number, 0), int(use.access != "read"))
    return {step: [[n, writes] for n, writes in sorted(numbers.items())] for step, numbers in found.items()}


def _slot(index: Index, name: str) -> list[str]:
    slot = index.slots[name]
    state = "retired" if slot.retired else slot.source
    return [f"slot:{name}", name, f"{slot.index} {state}", f"{state} {slot.reset}"]


def _tensor(index: Index, name: str) -> list[str]:
    view = index.views[name]
    count = 1
    for n in view.shape:
        count *= n
    return [f"tensor:{name}", name, f"{list(view.shape)}", f"{view.dtype} {view.buffer} {human_bytes(count)}"]


def _sources(index: Index, known: dict[str, Facts]) -> dict[str, str]:
    """The texts that facts point into: spec files, and emitted files."""
    specs = {f.at.path for f in known.values() if f.at is not None}
    emitted = {path for f in known.values() for path in f.emitted}
    texts = {path: index.specs.sources[path] for path in sorted(specs) if path in index.specs.sources}
    return texts | {path: index.compiled.files[path] for path in sorted(emitted)}

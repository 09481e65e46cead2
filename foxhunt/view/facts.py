"""What foxhunt knows about one thing of a program: rows of text, for the terminal and for the graph page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from foxhunt.diagnostics import Location
from foxhunt.dtypes import DTYPES
from foxhunt.ir.access import traffic
from foxhunt.ir.system import NAMES
from foxhunt.ir.types import Edge, Launch, Observation, Slot
from foxhunt.ir.watch import policy
from foxhunt.schedule.estimate import microseconds
from foxhunt.schedule.types import FusedLaunch, ScheduledStep
from foxhunt.spec import models as spec
from foxhunt.view.index import Index, Use, flops, human_bytes, human_count, members


@dataclass(frozen=True)
class Facts:
    """A titled list of labelled values; a label may have several values, one a line."""

    title: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    at: Location | None = None
    emitted: tuple[str, ...] = ()  # generated files

    def text(self) -> str:
        """Title, then aligned rows."""
        width = max((len(label) for label, _ in self.rows), default=0) + 2
        lines = [self.title]
        for label, values in self.rows:
            for k, value in enumerate(values):
                lines.append(f"  {'' if k else label:<{width}}{value}")
        return "\n".join(lines)


Row = tuple[str, tuple[str, ...]]


def row(label: str, *values: object) -> Row:
    """A row; empty values are left out."""
    return label, tuple(str(v) for v in values if str(v))


def facts(title: str, rows: Iterable[Row], at: Location | None, emitted: Iterable[str] = ()) -> Facts:
    """Facts with the place first and the emitted files last; rows without values are dropped."""
    files = tuple(emitted)
    framed = (
        row("declared", "" if at is None else at),
        *rows,
        row("emitted", *files),
    )
    return Facts(title, tuple(r for r in framed if r[1]), at, files)


def some(names: Sequence[str], most: int = 12) -> str:
    """Names with commas, the first of them where there are many.

    >>> some(["a", "b"]), some(["a", "b", "c", "d"], most=3)
    ('a, b', 'a, b and 2 more')
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def slot_facts(index: Index, slot: Slot) -> Facts:
    """A slot: where it stands, who feeds it, who reads it, what clears it."""
    first = slot.index or 0
    at = f"{first}" if slot.count == 1 else f"{first}–{first + slot.count - 1}"
    entry = next((e for e in index.compiled.laid_out.program.source.isv if e.name == slot.name), None)
    uses = index.uses_of(slot.name)
    watched = {name for name, _, _ in index.compiled.laid_out.diagnostics_words}
    rows = (
        row("doc", entry.doc if entry else ""),
        *_retired(slot.retired),
        row("index", f"{at} of the bus; byte {4 * first} of `isv`, {4 * slot.count} bytes"),
        row("source", *_source(index, slot)),
        row("observed at", *_observed(index, slot)),
        row(
            "init", f"{slot.init:g}" + (f", sentinel {slot.sentinel:g}" if slot.source == "producer" else "")
        ),
        row("bound", "" if slot.floor is None else f"max(slot, {slot.floor:g}) once observed, +inf before"),
        row("consumers", *([str(u) for u in uses if not u.launch.producer] or ["no launch reads it"])),
        row("reset", _reset(slot.reset, slot.retired)),
        row("published", "in the diagnostics of each step" if slot.name in watched else ""),
        row("was", slot.was or ""),
    )
    return facts(f"slot {slot.name} of {index.program}", rows, slot.at)


def tensor_facts(index: Index, name: str) -> Facts:
    """A param, buffer, group, gradient, moment or workspace: place, writers, readers, lifetime."""
    view, tensor = index.views.get(name), index.tensors.get(name)
    base = (
        tensor
        or index.tensors.get(name.rpartition(".")[0])
        or next((t for t in index.tensors.values() if t.group == name.partition(".")[0]), None)
    )
    assert base is not None, "every view belongs to a tensor"
    shape = view.shape if view else base.shape
    dtype = DTYPES[view.dtype] if view else base.dtype
    nbytes = dtype.size * _product(shape)
    uses = index.uses_of(name)
    role = "gradient of" if name.endswith(".g") else "moment of" if name[-2:] in (".m", ".v") else ""
    whole = name == base.name
    program = index.compiled.laid_out.program.source
    docs = {p.name: p.doc for p in program.params} | {b.name: b.doc for b in program.buffers}
    rows = (
        row("doc", docs.get(name, "")),
        *_retired(base.retired),
        row("what", *_what(name, base.role, base.group, role)),
        row("shape", f"{dtype.name} {list(shape)}, {_product(shape):,} elements, {human_bytes(nbytes)}"),
        row("place", *_place(index, name, nbytes)),
        row("lifetime", base.lifetime if whole else "step" if name.endswith(".g") else "persistent"),
        row("init", base.init if whole and base.lifetime == "persistent" else ""),
        row("filled from", (base.fill or "") if whole else ""),
        row("producers", *_accesses(uses, writes=True)),
        row("consumers", *_accesses(uses, writes=False)),
        row("reset", _reset(base.reset, base.retired) if _lasting(name, base.lifetime) else ""),
        row("checkpoint", _checkpointed(name, base.lifetime, base.checkpoint)),
    )
    return facts(f"{base.role if whole else 'tensor'} {name} of {index.program}", rows, base.at)


def kernel_facts(index: Index, kernel: spec.Kernel) -> Facts:
    """A kernel: what it computes, its parameters, the launches of it."""
    launches = [n for n in index.launches.values() if n.kernel.kernel == kernel.kernel]
    params = [
        f"{name}: {'many ' if p.many else ''}{p.kind} {p.access}"
        + (f" {p.dtype} [{', '.join(map(str, p.shape))}]" if p.kind == "data" else "")
        for name, p in sorted(kernel.params.items())
    ]
    rows = (
        row("doc", *kernel.doc.strip().splitlines()),
        row("kind", kernel.kind + (f", {kernel.passes} passes" if kernel.passes > 1 else "")),
        row("params", *params),
        row("block", f"{kernel.block} threads"),
        row("grid", *([] if kernel.kind == "statistic" else str(kernel.grid).splitlines())),
        row("workspace", *(f"{n}: {w.dtype} {list(w.shape)}" for n, w in sorted(kernel.workspace.items()))),
        row(
            "reference", f"{kernel.reference}, rtol {kernel.tolerance.rtol:g}, atol {kernel.tolerance.atol:g}"
        ),
        row("template", f"templates/kernels/{kernel.kernel}.cu.j2"),
        row("launches", *([f"{n.name}  {cost(n)}" for n in launches] or [f"none in {index.program}"])),
    )
    emitted = [f for f in (f"kernels/{kernel.kernel}.cuh",) if f in index.compiled.files]
    return facts(f"kernel {kernel.kernel}", rows, kernel.at, emitted)


def launch_facts(index: Index, launch: Launch) -> Facts:
    """A declared launch: arguments, what it waits for and why, which device launch it landed in."""
    home = index.homes[launch.name]
    rows = (
        row("kernel", f"{launch.kernel.kernel} ({launch.kernel.kind})"),
        row("producer", launch.producer or ""),
        row("blocks", " > ".join(launch.blocks)),
        row("arguments", *_arguments(launch)),
        row("watches", *_watches(index, launch)),
        row("dims", ", ".join(f"{n} {v:,}" for n, v in launch.dims)),
        row("estimated", cost(launch)),
        row("landed in", *_landed(index, launch)),
        row("waits for", *_edges(index.incoming.get(launch.name, ()))),
        row("awaited by", *_edges(index.outgoing.get(launch.name, ()), forward=True)),
    )
    emitted = [f"launches/{n.entry}.cu" for n in home.launches]
    emitted += [f for f in _body(launch) if f in index.compiled.files]
    title = f"launch {launch.name} of {index.program}"
    return facts(title, rows, None if launch.kernel.kernel in NAMES else launch.at, emitted)


def device_facts(index: Index, step: ScheduledStep, fused: FusedLaunch) -> Facts:
    """A device launch: its tasks, cost, place in the order, and edges."""
    inside = members(fused)
    tasks = [
        f"{', '.join(n.name for n in t.launches)}  blocks {t.grid:,}"
        + (f", pass {t.pass_index}" if any(n.kernel.passes > 1 for n in t.launches) else "")
        for t in fused.tasks
    ]
    rows = (
        row(
            "place",
            f"{index.numbers[fused.name]} of {len(step.launches)} in step {step.name}, lane {fused.lane}",
        ),
        row("grid", f"{fused.grid:,} blocks of {fused.block} threads"),
        row("tasks", *tasks),
        row("fused", _why_fused(fused)),
        row("estimated", total_cost(fused)),
        row("waits for", *_edges(index.incoming.get(f"device:{fused.name}", ()))),
        row("awaited by", *_edges(index.outgoing.get(f"device:{fused.name}", ()), forward=True)),
    )
    bodies = dict.fromkeys(f for n in inside for f in _body(n) if f in index.compiled.files)
    title = f"device launch {fused.name} of {index.program}"
    at = inside[0].at if len(inside) == 1 and inside[0].kernel.kernel not in NAMES else None
    return facts(title, rows, at, (f"launches/{fused.entry}.cu", *bodies))


def cost(launch: Launch) -> str:
    """Bytes, operations and time of one launch, as the scheduler estimates them."""
    work = f", {human_count(flops(launch))}FLOP" if flops(launch) else ""
    return f"{human_bytes(traffic(launch))}{work}, {microseconds(launch):.1f} µs"


def total_cost(fused: FusedLaunch) -> str:
    """The same of a device launch; its tasks run side by side."""
    inside = members(fused)
    work = sum(flops(n) for n in inside)
    shown = f", {human_count(work)}FLOP" if work else ""
    nbytes = human_bytes(sum(traffic(n) for n in inside))
    return f"{nbytes}{shown}, {max(microseconds(n) for n in inside):.1f} µs"


def _source(index: Index, slot: Slot) -> Iterator[str]:
    if slot.source == "host":
        yield f'the host: trainer.signals["{slot.name}"] = x holds from the next enqueued step on'
    elif slot.source == "kernel":
        yield "a kernel, seen from the next step on"
        yield from (str(u) for u in index.uses_of(slot.name) if u.access != "read")
    else:
        producers = dict.fromkeys(o.producer for o in _observations(index, slot))
        for name in producers:
            launches = [n.name for n in index.launches.values() if n.producer == name]
            yield f"producer {name}: {', '.join(launches) or 'in no step'}"


def _observed(index: Index, slot: Slot) -> Iterator[str]:
    positions = [o.position or 0 for o in _observations(index, slot)]
    if positions:
        shown = ", ".join(map(str, positions))
        folded = "; folded at the end of the step" if slot.retired is None else ""
        yield f"scratch {shown}; triple (S, D, lag) at 3 × that of `wiener`{folded}"


def _observations(index: Index, slot: Slot) -> list[Observation]:
    return [o for o in index.compiled.laid_out.program.observations if o.slot == slot.name]


def _what(name: str, role: str, group: str | None, derived: str) -> Iterator[str]:
    owner = name.rpartition(".")[0]
    if derived and role == "param":
        yield f"{derived} {owner}"
    elif role == "param":
        yield f"parameter group {group}" if name == group else f"param of group {group}"
    elif role == "workspace":
        yield f"scratch memory of launch {owner}"


def _place(index: Index, name: str, nbytes: int) -> Iterator[str]:
    place = index.compiled.laid_out.places.get(name)
    if place is None:
        return
    schedule = index.compiled.schedule
    offset = schedule.arena.get(place.allocation)
    if offset is None:
        yield f"`{place.allocation}` from element {place.offset:,}"
        return
    size = {a.name: a.nbytes for a in schedule.allocations}
    stop = offset + size[place.allocation]
    inside = "" if place.allocation == name else f" (element {place.offset:,} of `{place.allocation}`)"
    yield f"`arena` bytes [{offset:,}:{offset + nbytes:,}){inside}" if not inside else f"`arena`{inside}"
    sharing = [
        other
        for other, start in schedule.arena.items()
        if other != place.allocation and start < stop and offset < start + size[other]
    ]
    if sharing:
        yield f"shares bytes, at other times, with {some(sharing)}"


def _accesses(uses: Iterable[Use], writes: bool) -> list[str]:
    kept = [u for u in uses if (u.access != "read" if writes else u.access != "write")]
    return [f"{u}" + (f" {u.range.text}" if u.range.text else "") for u in kept]


def _lasting(name: str, lifetime: str) -> bool:
    return lifetime == "persistent" and not name.endswith(".g")


def _checkpointed(name: str, lifetime: str, checkpoint: bool) -> str:
    if not _lasting(name, lifetime):
        return ""
    return "yes" if checkpoint else "no: a resumed run starts with its init"


def _arguments(launch: Launch) -> Iterator[str]:
    for a in launch.arguments:
        if a.kind == "rng":
            yield f"{a.name}: random numbers of (seed, step, this launch's name)"
        for r in a.ranges if (launch.kernel.kernel, a.name) != ("sentinel", "xs") else ():
            kind = "" if a.kind == "data" else f"{a.kind} "
            yield f"{a.name}: {a.access} {kind}{r.text} {r.dtype.name} {list(r.shape)}"


def _watches(index: Index, launch: Launch) -> Iterator[str]:
    """What a sentinel looks at, and what it leaves out though it might."""
    if launch.kernel.kernel != "sentinel":
        return
    laid_out = index.compiled.laid_out
    here = [w for w in laid_out.watched if w.step == launch.step]
    declared = next(s for s in laid_out.program.steps if s.name == launch.step).launches
    share = traffic(launch) / max(1, sum(map(traffic, declared)))
    yield f"{len(here)} outputs, {share:.1%} of the step's bytes; policy {policy(laid_out.program)}"
    yield from (f"{w.launch}: {w.range.text} {list(w.range.shape)}" for w in here)


def _landed(index: Index, launch: Launch) -> Iterator[str]:
    home = index.homes[launch.name]
    for number, fused in zip(home.numbers, home.launches, strict=True):
        others = list(dict.fromkeys(n.name for n in members(fused) if n.name != launch.name))
        alone = f"beside {some(others)}" if others else "alone"
        where = f"{number} of {len(home.step.launches)} in the step, lane {fused.lane}"
        yield f"{fused.name}, {where}, {fused.grid:,} blocks of {fused.block}, {alone}"


def _why_fused(fused: FusedLaunch) -> str:
    inside = members(fused)
    if len(inside) < 2:
        return ""
    if len(fused.tasks) == 1:
        return "these statistics sweep one range, so they share its pass"
    if inside[0].kernel.kind == "gemm":
        return "matrix products of one level: none waits for another"
    return "tasks of one level, each small: none waits for another"


def _edges(edges: Iterable[Edge], forward: bool = False) -> list[str]:
    return [f"{e.after if forward else e.before}  {e.kind} {e.reason}" for e in edges]


def _body(launch: Launch) -> list[str]:
    kernel = launch.kernel.kernel
    return [f"system/{launch.step}/{kernel}.cuh" if kernel in NAMES else f"kernels/{kernel}.cuh"]


def _retired(reason: str | None) -> Iterator[Row]:
    """Before anything else, why an entry is out of use."""
    if reason is not None:
        yield row("retired", reason, "nothing reads, writes or resets it; its positions stay taken")


def _reset(policy: str, retired: str | None) -> str:
    if retired is not None:
        return ""
    return "never" if policy == "never" else f'by reset("{policy}"), with all state that belongs to it'


def _product(shape: Iterable[int]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count

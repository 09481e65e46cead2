"""From a name to what it is: the one look-up behind `foxhunt explain`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from foxhunt import rules
from foxhunt.diagnostics import FoxhuntError, SpecError, fail
from foxhunt.ir.types import Counter, Edge, Launch
from foxhunt.ir.watch import policy
from foxhunt.schedule.types import ScheduledStep
from foxhunt.spec import models as spec
from foxhunt.spec.text import nearest
from foxhunt.spec.uses import visible_blocks
from foxhunt.view.facts import (
    Facts,
    device_facts,
    facts,
    kernel_facts,
    launch_facts,
    row,
    slot_facts,
    tensor_facts,
)
from foxhunt.view.index import Index, conflicts, members, shared_reads

_ARROW = re.compile(r"\s*(?:->|→)\s*")
_CODE = re.compile(r"FH\d+", re.IGNORECASE)


def explain(name: str, indexes: Sequence[Index]) -> list[Facts]:
    """Everything called `name` in any of the programs, or the relation of the two launches in `A -> B`.

    Raises SpecError FH290 for a name that none of them has, with the nearest.
    """
    name = name.strip()
    pair = _ARROW.split(name)
    if len(pair) == 2 and all(pair):
        return _explain_pair(pair[0], pair[1], indexes)
    found = list(dict.fromkeys(f for index in indexes for f in _explain_one(name, index)))
    if not found:
        raise _switched_off(name, indexes) or _unknown(name, [n for i in indexes for n in _known(i)])
    return found


def is_rule(name: str) -> bool:
    """Whether a name is written as the code of a rule."""
    return bool(_CODE.fullmatch(name.strip()))


def rule_facts(code: str) -> Facts:
    """A rule of docs/rules.md. Raises SpecError FH290."""
    found = rules.RULES.get(code.strip().upper())
    if found is None:
        raise _unknown(code, rules.RULES)
    return facts(
        f"rule {found.code} {found.name}", (row("refuses", found.summary), row("mend", found.mend)), None
    )


def _unknown(name: str, known: Iterable[str]) -> SpecError:
    names = sorted(set(known))
    hint = nearest(name, names) if len(names) < 20 else nearest(name, names).partition(": ")[0]
    if not hint.startswith("did you mean"):
        hint = "`foxhunt graph PROGRAM --tree` lists the launches, the specs every other name"
    error = fail(SpecError, "FH290", f"nothing is called {name!r}", help=hint)
    assert isinstance(error, SpecError)
    return error


def _switched_off(name: str, indexes: Sequence[Index]) -> FoxhuntError | None:
    """The error for the sentinel of a program that has none, because its health policy says so."""
    step, _, launch = name.rpartition(".")
    for index in indexes:
        program = index.compiled.laid_out.program
        if launch == "sentinel" and (not step or step in index.steps) and policy(program) == "off":
            health = program.source.health
            at = health.spot("policy") if health is not None else None
            message = f"{index.program} has no sentinel: its health policy is off"
            return fail(SpecError, "FH290", message, at=at, help="`policy: report` watches for NaN and inf")
    return None


def _explain_one(name: str, index: Index) -> Iterator[Facts]:
    program = index.compiled.laid_out.program
    if name in index.slots:
        yield slot_facts(index, index.slots[name])
    elif name in index.views or name in index.tensors:
        yield tensor_facts(index, name)
    for counter in program.counters:
        if counter.name == name:
            yield _counter_facts(index, counter)
    for producer in program.source.producers:
        if producer.name == name:
            yield _producer_facts(index, producer)
    kernel = program.kernels.get(name) or index.specs.kernels.get(name)
    if kernel is not None:
        yield kernel_facts(index, kernel)
    if name in index.steps:
        yield _step_facts(index, index.steps[name])
    for block in visible_blocks(index.specs, index.program).values():
        if block.name == name:
            yield _block_facts(index, block)
    if name in {s.name for s in index.compiled.schedule.resets}:
        yield _reset_facts(index, name)
    launches = _launches(name, index)
    if kernel is None or name in index.launches:
        yield from (launch_facts(index, n) for n in launches)
    for fused in _fused(name, index) if not launches else ():
        yield device_facts(index, *index.fused[fused])


def _launches(name: str, index: Index) -> list[Launch]:
    """The launch of that qualified name, else all whose name ends with it (`l1` for `train.forward.l1`)."""
    if name in index.launches:
        return [index.launches[name]]
    return [n for n in index.launches.values() if n.name.endswith(f".{name}")]


def _fused(name: str, index: Index) -> list[str]:
    """The device launch of that name, else all whose name ends with it (`fused_2`)."""
    return [name] if name in index.fused else [n for n in index.fused if n.endswith(f".{name}")]


def _known(index: Index) -> list[str]:
    program = index.compiled.laid_out.program
    return [
        *index.slots,
        *index.views,
        *index.tensors,
        *(c.name for c in program.counters),
        *(p.name for p in program.source.producers),
        *index.specs.kernels,
        *index.steps,
        *(s.name for s in index.compiled.schedule.resets),
        *visible_blocks(index.specs, index.program),
        *index.launches,
        *(n.partition(".")[2] for n in index.launches),
        *index.fused,
    ]


def _counter_facts(index: Index, counter: Counter) -> Facts:
    place = index.compiled.laid_out.places[counter.name]
    uses = index.uses_of(counter.name)
    rows = (
        row("index", f"{place.offset} of `counters`, 8 bytes"),
        row("advances", f"by 1 in the ingest of step {counter.advance}" if counter.advance else "never"),
        row("consumers", *([str(u) for u in uses] or ["no launch reads it"])),
        row("reset", counter.reset),
    )
    return facts(f"counter {counter.name} of {index.program}", rows, counter.at)


def _producer_facts(index: Index, producer: spec.Producer) -> Facts:
    observed = [
        f"{o.output} → {o.slot}"
        + (f"[{o.element}]" if index.slots[o.slot].count > 1 else "")
        + f" at scratch {o.position}"
        for o in index.compiled.laid_out.program.observations
        if o.producer == producer.name
    ]
    launches = [n.name for n in index.launches.values() if n.producer == producer.name]
    rows = (
        row("doc", producer.doc),
        row("kernel", producer.kernel),
        row("observes", *observed),
        row("launches", *(launches or ["in no step"])),
        row("retired", producer.retired or ""),
    )
    return facts(f"producer {producer.name} of {index.program}", rows, producer.at)


def _step_facts(index: Index, step: ScheduledStep) -> Facts:
    declared = next(s for s in index.compiled.laid_out.program.steps if s.name == step.name)
    source = next((s for s in index.compiled.laid_out.program.source.steps if s.name == step.name), None)
    slots = dict.fromkeys(o.slot for o in declared.observations)
    rows = (
        row("doc", source.doc if source else ""),
        row("launches", f"{step.declared} declared → {len(step.launches)} on the device"),
        row("repeat", "" if declared.repeat is None else f"{declared.repeat} by default"),
        row("folds", ", ".join(slots)),
        row("order", *(n.name for n in step.launches)),
    )
    return facts(f"step {step.name} of {index.program}", rows, declared.at)


def _block_facts(index: Index, block: spec.Block) -> Facts:
    inside = [n.name for n in index.launches.values() if block.name in _uses_of_blocks(index, n)]
    rows = (
        row("doc", block.doc),
        row("formals", ", ".join(block.formals)),
        row("locals", ", ".join(b.name for b in block.locals)),
        row("launches", *(inside or ["no step uses it"])),
    )
    return facts(f"block {block.name} of {index.program}", rows, block.at)


def _uses_of_blocks(index: Index, launch: Launch) -> set[str]:
    """The names of the blocks that a launch comes out of, found by where their items are written."""
    return {
        block.name
        for block in visible_blocks(index.specs, index.program).values()
        if any(item.at == launch.at for item in block.items)
    }


def _reset_facts(index: Index, policy: str) -> Facts:
    program = index.compiled.laid_out.program
    live = [t for t in program.tensors if t.reset == policy and t.retired is None]
    rows = (
        row("call", f'trainer.reset("{policy}")'),
        row("slots", *(s.name for s in program.slots if s.reset == policy and s.retired is None)),
        row("params", *(f"{t.name}, with its moments" for t in live if t.role == "param")),
        row("buffers", *(t.name for t in live if t.role == "buffer")),
        row("counters", *(c.name for c in program.counters if c.reset == policy)),
    )
    launch = next(s.launches[0] for s in index.compiled.schedule.resets if s.name == policy)
    emitted = [f"launches/{launch.entry}.cu", f"system/reset_{policy}/reset.cuh"]
    return facts(f"reset policy {policy} of {index.program}", rows, None, emitted)


def _explain_pair(a: str, b: str, indexes: Sequence[Index]) -> list[Facts]:
    found = []
    for index in indexes:
        firsts, thens = _sides(a, index), _sides(b, index)
        for first, first_launches in firsts:
            for then, then_launches in thens:
                if first != then and first_launches[0].step == then_launches[0].step:
                    found.append(_pair_facts(index, (first, first_launches), (then, then_launches)))
    if found:
        return found
    for name in (a, b):
        if not any(_sides(name, index) for index in indexes):
            known = [n for i in indexes for n in (*i.launches, *i.fused)]
            short = [n.partition(".")[2] for n in known]
            raise _switched_off(name, indexes) or _unknown(name, [*known, *short])
    help = "name two different launches of one step"
    raise fail(SpecError, "FH290", f"{a} and {b} never run in one step", help=help)


Side = tuple[str, tuple[Launch, ...]]


def _sides(name: str, index: Index) -> list[Side]:
    """The launches of one end of a pair: a declared launch, all of a device launch, or those of a kernel."""
    if name in index.launches:
        return [(name, (index.launches[name],))]
    if name in index.fused:
        return [(name, members(index.fused[name][1]))]
    fused = [(n, members(index.fused[n][1])) for n in _fused(name, index)]
    declared = [(n.name, (n,)) for n in _launches(name, index)]
    by_kernel = [(n.name, (n,)) for n in index.launches.values() if n.kernel.kernel == name]
    return list(dict(declared or fused or by_kernel).items())


def _pair_facts(index: Index, first: Side, then: Side) -> Facts:
    (a, mine), (b, yours) = first, then
    edges = index.graphs[mine[0].step].edges
    path = _path(edges, mine, yours)
    back = [] if path else _path(edges, yours, mine)
    if not path and not back:
        return _independent(index, first, then)
    before, after = (first, then) if path else (then, first)
    chain = path or back
    direct = len(chain) == 1
    verdict = f"{before[0]} ends before {after[0]} starts"
    rows = [row("order", verdict + ("" if direct else f", through {len(chain) - 1} launches"))]
    rows.append(row("because", *(f"{e.before} → {e.after}  {e.kind} {e.reason}" for e in chain)))
    touched = [f"{kind} {text}" for m in before[1] for y in after[1] for kind, text in conflicts(m, y)]
    if not direct:
        rows.append(
            row("themselves", *(dict.fromkeys(touched) or ["share no bytes that one of them writes"]))
        )
    elif len(touched) > 1:
        rows.append(row("shared bytes", *dict.fromkeys(touched)))
    rows.append(row("device", *_devices(index, first, then)))
    return facts(f"{a} -> {b} of {index.program}", rows, None)


def _independent(index: Index, first: Side, then: Side) -> Facts:
    (a, mine), (b, yours) = first, then
    common = sorted({text for m in mine for y in yours for text in shared_reads(m, y)})
    rows = (
        row("order", "none: they may run side by side"),
        row("because", "no byte that one of them writes is touched by the other, nor by anything between"),
        row("both read", ", ".join(common)),
        row("device", *_devices(index, first, then)),
    )
    return facts(f"{a} -> {b} of {index.program}", rows, None)


def _devices(index: Index, first: Side, then: Side) -> Iterator[str]:
    homes = [{n.name: n for m in side[1] for n in index.homes[m.name].launches} for side in (first, then)]
    both = sorted(homes[0].keys() & homes[1].keys())
    if both:
        yield f"both in {', '.join(both)}: one device launch"
        return
    for (name, _), home in zip((first, then), homes, strict=True):
        yield f"{name} in {', '.join(f'{n} (lane {f.lane})' for n, f in home.items())}"
    lanes = {f.lane for home in homes for f in home.values()}
    if len(lanes) == 1:
        yield "on one lane, so the device runs them in the schedule's order"


def _path(edges: Iterable[Edge], first: Sequence[Launch], then: Sequence[Launch]) -> list[Edge]:
    """The fewest hazards that lead from any of `first` to any of `then`."""
    after: dict[str, list[Edge]] = {}
    for e in edges:
        after.setdefault(e.before, []).append(e)
    goals = {n.name for n in then}
    came: dict[str, Edge | None] = {n.name: None for n in first}
    queue = list(came)
    for name in queue:  # grows while it is walked
        for e in after.get(name, ()):
            if e.after in goals:
                return [*_back(came, name), e]
            if e.after not in came:
                came[e.after] = e
                queue.append(e.after)
    return []


def _back(came: dict[str, Edge | None], name: str) -> list[Edge]:
    chain: list[Edge] = []
    while (edge := came[name]) is not None:
        chain.append(edge)
        name = edge.before
    return chain[::-1]

"""Producers: their `foreach` unfolded, and the observations that they write in scratch order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from foxhunt.ir.findings import Findings
from foxhunt.ir.names import Names, Scope
from foxhunt.ir.shapes import Signature
from foxhunt.ir.sizes import Sizes
from foxhunt.ir.types import Observation, Range
from foxhunt.spec import models as spec

MAX_FOREACH = 1_000_000


def scratch_name(producer: str, output: str) -> str:
    """The entity of one output's observations: all foreach indices, one after another."""
    return f"scratch.{producer}.{output}"


@dataclass(frozen=True)
class ResolvedProducer:
    """A producer with its foreach indices, and for each output the slot range of each index."""

    declared: spec.Producer
    sign: Signature | None
    """None for a retired producer whose kernel is gone."""
    reads: Signature | None
    """The signature without the outputs: what `args` must give."""
    indices: tuple[Mapping[str, int], ...]
    order: tuple[str, ...]
    """Outputs in scratch order."""
    slots: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)

    def arguments(self, index: int) -> dict[str, str | tuple[str, ...]]:
        """The references of foreach index `index`, by parameter."""
        args = self.declared.args.items()
        return {name: given.each[index] if isinstance(given, spec.Each) else given for name, given in args}

    def outputs(self, index: int) -> Iterator[tuple[str, Range]]:
        """Each output with the slot elements that its observation of foreach index `index` is for."""
        for output in self.order:
            yield output, self.slots[output][index]

    def observations(self) -> Iterator[Observation]:
        """Output-major: for each output all foreach indices, for each index all elements."""
        degenerate = self.sign is not None and self.sign.kernel.degenerate == "zero"
        for order, output in enumerate(self.order):
            for index, found in enumerate(self.slots[output]):
                for element in range(found.offset, found.offset + found.count):
                    yield Observation(
                        producer=self.declared.name,
                        output=output,
                        output_order=order,
                        index=index,
                        slot=found.base,
                        element=element,
                        degenerate_zero=degenerate,
                        retired=self.declared.retired is not None,
                    )


def foreach_indices(
    producer: spec.Producer, sizes: Sizes, findings: Findings
) -> tuple[dict[str, int], ...] | None:
    """Every combination of the foreach indices; the first name in alphabetical order varies slowest."""
    ranges = {}
    for name in sorted(producer.foreach):
        at = producer.spot("foreach", name)
        if name in sizes.dims:
            findings.add("FH202", f"foreach index {name} is also a dim", at, "choose another index name")
        count = sizes.size(producer.foreach[name], at)
        if count is None:
            return None
        if not 1 <= count <= MAX_FOREACH:
            message = f"foreach {name} of producer {producer.name} has {count} values"
            findings.add("FH217", message, at, f"it must have 1 to {MAX_FOREACH}")
            return None
        ranges[name] = range(count)
    total = 1
    for values in ranges.values():
        total *= len(values)
    if total > MAX_FOREACH:
        message = f"foreach of producer {producer.name} has {total} combinations"
        findings.add("FH216", message, producer.spot("foreach"), f"at most {MAX_FOREACH}")
        return None
    return tuple(dict(zip(ranges, values, strict=True)) for values in product(*ranges.values()))


def resolve_producer(
    producer: spec.Producer,
    sign: Signature | None,
    names: Names,
    findings: Findings,
) -> ResolvedProducer | None:
    """The producer with its outputs bound to slots; None after a finding."""
    indices = foreach_indices(producer, names.sizes, findings)
    if indices is None or (sign is not None and not _outputs_match(producer, sign, findings)):
        return None
    if not _one_each(producer, len(indices), findings):
        return None
    order = sign.written if sign is not None else tuple(sorted(producer.out))
    slots: dict[str, tuple[Range, ...]] = {}
    for output in order:
        found = _output_slots(producer, output, indices, names, findings)
        if found is None:
            return None
        slots[output] = found
    reads = _without(sign, producer.out) if sign is not None else None
    return ResolvedProducer(producer, sign, reads, indices, order, slots)


def _one_each(producer: spec.Producer, count: int, findings: Findings) -> bool:
    """Whether every `each` has a reference for every foreach index."""
    before = len(findings.found)
    for name, given in producer.args.items():
        if isinstance(given, spec.Each) and len(given.each) != count:
            message = f"producer {producer.name}: {name} has {len(given.each)} references for {count} indices"
            hint = "`each` lists one reference for every index of `foreach`"
            findings.add("FH213", message, producer.spot("args", name), hint)
    return len(findings.found) == before


def _without(sign: Signature, outputs: Mapping[str, str]) -> Signature:
    params = {k: v for k, v in sign.kernel.params.items() if k not in outputs}
    return replace(sign, kernel=sign.kernel.model_copy(update={"params": params}))


def _outputs_match(producer: spec.Producer, sign: Signature, findings: Findings) -> bool:
    """A producer writes its observations and nothing else."""
    before = len(findings.found)
    params = sign.kernel.params
    for output in producer.out:
        if output not in params or params[output].access == "read":
            message = f"producer {producer.name}: kernel {sign.kernel.kernel} writes no {output}"
            findings.add(
                "FH257", message, producer.spot("out", output), findings.nearest(output, sign.written)
            )
    for output in sign.written:
        param = params[output]
        if output not in producer.out:
            message = f"producer {producer.name}: `out` says nothing of {output}, which its kernel writes"
            findings.add("FH257", message, producer.spot("out"), "a producer writes only observations")
        elif (
            param.access != "write"
            or param.many
            or param.dtype != "f32"
            or param.kind not in ("data", "slot")
        ):
            message = f"producer {producer.name}: {output} is no observation"
            findings.add(
                "FH257", message, producer.spot("out", output), "the parameter must `write` f32 data"
            )
    return len(findings.found) == before


def _output_slots(
    producer: spec.Producer,
    output: str,
    indices: tuple[dict[str, int], ...],
    names: Names,
    findings: Findings,
) -> tuple[Range, ...] | None:
    at = producer.spot("out", output)
    retired = producer.retired is not None
    found = []
    for values in indices:
        scope = Scope(names, indices=values)
        reference = scope.resolve(producer.out[output], at, retired=retired)
        if reference is None:
            return None
        if reference.slot is None or reference.slot.source != "producer":
            what = f"slot of source {reference.slot.source}" if reference.slot else reference.kind
            message = f"producer {producer.name} feeds {producer.out[output]}, a {what}"
            findings.add("FH257", message, at, "a producer feeds slots of source producer")
            return None
        found.append(reference.ranges[0])
    slot = names.entities[found[0].base].slot
    assert slot is not None
    if not _covers(found, slot.count):
        message = f"producer {producer.name}: {output} does not cover {slot.name} element by element"
        hint = f"over all foreach indices it must give elements 0 to {slot.count - 1} in that order"
        findings.add("FH257", message, at, hint)
        return None
    return tuple(found)


def _covers(found: list[Range], count: int) -> bool:
    position = 0
    for part in found:
        if part.base != found[0].base or part.offset != position or part.count != found[0].count:
            return False
        position += part.count
    return position == count

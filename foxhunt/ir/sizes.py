"""Dims, variants, and the sizes written with them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import prod

from foxhunt.diagnostics import Location
from foxhunt.expr import ExprError, evaluate, symbols
from foxhunt.ir.findings import Findings
from foxhunt.spec import models as spec

LIMIT = 2**63
MAX_GRID = 2**31 - 1
"""Blocks of one launch that a CUDA grid can hold."""


class Sizes:
    """Evaluates sizes over the dims of one program and one variant; a mistake is a finding and gives None."""

    def __init__(self, findings: Findings, dims: Mapping[str, int]) -> None:
        """Over `dims`, reporting to `findings`."""
        self.findings = findings
        self.dims = dict(dims)

    def size(
        self, text: spec.Size, at: Location, extra: Mapping[str, int] | None = None, literal: bool = False
    ) -> int | None:
        """A size. Numbers must have names: an integer other than 1 is refused unless `literal`."""
        env = {**self.dims, **extra} if extra else self.dims
        try:
            value = env[text] if isinstance(text, str) and text in env else evaluate(text, env)
            unnamed = not literal and value != 1 and (isinstance(text, int) or not symbols(text))
        except ExprError as error:
            self.findings.add("FH206", f"size `{text}`: {error.message}", error.at(at), error.help)
            return None
        if unnamed:
            self.findings.add(
                "FH207",
                f"the number {text} has no name",
                at,
                f"name it under dims, for example `{{COUNT: {text}}}`, and write the name here",
            )
            return None
        return value

    def shape(self, entry: spec.Entry, shape: spec.Shape, *path: str) -> tuple[int, ...] | None:
        """All sizes of a shape, whose elements must be addressable in 64-bit bytes."""
        values = [self.size(size, entry.spot(*path, str(k))) for k, size in enumerate(shape)]
        known = tuple(v for v in values if v is not None)
        return known if len(known) == len(values) else None


def evaluate_dims(
    program: spec.Program, variant: str, overrides: Mapping[str, int], findings: Findings
) -> dict[str, int]:
    """Every dim in declaration order, for one variant and the overrides on top of it.

    A dim that cannot be evaluated, or is 0 where a shape needs it, is a finding and counts as 1, so that one
    mistake is not reported twice.
    """
    for name, changed in program.variants.items():
        for dim in changed:
            if dim not in program.dims:
                at = program.spot("variants", name, dim)
                message = f"variant {name} sets the unknown dim {dim}"
                findings.add("FH201", message, at, findings.nearest(dim, program.dims))
    if variant != "default" and variant not in program.variants:
        message = f"program {program.program} has no variant {variant}"
        findings.add("FH201", message, program.at, findings.nearest(variant, program.variants))
    for dim in overrides:
        if dim not in program.dims:
            message = f"program {program.program} has no dim {dim} to set"
            findings.add("FH201", message, program.at, findings.nearest(dim, program.dims))
    chosen = program.variants.get(variant, {})
    texts = {d: overrides.get(d, chosen.get(d, text)) for d, text in program.dims.items()}
    places = {
        d: program.spot("variants", variant, d) if d in chosen else program.spot("dims", d) for d in texts
    }
    return _evaluate_all(texts, places, _extents(program), findings)


def _extents(program: spec.Program) -> frozenset[str]:
    """The names in the sizes of whatever has elements."""
    buffers = [*program.buffers, *(b for block in program.blocks for b in block.locals)]
    shapes = [*(p.shape for p in program.params), *(b.shape for b in buffers)]
    found: set[str] = set()
    for size in [*(s.count for s in program.isv), *(size for shape in shapes for size in shape)]:
        with suppress(ExprError):  # reported where the size is evaluated
            found.update(symbols(size))
    return frozenset(found)


def _evaluate_all(
    texts: Mapping[str, spec.Size],
    places: Mapping[str, Location],
    extents: frozenset[str],
    findings: Findings,
) -> dict[str, int]:
    """Depth first without recursion, as a chain of dims may be long; a cycle is reported by its names."""
    values: dict[str, int] = {}
    failed: set[str] = set()
    for first in texts:
        path = [first] if first not in values and first not in failed else []
        while path:
            dim = path[-1]
            try:
                wanted = next((s for s in symbols(texts[dim]) if s in texts and s not in values), None)
                if wanted is None:
                    values[dim] = evaluate(texts[dim], values)
                    if not values[dim] and dim in extents:
                        help = "every dim of a shape must be at least 1"
                        findings.add("FH217", f"dim {dim} is 0", places[dim], help)
                        values[dim] = 1
                    path.pop()
                    continue
            except ExprError as error:
                message = f"dim {dim}: {error.message}"
                hint = error.help or ""
                findings.add("FH206", message, error.at(places[dim]), hint)
                wanted = dim
            else:
                if wanted not in path and wanted not in failed:
                    path.append(wanted)
                    continue
                if wanted in path:
                    cycle = " → ".join([*path[path.index(wanted) :], wanted])
                    findings.add("FH208", f"dims in a circle: {cycle}", places[wanted])
            failed.update(path)
            path = []
    return {d: values.get(d, 1) for d in texts}


def check_bytes(shape: tuple[int, ...], size: int, what: str, at: Location, findings: Findings) -> bool:
    """Whether the elements of `shape` are addressable: between one element and 2^63 bytes."""
    count = prod(shape)
    if count * size >= LIMIT:
        message = f"{what} has {count} elements of {size} bytes, which passes the limit of 2^63 - 1 bytes"
        findings.add("FH216", message, at, "lower a dim")
    elif count == 0:
        findings.add("FH217", f"{what} has 0 elements", at, "every dim of a shape must be at least 1")
    else:
        return True
    return False

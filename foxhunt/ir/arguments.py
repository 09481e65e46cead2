"""What each parameter of one launch is bound to: kinds, access, element types, shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foxhunt.diagnostics import Location
from foxhunt.ir.findings import Findings
from foxhunt.ir.names import Kind, Reference, Scope, is_number
from foxhunt.ir.shapes import Signature, grid, unify
from foxhunt.ir.types import Access, Argument, Launch
from foxhunt.spec import models as spec

Given = Mapping[str, object]
_KINDS: dict[str, Kind] = {"data": "tensor", "slot": "slot", "bound": "slot", "counter": "counter"}
_WORDS = {"tensor": "a param or buffer", "slot": "a slot", "counter": "a counter"}
_WRITABLE = {
    "host": "host slots are set from Python; a kernel that writes one would race with that",
    "producer": "the applicator feeds it; give the slot `source: kernel` to write it here",
}


@dataclass(frozen=True)
class Site:
    """The place of one launch in the specs: its qualified name, its position, its arguments' positions."""

    name: str
    step: str
    at: Location
    entry: spec.Entry
    section: str = "args"

    def spot(self, param: str) -> Location:
        """The position of the argument `param`."""
        return self.entry.spot(self.section, param)


def references(
    site: Site, key: str, given: object, scope: Scope, findings: Findings, bound: bool = False
) -> list[Reference] | None:
    """The references of one argument, a name or a list of names; None after a finding."""
    texts = given if isinstance(given, tuple | list) else (given,)
    found = []
    for text in texts:
        if not isinstance(text, str) or is_number(text):
            code = "FH215" if bound else "FH205"
            what = "a bound" if bound else "an argument"
            message = f"{site.name}: the literal {text} stands where {key} takes {what}"
            hint = "a number is frozen into the graph: make it a slot, or a const of the kernel"
            findings.add(code, message, site.spot(key), hint)
            return None
        reference = scope.resolve(text, site.spot(key))
        if reference is None:
            return None
        found.append(reference)
    return found


def bind_arguments(
    sign: Signature, given: Given, site: Site, scope: Scope, findings: Findings
) -> list[Argument] | None:
    """One argument for every parameter that `given` names, sorted; None after a finding."""
    before = len(findings.found)
    params = sign.kernel.params
    _check_keys(sign, given, site, findings)
    bound = [
        _argument(name, param, given[name], site, scope, findings)
        for name, param in sorted(params.items())
        if name in given and param.kind != "rng"
    ]
    known = [a for a in bound if a is not None]  # an argument may be missing through an earlier finding
    return known if len(findings.found) == before and len(known) == len(bound) else None


def _check_keys(sign: Signature, given: Given, site: Site, findings: Findings) -> None:
    params = sign.kernel.params
    wanted = {n for n, p in params.items() if p.kind != "rng"}
    for name in given:
        if name in params and name not in wanted:
            message = f"{site.name}: {name} is supplied by the compiler"
            findings.add("FH213", message, site.spot(name), "remove the argument")
        elif name not in wanted:
            message = f"{site.name}: kernel {sign.kernel.kernel} has no parameter {name}"
            findings.add("FH213", message, site.spot(name), findings.nearest(name, wanted))
    missing = sorted(wanted - given.keys())
    if missing:
        message = f"{site.name}: kernel {sign.kernel.kernel} also needs {', '.join(missing)}"
        findings.add("FH213", message, site.at, f"add `{missing[0]}: <name>` to {site.section}")


def _argument(
    name: str, param: spec.KernelParam, given: object, site: Site, scope: Scope, findings: Findings
) -> Argument | None:
    found = references(site, name, given, scope, findings, param.kind == "bound")
    if found is None:
        return None
    at = site.spot(name)
    for reference in found:
        problem, code, hint = _misfit(param, reference)
        if problem:
            findings.add(code, f"{site.name}: {name} takes {problem}", at, hint)
            return None
    ranges = tuple(r for reference in found for r in reference.ranges)
    if not param.many and len(ranges) != 1:
        message = f"{site.name}: {name} takes one range, not {len(ranges)}"
        hint = "only a `many` parameter takes a list, or a group whose members do not stand together"
        findings.add("FH214", message, at, hint)
        return None
    if sum(r.count for r in ranges) == 0:
        findings.add("FH217", f"{site.name}: {name} has 0 elements", at, "a launch needs something to do")
        return None
    slot = found[0].slot
    floor = slot.floor if slot is not None and param.kind == "bound" and slot.floor is not None else 0.0
    return Argument(name, param.kind, Access(param.access), param.many, ranges, None, floor)


def _misfit(param: spec.KernelParam, reference: Reference) -> tuple[str, str, str]:
    """Why a reference does not fit a parameter, the code and the mend; empty when it fits."""
    text = reference.ranges[0].text if reference.ranges else ""
    kind, slot = param.kind, reference.slot
    if reference.kind != _KINDS[kind]:
        code = "FH215" if kind == "bound" else "FH214"
        hint = "a limit comes from a slot that has a `floor`" if kind == "bound" else ""
        return f"{_WORDS[_KINDS[kind]]}, but {text} is {_WORDS[reference.kind]}", code, hint
    if kind == "bound" and slot is not None and slot.source != "producer":
        hint = "only an observed slot can be inactive until it is known"
        return f"a bound, but slot {text} has source {slot.source}", "FH215", hint
    if kind == "bound" and (slot is None or slot.floor is None):
        return f"a bound, but slot {text} has no floor", "FH215", "give the slot a `floor:`"
    if kind == "slot" and param.access != "read" and slot is not None and slot.source != "kernel":
        return f"a slot to write, but {text} has source {slot.source}", "FH254", _WRITABLE[slot.source]
    wrong = next((r for r in reference.ranges if r.dtype.name != param.dtype), None)
    if kind == "data" and wrong is not None:
        return f"{param.dtype}, but {wrong.text} is {wrong.dtype.name}", "FH212", ""
    return "", "", ""


def launch_of(
    sign: Signature,
    arguments: list[Argument],
    bind: Mapping[str, int],
    site: Site,
    findings: Findings,
    blocks: tuple[str, ...] = (),
    producer: str | None = None,
) -> Launch | None:
    """The launch with its shapes unified and its grid evaluated; None after a finding."""
    before = len(findings.found)
    unknown = [s for s in bind if s not in sign.symbols]
    for symbol in unknown:
        message = f"{site.name}: kernel {sign.kernel.kernel} has no symbol {symbol}"
        hint = findings.nearest(symbol, sign.symbols)
        findings.add("FH211", message, site.entry.spot("bind", symbol), hint)
    spots = {a.name: site.spot(a.name) for a in arguments} | {"": site.at}
    dims = unify(sign, {a.name: a.ranges for a in arguments}, bind, site.name, spots, findings)
    if dims is None or len(findings.found) > before:
        return None
    extent = 1 if sign.kernel.kind == "statistic" else grid(sign, dims, site.name, site.at, findings)
    if extent is None:
        return None
    random = [n for n, p in sign.kernel.params.items() if p.kind == "rng"]
    supplied = [Argument(n, "rng", Access.READ, False, ()) for n in random]
    return Launch(
        name=site.name,
        step=site.step,
        kernel=sign.kernel,
        arguments=tuple(sorted([*arguments, *supplied], key=lambda a: a.name)),
        dims=tuple(sorted(dims.items())),
        grid=extent,
        block=sign.kernel.block,
        at=site.at,
        producer=producer,
        blocks=blocks,
    )

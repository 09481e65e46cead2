"""What `foxhunt verify` checks of a program's runs: access, orders, fusion, replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from foxhunt.backend.base import Backend
from foxhunt.diagnostics import BackendError, Diagnostic, Location
from foxhunt.pipeline import Compiled
from foxhunt.verify.orders import orders
from foxhunt.verify.runs import (
    Baseline,
    DifferenceError,
    Form,
    Script,
    State,
    declared,
    digest,
    first_difference,
    members,
    place_of,
    state,
    state_difference,
    writers,
)

PER_GRAPH = (1, 2, 3)
"""How many executions one captured graph holds, each in turn."""


@dataclass(frozen=True)
class Check:
    """One line of the table: what was done, on how much, and what was found."""

    name: str
    extent: str
    findings: tuple[Diagnostic, ...] = ()


def check_access(baseline: Baseline) -> Check:
    """Each launch alone in a debug build: canaries in what it declares to write, images of all else."""
    script = baseline.script
    extent = f"{_launches(baseline.form)} launches × {script.executions * script.rounds}"
    findings: list[Diagnostic] = []
    try:
        findings += _compared(baseline, baseline.form, "FH702", "a debug build", debug=True)
    except BackendError as error:
        for d in error.diagnostics:
            findings.append(replace(d, location=d.location or _place(baseline.form, d.message)))
    return Check("declared against actual access", extent, tuple(findings))


def check_finite(baseline: Baseline) -> Check:
    """No NaN or inf in what launches leave, observations and what `health: {ignore}` names apart; a warning,
    as some kernels mean something by one.
    """
    extent = f"{_launches(baseline.form)} launches × {baseline.script.executions * baseline.script.rounds}"
    if baseline.strange is None:
        return Check("finite", extent)
    output, number, element, value = baseline.strange
    message = (
        f"{output.launch.name} is the first to leave {_value(value)}: element {element} of "
        f"{output.text} ({output.argument}), execution {number + 1}"
    )
    at = output.launch.at if declared(output.launch) else None
    help = "Look at what it reads: all that ran before it left finite numbers."
    return Check("finite", extent, (Diagnostic("FH709", message, at, help, "warning"),))


def check_orders(baseline: Baseline, compiled: Compiled, seed: int, count: int) -> Check:
    """Unfused, in other legal orders."""
    forms = [(name, replace(baseline.form, plan=plan)) for name, plan in orders(compiled, seed, count)]
    findings = _first(baseline, forms, "FH701", "with nothing fused, in {}")
    return Check("other legal orders", _runs(forms, baseline), findings)


def check_fusion(baseline: Baseline, compiled: Compiled, form: Form, seed: int, count: int) -> Check:
    """The device launches as they ship, as scheduled and in other legal orders."""
    forms = [(name, replace(form, plan=plan)) for name, plan in orders(compiled, seed, count)]
    findings = _first(baseline, forms, "FH702", "fused, in {}")
    return Check("fused against unfused", _runs(forms, baseline), findings)


def check_replay(baseline: Baseline, form: Form, name: str, make: Callable[[], Backend]) -> Check:
    """On a backend as in training: all launches of a step at once, 1, 2 and 3 executions a captured graph."""
    ks = PER_GRAPH if name == "cuda" else (1,)
    shown = f"{name}, K = {', '.join(map(str, ks))}" if name == "cuda" else name
    findings: list[Diagnostic] = []
    for k in ks:
        reached = replayed(form, baseline.script, make(), k)
        found = state_difference(baseline.state, reached, across=name != "host")
        if found and not findings:
            findings.append(
                _state_finding(form, baseline.state, reached, found, f"replayed on {name}, K = {k}")
            )
    return Check("replay against eager", shown, tuple(findings))


def replayed(form: Form, script: Script, backend: Backend, per_graph: int) -> State:
    """What a run on a backend leaves, `per_graph` executions a graph."""
    with form.trainer(backend, script.seed) as trainer:
        script.play(trainer, per_graph)
        return state(trainer)


def _first(baseline: Baseline, forms: list[tuple[str, Form]], code: str, how: str) -> tuple[Diagnostic, ...]:
    """The finding of the first form that differs: what makes one differ makes most of them differ."""
    for name, form in forms:
        found = tuple(_compared(baseline, form, code, how.format(name)))
        if found:
            return found
    return ()


def _compared(
    baseline: Baseline, form: Form, code: str, how: str, debug: bool = False
) -> Iterator[Diagnostic]:
    try:
        reached = baseline.compare(form, debug)
    except DifferenceError as difference:
        yield _launch_finding(baseline, difference, code, how)
        return
    found = state_difference(baseline.state, reached)
    if found:
        yield replace(_state_finding(form, baseline.state, reached, found, how), code=code)


_MENDS = {
    "FH701": "Declare what the launch touches; a launch may read only what it is given, not what was there.",
    "FH702": "Let no result depend on the grid, on other tasks of a launch, or on memory that nothing wrote.",
    "FH703": "Read in each launch what may change; let no result depend on timing or on the device.",
}


def _launch_finding(baseline: Baseline, difference: DifferenceError, code: str, how: str) -> Diagnostic:
    output, number = difference.output, difference.execution
    at = output.launch.at if declared(output.launch) else None
    usual = baseline.values(output.key, number)
    if digest(usual) != baseline.digests[output.key, number]:
        message = f"{output.launch.name} leaves other bits in {output.text} each time, in one same order"
        return Diagnostic(code, message, at, "Let the kernel keep nothing from one launch to the next.")
    element = first_difference(usual, difference.found)
    assert element is not None, "digests differ"
    message = (
        f"{output.launch.name} leaves {_value(difference.found[element])} in element {element} of "
        f"{output.text} ({output.argument}) {how}, {_value(usual[element])} alone in declared order "
        f"(execution {number + 1})"
    )
    return Diagnostic(code, message, at, _MENDS[code])


def _state_finding(form: Form, usual: State, reached: State, found: tuple[str, int], how: str) -> Diagnostic:
    buffer, element = found
    place = place_of(form.plan, buffer, element)
    named = list(writers(form.schedule, buffer, element))
    by = f", written by {named[0].name}," if named else ""
    message = (
        f"{place}{by} is {_value(reached[buffer][element])} {how}, "
        f"{_value(usual[buffer][element])} alone in declared order"
    )
    at = named[0].at if named and declared(named[0]) else None
    return Diagnostic("FH703", message, at, _MENDS["FH703"])


def _value(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, np.floating) else str(value)


def _place(form: Form, message: str) -> Location | None:
    """Where the launch is declared that a backend's message names."""
    for _, launch in members(form.schedule).values():
        if declared(launch) and f"launch {launch.name} " in message:
            return launch.at
    return None


def _launches(form: Form) -> int:
    return sum(len(s.launches) for s in form.schedule.steps)


def _runs(forms: list[tuple[str, Form]], baseline: Baseline) -> str:
    script = baseline.script
    count = len(forms)
    return f"{count} order{'s' * (count > 1)} × {script.executions * script.rounds} steps of each kind"

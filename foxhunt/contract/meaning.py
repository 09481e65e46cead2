"""What a program's entries mean, one text a thing: kept in the manifest, so that compiled states compare."""

from __future__ import annotations

from collections.abc import Iterator

from foxhunt.contract.fingerprint import declared
from foxhunt.ir.types import LaidOutProgram, Launch
from foxhunt.ir.watch import ignored_names, policy
from foxhunt.spec import models as spec


def meanings(laid_out: LaidOutProgram) -> dict[str, str]:
    """`"<kind> <name>"` → what it means; kinds are those of `declared`, `producer` (by slot), `launch` and,
    where it changes no result, `ignore`.

    Nothing here depends on positions, dims, files or the machine, so that a difference is always one of
    meaning.
    """
    found = dict(declared(laid_out)) | dict(_producers(laid_out)) | dict(_launches(laid_out))
    if policy(laid_out.program) == "report":
        found["ignore"] = f"ignoring {', '.join(ignored_names(laid_out.program)) or 'nothing'}"
    return found


def _producers(laid_out: LaidOutProgram) -> Iterator[tuple[str, str]]:
    program = laid_out.program
    entries = {p.name: p for p in program.source.producers}
    listed: dict[str, list[str]] = {}
    for step in program.steps:
        for name in dict.fromkeys(o.producer for o in step.observations):
            listed.setdefault(name, []).append(step.name)
    for o in program.observations:
        if not o.retired:
            steps = ", ".join(listed.get(o.producer, ())) or "no step"
            text = f"{o.producer}.{o.output} = {_call(entries[o.producer])} in {steps}"
            yield f"producer {o.slot}", text


def _call(producer: spec.Producer) -> str:
    args = ", ".join(f"{name}={_text(value)}" for name, value in sorted(producer.args.items()))
    given = [f"{k}={v}" for k, v in sorted(producer.bind.items())]
    bind = f" with {', '.join(given)}" if given else ""
    indices = [f"{k} < {v}" for k, v in sorted(producer.foreach.items())]
    return f"{producer.kernel}({args}){bind}" + (f" for {', '.join(indices)}" if indices else "")


def _text(value: str | tuple[str, ...] | spec.Each) -> str:
    if isinstance(value, spec.Each):
        return f"each of {', '.join(map(_text, value.each))}"
    return value if isinstance(value, str) else f"[{', '.join(value)}]"


def _launches(laid_out: LaidOutProgram) -> Iterator[tuple[str, str]]:
    for step in laid_out.program.steps:
        for launch in step.launches:
            if launch.producer is None:
                yield f"launch {launch.name}", _launch(launch)


def _launch(launch: Launch) -> str:
    shown = []
    for argument in launch.arguments:
        names = [r.text for r in argument.ranges]
        if names:
            shown.append(f"{argument.name}={'[' + ', '.join(names) + ']' if argument.many else names[0]}")
    after = f" after {', '.join(launch.after)}" if launch.after else ""
    return f"{launch.kernel.kernel}({', '.join(shown)}){after}"

"""What a kernel's text is given: its generated signature (or `Args`), its constants, its source checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foxhunt.diagnostics import Diagnostic, EmissionError, Location, fail, sort_diagnostics
from foxhunt.dtypes import DTYPES
from foxhunt.emit import source
from foxhunt.emit.environment import Renderer
from foxhunt.emit.filters import f32, i64
from foxhunt.spec import models as spec

RESERVED = frozenset(("block", "ticket", "carry", "body", "Blk", "BLOCK", "Args", "Shared", *DTYPES))
ACCESSORS = {"read": "In", "write": "Out", "update": "Update"}


def accessor(param: spec.KernelParam) -> str:
    """The type that a body sees for one range of a parameter."""
    if param.kind == "bound":
        return "Bound"
    if param.kind == "rng":
        return "Rng"
    if param.kind == "counter" and param.access == "read":
        return "Counter"
    return f"{ACCESSORS[param.access]}<{DTYPES[param.dtype].ctype}>"


def param_type(name: str, param: spec.KernelParam) -> str:
    """The type of a whole parameter: `many` ones are tables."""
    return f"Many<{accessor(param)}, ROWS_{name}>" if param.many else accessor(param)


def describe(kernel: spec.Kernel, symbols: Sequence[str]) -> dict[str, Any]:
    """Template context of a signature: statics, rows, and the parameters in order, as {name, type}.

    `symbols` are all dims that launches of the kernel bind. Two parameters of one name are FH406.
    """
    params = [{"name": n, "type": param_type(n, p)} for n, p in sorted(kernel.params.items())]
    params += [
        {"name": n, "type": f"Out<{DTYPES[w.dtype].ctype}>"} for n, w in sorted(kernel.workspace.items())
    ]
    if kernel.tickets != 0:
        params.append({"name": "ticket", "type": "Ticket"})
    statics = [s for s in sorted(symbols) if s in kernel.static]
    params += [{"name": s, "type": "i64"} for s in sorted(symbols) if s not in kernel.static]
    rows = [n for n, p in sorted(kernel.params.items()) if p.many]
    names = [p["name"] for p in params] + statics + [f"ROWS_{r}" for r in rows] + sorted(kernel.consts)
    _refuse_clashes(kernel, names)
    return {"params": params, "statics": statics, "rows": rows}


def _refuse_clashes(kernel: spec.Kernel, names: Sequence[str]) -> None:
    taken = set(RESERVED - {"ticket"}) | ({"ticket"} if kernel.tickets == 0 else set())
    for name in names:
        if name in taken:
            raise fail(
                EmissionError,
                "FH406",
                f"kernel {kernel.kernel} has two things named `{name}` in its signature",
                at=kernel.at,
                help="parameters, workspaces, consts and shape symbols share one scope; rename one",
            )
        taken.add(name)


def constants(kernel: spec.Kernel) -> list[dict[str, str]]:
    """The `consts` of a kernel as {type, name, value}, by name."""
    return [
        {"type": "i64", "name": n, "value": i64(v)}
        if isinstance(v, int)
        else {"type": "f32", "name": n, "value": f32(v)}
        for n, v in sorted(kernel.consts.items())
    ]


def kernel_body(
    renderer: Renderer, kernel: spec.Kernel, symbols: Sequence[str], template: str, **extra: Any
) -> str:
    """The rendered text of one kernel template, checked, without the frame around it."""
    described = describe(kernel, symbols)
    context: dict[str, Any] = {"kernel": kernel, "consts": dict(kernel.consts), **extra}
    if kernel.kind == "statistic":
        context["arguments"] = renderer.render("base/arguments.j2", described).rstrip("\n")
    else:
        context["signature"] = renderer.render("base/signature.j2", described).rstrip("\n")
    body = renderer.render(template, context, wanted_by=kernel.at)
    if kernel.kind != "statistic" and not source.defines_shared(body):
        body += "\nstruct Shared {};\n"
    return body


def check_body(renderer: Renderer, template: str) -> None:
    """Refuse a kernel template that breaks a rule of the house (FH411 to FH416), naming every line."""
    path = renderer.templates.path(template)
    found = [
        Diagnostic(f.code, f.message, Location(path, f.line), f.help)
        for f in source.findings(renderer.templates.files.get(template, ""))
    ]
    if found:
        raise EmissionError(sort_diagnostics(found))

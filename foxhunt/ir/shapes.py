"""Kernel signatures, and the unification of their shapes with the shapes of arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from foxhunt.diagnostics import Location
from foxhunt.dtypes import DTYPES
from foxhunt.expr import ExprError, evaluate, symbols
from foxhunt.ir.findings import Findings
from foxhunt.ir.sizes import MAX_GRID, check_bytes
from foxhunt.ir.types import Range
from foxhunt.spec import models as spec

BLOCK = "BLOCK"
"""The kernel's threads per block, usable in its size expressions."""


class Axis(NamedTuple):
    """One element of a declared shape: a symbol to bind, an expression to check, or any rank (`...n`)."""

    kind: Literal["symbol", "size", "any"]
    text: str


@dataclass(frozen=True)
class Signature:
    """A kernel with its shapes taken apart. `symbols` are what a launch must know, sorted."""

    kernel: spec.Kernel
    shapes: Mapping[str, tuple[Axis, ...]]
    symbols: tuple[str, ...]
    consts: Mapping[str, int]
    written: tuple[str, ...]
    """The written parameters in output order."""


@dataclass
class Binding:
    """Symbols bound so far, and which parameter bound each."""

    values: dict[str, int]
    origin: dict[str, str] = field(default_factory=dict)


def signature(kernel: spec.Kernel, findings: Findings) -> Signature | None:
    """The signature of a well-formed kernel; mistakes in it are findings."""
    before = len(findings.found)
    consts = {k: v for k, v in kernel.consts.items() if isinstance(v, int)} | {BLOCK: kernel.block}
    shapes = {n: _axes(kernel, p, n, consts, findings) for n, p in kernel.params.items() if p.kind != "rng"}
    names = _all_symbols(kernel, shapes, findings) - consts.keys()
    written = tuple(sorted(n for n, p in kernel.params.items() if p.access != "read"))
    _check_kernel(kernel, names, written, findings)
    if len(findings.found) > before:
        return None
    return Signature(kernel, shapes, tuple(sorted(names)), consts, kernel.outputs or written)


def _axes(
    kernel: spec.Kernel,
    param: spec.KernelParam,
    name: str,
    consts: Mapping[str, int],
    findings: Findings,
) -> tuple[Axis, ...]:
    axes = []
    for k, size in enumerate(param.shape):
        at = kernel.spot("params", name, "shape", str(k))
        text = str(size)
        if text.startswith("..."):
            axes.append(Axis("any", text[3:].strip()))
        elif text.isidentifier() and text not in consts:
            axes.append(Axis("symbol", text))
        else:
            if text.strip().isdigit() and int(text) != 1:
                findings.add(
                    "FH207", f"the number {text} has no name", at, "name it under the kernel's consts"
                )
            axes.append(Axis("size", text))
    return tuple(axes)


def _all_symbols(kernel: spec.Kernel, shapes: Mapping[str, tuple[Axis, ...]], findings: Findings) -> set[str]:
    names = set(kernel.static)
    sizes: list[tuple[str, tuple[str, ...]]]
    sizes = [(a.text, ("params", n, "shape")) for n, axes in shapes.items() for a in axes]
    sizes += [(str(s), ("workspace", n)) for n, w in kernel.workspace.items() for s in w.shape]
    sizes += [
        (str(kernel.grid), ("grid",)),
        (str(kernel.tickets), ("tickets",)),
        (str(kernel.flops), ("flops",)),
    ]
    for text, path in sizes:
        try:
            names.update(symbols(text))
        except ExprError as error:
            findings.add("FH206", f"size `{text}`: {error.message}", kernel.spot(*path), error.help)
    return names


def _check_kernel(kernel: spec.Kernel, names: set[str], written: tuple[str, ...], findings: Findings) -> None:
    if kernel.outputs and sorted(kernel.outputs) != list(written):
        message = f"outputs of kernel {kernel.kernel} must be its written parameters: {', '.join(written)}"
        findings.add("FH223", message, kernel.spot("outputs"))
    for name, param in kernel.params.items():
        at = kernel.spot("params", name)
        if param.kind in ("bound", "counter", "rng") and param.access != "read":
            findings.add("FH223", f"parameter {name}: a {param.kind} can only be read", at)
        if param.many and param.kind != "data":
            findings.add("FH223", f"parameter {name}: only data may be `many`", at)
        if name in names:
            message = f"parameter {name} of kernel {kernel.kernel} has the name of a shape symbol"
            findings.add("FH223", message, at)


def unify(
    sign: Signature,
    arguments: Mapping[str, tuple[Range, ...]],
    bind: Mapping[str, int],
    launch: str,
    spots: Mapping[str, Location],
    findings: Findings,
) -> dict[str, int] | None:
    """The value of every symbol of the kernel, from the shapes of arguments and `bind`.

    None after a finding. `spots` has the position of each argument, and of the launch under "".
    """
    before = len(findings.found)
    binding = Binding(dict(bind), dict.fromkeys(bind, "bind"))
    for name, ranges in arguments.items():
        problem = _bind(sign.shapes[name], ranges, name, binding)
        if problem:
            findings.add("FH210", f"{launch}: {problem}", spots[name])
    if len(findings.found) > before:
        return None
    missing = [s for s in sign.symbols if s not in binding.values]
    if missing:
        message = f"{launch}: no shape binds {', '.join(missing)} of kernel {sign.kernel.kernel}"
        findings.add("FH211", message, spots[""], f"add `bind: {{{missing[0]}: …}}`")
        return None
    env = {**binding.values, **sign.consts}
    for name, ranges in arguments.items():
        problem = _check(sign.shapes[name], ranges[0], name, env) if ranges else ""
        if problem:
            findings.add("FH210", f"{launch}: {problem}", spots[name])
    _check_rows(sign, arguments, launch, spots, findings)
    return binding.values if len(findings.found) == before else None


def _bind(axes: tuple[Axis, ...], ranges: tuple[Range, ...], name: str, binding: Binding) -> str:
    """Binds the bare symbols of one parameter; says what does not fit."""
    if axes and axes[0].kind == "any":
        return _bind_symbol(axes[0].text, sum(r.count for r in ranges), name, ranges, binding)
    for found in ranges:
        if len(found.shape) != len(axes):
            wanted = _text(a.text for a in axes)
            return f"{name} = {found.text} has shape {_text(found.shape)}, but the kernel wants {wanted}"
        for axis, value in zip(axes, found.shape, strict=True):
            if axis.kind == "symbol":
                problem = _bind_symbol(axis.text, value, name, ranges, binding)
                if problem:
                    return problem
    return ""


def _bind_symbol(symbol: str, value: int, name: str, ranges: tuple[Range, ...], binding: Binding) -> str:
    known = binding.values.setdefault(symbol, value)
    origin = binding.origin.setdefault(symbol, name)
    if known == value:
        return ""
    shown = ", ".join(f"{r.text} {_text(r.shape)}" for r in ranges[:3])
    return f"{name} = {shown} makes {symbol} = {value}, but {origin} makes it {known}"


def _check(axes: tuple[Axis, ...], found: Range, name: str, env: Mapping[str, int]) -> str:
    """Checks the expressions of one parameter, once all symbols are known."""
    for k, axis in enumerate(axes):
        if axis.kind != "size":
            continue
        try:
            wanted = evaluate(axis.text, env)
        except ExprError as error:
            return f"`{axis.text}`: {error.message}"
        if wanted != found.shape[k]:
            return f"{name} = {found.text} has {found.shape[k]} in axis {k}, but `{axis.text}` is {wanted}"
    return ""


def _check_rows(
    sign: Signature,
    arguments: Mapping[str, tuple[Range, ...]],
    launch: str,
    spots: Mapping[str, Location],
    findings: Findings,
) -> None:
    """Row k of two tables over one symbol holds the same elements, so the counts must agree row by row."""
    first: dict[str, tuple[str, list[int]]] = {}
    for name, ranges in arguments.items():
        axes = sign.shapes[name]
        if not sign.kernel.params[name].many or not axes or axes[0].kind != "any":
            continue
        counts = [r.count for r in ranges]
        other, expected = first.setdefault(axes[0].text, (name, counts))
        if counts != expected:
            message = f"{launch}: rows of {name} hold {counts} elements, rows of {other} {expected}"
            findings.add("FH210", message, spots[name])


def grid(
    sign: Signature, dims: Mapping[str, int], launch: str, at: Location, findings: Findings
) -> int | None:
    """Blocks of one launch, or None after a finding; tickets and flops are tried out too."""
    kernel, env = sign.kernel, {**dims, **sign.consts}
    try:
        blocks = evaluate(kernel.grid, env)
        evaluate(kernel.tickets, env)
        evaluate(kernel.flops, env)
    except ExprError as error:
        findings.add("FH206", f"{launch}: {error.message}", at, error.help)
        return None
    if blocks == 0:
        findings.add("FH217", f"{launch}: grid `{kernel.grid}` of kernel {kernel.kernel} is 0 blocks", at)
        return None
    if blocks > MAX_GRID:
        message = f"{launch}: grid `{kernel.grid}` is {blocks} blocks, above the limit of {MAX_GRID}"
        findings.add("FH216", message, at, "let each thread do several elements, or lower a dim")
        return None
    return blocks


def workspace_shapes(
    sign: Signature, dims: Mapping[str, int], launch: str, at: Location, findings: Findings
) -> dict[str, tuple[int, ...]]:
    """The shape of each workspace of one launch, by name."""
    env = {**dims, **sign.consts}
    shapes = {}
    for name, workspace in sorted(sign.kernel.workspace.items()):
        try:
            shape = tuple(evaluate(size, env) for size in workspace.shape)
        except ExprError as error:
            findings.add("FH206", f"{launch}: workspace {name}: {error.message}", at, error.help)
            continue
        size = DTYPES[workspace.dtype].size
        if check_bytes(shape, size, f"workspace {name} of {launch}", at, findings):
            shapes[name] = shape
    return shapes


def _text(shape: Iterable[object]) -> str:
    return f"[{', '.join(map(str, shape))}]"

"""Declared slopes against central differences of the forward's float64 reference."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.diagnostics import Diagnostic
from foxhunt.expr import symbols
from foxhunt.reference import REFERENCES
from foxhunt.spec.models import GradientOf, Kernel
from foxhunt.verify.cases import Case, make

Array = NDArray[Any]
ELEMENTS = 12  # of each tensor
EXAMPLES = 2
UNBOUND = 3  # the size of a symbol that only the forward kernel has
STEP = 1e-5
TOLERANCE = 1e-4  # of the tensor's own scale
NEEDED_HELP = "See `gradient_of` in the spec reference."


def check_gradients(kernel: Kernel, kernels: Mapping[str, Kernel]) -> Iterator[Diagnostic]:
    """A finding for each output of the kernel that is not the slope which its spec declares."""
    assert kernel.gradient_of is not None
    wrong = list(_misdeclared(kernel, kernel.gradient_of, kernels))
    if wrong:
        yield from (_finding(kernel, "FH708", message, NEEDED_HELP) for message in wrong)
        return
    forward = kernels[kernel.gradient_of.kernel]
    for number, example in enumerate(kernel.examples[:EXAMPLES]):
        message = _Pair(kernel, forward, make(kernel, example, f"gradient{number}")).difference()
        if message:
            help = "Mend the formula of the kernel, and that of its reference, which agrees with it."
            yield _finding(kernel, "FH707", f"example {number}: {message}", help)
            return


def _finding(kernel: Kernel, code: str, message: str, help: str) -> Diagnostic:
    assert kernel.gradient_of is not None
    return Diagnostic(code, f"kernel {kernel.kernel}: {message}", kernel.gradient_of.at, help)


def _misdeclared(kernel: Kernel, pair: GradientOf, kernels: Mapping[str, Kernel]) -> Iterator[str]:
    forward = kernels.get(pair.kernel)
    if forward is None:
        yield f"there is no forward kernel {pair.kernel}"
        return
    for name in (forward.reference, kernel.reference):
        if name not in REFERENCES:
            yield f"there is no reference {name}"
    written = {n for n, p in forward.params.items() if p.access != "read"}
    own = set(kernel.params)
    outputs = {n for n, p in kernel.params.items() if p.access != "read"}
    tables = (
        ("slopes", pair.slopes, own - outputs, set(forward.params)),
        ("losses", {k: v for k, v in pair.losses.items() if isinstance(v, str)}, written, own - outputs),
        ("losses", dict.fromkeys(pair.losses, ""), written, {""}),
        ("gives", pair.gives, outputs, set(forward.params) - written),
        ("args", pair.args, own - outputs, set(forward.params)),
        ("before", dict.fromkeys(pair.before, ""), set(forward.params), {""}),
    )
    for key, table, left, right in tables:
        for name in sorted(set(table) - left) + sorted(set(table.values()) - right):
            yield f"`{key}` names {name}, which is none"
    if not pair.slopes and not pair.losses:
        yield "`slopes` and `losses` are both empty"


class _Pair:
    """One example of a backward kernel, and a forward on the same tensors."""

    def __init__(self, kernel: Kernel, forward: Kernel, case: Case) -> None:
        assert kernel.gradient_of is not None
        self.kernel, self.forward, self.pair, self.case = kernel, forward, kernel.gradient_of, case
        shapes = [str(size) for p in forward.params.values() for size in p.shape]
        known = {s: UNBOUND for size in shapes for s in symbols(size.removeprefix("..."))}
        self.dims = known | case.dims
        self.inputs = self._inputs()
        self.moved = {name: self.inputs[name] for name in self.pair.gives.values()}  # before what gave them
        rng = np.random.default_rng(zlib.crc32(f"{kernel.kernel}.{case.name}".encode()))
        for name in sorted(set(self.moved) & set(self.pair.before)):
            self.moved[name] = rng.standard_normal(self.moved[name].shape)
            self.inputs[name] = _after(self.pair.before[name], self.moved[name])

    def _inputs(self) -> dict[str, Any]:
        """What the forward reads: as the example of the backward kernel has it, else random."""
        names = {self.pair.args.get(n, n): n for n in self.kernel.params if n not in self.pair.slopes}
        example: dict[str, Any] = {**self.dims}
        example |= {n: "normal" for n, p in self.forward.params.items() if p.kind == "data"}
        found: dict[str, Any] = {}
        for name, param in self.forward.params.items():
            own = names.get(name)
            if param.access == "read":
                if own is not None and self.kernel.params[own].access == "read":
                    value = self.case.values[own]
                else:
                    value = make(self.forward, example, self.case.name).values[name]
                found[name] = np.asarray(value, np.float64) if param.dtype == "f32" else value
        return found

    def difference(self) -> str | None:
        """The first element that is further from the difference quotient than the tolerance, in words."""
        outputs = self._run(self.inputs)
        given = self._backward(outputs)
        for output, name in sorted(self.pair.gives.items()):
            slopes = np.asarray(given[output], np.float64).ravel()
            start = self.moved[name]
            rng = np.random.default_rng(len(slopes))
            chosen = rng.choice(start.size, min(ELEMENTS, start.size), replace=False)
            found = np.array([self._quotient(name, at) for at in chosen])
            scale = float(np.sqrt(np.mean(np.square(found)))) + 1e-12
            wrong = ~(np.abs(found - slopes[chosen]) <= TOLERANCE * (np.abs(found) + scale))
            if wrong.any():
                k = int(wrong.argmax())
                return (
                    f"{output}[{chosen[k]}] is {slopes[chosen[k]]:.6g}, but central differences of "
                    f"{self.forward.kernel} in {name} give {found[k]:.6g}"
                )
        return None

    def _quotient(self, name: str, at: int) -> float:
        sides = []
        for step in (STEP, -STEP):
            moved = self.moved[name].copy()
            moved.ravel()[at] += step
            kind = self.pair.before.get(name)
            inputs = self.inputs | {name: _after(kind, moved) if kind else moved}
            sides.append(self._loss(inputs))
        return (sides[0] - sides[1]) / (2 * STEP)

    def _loss(self, inputs: Mapping[str, Any]) -> float:
        """L: products of slopes with their tensors, and weighted means of losses."""
        tensors = {**inputs, **self._run(inputs)}
        total = 0.0
        for brought, name in self.pair.slopes.items():
            total += float(np.sum(np.asarray(self.case.values[brought], np.float64) * tensors[name]))
        for loss, weight in self.pair.losses.items():
            factor = self.case.values[weight] if isinstance(weight, str) else weight
            total += float(factor) * float(np.mean(tensors[loss]))
        return total

    def _run(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return Case(self.forward, self.case.name, self.dims, dict(inputs)).expected()

    def _backward(self, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        values = dict(self.case.values)
        for own in (n for n, p in self.kernel.params.items() if p.access == "read"):
            name = self.pair.slopes.get(own)
            if name is None:
                known = self.pair.args.get(own, own)
                values[own] = outputs.get(known, self.inputs.get(known, values[own]))
            elif name in outputs and name in self.pair.before:
                slope = np.asarray(values[own], np.float64)
                values[own] = _through(self.pair.before[name], np.asarray(outputs[name]), slope)
        return Case(self.kernel, self.case.name, self.case.dims, values).expected()


def _after(kind: str, x: Array) -> Array:
    """ELU, or the softmax of each row."""
    if kind == "elu":
        return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _through(kind: str, y: Array, slope: Array) -> Array:
    """The slope before what gave y, from that after it."""
    if kind == "elu":
        return slope * np.where(y > 0, 1.0, 1.0 + y)
    return np.asarray(y * (slope - (y * slope).sum(axis=-1, keepdims=True)))

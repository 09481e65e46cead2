"""What a library kernel is tried on: its YAML examples, odd sizes and special values, as plain arrays.

An example is a mapping of symbols to sizes and of parameters to values. A value is a list, a number, a
generator (`normal`, `uniform`, `edges`, `zeros`, `ones`, `{integers: [low, high]}`) or `{count: other}` (how
many of another parameter are not 0); for a `many` parameter one of these, a list of rows `{n, fill}`, or
`{rows, fill}` where its rows have the declared shape; for a bound `{slot, triple, floor}`. Parameters that
are only written are left out.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foxhunt.dtypes import DTYPES
from foxhunt.expr import evaluate, symbols
from foxhunt.reference import REFERENCES
from foxhunt.reference.philox import Stream
from foxhunt.spec.models import Kernel, KernelParam

ODD_SIZES = (1, 2, 31, 32, 33, 255, 256, 257, 1000, 4097)
SPECIALS = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40], np.float32)
SEED, STEP = 11, 1


@dataclass(frozen=True)
class Bound:
    """A slot with its triple (S, D, lag) and floor."""

    slot: float
    triple: tuple[float, float, float]
    floor: float

    @property
    def limit(self) -> float:
        """What the kernel sees."""
        return max(self.slot, self.floor) if any(self.triple) else np.inf


@dataclass(frozen=True)
class Case:
    """One launch: arrays as the kernel finds them (lists of arrays where `many`), and every symbol."""

    kernel: Kernel
    name: str
    dims: dict[str, int]
    values: dict[str, Any] = field(hash=False)

    def expected(self, launch_hash: int = 0) -> dict[str, Any]:
        """What the float64 reference says."""
        inputs = dict(self.values)
        for name, param in self.kernel.params.items():
            if param.kind == "bound":
                inputs[name] = self.values[name].limit
            elif param.kind == "rng":
                inputs[name] = Stream(SEED, STEP, launch_hash)
        return REFERENCES[self.kernel.reference](inputs, self.dims, self.kernel.consts)


def cases(kernel: Kernel) -> Iterator[Case]:
    """The examples as they stand, the first that allows it at odd sizes, statistics with special values."""
    for number, example in enumerate(kernel.examples):
        yield make(kernel, example, f"example{number}")
    symbol = "n" if kernel.kind == "statistic" else "B" if "B" in kernel.examples[0] else "n"
    flexible = next((e for e in kernel.examples if symbol in e and _flexible(kernel, e, symbol)), None)
    if flexible is None:
        return
    for size in ODD_SIZES:
        yield make(kernel, {**flexible, symbol: size}, f"{symbol}{size}")
        if kernel.kind == "statistic" and _observed(kernel):
            yield _with_specials(make(kernel, {**flexible, symbol: size}, f"special{size}"))


def _flexible(kernel: Kernel, example: Mapping[str, Any], symbol: str) -> bool:
    """Whether generators and numbers fill all that grows with the symbol: then any size will do."""
    listed = (
        kernel.params[k] for k, v in example.items() if k in kernel.params and isinstance(v, list | tuple)
    )
    return not any(symbol in symbols(str(s).removeprefix("...")) for param in listed for s in param.shape)


def _observed(kernel: Kernel) -> list[str]:
    """The floats that a statistic reads."""
    return [n for n, p in kernel.params.items() if (p.kind, p.access, p.dtype) == ("data", "read", "f32")]


def _with_specials(case: Case) -> Case:
    """NaN and its like first, last and in between."""
    values = [case.values[name] for name in _observed(case.kernel)]
    for row in (row for value in values for row in (value if isinstance(value, list) else [value])):
        for k, at in enumerate((0, len(row) // 2, len(row) - 1, len(row) // 3, len(row) // 5)):
            if len(row):
                row[at] = SPECIALS[(k + len(row)) % len(SPECIALS)]
    return case


def make(kernel: Kernel, example: Mapping[str, Any], name: str) -> Case:
    """An example as arrays. Its random values depend on kernel and name only."""
    rng = np.random.default_rng(zlib.crc32(f"{kernel.kernel}.{name}".encode()))
    dims = {k: v for k, v in example.items() if k not in kernel.params}
    values: dict[str, Any] = {}
    for key, param in sorted(kernel.params.items(), key=lambda p: isinstance(example.get(p[0]), Mapping)):
        values[key] = _value(key, param, example, dims, values, rng)
    return Case(kernel, name, dims, values)


def _value(
    key: str,
    param: KernelParam,
    example: Mapping[str, Any],
    dims: dict[str, int],
    values: dict[str, Any],
    rng: np.random.Generator,
) -> Any:
    given: Any = example.get(key)
    if param.kind == "bound":
        return Bound(given["slot"], tuple(given["triple"]), given["floor"])
    if param.kind == "slot":
        return float(given) if param.access == "read" else 77.0  # whatever was there before
    if param.kind == "counter":
        return int(np.ravel(given)[0])
    if param.kind == "rng":
        return None
    if isinstance(given, Mapping) and "count" in given:
        return np.array([np.count_nonzero(values[given["count"]])], DTYPES[param.dtype].numpy)
    if param.many and isinstance(given, Mapping) and "rows" in given:
        return [_fill(given["fill"], _shape(param, dims), param.dtype, rng) for _ in range(given["rows"])]
    if param.many:
        rows = given if isinstance(given, list | tuple) and given and isinstance(given[0], Mapping) else None
        if rows is None:
            rows = [{"n": _size(param, dims), "fill": given}]
        return [_fill(r["fill"], (r["n"],), param.dtype, rng) for r in rows]
    return _fill(given, _shape(param, dims), param.dtype, rng)


def _size(param: KernelParam, dims: Mapping[str, int]) -> int:
    return int(np.prod(_shape(param, dims), dtype=np.int64))


def _shape(param: KernelParam, dims: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(str(s).removeprefix("..."), dims) for s in param.shape)


def _fill(given: Any, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Any:
    kind = DTYPES[dtype].numpy
    if given is None:  # written only: whatever was there before
        return np.full(shape, np.nan if dtype == "f32" else 77, kind)
    if given == "normal":
        return rng.standard_normal(shape).astype(kind)
    if given == "edges":  # 0 to 1 in equal steps: of 257 elements each is the edge of a bin
        return np.linspace(0, 1, int(np.prod(shape))).reshape(shape).astype(kind)
    if given == "uniform":
        return rng.random(shape).astype(kind)
    if isinstance(given, str):
        return np.full(shape, {"zeros": 0, "ones": 1}[given], kind)
    if isinstance(given, Mapping):
        low, high = given["integers"]
        return rng.integers(low, high, size=shape).astype(kind)
    return np.broadcast_to(np.asarray(given, kind), shape).copy()


def differences(case: Case, found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """What is further from the reference than the kernel's tolerance, one line a parameter."""
    lines = []
    for name, want in expected.items():
        wants = want if isinstance(want, list) else [want]
        founds = found[name] if isinstance(found[name], list) else [found[name]]
        for row, (w, f) in enumerate(zip(wants, founds, strict=True)):
            flat, got = np.ravel(np.asarray(w)), np.ravel(f)
            close = np.isclose(
                got, flat, rtol=case.kernel.tolerance.rtol, atol=case.kernel.tolerance.atol, equal_nan=True
            )
            if len(flat) != len(got) or not close.all():
                at = int(np.argmin(close))
                lines.append(f"{name}[{row}] at {at}: {got[at]!r}, reference {flat[at]!r}")
    return lines

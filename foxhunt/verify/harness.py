"""Runs library kernels through the whole compiler on a backend: one program a kernel, one launch a case.

Used by `foxhunt verify` and by tests on both backends, which so see the same launches on the same values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from foxhunt.backend.base import Backend
from foxhunt.backend.plan import Plan, View
from foxhunt.dtypes import DTYPES
from foxhunt.emit.store import store
from foxhunt.emit.templates import TemplateSet
from foxhunt.pipeline import compile_program
from foxhunt.schedule.abi import rng_hash
from foxhunt.spec.models import (
    Buffer,
    Counter,
    Diagnostic,
    Health,
    Item,
    Kernel,
    Producer,
    Program,
    Slot,
    SpecSet,
    Step,
)
from foxhunt.verify.cases import SEED, STEP, Bound, Case


@dataclass
class _Builder:
    """A program's sections while cases are added, and where each case's values go."""

    dims: dict[str, int | str] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)

    def add(self, number: int, case: Case) -> None:
        """A launch of the kernel on buffers of its own, after the case before, so that nothing is fused."""
        sizes = {s: self._dim(f"C{number}_{s}", n) for s, n in sorted(case.dims.items())}
        args: dict[str, Any] = {}
        for name, param in sorted(case.kernel.params.items()):
            value, own = case.values[name], f"c{number}_{name}"
            if param.kind == "slot":
                source: Literal["host", "kernel"] = "host" if param.access == "read" else "kernel"
                self.slots.append(Slot(name=own, source=source, init=value, reset="never"))
                args[name] = own
            elif param.kind == "bound":
                self.slots.append(Slot(name=own, floor=value.floor, reset="never"))
                self._buffer(f"{own}_seen", np.zeros(1, np.float32), "input")
                self.producers.append(
                    Producer(name=f"{own}_mean", kernel="mean", args={"x": f"{own}_seen"}, out={"y": own})
                )
                self.items.append(Item(producers=(f"{own}_mean",)))
                args[name] = own
            elif param.kind == "counter":
                self.counters.append(Counter(name=own, advance="all", reset="never"))
                args[name] = own
            elif param.kind == "data":
                lifetime = "input" if param.access == "read" else "persistent"
                rows = value if param.many else [value]
                names = [f"{own}_{row}" for row in range(len(rows))]
                for row, array in zip(names, rows, strict=True):
                    self._buffer(row, array, lifetime)
                args[name] = tuple(names) if param.many else names[0]
        bind = {s: sizes[s] for s in unbound(case.kernel)}
        after = (f"case{number - 1}",) if number else ()
        item = {
            "kernel": case.kernel.kernel,
            "args": args,
            "bind": bind,
            "as": f"case{number}",
            "after": after,
        }
        self.items.append(Item.model_validate(item))

    def _dim(self, name: str, size: int) -> str:
        self.dims[name] = size
        return name

    def _buffer(self, name: str, array: Any, lifetime: Any) -> None:
        shape = tuple(self._dim(f"{name}_{k}", n) for k, n in enumerate(array.shape))
        dtype: Any = next(d.name for d in DTYPES.values() if np.dtype(d.numpy) == array.dtype)
        checkpoint = lifetime != "persistent"
        self.buffers.append(
            Buffer(
                name=name, shape=shape, dtype=dtype, lifetime=lifetime, checkpoint=checkpoint, reset="never"
            )
        )


def unbound(kernel: Kernel) -> list[str]:
    """The static symbols that no shape of a parameter binds by itself."""
    bound = {str(s).removeprefix("...") for p in kernel.params.values() for s in p.shape}
    return sorted(set(kernel.static) - bound)


@dataclass
class KernelProgram:
    """The compiled program of one kernel's cases on a backend."""

    backend: Backend
    plan: Plan
    cases: list[Case]
    folder: Path

    def run(self) -> None:
        """Fills every case's parameters and runs all launches once."""
        self.backend.write("seed", 0, np.array([SEED], np.int64))
        self.backend.write("counters", 0, np.array([STEP - 1], np.int64))
        for number, case in enumerate(self.cases):
            self._fill(number, case)
        self.backend.run("all", 1)
        self.backend.sync()

    def found(self, number: int) -> dict[str, Any]:
        """What case `number` has left in its written parameters."""
        case, views = self.cases[number], {v.name: v for v in self.plan.views}
        slots = {s.name: s.index for s in self.plan.slots}
        found: dict[str, Any] = {}
        for name, param in case.kernel.params.items():
            if param.kind == "slot" and param.access != "read":
                found[name] = self.backend.read("isv", 4 * slots[f"c{number}_{name}"], 1, "f32")
            elif param.kind == "data" and param.access != "read":
                rows = case.values[name] if param.many else [case.values[name]]
                read = [self._read(views[f"c{number}_{name}_{row}"]) for row in range(len(rows))]
                found[name] = read if param.many else read[0]
        return found

    def launch_hash(self, number: int) -> int:
        """What tells this launch's random numbers from others'."""
        return rng_hash(f"all.case{number}")

    def _fill(self, number: int, case: Case) -> None:
        views = {v.name: v for v in self.plan.views}
        slots = {s.name: s.index for s in self.plan.slots}
        scratch = {o.slot: o.position for o in self.plan.observations}
        counters = {c.name: c.index for c in self.plan.counters}
        for name, value in case.values.items():
            own, param = f"c{number}_{name}", case.kernel.params[name]
            if isinstance(value, Bound):
                at = slots[own]
                self.backend.write("isv", 4 * at, np.array([value.slot], np.float32))
                self.backend.write("wiener", 12 * scratch[at], np.array(value.triple, np.float32))
            elif param.kind == "counter":
                self.backend.write("counters", 8 * counters[own], np.array([value - 1], np.int64))
            elif param.kind == "data":
                for row, array in enumerate(value if param.many else [value]):
                    view = views[f"{own}_{row}"]
                    self.backend.write(view.buffer, view.offset * array.itemsize, np.ascontiguousarray(array))

    def _read(self, view: View) -> Any:
        size = DTYPES[view.dtype].size
        flat = self.backend.read(view.buffer, view.offset * size, int(np.prod(view.shape)), view.dtype)
        return flat.reshape(view.shape)


@contextmanager
def kernel_program(
    cases: list[Case],
    backend: Backend,
    folder: Path,
    kernels: Mapping[str, Kernel],
    templates: TemplateSet,
    debug: bool = False,
) -> Iterator[KernelProgram]:
    """Compiles the cases of one kernel and builds them on `backend`, which is closed at the end.

    `kernels` are those of the project: a case with a bound also uses `mean`.
    """
    builder = _Builder()
    for number, case in enumerate(cases):
        builder.add(number, case)
    program = Program(
        program="trial",
        dims=builder.dims,
        isv=tuple(builder.slots),
        buffers=tuple(builder.buffers),
        counters=tuple(builder.counters),
        producers=tuple(builder.producers),
        diagnostics=tuple(Diagnostic(name=s.name) for s in builder.slots if s.source == "kernel"),
        steps=(Step(name="all", items=tuple(builder.items)),),
        health=Health(policy="off"),  # cases have NaN and inf on purpose
    )
    used = {case.kernel.kernel for case in cases} | {p.kernel for p in builder.producers}
    chosen = {name: kernel for name, kernel in kernels.items() if name in used}
    specs = SpecSet(root="specs", programs={"trial": program}, kernels=chosen, sources={})
    compiled = compile_program(specs, "trial", templates=templates)
    store(compiled.files, folder)
    try:
        backend.build(folder, compiled.plan, debug)
        backend.allocate(compiled.plan)
        columns = [s.init for s in compiled.plan.slots if s.source == "host" for _ in range(s.count)]
        for row in range(compiled.plan.ingest_rows if columns else 0):
            backend.ingest_row(row)[:] = columns
        backend.prepare(compiled.plan)
        yield KernelProgram(backend, compiled.plan, cases, folder)
    finally:
        backend.close()

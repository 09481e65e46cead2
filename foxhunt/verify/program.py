"""All checks of one program, in an order in which the first finding says most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from foxhunt.backend.base import Backend, BuildProgress
from foxhunt.backend.host import HostBackend
from foxhunt.diagnostics import BackendError, Diagnostic
from foxhunt.emit.store import store
from foxhunt.emit.templates import TemplateSet
from foxhunt.ir.layout import Lock
from foxhunt.ir.system import NAMES
from foxhunt.pipeline import Compiled, compile_program
from foxhunt.spec.models import Kernel, SpecSet
from foxhunt.verify.checks import Check, check_access, check_finite, check_fusion, check_orders, check_replay
from foxhunt.verify.frozen import frozen_values
from foxhunt.verify.gradients import check_gradients
from foxhunt.verify.kernels import acts_on, check_kernel
from foxhunt.verify.orders import declared_order
from foxhunt.verify.runs import Baseline, Form, Script

CHECKS = ("kernels", "gradients", "access", "finite", "orders", "fusion", "replay", "frozen")
RUNS = CHECKS[2:]
FAULTS = {"FH562", "FH563", "FH564", "FH565"}
"""What a kernel did wrong, as opposed to a backend that cannot be used."""


@dataclass(frozen=True)
class Subject:
    """A program of a specs folder, at certain dims."""

    specs: SpecSet
    program: str
    variant: str
    dims: Mapping[str, int]
    templates: TemplateSet
    lock: Lock | None

    def compile(self, fused: bool) -> Compiled:
        """The program, fused as it ships or not at all."""
        return compile_program(
            self.specs, self.program, self.variant, self.dims, self.templates, self.lock, fused
        )


@dataclass(frozen=True)
class Options:
    """How much is run, where, and which checks."""

    script: Script = field(default_factory=Script)
    orders: int = 4
    backend: str = "host"  # for kernels and replays: host or cuda
    make_backend: Callable[[], Backend] = HostBackend
    only: tuple[str, ...] = CHECKS
    progress: BuildProgress | None = None


Job = tuple[str, Callable[[], Check]]


def jobs(subject: Subject, folder: Path, options: Options) -> Iterator[Job]:
    """The checks in turn, each with what it is about to do; `folder` takes the emitted programs."""
    whole = subject.compile(fused=True)
    used = _kernels(whole)
    if "kernels" in options.only:
        for kernel in used.values():
            yield kernel.kernel, partial(_kernel, kernel, subject, options)
    if "gradients" in options.only:
        yield "gradients", lambda: _gradients(used, subject.specs.kernels)
    runs = [c for c in options.only if c in RUNS]
    if not runs:
        return
    single = subject.compile(fused=False)
    for name, compiled in (("single", single), ("fused", whole)):
        store(compiled.files, folder / name)
    alone = Form(single.schedule, declared_order(single), folder / "single", options.progress)
    fused = Form(whole.schedule, whole.plan, folder / "fused", options.progress)
    script, seed, count = options.script, options.script.seed, options.orders
    baseline = Baseline(alone, script)

    def recorded() -> Baseline:
        if not baseline.digests:
            baseline.record()
        return baseline

    tried: dict[str, Callable[[], Check]] = {
        "access": lambda: check_access(recorded()),
        "finite": lambda: check_finite(recorded()),
        "orders": lambda: check_orders(recorded(), single, seed, count),
        "fusion": lambda: check_fusion(recorded(), whole, fused, seed, count),
        "replay": lambda: check_replay(recorded(), fused, options.backend, options.make_backend),
        "frozen": lambda: _frozen(alone, script, subject, options.make_backend),
    }
    for name in runs:
        yield name, partial(_faults_found, name, tried[name])


def _faults_found(name: str, check: Callable[[], Check]) -> Check:
    """The check; a launch that breaks off is its finding."""
    try:
        return check()
    except BackendError as error:
        if not {d.code for d in error.diagnostics} <= FAULTS:
            raise
        return Check(name, "broken off", error.diagnostics)


def _kernels(compiled: Compiled) -> dict[str, Kernel]:
    """The kernels that a person declared and that the program launches, by name."""
    launches = (n for g in compiled.graphs for n in g.launches if n.kernel.kernel not in NAMES)
    return dict(sorted({n.kernel.kernel: n.kernel for n in launches}.items()))


def _kernel(kernel: Kernel, subject: Subject, options: Options) -> Check:
    debug = options.backend == "host"
    kernels, make = subject.specs.kernels, options.make_backend
    count, findings = check_kernel(kernel, kernels, subject.templates, make, debug)
    return Check("kernels against float64", f"{kernel.kernel}, {count} cases", findings)


def _gradients(used: Mapping[str, Kernel], kernels: Mapping[str, Kernel]) -> Check:
    pairs = [k for k in used.values() if k.gradient_of is not None]
    findings: list[Diagnostic] = []
    for kernel in pairs:
        findings += check_gradients(kernel, kernels)
    return Check("slopes against differences", f"{len(pairs)} declared pairs", tuple(findings))


def _frozen(form: Form, script: Script, subject: Subject, make: Callable[[], Backend]) -> Check:
    def acts(kernel: Kernel, name: str) -> bool:
        return acts_on(kernel, name, subject.specs.kernels, subject.templates, make)

    findings = tuple(frozen_values(form, script, acts))
    return Check("nothing frozen", "each slot, counter and seed that is read", findings)

"""Kernels against their float64 references: at their examples, at odd sizes, with special values."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from foxhunt.backend.base import Backend
from foxhunt.diagnostics import BackendError, Diagnostic
from foxhunt.emit.templates import TemplateSet
from foxhunt.reference import REFERENCES
from foxhunt.spec.models import Kernel
from foxhunt.verify.cases import Case, cases, differences, make
from foxhunt.verify.harness import kernel_program

SHOWN = 3  # differences of one kernel


def check_kernel(
    kernel: Kernel,
    kernels: Mapping[str, Kernel],
    templates: TemplateSet,
    make_backend: Callable[[], Backend],
    debug: bool,
) -> tuple[int, tuple[Diagnostic, ...]]:
    """How many cases were tried, and what differs from the reference or touches what is not declared."""
    if kernel.reference not in REFERENCES or not kernel.examples:
        lack = f"no function {kernel.reference} in reference/" if kernel.examples else "no examples"
        help = (
            "Give it `examples:` and a function with `@reference` in a file of reference/ beside the specs."
        )
        return 0, (_finding(kernel, "FH706", f"cannot be tried: {lack}", help),)
    tried = list(cases(kernel))
    backend = make_backend()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="foxhunt-") as folder:
        try:
            with kernel_program(tried, backend, Path(folder), kernels, templates, debug) as program:
                program.run()
                for number, case in enumerate(tried):
                    expected = case.expected(program.launch_hash(number))
                    lines = differences(case, program.found(number), expected)
                    wrong += [f"{case.name}: {line}" for line in lines]
        except BackendError as error:
            message = "; ".join(d.message for d in error.diagnostics)
            for number, case in reversed(tuple(enumerate(tried))):
                message = message.replace(f"all.case{number} ", f"{kernel.kernel} ({case.name}) ")
            first = error.diagnostics[0]
            return len(tried), (Diagnostic(first.code, message, kernel.at, first.help),)
    more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    help = "Mend the formula in the template, or the reference; loosen `tolerance` only for a known reason."
    found = _finding(kernel, "FH705", "; ".join(wrong[:SHOWN]) + more, help)
    return len(tried), (found,) if wrong else ()


def acts_on(
    kernel: Kernel,
    name: str,
    kernels: Mapping[str, Kernel],
    templates: TemplateSet,
    make_backend: Callable[[], Backend],
) -> bool:
    """Whether at an example the kernel leaves other bits with another slot, counter or random stream."""
    tried: list[Case] = []
    for number, example in enumerate(kernel.examples):
        case = make(kernel, example, f"example{number}")
        tried += [case, *(replace(case, values=case.values | {name: v}) for v in _others(case, name))]
    if not tried:
        return False
    with (
        tempfile.TemporaryDirectory(prefix="foxhunt-") as folder,
        kernel_program(tried, make_backend(), Path(folder), kernels, templates) as program,
    ):
        program.run()
        left: dict[str, set[bytes]] = {}
        for number, case in enumerate(tried):
            left.setdefault(case.name, set()).add(_bits(program.found(number)))
    return any(len(bits) > 1 for bits in left.values())


def _others(case: Case, name: str) -> list[float | int | None]:
    """Other values of a parameter. A random stream is another one in each launch anyway."""
    kind, value = case.kernel.params[name].kind, case.values[name]
    if kind == "rng":
        return [None]
    if kind == "counter":
        return [value + 3, 1]
    return [0.75 * value + 2.0**-6, 4.0 * value + 1.0, 0.0]


def _bits(found: Mapping[str, Any]) -> bytes:
    parts = [v if isinstance(v, list) else [v] for _, v in sorted(found.items())]
    return b"".join(np.ascontiguousarray(row).tobytes() for rows in parts for row in rows)


def _finding(kernel: Kernel, code: str, message: str, help: str) -> Diagnostic:
    return Diagnostic(code, f"kernel {kernel.kernel}: {message}", kernel.at, help)

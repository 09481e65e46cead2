"""The repository's library for tests: its kernels, and programs of their cases."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foxhunt.backend.base import Backend
from foxhunt.emit.templates import load_templates
from foxhunt.spec.load import load_specs
from foxhunt.spec.models import Kernel
from foxhunt.verify import harness
from foxhunt.verify.cases import Case

ROOT = Path(__file__).parents[1]


def library() -> dict[str, Kernel]:
    """Every kernel of specs/kernels."""
    return dict(load_specs(ROOT / "specs").kernels)


@contextmanager
def kernel_program(
    cases: list[Case], backend: Backend, folder: Path, debug: bool = False
) -> Iterator[harness.KernelProgram]:
    """The cases of one of the library's kernels, compiled and built on a backend."""
    templates = load_templates([ROOT / "templates"])
    with harness.kernel_program(cases, backend, folder, library(), templates, debug) as program:
        yield program

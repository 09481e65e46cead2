"""Small programs written as YAML, compiled with the library's kernels and run by a trainer."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernel_harness import ROOT

from foxhunt.emit.store import store
from foxhunt.emit.templates import load_templates
from foxhunt.pipeline import compile_program
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.load import load_specs


@contextmanager
def training(text: str, folder: Path, backend: str = "host", **options: object) -> Iterator[Trainer]:
    """A trainer of the program that `text` declares, which is called `trial`."""
    specs = folder / "specs"
    shutil.copytree(ROOT / "specs" / "kernels", specs / "kernels")
    (specs / "trial").mkdir()
    (specs / "trial" / "trial.yaml").write_text("program: trial\n" + text)
    compiled = compile_program(
        load_specs(specs), "trial", "default", {}, load_templates([ROOT / "templates"]), None
    )
    store(compiled.files, folder / "generated")
    with Trainer(compiled.plan, folder / "generated", backend=backend, **options) as trainer:
        yield trainer

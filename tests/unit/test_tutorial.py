"""docs/tutorial.md does what it says: its blocks are applied to a copy of the specs, compiled and run."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import foxhunt.reference.statistics as statistics
from foxhunt.contract.lock import compare, parse_lock
from foxhunt.diagnostics import SpecError
from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program, project_templates
from foxhunt.reference.registry import REFERENCES
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.load import load_specs

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.S | re.M)


def blocks():
    return BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text())


def apply(root, language, path, text):
    target = root / path
    if language == "diff":
        context, added = (line[1:] for line in text.splitlines())
        found = target.read_text()
        assert found.count(context + "\n") == 1, f"{path}: {context!r} is not there once"
        target.write_text(found.replace(context + "\n", f"{context}\n{added}\n"))
    else:
        old = target.read_text() if target.exists() else ""
        target.write_text(old + text)


def compiled(root, lock):
    return compile_program(
        load_specs(root / "specs"), "aux", "demo", {}, project_templates(root / "specs"), lock
    )


@pytest.fixture
def project(tmp_path):
    for folder in ("specs", "templates", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    yield tmp_path
    REFERENCES.pop("positive_share", None)


def test_the_tutorial_ends_with_a_signal_that_is_right(project):
    lock = parse_lock((ROOT / "generated" / "aux" / "layout.lock").read_text())
    fed = [b for b in blocks() if b[1] == "specs/aux/producers.yaml"]
    assert len(fed) == 1
    for language, path, text in blocks():
        if path.startswith("foxhunt/"):
            exec(text, vars(statistics))
            continue
        if path == "specs/aux/steps.yaml" and language == "diff":
            with pytest.raises(SpecError, match=r"h1_alive|H1_ALIVE"):
                compiled(project, lock)
        apply(project, language, path, text)
    result = compiled(project, lock)
    changes = [str(change.kind) for change in compare(lock, result.laid_out)]
    assert changes == ["append", "append"]
    folder = project / "generated" / "aux"
    store(result.files, folder)
    with Trainer(result.plan, folder, backend="host", debug=True) as trainer:
        trainer.run(1)
        trainer.sync()
        assert 0.0 < trainer.signals["H1_ALIVE"] < 1.0
        assert trainer.diagnostics()["H1_ALIVE"] == trainer.signals["H1_ALIVE"]
    expected = REFERENCES["positive_share"]({"x": np.array([1.0, -1.0, 0.0, 2.0])}, {"n": 4}, {})
    assert expected["y"] == [0.5]

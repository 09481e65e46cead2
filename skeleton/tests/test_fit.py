"""Program `fit`: fresh files, kernels of its own that agree with their references, and that it learns."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import foxhunt
from foxhunt.cli import main
from foxhunt.reference.project import load_project_references
from foxhunt.reference.registry import REFERENCES

ROOT = Path(__file__).parents[1]
TRIAL = """\
program: trial
dims: {B: 301, N: 3}
buffers:
  - {name: fitted, shape: [B, N], lifetime: input}
  - {name: y, shape: [B, N], lifetime: input}
  - {name: loss, shape: [B], lifetime: persistent, reset: never}
  - {name: d, shape: [B, N], lifetime: persistent, reset: never}
steps:
  - name: run
    items:
      - {kernel: squared_error, args: {fitted: fitted, y: y, loss: loss, d: d}}
"""


def run(*args):
    """A foxhunt command; fails the test unless it exits 0."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in args])
    assert not stop.value.code


def test_generated_files_are_what_the_specs_say():
    run("check", ROOT / "specs")


def test_the_error_kernel_agrees_with_its_reference(tmp_path):
    for path in ("specs/kernels/squared_error.yaml", "templates/kernels/squared_error.cu.j2"):
        (tmp_path / path).parent.mkdir(parents=True)
        shutil.copy(ROOT / path, tmp_path / path)
    (tmp_path / "specs/trial").mkdir()
    (tmp_path / "specs/trial/trial.yaml").write_text(TRIAL)
    run("compile", tmp_path / "specs")
    load_project_references(ROOT / "specs")
    random = np.random.default_rng(0)
    given = {name: random.normal(size=(301, 3)).astype(np.float32) for name in ("fitted", "y")}
    with foxhunt.load(tmp_path / "generated/trial", backend="host", debug=True) as trainer:
        for name, values in given.items():
            trainer.write_tensor(name, values)
        trainer.run(1)
        for name, wanted in REFERENCES["squared_error"](given, {"B": 301, "N": 3}, {}).items():
            np.testing.assert_allclose(trainer.tensor(name), wanted, rtol=1e-5, atol=1e-7)


def test_the_plane_is_learnt():
    with foxhunt.load(ROOT / "generated/fit", backend="host") as trainer:
        trainer.run(10)
        trainer.sync()
        first = trainer.signals["LOSS_EMA"]
        trainer.run(1490)
        trainer.sync()
        assert trainer.signals["LOSS_EMA"] < first / 100
        slopes = np.arange(1, 5)[:, None] / np.arange(1, 3)
        np.testing.assert_allclose(trainer.tensor("w"), slopes, atol=0.02)
        np.testing.assert_allclose(trainer.tensor("b"), [1, 2], atol=0.02)

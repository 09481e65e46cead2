"""Golden cases: a folder here with `expected/` has specs that compile to exactly these files.

Left out are prelude/ and kernels/, whose text is the library's, and the semantics hash that it makes; the
cases have kernel entries of their own, so that tuning the library changes nothing here. To accept a change,
look at it: FOXHUNT_ACCEPT=1 pytest tests/cases/test_golden.py, then git diff.
"""

import os
import re
import shutil
from pathlib import Path

import pytest

from foxhunt.emit.store import stale
from foxhunt.pipeline import compile_program
from foxhunt.spec.load import load_specs

CASES = sorted(
    path.parent for path in Path(__file__).parent.glob("*/specs") if not (path.parent / "stderr.txt").exists()
)
PRELUDE = re.compile(r'  "prelude/[^"]*",\n')
SEMANTICS = re.compile(r'(semantics(?: |_hash="))[0-9a-f]{64}')


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_specs_compile_to_these_files(case):
    specs = load_specs(case / "specs")
    (name,) = specs.programs
    files = {
        path: PRELUDE.sub("", SEMANTICS.sub(r"\1…", text))
        for path, text in compile_program(specs, name).files.items()
        if not path.startswith(("prelude/", "kernels/"))
    }
    expected = case / "expected"
    if os.environ.get("FOXHUNT_ACCEPT"):
        shutil.rmtree(expected, ignore_errors=True)
        for path, text in files.items():
            (expected / path).parent.mkdir(parents=True, exist_ok=True)
            (expected / path).write_text(text, encoding="utf-8")
    assert [
        f"{d.path} {d.reason}" for d in stale(files, expected) if d.reason != "is no longer generated"
    ] == []
    assert {p.relative_to(expected).as_posix() for p in expected.rglob("*") if p.is_file()} == set(files)


def test_the_designs_example_has_the_positions_of_the_design():
    laid_out = compile_program(
        load_specs(Path(__file__).parent / "design_example" / "specs"), "example"
    ).laid_out
    slots = {s.name: s.index for s in laid_out.program.slots}
    assert (slots["TARGET_Q_BOUND"], slots["ATOM_POS_BOUND"], slots["AUX_LABEL_SCALE_EMA"]) == (131, 132, 117)
    trunk = [t for t in laid_out.program.tensors if t.group == "trunk"]
    assert sum(t.count for t in trunk) == 163_072
    assert laid_out.scratch_total == 7


def test_a_variant_changes_the_layout_header_the_sentinel_and_the_plan_alone():
    specs = load_specs(Path(__file__).parent / "design_example" / "specs")
    one, other = (compile_program(specs, "example", variant).files for variant in ("default", "demo"))
    differing = {p for p in one.keys() | other.keys() if one.get(p) != other.get(p)}
    sentinel = {
        p for p in differing if "sentinel" in one.get(p, other.get(p, ""))
    }  # what it reads goes by sizes
    assert differing - sentinel <= {"layout.cuh", "trainer.py", "manifest.json"}
    assert one["layout.lock"] == other["layout.lock"]

"""Golden cases of bad input: a folder here with `stderr.txt` has specs that `foxhunt compile` refuses so.

To accept a changed text, look at it, then copy what the failing test printed.
"""

import shutil
from pathlib import Path

import pytest

from foxhunt.cli import main

CASES = sorted(path.parent for path in Path(__file__).parent.glob("*/stderr.txt"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_bad_specs_are_refused_with_this_text(case, tmp_path, monkeypatch, capsys):
    shutil.copytree(case / "specs", tmp_path / "specs")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["compile", "specs"])
    assert capsys.readouterr().err == (case / "stderr.txt").read_text()
    assert stop.value.code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["specs"], "nothing is left half-written"

"""What README.md shows is what happens."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foxhunt.cli import main
from foxhunt.pipeline import compile_specs

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.fixture
def watch(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples" / "watch", tmp_path / "watch", ignore=lambda *_: ["generated"])
    monkeypatch.chdir(tmp_path / "watch")
    return tmp_path / "watch"


def fenced(language):
    return re.search(rf"^```{language}\n(.*?)^```$", README, re.S | re.M)[1]


def compiled(code):
    with pytest.raises(SystemExit) as stop:
        main(["compile", "specs"])
    assert stop.value.code == code


def test_its_twenty_lines_are_the_example_and_run(watch):
    assert fenced("yaml") == (watch / "specs/watch/watch.yaml").read_text()
    compiled(0)
    shown = subprocess.run([sys.executable, "run.py"], capture_output=True, text=True, check=True).stdout
    p99, rms, largest = (float(n) for n in re.findall(r"\d+\.\d+", shown))
    assert p99 == pytest.approx(2.58, rel=0.03)
    assert rms == pytest.approx(1.0, rel=0.03)
    assert largest <= p99 * 1.03


def test_the_excerpt_of_the_emitted_code_is_there(watch):
    (result,) = compile_specs(Path("specs"), Path("generated"))
    text = "\n".join(
        " ".join(line.split()) for line in result.files["launches/train_fused_1.cu"].splitlines()
    )
    assert "\n".join(" ".join(line.split()) for line in fenced("cpp").splitlines()) in text
    assert (result.summary.declared, result.summary.launches) == (7, 5)


def test_the_error_that_it_shows_is_the_error(watch, capsys):
    spec = watch / "specs/watch/watch.yaml"
    spec.write_text(spec.read_text().replace("limit: X_BOUND", "limit: x"))
    compiled(2)
    shown = "".join(f"    {line}\n" for line in capsys.readouterr().err.splitlines())
    assert shown in README


def test_its_first_screen_has_the_two_commands():
    first = "\n".join(README.splitlines()[:20])
    assert "pip install uv && uv run foxhunt demo" in first
    assert "pip install uv && uv run pytest" in first

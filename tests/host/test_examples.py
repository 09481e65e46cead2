"""The planted-edge example trains, trades and keeps its signals; a user's mistake is a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from foxhunt.runtime.telemetry import read_metrics

ROOT = Path(__file__).parents[2]


def example(script, *arguments):
    command = [sys.executable, str(ROOT / "examples" / script), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def planted_edge(out, *arguments):
    return example("planted_edge.py", "--variant", "tiny", "--backend", "host", "--out", out, *arguments)


def test_it_prints_every_arm_on_as_many_unseen_paths_as_asked_and_draws_its_signals(tmp_path):
    done = planted_edge(tmp_path / "a.b", "--steps", 30, "--paths", 12)
    assert done.returncode == 0, done.stderr
    table = done.stdout.partition("\n\n")[2].splitlines()
    assert table[0].startswith("16 unseen paths of 16 bars")  # two rounds of 8
    arms = [line[:20].strip() for line in table[2:]]
    assert arms == [
        "greedy policy",
        "always flat",
        "buy and hold",
        "random actions",
        "moving average",
        "sees the deviation",
    ]
    metrics = tmp_path / "a.b.jsonl"
    assert [record["step"] for record in read_metrics(metrics)] == [20, 30]
    assert example("plot_signals.py", metrics, tmp_path / "x.png").returncode == 0
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_real_bars_have_the_errors_of_overlapping_windows(tmp_path):
    done = planted_edge(tmp_path / "bars", "--steps", 5, "--bars")
    assert done.returncode == 0, done.stderr
    assert "8 unseen paths" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--steps", 0), "0 is not in the range"),
        (("--paths", -3), "-3 is not in the range"),
        (("--test-seed", 1), "1 is not in the range"),
        (("--variant", "nope"), "'nope' is not one of"),
        (("--rate", "nan", "--steps", 5), "FH542"),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path, arguments, said):
    done = planted_edge(tmp_path / "out", *arguments)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("metrics", "image", "said"),
    [
        ("missing.jsonl", "x.png", "does not exist"),
        ("empty.jsonl", "x.png", "no signal changes"),
        ("wrong.jsonl", "x.png", "FH549"),
        ("empty.jsonl", "x.txt", "name the image .png or .svg"),
    ],
)
def test_plotting_says_what_is_wrong_with_its_files(tmp_path, metrics, image, said):
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "wrong.jsonl").write_text("hello\nworld\n")
    done = example("plot_signals.py", tmp_path / metrics, tmp_path / image)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr

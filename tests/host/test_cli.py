"""The command line as a user meets it: what it prints, what it leaves behind, how it exits."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from foxhunt.cli import COMMANDS, main
from foxhunt.runtime.telemetry import read_metrics

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A project like a fresh clone."""
    root = tmp_path_factory.mktemp("project")
    for folder in ("specs", "templates", "examples", "generated"):
        shutil.copytree(ROOT / folder, root / folder)
    return root


@pytest.fixture
def project(whole, tmp_path, monkeypatch):
    """A copy of it that a test may change, as the working directory."""
    root = tmp_path / "project"
    shutil.copytree(whole, root)
    monkeypatch.chdir(root)
    return root


def foxhunt(*arguments):
    """The exit code of a command run in this process."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return stop.value.code


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches(command, capsys):
    assert foxhunt(command, "--help") == 0
    assert f"foxhunt {command}" in capsys.readouterr().out


def test_help_lists_every_command(capsys):
    assert foxhunt("--help") == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["complie"], "foxhunt compile"),
        (["train", "axu"], "did you mean `aux`"),
        (["train", "aux", "--variant", "dmeo"], "demo"),
        (["train", "aux", "--set", "LRR=1"], "Did you mean LR?"),
        (["train", "aux", "--set", "LR=fast"], "SLOT=NUMBER"),
        (["train", "aux", "--set", "LR=inf"], "finite"),
        (["train", "aux", "--set", "GRAD_CLIP_BOUND=1"], "GRAD_CLIP_BOUND"),
        (["train", "aux", "--step", "trian"], "train"),
        (["train", "aux", "--dim", "B=many"], "NAME=NUMBER"),
        (["train", "aux", "--resume", "nowhere.safetensors"], "nowhere.safetensors"),
        (["compile", "nowhere"], "nowhere"),
        (["compile", "specs", "--variant", "demo"], "--out"),
        (["rule", "FH999"], "FH999"),
    ],
)
def test_wrong_arguments_are_refused_with_a_hint_and_leave_nothing(project, capsys, arguments, words):
    assert foxhunt(*arguments) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert "Traceback" not in shown
    assert not (project / "runs").exists()


def test_a_fresh_clone_is_fresh_and_compiling_it_changes_nothing(project, capsys):
    before = {p: p.stat().st_mtime_ns for p in (project / "generated").rglob("*") if p.is_file()}
    assert foxhunt("check", "specs/") == 0
    assert foxhunt("compile", "specs/") == 0
    assert {p: p.stat().st_mtime_ns for p in (project / "generated").rglob("*") if p.is_file()} == before
    assert "163,975" in capsys.readouterr().out


def test_check_names_a_generated_file_edited_by_hand(project, capsys):
    edit(project / "generated/aux/kernels/rms.cuh", "sum", "sun")
    assert foxhunt("check", "specs/") == 1
    assert "generated/aux/kernels/rms.cuh" in capsys.readouterr().err


def test_check_and_compile_name_a_slot_that_moved(project, capsys):
    edit(project / "specs/aux/isv.yaml", "{name: LR, ", "{name: LR, index: 40, ")
    for command in ("check", "compile"):
        assert foxhunt(command, "specs/") == 1
        shown = capsys.readouterr().err
        assert "specs/aux/isv.yaml:3" in shown
        assert "move isv 0 LR" in shown
    assert foxhunt("compile", "specs/", "--break", "LR") == 0
    assert foxhunt("check", "specs/") == 0


def test_a_signal_that_was_never_observed_says_so(project, capsys):
    run = ("train", "aux", "--variant", "tiny", "--backend", "host", "--steps", "1")
    assert foxhunt(*run, "--step", "evaluate", "--out", "held_out") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "LR 0.0003 GRAD_CLIP_BOUND not observed" in shown
    assert "adam_t 0" in shown
    assert foxhunt(*run, "--out", "trained") == 0
    assert "not observed" not in capsys.readouterr().out


def test_check_names_what_a_changed_template_makes_stale(project, capsys):
    edit(project / "templates/kernels/rms.cu.j2", "struct Pass0", "// changed\nstruct Pass0")
    assert foxhunt("check", "specs/") == 1
    assert "kernels/rms.cuh" in capsys.readouterr().err


def test_findings_of_all_programs_come_together(project, capsys):
    shutil.copytree(project / "specs/aux", project / "specs/other")
    edit(project / "specs/other/program.yaml", "program: aux", "program: other")
    for name in ("aux", "other"):
        edit(project / f"specs/{name}/steps.yaml", "y: h2}", "y: h3}")
    assert foxhunt("compile", "specs/") == 2
    shown = capsys.readouterr().err
    assert "specs/aux/steps.yaml" in shown
    assert "specs/other/steps.yaml" in shown


def train(*arguments):
    return foxhunt("train", "aux", "--variant", "demo", "--backend", "host", *arguments)


def test_a_run_leaves_metrics_a_checkpoint_and_a_report_and_can_be_continued(project, capsys):
    assert train("--steps", "4", "--set", "LR=1e-3", "--out", "four") == 0
    records = read_metrics(project / "four/metrics.jsonl")
    assert [r["step"] for r in records] == [1, 2, 3, 4]
    assert {round(r["LR"], 9) for r in records} == {1e-3}
    assert "<svg" in (project / "four/report.html").read_text()
    assert train("--steps", "2", "--set", "LR=1e-3", "--out", "two") == 0
    assert train("--steps", "2", "--resume", "two/checkpoint.safetensors", "--out", "more") == 0
    whole, continued = (project / f / "checkpoint.safetensors" for f in ("four", "more"))
    assert whole.read_bytes() == continued.read_bytes()
    kept = {p: p.read_bytes() for p in (project / "two").rglob("*") if p.is_file()}
    for resumed in ((), ("--resume", "four/checkpoint.safetensors")):
        assert train("--steps", "2", "--out", "two", *resumed) == 2
    assert "error[FH550] the run folder holds a run already" in capsys.readouterr().err
    assert {p: p.read_bytes() for p in (project / "two").rglob("*") if p.is_file()} == kept
    assert train("--steps", "1", "--resume", "two/checkpoint.safetensors", "--out", "two") == 0
    assert [r["step"] for r in read_metrics(project / "two/metrics.jsonl")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("out", "held"),
    [
        ("specs", "specs: aux/program.yaml"),
        ("specs/kernels", "specs: "),
        ("generated", "a compiled program"),
        ("generated/aux", "a compiled program"),
    ],
)
def test_a_run_is_not_mixed_into_specs_or_a_compiled_program(project, capsys, out, held):
    before = set(project.rglob("*"))
    assert train("--steps", "1", "--out", out) == 2
    shown = capsys.readouterr().err
    assert f"{out}: error[FH550] the run folder holds {held}" in shown
    assert "--out" in shown
    assert set(project.rglob("*")) == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_between_steps_and_keeps_a_checkpoint(project, number, code):
    command = [sys.executable, "-m", "foxhunt", "train", "aux", "--variant", "demo", "--backend", "host"]
    command += ["--steps", "1000000", "--every", "1", "--out", "long"]
    # A suite started in the background ignores SIGINT, and so would the child.
    process = subprocess.Popen(
        command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    )
    metrics = project / "long/metrics.jsonl"
    try:
        deadline = time.monotonic() + 120
        while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(60) == code
    finally:
        process.kill()
    assert train("--steps", "1", "--resume", "long/checkpoint.safetensors", "--out", "on") == 0
    last = read_metrics(metrics)[-1]["step"]
    assert read_metrics(project / "on/metrics.jsonl")[0]["step"] >= last + 1


def test_without_a_compiler_the_specs_still_compile_and_the_message_says_what_to_install(project, capfd):
    environment = {k: v for k, v in os.environ.items() if k != "CXX"} | {"PATH": str(project / "empty")}
    process = subprocess.run(
        [sys.executable, "-m", "foxhunt", "demo", "--backend", "host"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 2
    assert "aux (demo)" in process.stdout.replace("\n", " ")
    assert "FH461" in process.stderr
    assert "g++" in process.stderr
    assert "Traceback" not in process.stderr
    assert not list(project.glob("runs/*"))


def test_the_demo_beats_both_baselines_on_bars_it_never_saw(project, capsys):
    assert foxhunt("demo", "--backend", "host", "--out", "demo") == 0
    shown = capsys.readouterr().out
    assert shown.count("beaten") == 2
    assert "NOT beaten" not in shown
    page = (project / "demo/report.html").read_text()
    assert "best constant class in hindsight" in page
    assert not re.search(r"<script|<link|<img|(src|href)=.http", page)
    manifest = json.loads((project / "demo/program/manifest.json").read_text())
    assert manifest["program"] == "aux"

"""`foxhunt init`, `watch` and `doctor`: a project from nothing, kept compiled, on a machine that is known."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from cli_toy import BODY, SPEC

from foxhunt.backend.host_toolchain import find_toolchain
from foxhunt.cli import watch as watching
from foxhunt.diagnostics import extra
from foxhunt.reference.project import load_project_references
from foxhunt.reference.registry import REFERENCES
from foxhunt.spec.library import library_root


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A project made by `foxhunt init`, and what the command printed."""
    folder = tmp_path_factory.mktemp("init") / "My Project!"
    done = subprocess.run(
        [sys.executable, "-m", "foxhunt", "init", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_a_project_from_nothing_is_compiled_and_fresh(made, foxhunt):
    folder, told = made
    assert "uv run foxhunt train fit" in told
    assert foxhunt("check", folder / "specs").code == 0
    assert "no change" in foxhunt("diff", folder / "generated", folder / "specs").out
    assert f"cd '{folder}'" in told
    assert 'name = "my-project"' in (folder / "pyproject.toml").read_text()
    for path in (".gitignore", ".github/workflows/check.yml", "README.md", "generated/fit/layout.lock"):
        assert (folder / path).is_file()
    assert not (folder / "specs/kernels/linear.yaml").exists()
    assert (folder / "generated/fit/kernels/linear.cuh").is_file()


def test_the_projects_own_tests_pass_and_it_trains(made):
    folder, _ = made
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "tests"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    command = [
        sys.executable,
        "-m",
        "foxhunt",
        "train",
        "fit",
        "--steps",
        "20",
        "--backend",
        "host",
        "--out",
        "runs/a",
    ]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "runs/a/checkpoint.safetensors").is_file()


def test_a_template_of_the_project_goes_before_the_built_in_one(made, tmp_path, foxhunt):
    folder = tmp_path / "copy"
    shutil.copytree(made[0], folder)
    text = (library_root() / "templates/kernels/mean.cu.j2").read_text()
    (folder / "templates/kernels/mean.cu.j2").write_text(
        text.replace("{{ arguments }}", "// own\n{{ arguments }}")
    )
    assert foxhunt("compile", folder / "specs").code == 0
    assert "// own" in (folder / "generated/fit/kernels/mean.cuh").read_text()


def test_references_of_the_project_are_found_and_mistakes_in_them_named(made, tmp_path):
    load_project_references(made[0] / "specs")
    assert {"draw_plane", "squared_error"} <= REFERENCES.keys()
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference/wrong.py").write_text("x = 1\n\ny = 1 / 0\n")
    with pytest.raises(Exception, match=r"wrong\.py:3: error\[FH567\].*ZeroDivisionError"):
        load_project_references(tmp_path / "specs")
    (tmp_path / "reference/wrong.py").write_text("x = (\n")
    with pytest.raises(Exception, match=r"FH567.*SyntaxError"):
        load_project_references(tmp_path / "specs")


def test_a_folder_that_holds_something_is_left_alone(tmp_path, foxhunt):
    (tmp_path / "notes.txt").write_text("mine")
    done = foxhunt("init", tmp_path)
    assert (done.code, "error[FH613]" in done.err) == (2, True)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]
    assert foxhunt("init", tmp_path / "notes.txt").code == 2
    done = foxhunt("init", "/proc/none/project")
    assert (done.code, "error[FH613]" in done.err) == (2, True)
    assert foxhunt("init").code == 2


def test_an_empty_repository_may_be_filled(tmp_path, foxhunt):
    (tmp_path / ".git").mkdir()
    assert foxhunt("init", tmp_path).code == 0
    assert (tmp_path / "generated/fit/trainer.py").is_file()


# --- watch


def edits(project, *texts):
    """A round before the first edit, and one after each."""
    yield
    for text in texts:
        (project / "specs/toy/program.yaml").write_text(text)
        yield


def test_each_change_is_compiled_with_what_it_means_and_mistakes_are_survived(project, capsys):
    reset = SPEC.replace("{name: PEAK, reset: fold}", "{name: PEAK, reset: never}")
    moved = reset.replace("name: GAIN,", "name: GAIN, index: 7,")
    rounds = edits(project, reset, "program: [", moved, reset + "\n# a word\n")
    watching.follow(Path("specs"), (), rounds)
    blocks = capsys.readouterr().out.split("\n\n")
    assert "append    program toy" in blocks[0]
    assert "reset     slot PEAK: reset fold → reset never" in blocks[1]
    assert "error[FH102]" in blocks[2]
    assert "move      slot GAIN" in blocks[3]
    assert "error[FH603]" in blocks[3]
    assert "nothing was written" in blocks[3]
    assert "toy: no change" in blocks[4]
    lock = (project / "generated/toy/layout.lock").read_text()
    assert "isv 0 GAIN" in lock


def test_a_damaged_manifest_is_told_and_mended(project, capsys):
    def rounds():
        yield
        (project / "generated/toy/manifest.json").write_text("{")
        yield
        yield

    watching.follow(Path("specs"), (), rounds())
    blocks = capsys.readouterr().out.split("\n\n")
    assert "error[FH612]" in blocks[1]
    assert "toy: no change" in blocks[2]


def test_changes_are_seen_once_still(project, monkeypatch):
    template = project / "templates/kernels/scaled.cu.j2"
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 5:
            template.write_text(BODY + "\n")
        if len(waits) == 9:
            (project / "specs/toy/.swp.yaml").write_text("x")
            (project / "specs/toy/notes.txt").write_text("x")
        if len(waits) == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "sleep", sleep)
    seen = []
    with suppress(KeyboardInterrupt):
        for _ in watching.changes((project / "specs", project / "templates"), 0.5):
            seen.append(len(waits))
    assert len(seen) == 2
    assert seen[1] > 5


def test_ctrl_c_ends_watching(project, foxhunt, monkeypatch):
    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "sleep", stop)
    done = foxhunt("watch")
    assert done.code == 130
    assert "watching specs" in done.out


# --- doctor


@pytest.fixture
def toolchain():
    find_toolchain.cache_clear()
    yield
    find_toolchain.cache_clear()


def abilities(done):
    return {a["name"]: a for a in json.loads(done.out)["abilities"]}


def test_the_doctor_says_what_works_and_how_to_get_the_rest(foxhunt):
    done = foxhunt("doctor", "--format", "json")
    found = abilities(done)
    assert done.code == 0
    assert found["host backend"]["there"]
    assert all(a["mend"] for a in found.values() if not a["there"])
    board = found["TensorBoard"]
    assert board["there"] or board["mend"] == extra("tensorboard")
    text = foxhunt("doctor").out
    assert "host backend" in text
    assert "cores" in text


def test_without_a_compiler_nothing_runs_and_the_doctor_exits_1(foxhunt, monkeypatch, toolchain):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("foxhunt.backend.host_toolchain.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("foxhunt.backend.cuda.unavailable", lambda: "no GPU")
    done = foxhunt("doctor", "--format", "json")
    found = abilities(done)
    assert done.code == 1
    assert "apt install g++" in found["host backend"]["mend"]
    assert not found["git"]["there"]


def test_a_compiler_that_does_not_compile_is_found_out(foxhunt, monkeypatch, toolchain, tmp_path):
    fake = tmp_path / "fake-cxx"
    fake.write_text('#!/bin/sh\ncase "$1" in --version) echo fake 1.0;; *) echo broken >&2; exit 1;; esac\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    monkeypatch.setattr("foxhunt.backend.cuda.unavailable", lambda: "no GPU")
    done = foxhunt("doctor")
    assert done.code == 1
    assert "fake 1.0 does not compile: broken" in done.out


def test_a_cache_that_cannot_be_written_is_told(foxhunt, monkeypatch):
    monkeypatch.setenv("FOXHUNT_CACHE", "/proc/none")
    found = abilities(foxhunt("doctor", "--format", "json"))
    assert not found["kernel cache"]["there"]
    assert "FOXHUNT_CACHE" in found["kernel cache"]["mend"]

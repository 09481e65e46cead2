"""docs/own-project.md does what it says: its files are written, its commands run, their output compared."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import foxhunt
from foxhunt.runtime.tensorfile import read_tensors

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.S | re.M)


def run(folder, line, expected):
    command = shlex.split(line.removeprefix("uv run "))
    assert command[0] == "foxhunt", line
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    del environment["FOXHUNT_CACHE"]  # kernels that have not changed are not built at every test run
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expected, f"{line}\n{done.stdout}{done.stderr}"
    return " ".join(done.stdout.split())


def edited(text, change):
    """`text` with a diff's lines applied: what is kept or removed must stand there once, in order."""
    old = "".join(f"{row[1:]}\n" for row in change.splitlines() if row[0] in " -")
    new = "".join(f"{row[1:]}\n" for row in change.splitlines() if row[0] in " +")
    assert text.count(old) == 1, change
    return text.replace(old, new)


def test_the_tutorial_is_what_happens(tmp_path):
    folder, output = tmp_path / "foxhunt", ""
    folder.mkdir()
    for language, where, text in BLOCK.findall((ROOT / "docs/own-project.md").read_text()):
        if language == "sh":
            output = ""
            for line in text.splitlines():
                if line.startswith("cd "):
                    folder = (folder / line[3:]).resolve()
                    continue
                output += run(folder, line, 1 if where == "exits 1" else 0)
        elif language == "text":
            for line in text.splitlines():
                assert " ".join(line.split()) in output, f"{line}\n{output}"
        elif language == "diff":
            (folder / where).write_text(edited((folder / where).read_text(), text))
        else:
            (folder / where).write_text(text)
    before, _ = read_tensors(folder / "runs/first/checkpoint.safetensors")
    after, _ = read_tensors(folder / "runs/third/checkpoint.safetensors")
    assert (before["counters"][0], after["counters"][0]) == (200, 400)
    with foxhunt.load(folder / "generated/fit", backend="host") as trainer:
        trainer.load(folder / "runs/third/checkpoint.safetensors")
        assert 0 < trainer.signals["LOSS_EMA"] < trainer.signals["WORST_LOSS_EMA"]

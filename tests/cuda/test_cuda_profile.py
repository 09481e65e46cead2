"""`foxhunt profile` on the GPU: every launch is timed, and so are copies of the device's memory."""

import json
from pathlib import Path

import pytest

from foxhunt.cli import main

ROOT = Path(__file__).parents[2]


def test_the_copy_rate_is_that_of_device_memory(backend):
    assert 5e10 < backend.copy_rate() < 2e13


def test_a_step_is_timed_launch_by_launch(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    out = tmp_path / "trace.json"
    with pytest.raises(SystemExit) as stop:
        main(["profile", "aux", "--variant", "demo", "--backend", "cuda", "--out", str(out)])
    assert stop.value.code == 0
    slices = [e for e in json.loads(out.read_text())["traceEvents"] if e["ph"] == "X"]
    assert {"train.ingest", "train.forward.l1", "train.publish"} <= {e["name"] for e in slices}
    assert all(0 < e["dur"] < 10_000 for e in slices)

from __future__ import annotations

import json
import os

import pytest

from foxhunt.diagnostics import EmissionError
from foxhunt.emit.store import stale, store


def files_of(**texts):
    files = {name.replace("__", "/").replace("_", "."): text for name, text in texts.items()}
    return {**files, "manifest.json": json.dumps({"files": sorted([*files, "manifest.json"])})}


def test_only_what_changed_is_written(tmp_path):
    files = files_of(launches__a_cu="a\n", b_cu="b\n")
    assert store(files, tmp_path).written == ("b.cu", "launches/a.cu", "manifest.json")
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    assert store(files, tmp_path) == store(files, tmp_path)
    assert not store(files, tmp_path).written
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before


def test_stale_files_go_and_foreign_ones_stay(tmp_path):
    store(files_of(launches__a_cu="a\n", b_cu="b\n"), tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    done = store(files_of(b_cu="b\n"), tmp_path)
    assert done.removed == ("launches/a.cu",)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["b.cu", "manifest.json", "notes.txt"]


@pytest.mark.parametrize("listed", ["../outside", "/etc/hostname", "a/../../outside", 7, "nothing"])
def test_a_forged_manifest_removes_nothing_outside(tmp_path, listed):
    folder = tmp_path / "generated"
    folder.mkdir()
    (tmp_path / "outside").write_text("keep")
    (folder / "manifest.json").write_text(json.dumps({"files": [listed]}))
    assert store(files_of(b_cu="b\n"), folder).removed == ()
    assert (tmp_path / "outside").read_text() == "keep"


def test_a_damaged_manifest_prunes_nothing(tmp_path):
    (tmp_path / "manifest.json").write_text("{")
    (tmp_path / "old.cu").write_text("?")
    assert store(files_of(b_cu="b\n"), tmp_path).removed == ()


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "", "a\\b", "a\0b"])
def test_a_path_that_leaves_the_folder_is_refused(tmp_path, path):
    with pytest.raises(EmissionError, match="FH408"):
        store({path: ""}, tmp_path)


def test_a_failure_leaves_the_old_files_and_no_temporary_ones(tmp_path, monkeypatch):
    store(files_of(a_cu="old\n", b_cu="old\n"), tmp_path)
    written = 0
    fdopen = os.fdopen

    def full_disk(*args, **kwargs):
        nonlocal written
        written += 1
        if written == 2:
            raise OSError(28, "No space left on device")
        return fdopen(*args, **kwargs)

    monkeypatch.setattr(os, "fdopen", full_disk)
    with pytest.raises(EmissionError, match="No space left on device"):
        store(files_of(a_cu="new\n", b_cu="new\n"), tmp_path)
    assert {p.name: p.read_text() for p in tmp_path.glob("*.cu")} == {"a.cu": "old\n", "b.cu": "old\n"}
    assert not list(tmp_path.glob(".foxhunt-*"))


def test_stale_says_what_and_where(tmp_path):
    store(files_of(a_cu="1\n2\n3\n", b_cu="b\n", c_cu="c\n"), tmp_path)
    (tmp_path / "a.cu").write_text("1\nx\n3\n")
    (tmp_path / "b.cu").unlink()
    found = {d.path: d for d in stale(files_of(a_cu="1\n2\n3\n", b_cu="b\n"), tmp_path)}
    assert found["a.cu"].line == 2
    assert found["b.cu"].reason == "is missing"
    assert found["c.cu"].reason == "is no longer generated"
    assert (
        stale(files_of(a_cu="1\n2\n3\n", b_cu="b\n", c_cu="c\n"), tmp_path / "nowhere")[0].reason
        == "is missing"
    )


def test_line_ends_count(tmp_path):
    store(files_of(a_cu="1\n"), tmp_path)
    (tmp_path / "a.cu").write_bytes(b"1\r\n")
    assert [d.path for d in stale(files_of(a_cu="1\n"), tmp_path)] == ["a.cu"]


def test_thousands_of_files_are_no_matter(tmp_path):
    files = files_of(**{f"f{i}_cu": "x\n" for i in range(2_000)})
    assert len(store(files, tmp_path).written) == 2_001
    assert stale(files, tmp_path) == ()

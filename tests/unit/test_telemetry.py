import json
import math
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from foxhunt.diagnostics import DataError, TrainerError, extra
from foxhunt.runtime.telemetry import MetricsWriter, flatten, read_metrics


def test_records_read_back_with_arrays_by_element_and_nan_as_null(tmp_path):
    path = tmp_path / "run" / "metrics.jsonl"
    with MetricsWriter(path) as writer:
        writer.write(
            1, {"loss": np.float32(0.5), "WEIGHT_BOUND": np.float32([1, math.nan]), "t": np.int64(2**60)}
        )
        writer.write(2, {"loss": math.inf})
    first, second = read_metrics(path)
    assert first["loss"] == 0.5
    assert first["WEIGHT_BOUND[0]"] == 1.0
    assert first["WEIGHT_BOUND[1]"] is None
    assert first["t"] == 2**60
    assert second["loss"] is None
    assert [first["step"], second["step"]] == [1, 2]
    assert second["seconds"] >= first["seconds"]
    assert "NaN" not in path.read_text()


def test_each_line_is_on_file_at_once_and_runs_append(tmp_path):
    path = tmp_path / "m.jsonl"
    writer = MetricsWriter(path)
    writer.write(1, {"a": 1})
    assert len(path.read_text().splitlines()) == 1
    writer.close()
    writer.close()
    with MetricsWriter(path) as writer:
        writer.write(2, {"a": 2})
    assert [r["a"] for r in read_metrics(path)] == [1, 2]


def test_a_last_line_cut_off_by_a_kill_is_left_out_and_other_damage_is_named(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text('{"step": 1}\n{"step": 2, "lo')
    assert read_metrics(path) == [{"step": 1}]
    path.write_text('{"step": 1}\nnope\n{"step": 3}\n')
    with pytest.raises(DataError) as error:
        read_metrics(path)
    assert error.value.diagnostics[0].location.line == 2


def test_missing_files_and_folders_are_one_clear_message(tmp_path):
    with pytest.raises(DataError):
        read_metrics(tmp_path / "no")
    with pytest.raises(TrainerError, match="cannot write metrics"):
        MetricsWriter(tmp_path)


@contextmanager
def room_for(size):
    """Files of this process may grow to `size` bytes, as on a disk that fills up in mid-write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_clear_message_and_leaves_whole_lines(tmp_path):
    path = tmp_path / "m.jsonl"
    with MetricsWriter(path) as writer:
        writer.write(1, {"a": 1})
        before = path.read_bytes()
        with room_for(len(before) + 10), pytest.raises(TrainerError, match=r"FH548.*cannot write metrics"):
            writer.write(2, {"a": 2})
        assert path.read_bytes() == before
        writer.write(3, {"a": 3})
    assert [r["step"] for r in read_metrics(path)] == [1, 3]
    with pytest.raises(TrainerError, match="cannot write metrics"):
        MetricsWriter(Path("/dev/full")).write(1, {"a": 1})


@pytest.mark.parametrize("tail", ["", '{"step": 2, "lo', '{"step": 2, "x": "' + 9000 * "y"])
def test_appending_after_a_kill_drops_the_cut_line(tmp_path, tail):
    path = tmp_path / "m.jsonl"
    path.write_text('{"step": 1}\n' + tail)
    with MetricsWriter(path) as writer:
        writer.write(3, {})
    assert [r["step"] for r in read_metrics(path)] == [1, 3]
    path.write_text(tail)
    MetricsWriter(path).close()
    assert path.read_text() == ""


def test_scalars_keep_their_kind():
    assert flatten({"i": 3, "f": 3.0, "z": np.array(2)}) == {"i": 3, "f": 3.0, "z": 2}


def test_tensorboard_gets_what_is_finite(tmp_path, monkeypatch):
    seen = []

    class SummaryWriter:
        def __init__(self, folder):
            seen.append(folder)

        def add_scalar(self, name, value, step):
            seen.append((name, value, step))

        def close(self):
            seen.append("closed")

    board = type("tensorboardX", (), {"SummaryWriter": SummaryWriter})
    monkeypatch.setitem(__import__("sys").modules, "tensorboardX", board)
    with MetricsWriter(tmp_path / "m", tmp_path / "tb") as writer:
        writer.write(4, {"a": 1.0, "b": math.nan})
    assert seen == [str(tmp_path / "tb"), ("a", 1.0, 4), "closed"]


def test_tensorboard_without_its_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorboardX", None)
    with pytest.raises(TrainerError) as caught:
        MetricsWriter(tmp_path / "m", tmp_path / "tb")
    assert extra("tensorboard") in caught.value.diagnostics[0].help


def test_the_writer_survives_json_of_odd_names(tmp_path):
    with MetricsWriter(tmp_path / "m") as writer:
        writer.write(0, {'a"b\n': 1})
    assert json.loads((tmp_path / "m").read_text())['a"b\n'] == 1

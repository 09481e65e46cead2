"""Cases 40–42: killed at every write, cut at every byte, hostile headers, other layouts and dtypes."""

import contextlib
import json
import os
import struct

import numpy as np
import pytest
from runtime_toy import plan

from foxhunt.backend.plan import Buffer, View
from foxhunt.diagnostics import CheckpointError
from foxhunt.dtypes import DTYPES
from foxhunt.runtime import checkpoint
from foxhunt.runtime.tensorfile import _DamagedError, parse, read_tensors, write_tensors


def tensors(the_plan=None):
    found = {}
    for k, e in enumerate(checkpoint.entities(the_plan or plan())):
        found[e.name] = (np.arange(e.count) + k).astype(DTYPES[e.dtype].numpy).reshape(e.shape)
    return found


def saved(tmp_path, the_plan=None, **changes):
    path = tmp_path / "a.safetensors"
    checkpoint.save(path, the_plan or plan(), tensors(the_plan) | changes)
    return path


def test_a_checkpoint_holds_each_tensor_under_its_own_name_and_system_state_whole():
    names = [e.name for e in checkpoint.entities(plan())]
    assert names == ["isv", "wiener", "counters", "seed", "w", "b", "w.m", "b.m", "trace", "ones"]


def test_saving_and_loading_gives_the_same_bits(tmp_path):
    loaded, warnings = checkpoint.load(saved(tmp_path), plan())
    assert warnings == ()
    assert list(loaded) == sorted(loaded, key=list(loaded).index)
    for name, tensor in tensors().items():
        assert np.array_equal(loaded[name], tensor)
        assert loaded[name].dtype == tensor.dtype


def test_the_same_state_gives_the_same_bytes(tmp_path):
    first = saved(tmp_path).read_bytes()
    assert saved(tmp_path).read_bytes() == first


def test_the_safetensors_library_reads_it(tmp_path):
    from safetensors import safe_open

    with safe_open(saved(tmp_path), "np") as file:
        assert set(file.metadata()) == {"foxhunt"}
        assert json.loads(file.metadata()["foxhunt"])["layout"] == "a" * 64
        assert np.array_equal(file.get_tensor("w"), tensors()["w"])


def test_strided_and_fortran_arrays_keep_their_values(tmp_path):
    w = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2]
    loaded, _ = checkpoint.load(saved(tmp_path, w=w), plan())
    assert np.array_equal(loaded["w"], w)
    loaded, _ = checkpoint.load(saved(tmp_path, w=np.asfortranarray(w)), plan())
    assert np.array_equal(loaded["w"], w)
    loaded, _ = checkpoint.load(saved(tmp_path, w=w.astype(">f4")), plan())
    assert np.array_equal(loaded["w"], w)


@pytest.mark.parametrize("dtype", ["float64", "float16", "complex64"])
def test_a_dtype_without_a_place_in_the_layout_is_refused_when_saving(tmp_path, dtype):
    with pytest.raises(CheckpointError, match=f"w \\({dtype}\\)"):
        saved(tmp_path, w=np.zeros((4, 3), dtype))
    assert not list(tmp_path.iterdir())


# --- case 40


@pytest.mark.parametrize("call", ["open", "write", "fsync", "close", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_save_that_dies_at_any_call_leaves_the_old_file_whole(tmp_path, monkeypatch, call, error):
    path = saved(tmp_path)
    old = path.read_bytes()
    original = getattr(os, call)

    def broken(*args, **kwargs):
        if call == "write":
            original(args[0], bytes(args[1][:100]))  # a part reaches the disk
        if call == "close":
            original(*args)
        raise error

    monkeypatch.setattr(os, call, broken)
    expected = CheckpointError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        saved(tmp_path, b=np.float32([9, 9, 9]))
    monkeypatch.undo()
    if expected is CheckpointError:
        assert caught.value.diagnostics[0].code == "FH535"
        assert "No space left" in str(caught.value)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_the_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, n=name, o=original: (calls.append(n), o(*a))[1])
    saved(tmp_path)
    assert calls == ["fsync", "replace", "fsync"]


def test_short_writes_are_continued(tmp_path, monkeypatch):
    original = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: original(handle, bytes(data[:37])))
    loaded, _ = checkpoint.load(saved(tmp_path), plan())
    assert np.array_equal(loaded["trace"], tensors()["trace"])


def test_a_folder_that_is_not_there_is_one_clear_message(tmp_path):
    with pytest.raises(CheckpointError, match="No such file"):
        checkpoint.save(tmp_path / "no" / "a", plan(), tensors())


def test_a_file_cut_at_any_byte_is_refused_with_a_named_error(tmp_path):
    path = saved(tmp_path)
    data = path.read_bytes()
    for length in range(len(data)):
        with pytest.raises(ValueError, match=r"."):
            parse(data[:length])
    path.write_bytes(data[:1000])
    with pytest.raises(CheckpointError) as error:
        read_tensors(path)
    assert error.value.diagnostics[0].code == "FH531"
    assert "cut off" in str(error.value) or "promised" in str(error.value)


def test_a_flipped_byte_in_the_header_is_refused_or_means_another_whole_file(tmp_path):
    data = bytearray(saved(tmp_path).read_bytes())
    length = struct.unpack("<Q", data[:8])[0]
    for at in range(8 + length):
        data[at] ^= 0x11
        with contextlib.suppress(_DamagedError):  # and nothing else
            parse(bytes(data))
        data[at] ^= 0x11


# --- cases 41 and 42


def file(header, body=b"", meta='{"foxhunt":"{}"}'):
    if isinstance(header, dict):
        header = json.dumps({"__metadata__": json.loads(meta), **header})
    raw = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(raw)) + raw + body


def entry(start, stop, dtype="F32", shape=None):
    return {
        "dtype": dtype,
        "shape": [(stop - start) // 4] if shape is None else shape,
        "data_offsets": [start, stop],
    }


META = '"__metadata__":{"foxhunt":"{}"}'
ONE = '"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
BAD = {
    "no bytes": (b"", "no header"),
    "header past the end": (struct.pack("<Q", 2**63) + b"{}", "cut off"),
    "not JSON": (file("{"), "not JSON"),
    "not UTF-8": (file(b"\xff\xfe"), "not JSON"),
    "nested too deep": (file("[" * 100_000), "not JSON"),
    "not an object": (file("[1]"), "not a JSON object"),
    "no metadata": (file("{" + ONE + "}", b"abcd"), "foxhunt did not write it"),
    "metadata not text": (file({}, meta='{"foxhunt":1}'), "foxhunt did not write it"),
    "metadata not JSON": (file({}, meta='{"foxhunt":"x"}'), "metadata is not JSON"),
    "duplicate tensor": (file("{" + META + "," + ONE + "," + ONE + "}", b"abcd"), "key 'a' twice"),
    "duplicate escaped": (
        file("{" + META + "," + ONE + "," + ONE.replace('"a"', '"\\u0061"') + "}", b"abcd"),
        "twice",
    ),
    "duplicate field": (
        file("{" + META + ',"a":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}}'),
        "twice",
    ),
    "overlap": (file({"a": entry(0, 8), "b": entry(4, 12)}, bytes(12)), "overlaps"),
    "gap": (file({"a": entry(0, 4), "b": entry(8, 12)}, bytes(12)), "leaves a gap"),
    "late start": (file({"a": entry(4, 8)}, bytes(8)), "leaves a gap"),
    "past the end": (file({"a": entry(0, 8)}, bytes(4)), "8 bytes of data are promised and 4 are there"),
    "trailing bytes": (file({"a": entry(0, 4)}, bytes(5)), "1 bytes trail"),
    "wrong size": (file({"a": entry(0, 8, shape=[3])}, bytes(8)), "needs 12 bytes"),
    "backwards": (
        file({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}, bytes(4)),
        "needs 4 bytes",
    ),
    "float64": (file({"a": entry(0, 8, "F64", [1])}, bytes(8)), "'F64'"),
    "bf16": (file({"a": entry(0, 2, "BF16", [1])}, bytes(2)), "'BF16'"),
    "negative": (file({"a": entry(0, 4, shape=[-1])}, bytes(4)), "no sound shape"),
    "float shape": (file({"a": entry(0, 4, shape=[1.0])}, bytes(4)), "no sound shape"),
    "bool shape": (file({"a": entry(0, 4, shape=[True])}, bytes(4)), "no sound shape"),
    "huge shape": (file({"a": entry(0, 4, shape=[2**62, 2**62])}, bytes(4)), "needs"),
    "three offsets": (
        file({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 4]}}, bytes(4)),
        "no sound",
    ),
    "extra field": (file({"a": {**entry(0, 4), "x": 1}}, bytes(4)), "must have dtype"),
    "no entry": (file({"a": 3}), "must have dtype"),
    "dtype a list": (file({"a": {**entry(0, 4), "dtype": []}}, bytes(4)), "dtype []"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_readers_could_understand_differently_is_refused(tmp_path, name):
    data, words = BAD[name]
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(CheckpointError) as error:
        read_tensors(path)
    assert error.value.diagnostics[0].code == "FH531"
    assert words in str(error.value)


def test_a_missing_file_or_a_folder_is_one_clear_message(tmp_path):
    for path in (tmp_path / "no", tmp_path):
        with pytest.raises(CheckpointError, match="cannot be read"):
            read_tensors(path)


def test_another_layout_is_refused_naming_both_sides(tmp_path):
    path = saved(tmp_path)
    lines = (
        *(line.replace("w f32 [4,3]", "w f32 [4,4]") for line in plan().layout_lines),
        "isv 9 NEW f32 [1]",
    )
    with pytest.raises(CheckpointError) as error:
        checkpoint.load(path, plan(layout_hash="d" * 64, layout_lines=lines))
    text = str(error.value)
    assert error.value.diagnostics[0].code == "FH532"
    assert "- param 0 w f32 [4,3]" in text
    assert "+ param 0 w f32 [4,4]" in text
    assert "+ isv 9 NEW f32 [1]" in text
    assert "param 12 b" not in text


def test_a_checkpoint_of_another_program_is_named_as_that_first(tmp_path):
    path = saved(tmp_path, plan(program="fit"))
    lines = (*plan().layout_lines, "isv 9 NEW f32 [1]")
    with pytest.raises(CheckpointError) as error:
        checkpoint.load(path, plan(program="reg", layout_hash="d" * 64, layout_lines=lines))
    message = error.value.diagnostics[0].message
    assert error.value.diagnostics[0].code == "FH532"
    assert message.startswith("this is a checkpoint of program fit (-), not reg (+)\n  + isv 9 NEW")


def test_many_weights_that_are_not_finite_are_counted_after_the_first(tmp_path):
    views = tuple(View(f"p{i}", "params", i, "f32", (1,)) for i in range(9))
    wide = plan(views=views)
    nan = {f"p{i}": np.full(1, np.nan, np.float32) for i in range(8)}
    _, (warning,) = checkpoint.load(saved(tmp_path, wide, **nan), wide)
    assert "p0 (1 of 1), p1 (1 of 1), p2 (1 of 1), p3 (1 of 1), p4 (1 of 1) and 3 more tensors." in str(
        warning.message
    )


def test_a_great_difference_names_the_first_entries_and_counts_the_rest(tmp_path):
    path = saved(tmp_path)
    lines = tuple(f"isv {i} S{i} f32 [1]" for i in range(100))
    with pytest.raises(CheckpointError, match="and 100 more entries"):
        checkpoint.load(path, plan(layout_hash="d" * 64, layout_lines=lines))


def test_retirement_notes_are_no_difference(tmp_path):
    path = saved(tmp_path)
    lines = (plan().layout_lines[0] + " # retired: not used", "isv 9 NEW f32 [1]", *plan().layout_lines[1:])
    with pytest.raises(CheckpointError) as error:
        checkpoint.load(path, plan(layout_hash="d" * 64, layout_lines=lines))
    assert "foxhunt.step" not in str(error.value)


def test_tensors_that_do_not_fit_are_all_named(tmp_path):
    path = tmp_path / "a"
    have = tensors() | {
        "w": np.zeros((3, 4), np.float32),
        "b": np.zeros(3, np.int32),
        "extra": np.zeros(1, np.uint8),
    }
    del have["trace"]
    checkpoint.save(path, plan(), have)
    with pytest.raises(CheckpointError) as error:
        checkpoint.load(path, plan())
    text = str(error.value)
    assert "w is float32 [3, 4], not float32 [4, 3]" in text
    assert "b is int32 [3], not float32 [3]" in text
    assert "trace is missing" in text
    assert "extra is not of this program" in text


def test_another_format_is_refused(tmp_path):
    write_tensors(tmp_path / "a", tensors(), {"format": 2})
    with pytest.raises(CheckpointError, match="checkpoint format 2"):
        checkpoint.load(tmp_path / "a", plan())


def test_other_semantics_and_state_left_out_are_warnings(tmp_path):
    path = saved(tmp_path)
    buffers = (*plan().buffers, Buffer("replay", "f32", 3, "state"))
    _, warnings = checkpoint.load(path, plan(semantics_hash="e" * 64, buffers=buffers))
    assert [w.severity for w in warnings] == ["warning", "warning"]
    assert "computed differently" in warnings[0].message
    assert "replay" in warnings[1].message


def test_values_that_are_not_finite_survive(tmp_path):
    w = np.full((4, 3), np.nan, np.float32)
    w.view(np.uint32)[0, 0] = 0x7FC0F0F0
    w[1] = np.inf
    w[2, 0] = -0.0
    w[2, 1] = 1e-45
    loaded, _ = checkpoint.load(saved(tmp_path, w=w), plan())
    assert loaded["w"].tobytes() == w.tobytes()

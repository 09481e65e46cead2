"""safetensors files: written canonically, read strictly.

The format: 8 bytes header length (little-endian), a JSON header of `name: {dtype, shape, data_offsets}`,
then the data. The reader refuses every file that two readers could understand differently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.diagnostics import CheckpointError, Location, fail
from foxhunt.runtime.atomic import write_atomic

Tensors = dict[str, NDArray[Any]]
METADATA = "foxhunt"  # the one metadata key: safetensors writes several in random order
_DTYPES = {"F32": "<f4", "I32": "<i4", "U32": "<u4", "I64": "<i8", "U8": "|u1"}
_NAMES = {np.dtype(numpy): name for name, numpy in _DTYPES.items()}
_LARGEST_HEADER = 100_000_000  # the limit of the safetensors library


class _DamagedError(ValueError):
    """What is wrong with a file, as text."""


def canonical_json(value: Any) -> str:
    """JSON with one form for one value: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Any) -> None:
    """Write tensors (f32, i32, u32, i64, u8; any strides) and metadata atomically. Raises CheckpointError."""
    from safetensors.numpy import save

    dense = {name: np.asarray(t, t.dtype.newbyteorder("<"), order="C") for name, t in tensors.items()}
    wrong = [f"{name} ({t.dtype})" for name, t in dense.items() if t.dtype not in _NAMES]
    if wrong:
        raise fail(CheckpointError, "FH533", f"cannot be stored: {', '.join(wrong)}", at=Location(str(path)))
    data = save(dense, metadata={METADATA: canonical_json(metadata)})
    try:
        write_atomic(path, data)
    except (OSError, ValueError) as error:  # a ValueError for what is the name of no file, such as "."
        message = f"checkpoint not written: {getattr(error, 'strerror', None) or error}"
        help = "The file that was there before, if any, is unchanged."
        raise fail(CheckpointError, "FH535", message, at=Location(str(path)), help=help) from error


def read_tensors(path: Path) -> tuple[Tensors, Any]:
    """(tensors, metadata) of a file. Raises CheckpointError for a file that is not whole and sound."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        message = f"checkpoint cannot be read: {getattr(error, 'strerror', None) or error}"
        raise fail(CheckpointError, "FH530", message, at=Location(str(path))) from error
    try:
        return parse(data)
    except _DamagedError as error:
        message = f"damaged checkpoint: {error}"
        help = "Use another checkpoint; foxhunt never leaves a half-written one."
        raise fail(CheckpointError, "FH531", message, at=Location(str(path)), help=help) from error


def parse(data: bytes) -> tuple[Tensors, Any]:
    """(tensors, metadata) of a file's bytes. Raises ValueError saying what is wrong."""
    if len(data) < 8:
        raise _DamagedError(f"{len(data)} bytes are no header")
    length = int.from_bytes(data[:8], "little")
    if length > min(len(data) - 8, _LARGEST_HEADER):
        raise _DamagedError(f"the header of {length} bytes is cut off after {len(data) - 8}")
    header = _json(data[8 : 8 + length], "header")
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get(METADATA), str):
        raise _DamagedError(f"it has no {METADATA!r} metadata, so foxhunt did not write it")
    spans = {name: _entry(name, entry) for name, entry in header.items()}
    body = memoryview(data)[8 + length :]
    _check_tiling(spans, len(body))
    tensors = {
        name: np.frombuffer(body[start:stop], _DTYPES[dtype]).reshape(shape)
        for name, (dtype, shape, start, stop) in spans.items()
    }
    return tensors, _json(metadata[METADATA].encode(), "metadata")


def _json(raw: bytes, what: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise _DamagedError(f"the {what} has the key {max(names, key=names.count)!r} twice")
        return dict(pairs)

    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)
    except _DamagedError:
        raise
    except (ValueError, RecursionError) as error:
        raise _DamagedError(f"the {what} is not JSON") from error
    if not isinstance(value, dict):
        raise _DamagedError(f"the {what} is not a JSON object")
    return value


def _entry(name: str, entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    """(dtype, shape, start, stop) of one tensor."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _DamagedError(f"tensor {name} must have dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise _DamagedError(f"tensor {name} has the dtype {dtype!r}; known are {', '.join(_DTYPES)}")
    if not _naturals(shape) or not _naturals(offsets) or len(offsets) != 2 or len(shape) > 32:
        raise _DamagedError(f"tensor {name} has no sound shape and offsets")
    size = prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
    if offsets[1] - offsets[0] != size:
        raise _DamagedError(f"tensor {name} needs {size} bytes, its offsets hold {offsets[1] - offsets[0]}")
    return dtype, tuple(shape), offsets[0], offsets[1]


def _naturals(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)


def _check_tiling(spans: Mapping[str, tuple[str, tuple[int, ...], int, int]], size: int) -> None:
    end = 0
    for name, (_, _, start, stop) in sorted(spans.items(), key=lambda s: (s[1][2], s[1][3])):
        if start != end:
            raise _DamagedError(
                f"tensor {name} {'overlaps the one' if start < end else 'leaves a gap'} before it"
            )
        end = stop
    if end > size:
        raise _DamagedError(f"{end} bytes of data are promised and {size} are there")
    if end < size:
        raise _DamagedError(f"{size - end} bytes trail the data")

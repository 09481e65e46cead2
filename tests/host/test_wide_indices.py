"""Element counts past 2³¹ and 2³²: the emitted index arithmetic, without the memory.

A launch of billions of elements is compiled, and only its last block is run, on buffers that begin far before
the few elements that this block touches.
"""

import ctypes
from math import prod

import numpy as np
import pytest

from foxhunt.backend.base import pack
from foxhunt.backend.host_build import build_library
from foxhunt.diagnostics import SpecError
from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program
from foxhunt.spec.load import load_specs


def launched(folder, item, **shapes):
    """(plan, launch, entry) of the one kernel in a program of persistent f32 buffers with these shapes."""
    dims = {f"{name}_{k}": extent for name, shape in shapes.items() for k, extent in enumerate(shape)}
    buffers = "".join(
        f"  - {{name: {name}, shape: [{', '.join(f'{name}_{k}' for k in range(len(shape)))}], "
        "lifetime: persistent, reset: fold}\n"
        for name, shape in shapes.items()
    )
    text = f"program: wide\ndims: {{{', '.join(f'{d}: {n}' for d, n in dims.items())}}}\nbuffers:\n{buffers}"
    (folder / "specs/wide").mkdir(parents=True)
    (folder / "specs/wide/wide.yaml").write_text(
        f"{text}steps:\n  - name: train\n    items:\n      - {item}\n"
    )
    done = compile_program(load_specs(folder / "specs"), "wide")
    store(done.files, folder / "generated")
    (launch,) = [n for n in done.plan.steps[0].launches if n.entry.endswith("wide")]
    library = ctypes.CDLL(str(build_library(folder / "generated", [launch.entry])))
    return launch, library[launch.entry]


def run_last_block(launch, entry, starts):
    """Run the last block; `starts` has the part of each buffer that it touches and the part's first index."""
    addresses = {name: part.ctypes.data - part.itemsize * start for name, (part, start) in starts.items()}
    words, counts = pack(launch, addresses)
    entry.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    entry.restype = None
    entry(words.ctypes.data, counts.ctypes.data, launch.grid - 1, launch.grid)


@pytest.mark.parametrize("rows", [2**29 + 7, 2**30 + 7])
def test_rows_whose_elements_pass_32_bits(tmp_path, rows):
    shape = (rows, 5)
    assert prod(shape) > 2**31
    item = "{kernel: softmax_rows, args: {x: x, y: y}, as: wide}"
    launch, entry = launched(tmp_path, item, x=shape, y=shape)
    assert launch.grid == -(-rows // 64)
    last = rows - (launch.grid - 1) * 64
    x = np.random.default_rng(1).standard_normal((last, 5)).astype(np.float32)
    y = np.zeros_like(x)
    start = (rows - last) * 5
    run_last_block(launch, entry, {"x": (x, start), "y": (y, start)})
    expected = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y, expected, rtol=2e-6)


@pytest.mark.parametrize("count", [2**31 + 1003, 2**32 + 1003])
def test_elements_past_32_bits(tmp_path, count):
    item = "{kernel: add_many, args: {xs: [x, x], y: y}, as: wide}"
    launch, entry = launched(tmp_path, item, x=(count,), y=(count,))
    share = -(-count // launch.grid)
    start = (launch.grid - 1) * share
    x = np.arange(count - start, dtype=np.float32)
    y = np.zeros_like(x)
    run_last_block(launch, entry, {"x": (x, start), "y": (y, start)})
    assert (y == 2 * x).all()


def test_more_blocks_or_bytes_than_64_bits_hold_are_refused_with_their_limit(tmp_path):
    item = "{kernel: softmax_rows, args: {x: x, y: y}, as: wide}"
    with pytest.raises(SpecError, match=r"FH216.*above the limit of 2147483647"):
        launched(tmp_path / "blocks", item, x=(2**38, 5), y=(2**38, 5))
    with pytest.raises(SpecError, match=r"FH216.*2\^63"):
        launched(tmp_path / "bytes", item, x=(2**60, 5), y=(2**60, 5))

"""Emitted text through a real compiler: constants keep their bits, text stays inert, tasks keep apart."""

from __future__ import annotations

import struct
import subprocess

import numpy as np
import pytest

from foxhunt.backend.base import make_backend
from foxhunt.emit.filters import comment, f32, i64
from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.library import library_root
from foxhunt.spec.load import load_specs

CONSTANTS = [
    float("-inf"),
    float("inf"),
    -3.4028235e38,
    1e-45,
    -0.0,
    0.0,
    1.0,
    1e16,
    1e-7,
    1 / 3,
    0.1,
    2**24 + 1,
]
CONSTANTS += [1.17549435e-38, 1.1754942e-38, 16777217.0, -1e-40, 7.0064923e-45, 3.4e38, 0.99999994, 1.0000001]


def compile_and_run(tmp_path, text, *flags):
    (tmp_path / "t.cpp").write_text(text)
    prelude = library_root() / "templates" / "base" / "prelude"
    command = ["g++", "-std=c++17", "-O1", f"-I{prelude}", *flags, "t.cpp", "-o", "t"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return subprocess.run([tmp_path / "t"], check=True, capture_output=True, text=True).stdout.split()


def test_constants_keep_their_bits_through_the_compiler(tmp_path):
    random = np.random.default_rng(0).integers(0, 2**32, 400, dtype=np.uint32).view(np.float32)
    values = CONSTANTS + [float(v) for v in random if np.isfinite(v)]
    rows = ",\n".join(f32(v) for v in [*values, float("nan")])
    text = f"""
#include <cstdio>
#include "math.cuh"
using namespace foxhunt;
static const f32 values[] = {{ {rows} }};
static const i64 integers[] = {{ {i64(-(2**63))}, {i64(2**63 - 1)}, {i64(2**31)}, {i64(-1)} }};
int main() {{
  for (f32 v : values) std::printf("%u ", bits_of(v));
  for (i64 v : integers) std::printf("%lld ", v);
}}
"""
    found = [int(word) for word in compile_and_run(tmp_path, text)]
    assert found[: len(values)] == [struct.unpack("<I", struct.pack("<f", v))[0] for v in values]
    assert found[len(values)] == 0x7FC00000
    assert found[len(values) + 1 :] == [-(2**63), 2**63 - 1, 2**31, -1]


@pytest.mark.parametrize(
    "hostile", ["*/ #error", "a \\", "??/", "\n#error x", "\u2028#error", '"); }', "{{ x }} {% y %}"]
)
def test_hostile_text_in_a_comment_does_nothing(tmp_path, hostile):
    shown = comment(hostile)
    main = 'int main() { std::printf("%d", a); }'
    text = f"#include <cstdio>\n// {shown}\nint a = 1;\n/* {shown} */\n{main}\n"
    assert compile_and_run(tmp_path, text, "-trigraphs", "-Werror") == ["1"]


SPEC = """\
program: mixed
dims: {N: 1000, M: 70}
isv:
  - {name: A, floor: 0.0, reset: fold}
  - {name: C, floor: 0.0, reset: fold}
buffers:
  - {name: x, shape: [N], lifetime: input}
  - {name: m, shape: [M], lifetime: input}
  - {name: total, shape: [1], lifetime: persistent, reset: never}
  - {name: turned, shape: [M], lifetime: persistent, reset: never}
producers:
  - {name: a, kernel: rms, args: {x: x}, out: {y: A}}
  - {name: c, kernel: max_abs, args: {x: x}, out: {y: C}}
steps:
  - name: train
    items:
      - {kernel: block_total, args: {x: x, y: total}}
      - {kernel: turn, args: {x: m, y: turned}}
      - {producers: [a, c]}
diagnostics:
  - {name: A}
  - {name: C}
"""
TOTAL = """\
kernel: block_total
kind: body
doc: y = sum of x, one block. */ #error {{ nothing }}
params: {x: {shape: [n]}, y: {access: write, shape: [1]}}
block: 96
reference: block_total
"""
TOTAL_BODY = """\
struct Shared { f32 parts[BLOCK_THREADS]; };
{{ signature }} {
  auto& s = block.template shared<Shared>();
  f32 sum = 0.0f;
  for (i64 i = block.thread; i < n; i += BLOCK) sum += x[i];
  s.parts[block.thread] = sum;
  block.sync();
  if (block.thread != 0) return;
  f32 all = 0.0f;
  for (int t = 0; t < BLOCK; ++t) all += s.parts[t];
  y[0] = all;
}
"""
TURN = """\
kernel: turn
kind: body
doc: y = x backwards
params: {x: {shape: [n]}, y: {access: write, shape: [n]}}
block: 32
static: [n]
grid: ceil_div(n, BLOCK)
reference: turn
"""
TURN_BODY = "{{ signature }} {\n  for (i64 i : block.elements(n)) y[i] = x[n - 1 - i];\n}\n"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A program whose first level is one launch of three tasks with three block sizes."""
    root = tmp_path_factory.mktemp("mixed")
    for path, text in (
        ("specs/mixed/program.yaml", SPEC),
        (
            "specs/kernels/block_total.yaml",
            TOTAL.replace("block: 96", "block: 96\nconsts: {BLOCK_THREADS: 96}"),
        ),
        ("specs/kernels/turn.yaml", TURN),
        ("templates/kernels/block_total.cu.j2", TOTAL_BODY),
        ("templates/kernels/turn.cu.j2", TURN_BODY),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    done = compile_program(load_specs(root / "specs"), "mixed")
    store(done.files, root / "generated")
    return root / "generated", done


def test_tasks_with_and_without_barriers_and_merged_statistics_share_one_launch(mixed):
    _, done = mixed
    fused = done.schedule.steps[0].launches[1]
    kernels = sorted(sorted(n.kernel.kernel for n in t.launches) for t in fused.tasks)
    assert kernels == [["block_total"], ["max_abs", "rms"], ["turn"]]
    assert sorted(t.block for t in fused.tasks) == [32, 96, 256]
    assert fused.block == 256


@pytest.mark.parametrize("debug", [False, True])
def test_each_task_of_a_fused_launch_computes_its_own(mixed, debug):
    folder, done = mixed
    random = np.random.default_rng(1)
    x, m = (random.normal(size=n).astype(np.float32) for n in (1000, 70))
    with Trainer(done.plan, folder, backend=make_backend("host"), debug=debug) as trainer:
        trainer.write_tensor("x", x)
        trainer.write_tensor("m", m)
        trainer.run(2)
        trainer.sync()
        assert np.array_equal(trainer.tensor("turned"), m[::-1])
        assert trainer.tensor("total")[0] == pytest.approx(x.astype(np.float64).sum(), rel=1e-5, abs=1e-4)
        found = trainer.diagnostics()
    assert found["C"] == np.abs(x).max()
    assert found["A"] == pytest.approx(np.sqrt((x.astype(np.float64) ** 2).mean()), rel=1e-6)

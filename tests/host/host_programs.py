"""Small hand-written programs in the emitted form, for tests of the prelude and of the host backend."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from foxhunt.backend.host import HostBackend
from foxhunt.backend.plan import Arg, Buffer, Launch, Plan, Pointer, Scalar, Step

PRELUDE = Path(__file__).parents[2] / "templates" / "base" / "prelude"
CORE = (
    "scalars", "types", "checked", "fault_host", "math", "arguments", "philox", "reduce", "block_cuda",
    "block_host", "scheduler_host", "fiber", "run_host",
)  # fmt: skip
NAMES = {"float32": "f32", "int32": "i32", "uint32": "u32", "int64": "i64", "uint8": "u8"}


@dataclass
class Program:
    """Buffers with their first contents, and launches in the order of one step."""

    buffers: dict[str, np.ndarray]
    launches: list[Launch] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)

    def pointer(self, name: str, access: str = "read", start: int = 0, count: int | None = None) -> Pointer:
        array = self.buffers[name]
        length = array.size - start if count is None else count
        return Pointer(name, start * array.itemsize, length, NAMES[array.dtype.name], access)

    def launch(self, entry: str, *args: Pointer | int, grid: int = 1, block: int = 256) -> "Program":
        words: tuple[Arg, ...] = tuple(Scalar(a) if isinstance(a, int) else a for a in (*args, grid))
        self.launches.append(Launch(f"step.{entry}", entry, grid, block, words))
        return self

    def kernel(
        self,
        entry: str,
        body: str,
        arguments: str = "",
        block: int = 256,
        threads: str = "fibers",
        shared: int = 0,
    ) -> "Program":
        """`body` sees `block` and what `arguments` declares from `w`, by position; the grid is last."""
        self.sources[entry] = f"""
#include "../prelude/core.cuh"
using namespace foxhunt;
template <int BLOCK, class Blk> FH_DEVICE void body(Blk& block, const host::Words& w) {{
  {arguments}
  {body}
}}
extern "C" void {entry}(const u64* words, const i64* counts, i64 first, i64 last) {{
  const host::Words w{{words, counts}};
  host::run_blocks<{block}, host::Threads::{threads}>(
      first, last, 0, w.integer(GRID), {shared}, [&](auto& block) {{ body<{block}>(block, w); }});
}}
"""
        return self

    def plan(self) -> Plan:
        buffers = tuple(Buffer(n, NAMES[a.dtype.name], a.size, "state") for n, a in self.buffers.items())
        return Plan(
            program="test", variant="default", precision="fp32", layout_hash="", semantics_hash="",
            layout_lines=(), dims=(), buffers=buffers, views=(), slots=(), counters=(), observations=(),
            diagnostics=(), steps=(Step("step", tuple(self.launches)),), resets=(), data=(),
        )  # fmt: skip

    def write_to(self, folder: Path) -> Path:
        (folder / "launches").mkdir(parents=True, exist_ok=True)
        (folder / "prelude").mkdir(exist_ok=True)
        for name in CORE:
            shutil.copy(PRELUDE / f"{name}.cuh", folder / "prelude")
        core = (PRELUDE / "prelude.cuh").read_text().split('#include "system.cuh"')[0]
        (folder / "prelude" / "core.cuh").write_text(core)
        for entry, text in self.sources.items():
            grid = {len(a.args) - 1 for a in self.launches if a.entry == entry}.pop()
            (folder / "launches" / f"{entry}.cu").write_text(text.replace("GRID", str(grid)))
        return folder

    def start(self, folder: Path, debug: bool = False, threads: int = 2) -> HostBackend:
        backend = HostBackend(threads=threads)
        plan = self.plan()
        backend.build(self.write_to(folder), plan, debug)
        backend.allocate(plan)
        for name, array in self.buffers.items():
            backend.write(name, 0, array)
        return backend


def run(
    program: Program, folder: Path, debug: bool = False, threads: int = 2, steps: int = 1
) -> Mapping[str, np.ndarray]:
    """The buffers after some steps."""
    backend = program.start(folder, debug, threads)
    try:
        backend.run("step", steps)
        return {n: backend.read(n, 0, a.size, NAMES[a.dtype.name]) for n, a in program.buffers.items()}
    finally:
        backend.close()

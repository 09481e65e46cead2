"""A small program in the emitted form, by hand: a noisy walk on three lanes, to test the backend alone."""

import shutil
from pathlib import Path

import numpy as np

from foxhunt.backend.plan import Buffer, Launch, Plan, Pointer, Scalar, Step

KERNELS = Path(__file__).parent / "walk_kernels"
N, HOSTS, WORDS, TRACE, TINY = 4096, 2, 100, 1024, 64

BUFFERS = (
    Buffer("isv", "f32", 4, "isv"),
    Buffer("counters", "i64", 1, "system"),
    Buffer("seed", "i64", 1, "system"),
    Buffer("noise", "f32", N, "state"),
    Buffer("target", "f32", N, "state"),
    Buffer("unused", "f32", N, "state"),
    Buffer("w", "f32", N, "params"),
    Buffer("trace", "f32", TRACE, "state"),
    Buffer("a", "f32", TINY, "input"),
    Buffer("b", "f32", TINY, "input"),
    Buffer("out", "f32", 4 * TINY, "state"),
    Buffer("ring.ingest", "f32", 64 * HOSTS, "system"),
    Buffer("ring.publish", "u32", 16 * WORDS + 2, "system"),
)
SIZES = {b.name: b for b in BUFFERS}


def pointer(name, access="read"):
    return Pointer(name, 0, SIZES[name].count, SIZES[name].dtype, access)


def launch(name, entry, *args, grid=16, lane=0, waits=()):
    words = tuple(Scalar(a) if isinstance(a, int) else a for a in args)
    return Launch(name, entry, grid, 256, words, lane, waits)


TRAIN = (
    launch(
        "train.ingest", "walk_ingest", pointer("counters", "update"), pointer("isv", "write"),
        pointer("ring.ingest"), HOSTS, grid=1,
    ),
    launch("train.noise", "walk_noise", pointer("counters"), pointer("noise", "write"), pointer("seed"), N),
    launch(
        "train.target", "walk_scale", pointer("noise"), pointer("target", "write"), N,
        lane=1, waits=("train.noise",),
    ),
    # Nothing reads what this one writes: its lane must rejoin all the same.
    launch(
        "train.unused", "walk_scale", pointer("target"), pointer("unused", "write"), N,
        lane=2, waits=("train.target",),
    ),
    launch(
        "train.descend", "walk_descend", pointer("counters"), pointer("isv"), pointer("target"),
        pointer("trace", "update"), pointer("w", "update"), N, TRACE, waits=("train.target",),
    ),
    launch(
        "train.publish", "walk_publish", pointer("counters"), pointer("ring.publish", "update"), WORDS, grid=1
    ),
)  # fmt: skip
ARITHMETIC = (
    launch("check.arithmetic", "walk_arithmetic", pointer("a"), pointer("b"), pointer("out", "write"), TINY),
)
CLEAR = (launch("fold.clear", "walk_clear", pointer("w", "update"), N),)
WILD = (launch("wild.store", "walk_wild", pointer("w", "update"), grid=1),)


def plan(*extra: Step) -> Plan:
    return Plan(
        program="walk", variant="default", precision="fp32",
        layout_hash="", semantics_hash="", layout_lines=(), dims=(), buffers=BUFFERS,
        views=(), slots=(), counters=(), observations=(), diagnostics=(),
        steps=(Step("train", TRAIN), Step("check", ARITHMETIC), *extra), resets=(Step("fold", CLEAR),),
        data=(), publish_words=WORDS,
    )  # fmt: skip


def folder(at: Path) -> Path:
    """The emitted folder of the program, below `at`."""
    shutil.copytree(KERNELS, at / "launches", dirs_exist_ok=True)
    return at


def start(backend, at: Path, *extra: Step, debug: bool = False, seed: int = 7) -> Plan:
    """Build, allocate, seed and prepare; every row of the ingest ring says learning rate 0.25."""
    made = plan(*extra)
    backend.build(folder(at), made, debug)
    backend.allocate(made)
    rewind(backend, seed)
    backend.prepare(made)
    return made


def rewind(backend, seed: int = 7) -> None:
    """Everything back to the start, in the same storage."""
    for name in ("isv", "noise", "target", "unused", "w", "trace"):
        backend.write(name, 0, np.zeros(SIZES[name].count, np.float32))
    backend.write("counters", 0, np.zeros(1, np.int64))
    backend.write("seed", 0, np.array([seed], np.int64))
    for row in range(64):
        backend.ingest_row(row)[:] = [0.25, 0.0]


def state(backend) -> dict[str, bytes]:
    """The bits of everything that a step leaves behind."""
    names = ("isv", "counters", "noise", "target", "unused", "w", "trace")
    return {n: backend.read(n, 0, SIZES[n].count, SIZES[n].dtype).tobytes() for n in names}

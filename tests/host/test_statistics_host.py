"""The statistics driver: one order of operations, whatever shares the sweep, however long the rows are."""

from dataclasses import replace

import numpy as np
import pytest
from small_programs import training

from foxhunt.backend.base import make_backend
from foxhunt.backend.plan import Scalar
from foxhunt.reference import REFERENCES
from foxhunt.schedule.estimate import statistic_grid

LONG, SHORT, HUGE = 100_001, 777, 2**22 + 3
NAMES = ("p99_abs", "rms", "l2_norm", "max_abs", "mean", "variance", "count_nonfinite")
PROGRAM = f"""
dims: {{LONG: {LONG}, SHORT: {SHORT}, HUGE: {HUGE}}}
isv:
{chr(10).join(f"  - {{name: {n.upper()}, reset: fold}}" for n in NAMES)}
  - {{name: ALONE, reset: fold}}
  - {{name: BIG, reset: fold}}
buffers:
  - {{name: long_row, shape: [LONG], lifetime: input}}
  - {{name: short_row, shape: [SHORT], lifetime: input}}
  - {{name: huge, shape: [HUGE], lifetime: input}}
producers:
{
    chr(10).join(
        f"  - {{name: m_{n}, kernel: {n}, args: {{x: [long_row, short_row]}}, out: {{y: {n.upper()}}}}}"
        for n in NAMES
    )
}
  - {{name: alone, kernel: rms, args: {{x: [long_row, short_row]}}, out: {{y: ALONE}}}}
  - {{name: big, kernel: rms, args: {{x: huge}}, out: {{y: BIG}}}}
steps:
  - name: merged
    items:
      - {{producers: [{", ".join(f"m_{n}" for n in NAMES)}]}}
  - name: single
    items:
      - {{producers: [alone, big]}}
diagnostics:
{chr(10).join(f"  - {{name: {n.upper()}}}" for n in (*NAMES, "alone", "big"))}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("statistics")


@pytest.fixture(scope="module")
def trainer(folder):
    with training(PROGRAM, folder) as made:
        yield made


def rows(seed):
    rng = np.random.default_rng(seed)
    long_row, short_row = (rng.standard_normal(n).astype(np.float32) for n in (LONG, SHORT))
    long_row[[0, 5, LONG - 1]] = np.nan, np.inf, -np.inf
    short_row[[1, 2]] = 1e-40, -0.0
    return long_row, short_row


def observe(trainer, step, seed):
    """Producer → observation of one step."""
    for name, row in zip(("long_row", "short_row"), rows(seed), strict=True):
        trainer.write_tensor(name, row)
    trainer.run(1, step)
    trainer.sync()
    scratch = trainer.backend.read("scratch", 0, len(trainer.plan.observations), "f32")
    return {o.producer: scratch[o.position] for o in trainer.plan.observations}


def same_order_rms(parts, grid, block=256):
    """The driver's order in NumPy: elements to threads, threads to blocks, blocks to one, in f64."""
    sums, counts = np.zeros((grid, block)), np.zeros((grid, block), np.int64)
    for row in parts:
        padded = np.full(-(-len(row) // (grid * block)) * grid * block, np.nan)
        padded[: len(row)] = row
        for sweep in padded.reshape(-1, grid, block):
            finite = np.isfinite(sweep)
            sums += np.where(finite, sweep * sweep, 0.0)
            counts += finite
    total = fold(np.array([fold(block_sums) for block_sums in sums]))
    return np.float32(np.sqrt(total / counts.sum()))


def fold(values):
    """32 lanes to one by halves, then the warps by halves; what is absent is left out."""
    warps = [halves(values[k : k + 32]) for k in range(0, len(values), 32)]
    return halves(np.array(warps))


def halves(lanes):
    lanes, offset = lanes.copy(), 16
    while offset:
        for k in range(offset):
            if k + offset < len(lanes):
                lanes[k] += lanes[k + offset]
        offset //= 2
    return lanes[0]


def test_merged_statistics_agree_with_their_references(trainer):
    found = observe(trainer, "merged", 1)
    for name in NAMES:
        expected = REFERENCES[name]({"x": list(rows(1))}, {}, {})["y"][0]
        assert found[f"m_{name}"] == pytest.approx(expected, rel=1e-6), name


def test_a_statistic_has_the_same_bits_alone_and_with_others(trainer):
    merged, single = observe(trainer, "merged", 2), observe(trainer, "single", 2)
    assert merged["m_rms"] == single["alone"]


def test_the_order_of_operations_is_the_documented_one(trainer):
    parts = [r.astype(np.float64) for r in rows(3)]
    grid = statistic_grid(LONG + SHORT)
    assert grid > 1
    assert observe(trainer, "single", 3)["alone"] == same_order_rms(parts, grid)


def test_millions_of_elements_keep_their_digits(trainer):
    values = (1000.0 + np.random.default_rng(4).standard_normal(HUGE)).astype(np.float32)
    trainer.write_tensor("huge", values)
    found = observe(trainer, "single", 4)["big"]
    assert found == pytest.approx(np.sqrt(np.mean(values.astype(np.float64) ** 2)), rel=1e-7)


@pytest.mark.parametrize("kept", [(0, SHORT), (LONG, 0), (0, 0), (1, 0), (33, 257)])
def test_rows_may_be_shorter_than_declared_or_empty(trainer, folder, kept):
    """Counts of rows are arguments: a row of count 0 is a no-op, nothing at all the degenerate result."""
    counts = {LONG: kept[0], SHORT: kept[1]}
    step = next(s for s in trainer.plan.steps if s.name == "merged")

    def shortened(arg):
        known = isinstance(arg, Scalar) and arg.value in counts
        return Scalar(counts[arg.value]) if known else arg

    launches = tuple(replace(q, args=tuple(map(shortened, q.args))) for q in step.launches)
    plan = replace(trainer.plan, steps=(replace(step, launches=launches),))
    backend = make_backend("host")
    try:
        backend.build(folder / "generated", plan)
        backend.allocate(plan)
        for view in plan.views:
            if view.name in ("long_row", "short_row"):
                row = rows(5)[("long_row", "short_row").index(view.name)]
                backend.write(view.buffer, 4 * view.offset, row)
        backend.run("merged", 1)
        scratch = backend.read("scratch", 0, len(plan.observations), "f32")
    finally:
        backend.close()
    parts = [row[:n] for row, n in zip(rows(5), kept, strict=True)]
    for o in trainer.plan.observations:
        if o.producer.removeprefix("m_") in NAMES:
            expected = REFERENCES[o.producer.removeprefix("m_")]({"x": parts}, {}, {})["y"][0]
            assert scratch[o.position] == pytest.approx(expected, rel=1e-6, nan_ok=True), o.producer


VARIANCES = """
dims: {FEW: 4, MANY: 100003}
isv:
  - {name: OF_FEW, reset: fold}
  - {name: OF_MANY, reset: fold}
buffers:
  - {name: few, shape: [FEW], lifetime: input}
  - {name: many, shape: [MANY], lifetime: input}
producers:
  - {name: of_few, kernel: variance, args: {x: few}, out: {y: OF_FEW}}
  - {name: of_many, kernel: variance, args: {x: many}, out: {y: OF_MANY}}
steps:
  - {name: look, items: [{producers: [of_few, of_many]}]}
diagnostics: [{name: OF_FEW}, {name: OF_MANY}]
"""


def test_a_variance_far_from_0_is_exact_and_that_of_a_constant_is_0(tmp_path):
    with training(VARIANCES, tmp_path) as trainer:
        trainer.write_tensor("few", np.float32([4096, 4096.5, 4097, 4097.5]))
        for constant in (0.1, -3e38, 1e-45):
            trainer.write_tensor("many", np.full(100_003, constant, np.float32))
            trainer.step()
            few, many = trainer.backend.read("scratch", 0, 2, "f32")
            assert (few, many) == (0.3125, 0.0)
        near = np.random.default_rng(3).standard_normal(100_003).astype(np.float32) + np.float32(1e6)
        trainer.write_tensor("many", near)
        trainer.step()
        assert trainer.backend.read("scratch", 0, 2, "f32")[1] == pytest.approx(
            near.var(dtype="f8"), rel=1e-6
        )

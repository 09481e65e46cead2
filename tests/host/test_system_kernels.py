"""The applicator, ingest, publish and reset as compiled: bit for bit what math §1 and design §7 say."""

import numpy as np
import pytest
from small_programs import training

from foxhunt.reference.applicator import Applicator

EXPONENTS = (-50, -20, 0, 20, 50)
APPLICATOR = """
dims: {N: 5, PAIR: 2}
isv:
  - {name: LEVEL, count: N, sentinel: -1.0, reset: fold}
  - {name: SIZE, reset: fold}
  - {name: LR, source: host, init: 0.5, reset: never}
buffers:
  - {name: seen, shape: [N], lifetime: input}
  - {name: pair, shape: [PAIR], lifetime: input}
  - {name: kept, shape: [N], lifetime: persistent, init: ones, reset: fold}
producers:
  - {name: level, foreach: {i: N}, kernel: mean, args: {x: "seen[i]"}, out: {y: "LEVEL[i]"}}
  - {name: size, kernel: l2_norm, args: {x: pair}, out: {y: SIZE}}
counters:
  - {name: t, advance: watch, reset: fold}
steps:
  - name: watch
    items:
      - {producers: [level, size]}
  - name: idle
    items:
      - {kernel: ema, args: {x: seen, s: kept}}
diagnostics:
  - {name: LEVEL}
  - {name: SIZE}
  - {name: t}
  - {name: LR}
"""


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    with training(APPLICATOR, tmp_path_factory.mktemp("applicator")) as made:
        yield made


@pytest.fixture
def fresh(trainer):
    trainer.reset("fold")
    return trainer


def watch(trainer, seen, pair=(3.0, 4.0)):
    trainer.write_tensor("seen", np.asarray(seen, np.float32))
    trainer.write_tensor("pair", np.asarray(pair, np.float32))
    trainer.step("watch")


def state(trainer, position):
    """(slot, S, D, lag) of the observation at a scratch position."""
    slot = trainer.plan.observations[position].slot
    isv = trainer.backend.read("isv", 4 * slot, 1, "f32")
    return np.concatenate([isv, trainer.backend.read("wiener", 12 * position, 3, "f32")])


def fold_in_f32(state, y):
    """One Pearl in float32, operation by operation."""
    x, s, d, lag = (np.float32(v) for v in state)
    if x == -1 and s == d == lag == 0:
        return np.float32([y, 0, 0, y])
    h = np.float32(256)
    s_next = s + ((y - x) * (y - x) - s) / h
    d_next = d + ((y - lag) * (y - lag) - d) / h
    gain = np.float32(1 / 1024)
    if s_next != 0:
        noise = min(max(d_next / s_next - np.float32(1), np.float32(0)), np.float32(1))
        gain = min(max(np.float32(1) - np.sqrt(noise), np.float32(1 / 1024)), np.float32(0.9))
    return np.float32([x + gain * (y - x), s_next, d_next, y])


def test_observations_are_folded_in_the_declared_order_of_operations(fresh):
    rng = np.random.default_rng(1)
    oracle, bits = Applicator(sentinel=-1.0), np.float32([-1, 0, 0, 0])
    level = 3.0
    for _ in range(200):
        level += 0.1 * rng.standard_normal()
        y = np.float32(level + rng.standard_normal())
        watch(fresh, [y] * 5)
        oracle.fold(float(y))
        bits = fold_in_f32(bits, y)
        assert (state(fresh, 0) == bits).all()
    assert bits[0] == pytest.approx(oracle.x, rel=1e-4)
    assert fresh.health()["level@0"] == (0, 0)


def test_scaling_a_signal_by_a_power_of_two_scales_its_slot_exactly(fresh):
    rng = np.random.default_rng(2)
    scales = np.float32(2.0) ** np.float32(EXPONENTS)
    for _ in range(100):
        watch(fresh, np.float32(2.0 + rng.standard_normal()) * scales)
    slots = np.array([state(fresh, p)[0] for p in range(5)])
    assert (slots == slots[2] * scales).all()


def test_the_first_observation_replaces_the_sentinel_bit_for_bit(fresh):
    assert state(fresh, 0)[0] == -1.0
    watch(fresh, [42.0] * 5)
    assert (state(fresh, 0) == np.float32([42.0, 0, 0, 42.0])).all()


def test_a_skipped_observation_leaves_slot_and_triple_as_they_were(fresh):
    for y in (1.0, 2.0, 1.5):
        watch(fresh, [y] * 5)
    before = [state(fresh, p) for p in range(6)]
    healths = [fresh.health()]
    watch(fresh, [np.nan, np.inf, 2e18, -2e18, 1.5], pair=(0.0, 0.0))  # no finite element, or too far away
    watch(fresh, [np.nan] * 5, pair=(3e38, 3e38))  # a norm of +inf
    fresh.sync()
    healths.append(fresh.health())
    after = [state(fresh, p) for p in range(6)]
    for position in (0, 1, 2, 3, 5):
        assert (before[position] == after[position]).all()
    moved = {k: tuple(np.subtract(healths[1][k], healths[0][k])) for k in healths[0]}
    assert moved == {
        "level@0": (0, 2), "level@1": (0, 2), "level@2": (1, 1), "level@3": (1, 1), "level@4": (0, 1),
        "size@5": (1, 1),
    }  # fmt: skip


def test_a_step_without_producers_and_a_slot_without_one_keep_their_bits(fresh):
    watch(fresh, [1.0] * 5)
    before = [state(fresh, p) for p in range(6)]
    fresh.run(3, "idle")
    assert all((a == b).all() for a, b in zip(before, (state(fresh, p) for p in range(6)), strict=True))
    fresh.sync()
    assert fresh.signals["LR"] == 0.5


def test_a_reset_clears_slot_and_triple_together_and_nothing_else(fresh):
    fresh.signals["LR"] = 0.25
    for y in (1.0, 2.0, 1.5):
        watch(fresh, [y] * 5)
    fresh.run(2, "idle")
    fresh.sync()
    assert fresh.diagnostics()["t"] == 3
    fresh.reset("fold")
    assert (state(fresh, 0) == np.float32([-1, 0, 0, 0])).all()
    assert (state(fresh, 5) == np.float32([0, 0, 0, 0])).all()
    assert (fresh.tensor("kept") == 1.0).all()
    fresh.run(1, "idle")
    fresh.sync()
    assert fresh.signals["LR"] == 0.25
    assert fresh.diagnostics()["t"] == 0


def test_a_published_row_says_what_the_device_holds(fresh):
    for k in range(40):  # more than the 16 rows of the ring
        fresh.signals["LR"] = 0.125 * k
        watch(fresh, [k + 1.0] * 5)
    fresh.sync()
    found = fresh.diagnostics()
    assert found["t"] == 40
    assert found["LR"] == 0.125 * 39
    assert np.float32(found["LEVEL"][0]) == state(fresh, 0)[0]

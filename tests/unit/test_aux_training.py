"""The NumPy training of `aux`: gradients by central differences, the order of a step, and what it learns."""

from pathlib import Path

import numpy as np
import pytest

from foxhunt.reference.aux_training import (
    GROUPS,
    TRUNK,
    Batch,
    Controls,
    State,
    adamw,
    forward,
    gather,
    losses_and_gradients,
    p99_abs,
    train_step,
)
from foxhunt.runtime.data import WindowOptions, ohlcv
from foxhunt.runtime.evaluate import regime_result
from foxhunt.runtime.init import initial

SHAPES = {
    **{"aux_w1": (443, 256), "aux_b1": (256,)},
    **{"aux_w2": (256, 128), "aux_b2": (128,)},
    **{"aux_w3": (128, 128), "aux_b3": (128,)},
    **{"dir_w": (128, 2), "dir_b": (2,)},
    **{"reg_w": (128, 5), "reg_b": (5,)},
}


def params(shapes, dtype=np.float64, seed=0):
    return {
        name: initial(
            "zeros" if len(s) == 1 else "orthogonal" if name in TRUNK else "glorot", s, seed, name
        ).astype(dtype)
        for name, s in shapes.items()
    }


def small():
    """A 5-6-4-3 trunk with a batch of 4, one direction masked."""
    sizes = {443: 5, 256: 6, 128: 4}
    generator = np.random.default_rng(1)
    shapes = {n: tuple(sizes.get(k, k) for k in s) for n, s in SHAPES.items()}
    weights = {n: generator.normal(size=s) for n, s in shapes.items()}
    batch = Batch(generator.normal(size=(4, 5)), np.array([1, -1, 0, 1]), np.array([0, 4, 2, 2]))
    return weights, batch


def loss(weights, batch, controls):
    seen, _, _ = losses_and_gradients(weights, batch, controls)
    directions = controls.dir_weight * seen["AUX_DIR_LOSS_EMA"]
    return directions + controls.regime_weight * seen["AUX_REGIME_LOSS_EMA"]


def test_every_gradient_agrees_with_central_differences():
    weights, batch = small()
    controls = Controls(dir_weight=2.0, regime_weight=0.5)
    _, gradients, _ = losses_and_gradients(weights, batch, controls)
    for name, w in weights.items():
        numeric = np.zeros_like(w)
        for at in np.ndindex(w.shape):
            keep = w[at]
            w[at] = keep + 1e-6
            up = loss(weights, batch, controls)
            w[at] = keep - 1e-6
            numeric[at] = (up - loss(weights, batch, controls)) / 2e-6
            w[at] = keep
        assert np.allclose(gradients[name], numeric, rtol=1e-6, atol=1e-8), name


def test_a_batch_without_directions_observes_none_and_has_no_direction_gradient():
    weights, batch = small()
    masked = Batch(batch.x, np.zeros(4, np.int64), batch.regime)
    seen, gradients, _ = losses_and_gradients(weights, masked, Controls())
    assert not gradients["dir_w"].any()
    assert np.isnan(seen["AUX_DIR_LOSS_EMA"])
    assert np.isnan(seen["AUX_DIR_ACC"])
    state = State(weights)
    train_step(state, masked, Controls())
    assert state.slot("AUX_DIR_ACC").fresh


def test_the_first_step_is_neither_clipped_nor_clamped():
    weights, batch = small()
    before = {n: w.copy() for n, w in weights.items()}
    state = State(weights)
    _, gradients, _ = losses_and_gradients(before, batch, Controls())
    train_step(state, batch, Controls(lr=0.1, wd=0.0))
    for name, w in before.items():
        large = np.abs(gradients[name]) > 1e-6
        assert np.allclose(state.m[name], 0.1 * gradients[name])
        assert np.allclose(np.abs(state.params[name] - w)[large], 0.1, rtol=1e-2), "Adam's first step is lr"
    assert state.slot("HEADS_WEIGHT_BOUND").x == p99_abs(
        *(state.params[n] for n in GROUPS["HEADS_WEIGHT_BOUND"])
    )


def test_later_steps_are_clamped_at_the_bound_of_the_step_before():
    weights, batch = small()
    state = State(weights)
    train_step(state, batch, Controls(lr=0.1))
    limit = state.slot("TRUNK_WEIGHT_BOUND").x
    state.params["aux_w1"][0, 0] = 100.0
    train_step(state, batch, Controls(lr=0.1))
    assert state.params["aux_w1"][0, 0] == limit
    assert state.slot("TRUNK_WEIGHT_BOUND").lag > limit, "the oracle saw the weights before the clamp"


def test_gradients_are_clipped_to_the_norm_known_at_the_start_of_the_step():
    weights, batch = small()
    state = State(weights)
    state.slot("GRAD_CLIP_BOUND").fold(1e-3)
    norm = train_step(state, batch, Controls())["GRAD_CLIP_BOUND"]
    assert norm > 1e-2
    total = np.sqrt(sum(np.sum((m / 0.1) ** 2) for m in state.m.values()))
    assert total == pytest.approx(1e-3)


@pytest.mark.parametrize(("gradient", "update"), [(1e-8, 5.000e-4), (1e-4, 9.9990e-4), (1.0, 1.0000e-3)])
def test_adamw_adds_epsilon_after_the_root_of_the_corrected_moment(gradient, update):
    state = State({"w": np.zeros(1)})
    adamw(state, {"w": np.array([gradient])}, 1.0, Controls(lr=1e-3))
    assert -state.params["w"][0] == pytest.approx(update, rel=1e-4)


def test_p99_is_the_upper_edge_of_its_bin():
    values = np.abs(np.random.default_rng(0).normal(size=4096))
    assert p99_abs(values) == pytest.approx(np.quantile(values, 0.99), abs=values.max() / 256)
    assert p99_abs(np.array([7.0])) == 7.0
    assert p99_abs(np.zeros(3)) == p99_abs(np.zeros(0)) == p99_abs(np.array([np.nan])) == 0.0


@pytest.fixture(scope="module")
def bars():
    return ohlcv(Path(__file__).parents[2] / "examples/data/eurusd_1h_2017.csv", {})


def test_a_sample_is_its_bars_oldest_first_then_the_hour(bars):
    end = int(bars["train_ends"][100])
    batch = gather(bars, np.array([end]), 63, 30, 6)
    assert batch.x.shape == (1, 443)
    assert np.array_equal(batch.x[0, :7], bars["features"][end - 62])
    assert np.array_equal(batch.x[0, 434:441], bars["features"][end])
    assert np.array_equal(batch.x[0, 441:], bars["hour"][end])


@pytest.mark.parametrize("seed", range(5))
def test_the_regime_head_beats_both_baselines_on_held_out_bars(bars, seed):
    state = State(params(SHAPES, np.float32, seed))
    draws = np.random.default_rng(seed)
    for _ in range(150):
        train_step(state, gather(bars, draws.choice(bars["train_ends"], 256), 63, 30, 6), Controls())
    held_out = gather(bars, bars["eval_ends"], 63, 30, 6)
    _, _, logits = forward(state.params, held_out.x)
    result = regime_result(logits.argmax(axis=1), bars, WindowOptions())
    for comparison in result.comparisons:
        if comparison.barred:
            assert comparison.lead > 2 * comparison.error > 0, comparison


def test_the_trunk_has_exactly_163_072_parameters():
    assert sum(int(np.prod(SHAPES[n])) for n in TRUNK) == 163_072

"""The NumPy training of `aux`: gradients by central differences, the order of a step, and what it learns."""

from pathlib import Path

import numpy as np
import pytest

from foxhunt.reference.aux_training import (
    Batch,
    Hyper,
    Pearl,
    State,
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
GROUPS = {
    "trunk": tuple(n for n in SHAPES if n.startswith("aux")),
    "heads": ("dir_w", "dir_b", "reg_w", "reg_b"),
}


def params(shapes, dtype=np.float64, seed=0):
    return {
        name: initial("orthogonal" if len(s) > 1 else "zeros", s, seed, name).astype(dtype)
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


def loss(weights, batch, hyper):
    metrics, _, _ = losses_and_gradients(weights, batch, hyper)
    return metrics["dir_loss"] + hyper.regime_weight * metrics["reg_loss"]


def test_every_gradient_agrees_with_central_differences():
    weights, batch = small()
    hyper = Hyper(regime_weight=0.5)
    _, gradients, _ = losses_and_gradients(weights, batch, hyper)
    for name, w in weights.items():
        numeric = np.zeros_like(w)
        for at in np.ndindex(w.shape):
            keep = w[at]
            w[at] = keep + 1e-6
            up = loss(weights, batch, hyper)
            w[at] = keep - 1e-6
            numeric[at] = (up - loss(weights, batch, hyper)) / 2e-6
            w[at] = keep
        assert np.allclose(gradients[name], numeric, rtol=1e-6, atol=1e-8), name


def test_a_batch_without_directions_has_no_direction_loss_and_no_gradient():
    weights, batch = small()
    metrics, gradients, _ = losses_and_gradients(
        weights, Batch(batch.x, np.zeros(4, np.int64), batch.regime), Hyper()
    )
    assert metrics["dir_loss"] == 0
    assert not gradients["dir_w"].any()
    assert np.isnan(metrics["dir_acc"])


def test_the_first_step_is_neither_clipped_nor_clamped():
    weights, batch = small()
    hyper = Hyper(lr=0.1, weight_decay=0.0, groups={"all": tuple(weights)})
    free = State({n: w.copy() for n, w in weights.items()})
    bound = State({n: w.copy() for n, w in weights.items()})
    train_step(free, batch, Hyper(lr=0.1, weight_decay=0.0))
    train_step(bound, batch, hyper)
    for name in weights:
        assert np.array_equal(free.params[name], bound.params[name])
        step = np.abs(free.params[name] - weights[name])
        moved = np.abs(free.m[name]) > 1e-6
        assert np.allclose(step[moved], 0.1, rtol=1e-3), "Adam's first step is lr"
    assert bound.slot("all").x == p99_abs(*bound.params.values())


def test_later_steps_are_clamped_at_the_bound_of_the_step_before():
    weights, batch = small()
    state = State(weights)
    hyper = Hyper(lr=0.1, groups={"all": tuple(weights)})
    train_step(state, batch, hyper)
    limit = state.slot("all").x
    state.params["aux_w1"][0, 0] = 100.0
    train_step(state, batch, hyper)
    assert state.params["aux_w1"][0, 0] == limit
    assert state.slot("all").lag > limit, "the oracle saw the weights before the clamp"


def test_gradients_are_clipped_to_the_norm_known_at_the_start_of_the_step():
    weights, batch = small()
    state = State(weights)
    state.slot("GRAD_CLIP_BOUND").fold(1e-3)
    norm = train_step(state, batch, Hyper())["grad_norm"]
    assert norm > 1e-2
    total = np.sqrt(sum(np.sum((m / 0.1) ** 2) for m in state.m.values()))
    assert total == pytest.approx(1e-3)


@pytest.mark.parametrize(("gradient", "update"), [(1e-8, 5.000e-4), (1e-4, 9.9990e-4), (1.0, 1.0000e-3)])
def test_adamw_adds_epsilon_after_the_root_of_the_corrected_moment(gradient, update):
    from foxhunt.reference.aux_training import _adamw

    state = State({"w": np.zeros(1)})
    _adamw(state, {"w": np.array([gradient])}, 1.0, Hyper(lr=1e-3, weight_decay=0.0))
    assert -state.params["w"][0] == pytest.approx(update, rel=1e-4)


def test_pearls():
    pearl = Pearl()
    assert pearl.limit(0.1) == np.inf
    pearl.fold(0.0, skip_zero=True)
    pearl.fold(float("nan"))
    assert not pearl.observed
    pearl.fold(42.0)
    assert (pearl.x, pearl.s, pearl.d, pearl.lag) == (42.0, 0.0, 0.0, 42.0)
    assert pearl.limit(50.0) == 50.0
    before = Pearl(**vars(pearl))
    pearl.fold(2e18)
    assert pearl == before
    pearl.fold(43.0)
    assert pearl.s == pearl.d == 1 / 256
    assert pearl.x == pytest.approx(42.9), "D/S = 1 is a random walk: gain 1, limited to 0.9"


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
    hyper = Hyper(groups=GROUPS)
    for _ in range(150):
        train_step(state, gather(bars, draws.choice(bars["train_ends"], 256), 63, 30, 6), hyper)
    held_out = gather(bars, bars["eval_ends"], 63, 30, 6)
    _, _, logits = forward(state.params, held_out.x)
    result = regime_result(logits.argmax(axis=1), bars, WindowOptions())
    for comparison in result.comparisons:
        if comparison.barred:
            assert comparison.lead > 2 * comparison.error > 0, comparison


def test_the_trunk_has_exactly_163_072_parameters():
    assert sum(int(np.prod(SHAPES[n])) for n in GROUPS["trunk"]) == 163_072

"""Pearls A and D on the float64 oracle: the facts of math §1, with which the kernel is then compared."""

import numpy as np
import pytest

from foxhunt.reference.applicator import Applicator

SEEDS = 8
STEPS = 20_000


def optimal_error(q: float) -> float:
    """Mean squared error of the Kalman filter that knows Q, for R = 1."""
    predicted = (q + np.sqrt(q * q + 4 * q)) / 2
    return float(predicted / (predicted + 1))


def filter_error(q: float, seed: int) -> float:
    """The applicator's mean squared error on a random walk of variance q seen through unit noise."""
    rng = np.random.default_rng(seed)
    level = np.cumsum(rng.standard_normal(STEPS) * np.sqrt(q)) + 5.0
    seen = level + rng.standard_normal(STEPS)
    slot, found = Applicator(), np.empty(STEPS)
    for t, y in enumerate(seen.tolist()):
        slot.fold(y)
        found[t] = slot.x
    return float(np.mean((found - level)[1000:] ** 2))


@pytest.mark.parametrize("q", [10.0, 1.0, 0.1, 0.01])
def test_a_tracked_walk_is_near_the_optimal_filter(q):
    errors = [filter_error(q, seed) for seed in range(SEEDS)]
    assert np.mean(errors) < 1.25 * optimal_error(q)


@pytest.mark.parametrize("q", [1e-4, 0.0])
def test_a_still_signal_is_smoothed(q):
    assert np.mean([filter_error(q, seed) for seed in range(SEEDS)]) < 0.04


@pytest.mark.parametrize("seed", range(5))
def test_a_tenfold_jump_is_followed_within_sixty_steps(seed):
    rng = np.random.default_rng(seed)
    slot = Applicator()
    for _ in range(2000):
        slot.fold(1.0 + 0.01 * rng.standard_normal())
    for _ in range(60):
        slot.fold(10.0 + 0.01 * rng.standard_normal())
    assert abs(slot.x - 10.0) < 0.1


def test_the_first_observation_replaces_the_sentinel():
    slot = Applicator(sentinel=-1.0)
    slot.fold(42.0)
    assert (slot.x, slot.lag, slot.S, slot.D) == (42.0, 42.0, 0.0, 0.0)


def test_a_thousand_stationary_observations_end_within_one_percent():
    rng = np.random.default_rng(3)
    slot = Applicator()
    for _ in range(1000):
        slot.fold(7.0 + 0.07 * rng.standard_normal())
    assert abs(slot.x / 7.0 - 1) < 0.01


@pytest.mark.parametrize("y", [np.nan, np.inf, -np.inf, 2e18, -2e18])
def test_what_cannot_be_an_observation_changes_nothing_but_the_anomalies(y):
    slot = Applicator()
    for v in (1.0, 2.0, 1.5):
        slot.fold(v)
    before = (slot.x, slot.S, slot.D, slot.lag)
    slot.fold(y)
    assert (slot.x, slot.S, slot.D, slot.lag) == before
    assert (slot.anomalies, slot.skips) == (1, 0)


def test_zero_is_skipped_only_where_it_is_degenerate():
    magnitude, rate = Applicator(degenerate_zero=True), Applicator()
    for slot in (magnitude, rate):
        slot.fold(1.0)
        slot.fold(0.0)
    assert (magnitude.x, magnitude.skips) == (1.0, 1)
    assert (rate.lag, rate.skips) == (0.0, 0)

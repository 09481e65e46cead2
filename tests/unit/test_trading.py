"""Real bars as paths, rules tuned on training paths, and leads with paired errors."""

from pathlib import Path

import numpy as np
import pytest

from foxhunt.diagnostics import DataError
from foxhunt.runtime.bars import read_bars
from foxhunt.runtime.paths import ohlcv_paths
from foxhunt.runtime.trading import (
    RULES,
    compare,
    mean_distance,
    overlap,
    rule_returns,
    rule_table,
    tune_mean_rule,
)

REAL = Path(__file__).parents[2] / "examples/data/eurusd_1h_2017.csv"
SMALL = {"length": 81, "train_paths": 30, "eval_paths": 20}


@pytest.fixture(scope="module")
def real():
    return ohlcv_paths(REAL, SMALL)


def test_paths_are_stretches_of_bars_relative_to_their_first(real):
    close = read_bars(REAL).values[:, 3]
    for part, count in (("train", 30), ("eval", 20)):
        starts, paths = real[f"{part}_starts"], real[f"{part}_paths"]
        assert paths.shape == (count, 81)
        assert paths.dtype == np.float32
        for start, path in zip(starts, paths, strict=True):
            assert path == pytest.approx(np.log(close[start : start + 81] / close[start]), abs=1e-7)


def test_no_bar_is_on_both_sides_of_the_split(real):
    total = len(read_bars(REAL).times)
    assert real["train_starts"][[0, -1]].tolist() == [0, int(0.8 * total) - 81]
    assert real["eval_starts"][[0, -1]].tolist() == [int(0.8 * total), total - 81]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lenght": 81}, "Did you mean length"),
        ({"length": 0.5}, "positive whole number"),
        ({"train_fraction": 1.0}, "below 1"),
        ({"length": 2000}, "bars are needed"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(DataError, match=words):
        ohlcv_paths(REAL, options)


def test_a_source_without_a_path_is_refused():
    with pytest.raises(DataError, match="needs a path"):
        ohlcv_paths(None, {})


def test_a_rule_pays_for_turnover_and_earns_its_position_times_the_move():
    price = np.array([[0.0, 0.25, 0.75, 0.5]])
    signal = np.array([[9.0, -1.0, 1.0, 9.0]])
    earned = rule_returns(price, signal, 0.5, 1, 0.125)  # long from bar 1, short from bar 2
    assert earned[0] == pytest.approx((0.5 - 0.125) + (0.25 - 0.25))
    assert rule_returns(price, signal, 1.0, 1, 0.125)[0] == 0, "on the threshold is not beyond it"


def test_the_distance_from_a_mean_counts_the_bar_itself():
    assert mean_distance(np.array([[1.0, 2.0, 6.0]]), 2)[0].tolist() == [0.0, 0.5, 2.0]


def test_a_rule_is_tuned_to_what_the_paths_do():
    rng = np.random.default_rng(3)
    deviation = np.zeros((200, 200))
    for t in range(1, 200):
        deviation[:, t] = 0.9 * deviation[:, t - 1] + 4.4e-4 * rng.standard_normal(200)
    price = np.cumsum(2e-4 * rng.standard_normal((200, 200)), axis=1) + deviation
    rule = tune_mean_rule(price, 64, 2e-4)
    assert rule.earned > 0.002
    assert rule.earned == pytest.approx(
        rule_returns(price, mean_distance(price, rule.window), rule.threshold, 64, 2e-4).mean()
    )
    table = rule_table(price, deviation, 64, 2e-4)
    assert table[:, 0].tolist() == list(range(len(RULES)))
    assert table[3, 1] == rule.window
    assert tune_mean_rule(price, 64, 1.0).earned <= 0, "nothing is worth that cost"


def test_errors_are_those_of_paired_differences():
    rng = np.random.default_rng(5)
    common = rng.standard_normal(400)
    lead = compare(common + 0.1 + 0.01 * rng.standard_normal(400), {"rule": common})[0]
    assert lead.lead == pytest.approx(0.1, abs=0.003)
    assert lead.lead_error == pytest.approx(0.01 / 20, rel=0.2)
    assert lead.error == pytest.approx(1 / 20, rel=0.2)


def test_paths_that_overlap_have_errors_of_blocks():
    starts = np.arange(0, 400, 4)
    assert overlap(starts, 64) == 16
    assert overlap(np.array([0, 64]), 64) == 1
    rng = np.random.default_rng(7)
    returns = np.convolve(rng.standard_normal(415), np.ones(16))[15:415]
    naive, honest = (compare(returns, {"flat": np.zeros(400)}, block)[0].lead_error for block in (1, 16))
    assert 2.0 * naive < honest < 6.0 * naive

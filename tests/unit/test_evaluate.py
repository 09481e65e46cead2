from pathlib import Path

import numpy as np
import pytest

from foxhunt.runtime.data import WindowOptions, ohlcv
from foxhunt.runtime.evaluate import (
    block_bootstrap_error,
    direction_labels,
    direction_result,
    regime_labels,
    regime_result,
)

OPTIONS = WindowOptions()


@pytest.fixture(scope="module")
def bars():
    return ohlcv(Path(__file__).parents[2] / "examples/data/eurusd_1h_2017.csv", {})


def test_the_baselines_of_the_shipped_file(bars):
    truth = regime_labels(bars, bars["eval_ends"], OPTIONS)
    result = regime_result(truth, bars, OPTIONS)
    assert result.windows == 1147
    assert result.accuracy == 1.0
    accuracies = {c.name: round(c.accuracy, 4) for c in result.comparisons}
    assert accuracies == {
        "best constant class in hindsight": 0.2354,
        "class of the last 6 bars": 0.2319,
        "most frequent training class of the hour": 0.2825,
    }
    assert [c.barred for c in result.comparisons] == [True, True, False]


def test_a_baseline_has_no_lead_over_itself(bars):
    last = regime_labels(bars, bars["eval_ends"] - 6, OPTIONS)
    own = regime_result(last, bars, OPTIONS).comparisons[1]
    assert (own.lead, own.error) == (0.0, 0.0)


def test_directions_that_do_not_move_are_left_out(bars):
    truth = direction_labels(bars, bars["eval_ends"], OPTIONS)
    result = direction_result(np.where(truth == 0, 1, truth), bars, OPTIONS)
    assert result.windows == (truth != 0).sum()
    assert result.accuracy == 1.0
    assert result.comparisons[1].accuracy >= 0.5


def test_regime_label_counts_edges_that_are_not_above_the_volatility(bars):
    arrays = {"log_return": np.float32([0, 3, 4, 0, 0]), "regime_edges": np.float32([1, 3, 4, 5])}
    options = WindowOptions(regime_bars=2)
    assert regime_labels(arrays, np.array([0, 1, 2]), options).tolist() == [4, 3, 0]


def test_the_error_of_independent_values_is_the_textbook_one():
    values = np.random.default_rng(0).normal(size=5000)
    assert block_bootstrap_error(values, 1) == pytest.approx(values.std() / 5000**0.5, rel=0.05)


def test_the_error_grows_with_dependence():
    values = np.repeat(np.random.default_rng(0).normal(size=100), 63)
    assert block_bootstrap_error(values) > 5 * block_bootstrap_error(values, 1)


def test_the_error_is_the_same_every_time_and_short_series_have_none():
    values = np.arange(100.0)
    assert block_bootstrap_error(values) == block_bootstrap_error(values)
    assert np.isnan(block_bootstrap_error(values[:1]))

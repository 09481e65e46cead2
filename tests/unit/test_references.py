"""The oracles against numbers known from elsewhere: facts §10, math §2, §5, §7, published test vectors."""

import numpy as np
import pytest

from foxhunt.reference import REFERENCES
from foxhunt.reference.heads import cross_entropy
from foxhunt.reference.philox import Stream, philox
from foxhunt.reference.registry import SKIP

RNG = np.random.default_rng(17)


def statistic(name, x, **extra):
    return REFERENCES[name]({"x": x, **extra}, {}, {})["y"][0]


def test_p99_of_a_half_normal_is_its_quantile():
    found = [statistic("p99_abs", RNG.standard_normal(4096).astype(np.float32)) for _ in range(20)]
    assert abs(np.mean(found) / 2.576 - 1) < 0.02
    assert all(abs(f / 2.576 - 1) < 0.1 for f in found)


@pytest.mark.parametrize("n", [1, 2, 99, 100, 101, 255, 10_000])
def test_p99_is_at_most_a_bin_above_the_order_statistic(n):
    x = np.abs(RNG.standard_normal(n)).astype(np.float32)
    exact = np.sort(x)[n - 1 - n // 100]  # the largest element that more than 1 % reach
    found = statistic("p99_abs", x)
    assert exact * (1 - 1e-6) <= found <= exact + x.max() / 256 * (1 + 1e-6)


def test_p99_of_one_element_is_the_element_and_of_nothing_zero():
    assert statistic("p99_abs", np.float32([-42.5])) == 42.5
    for nothing in (np.zeros(9, np.float32), np.float32([np.nan, np.inf]), np.zeros(0, np.float32)):
        assert statistic("p99_abs", nothing) == 0.0


def test_p99_puts_an_edge_into_the_bin_above_it_and_the_last_edge_into_the_last_bin():
    """Of 257 edges bin 255 has two, each other one: three, more than 1 %, are reached in bin 254."""
    assert statistic("p99_abs", np.linspace(0, 1, 257).astype(np.float32)) == 255 / 256


def test_a_constant_has_itself_as_rms():
    assert statistic("rms", np.full(1000, 5.0, np.float32)) == pytest.approx(5.0, abs=1e-12)


def test_a_mean_of_nothing_is_the_skip_value():
    for found in (
        statistic("mean", np.float32([np.nan])),
        statistic("masked_mean", np.ones(4, np.float32), mask=np.zeros(4, np.int32)),
    ):
        assert np.float32(found).view(np.uint32) == SKIP.view(np.uint32) == 0x7FC0F0F0


@pytest.mark.parametrize(("g", "moved"), [(1e-8, 5.0e-4), (1e-4, 9.9990e-4), (1.0, 1.0e-3)])
def test_the_first_step_of_adamw(g, moved):
    consts = {
        "BETA1": 0.9, "ONE_MINUS_BETA1": 0.1, "BETA2": 0.999, "ONE_MINUS_BETA2": 0.001,
        "EPSILON": 1e-8, "GRADIENT_LIMIT": 1e18,
    }  # fmt: skip
    zero = np.zeros(1)
    inputs = {
        "w": zero, "g": np.array([g]), "m": zero, "v": zero, "norm": np.array([g]), "clip": np.inf,
        "lr": 1e-3, "wd": 0.0, "l1": 0.0, "correction": np.array([0.1, 0.001]),
    }  # fmt: skip
    assert REFERENCES["adamw"](inputs, {}, consts)["w"][0][0] == pytest.approx(-moved, rel=1e-5)


def test_the_running_correction_is_one_minus_a_power():
    consts = {"ONE_MINUS_BETA1": 0.1, "ONE_MINUS_BETA2": 0.001}
    c = np.array([9.0, 9.0])  # what was there before the first step does not matter
    for t in range(1, 601):
        c = REFERENCES["beta_correction"]({"t": t, "correction": c}, {}, consts)["correction"]
        assert c == pytest.approx([1 - 0.9**t, 1 - 0.999**t], rel=1e-12)


def test_a_batch_with_every_label_masked_has_no_loss_and_no_slope():
    loss, slope = cross_entropy(RNG.standard_normal((4, 2)), np.full(4, -1), 1.0)
    assert not loss.any()
    assert not slope.any()


def test_slopes_are_the_derivatives_of_the_loss():
    z, target = RNG.standard_normal((3, 5)), np.array([0, 4, 2])
    _, slope = cross_entropy(z, target, 1.0)
    for j in range(5):
        up, down = z.copy(), z.copy()
        up[:, j] += 1e-6
        down[:, j] -= 1e-6
        difference = (cross_entropy(up, target, 1.0)[0] - cross_entropy(down, target, 1.0)[0]) / 2e-6
        assert slope[:, j] == pytest.approx(difference, abs=1e-8)


def test_philox_gives_the_published_words():
    """The known-answer vectors of Random123 for philox4x32-10."""
    ones = np.array([0xFFFFFFFF], np.uint64)
    zeros = np.zeros(1, np.uint64)
    found = philox((zeros,) * 4, (0, 0))
    assert [hex(int(w[0])) for w in found] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    found = philox((ones,) * 4, (0xFFFFFFFF, 0xFFFFFFFF))
    assert [hex(int(w[0])) for w in found] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]


def test_draws_are_uniform_and_differ_between_steps_and_launches():
    element = np.arange(50_000)
    first = Stream(7, 1, 5).below(element, 0, 10)
    assert np.bincount(first, minlength=10) == pytest.approx(np.full(10, 5000), rel=0.05)
    for other in (Stream(8, 1, 5), Stream(7, 2, 5), Stream(7, 1, 6)):
        assert (other.below(element, 0, 10) == first).mean() == pytest.approx(0.1, abs=0.01)


def test_a_gradient_on_one_weight_has_the_whole_entropy_deficit_and_an_even_one_none():
    w = np.full(16, 0.5)
    alone, even = np.eye(1, 16)[0], np.full(16, -3.0)
    consts = {"FLOOR": 1e-12}
    assert REFERENCES["l1_lambda"]({"w": w, "g": alone}, {}, consts)["y"][0] == pytest.approx(1 / 16 / 0.5)
    assert REFERENCES["l1_lambda"]({"w": w, "g": even}, {}, consts)["y"][0] == pytest.approx(0, abs=1e-12)


def test_the_decay_rate_takes_the_gradient_along_the_weights_away():
    w, g = RNG.standard_normal(50), RNG.standard_normal(50)
    rate = REFERENCES["decay_rate"]({"w": w, "g": g}, {}, {"FLOOR": 1e-12})["y"][0]
    assert (g - np.sign(w @ g) * rate * w) @ w == pytest.approx(0, abs=1e-9)


def test_the_quantile_huber_loss_of_one_quantile():
    """δ = 3 is beyond κ = 1: L = 3 - ½; τ = ½ halves it, on either side."""
    for target, slope in ((4.0, -0.5), (-2.0, 0.5)):
        inputs = {"action": [[0]], "quant": [[1.0]], "tq": [[target]], "weight": 1.0}
        found = REFERENCES["iqn_loss"](inputs, {"T": 1, "A": 1, "K": 1}, {"KAPPA": 1.0})
        assert found["loss"] == pytest.approx([1.25])
        assert found["d_quant"].ravel() == pytest.approx([slope])


def test_the_best_constant_of_an_expectile_loss_is_the_expectile():
    """Of 0 and 1 in equal parts the e-expectile is e itself: there the slopes cancel."""
    for e in (0.1, 0.5, 0.9):
        inputs = {"v": np.full((2, 1), e), "target": np.array([[0.0], [1.0]]), "expectile": e, "weight": 1.0}
        assert REFERENCES["expectile_loss"](inputs, {}, {})["dv"].sum() == pytest.approx(0, abs=1e-15)

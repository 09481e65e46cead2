"""The categorical projection: mass and mean are kept on even, uneven and degenerate supports."""

import numpy as np
import pytest
from kernel_harness import kernel_program, library

from foxhunt.backend.base import make_backend
from foxhunt.verify.cases import make

NEVER = {"slot": 0.0, "triple": [0.0, 0.0, 0.0], "floor": 1e-8}
FIVE = np.linspace(-5, 5, 11)
UNEVEN = np.sort(np.random.default_rng(1).standard_normal(51))
REWARDS = [0.0, 0.3, -0.7, 1.1, -40.0, 40.0, 1e30, 7.3]


def example(atoms, reward=(0.0,), gamma=1.0, terminated=0.0, limit=NEVER, logp="zeros", q="zeros", actions=2):
    rewards = [float(r) for r in reward]
    return {
        "B": len(rewards),
        "A": actions,
        "N": len(atoms),
        "atoms": [float(z) for z in atoms],
        "gamma": gamma,
        "logp": logp,
        "q": q,
        "reward": rewards,
        "terminated": terminated,
        "limit": limit,
    }


EXAMPLES = {
    "halved": example(FIVE, gamma=0.5),
    "kept": example(FIVE),
    "beyond": example(FIVE, [100.0, -100.0]),
    "terminal": example(FIVE, [3.0, 3.25], terminated=1.0, logp="normal"),
    "wide": example(np.linspace(-7.3, 7.3, 101), REWARDS, gamma=0.99, logp="normal"),
    "uneven": example(UNEVEN, REWARDS, gamma=0.9, logp="normal"),
    "coinciding": example(
        [-1, -1, -1, 0, 0, 0.5, 0.5, 1, 1], [*REWARDS, 0.5, -1.0], gamma=0.9, logp="normal"
    ),
    "nearly coinciding": example(
        np.cumsum([-1.0, 1e-7, 1e-7, 0.5, 1e-30, 0.5]), REWARDS, gamma=0.9, logp="normal"
    ),
    "one point": example([0.25] * 33, REWARDS, logp="normal"),
    "one atom": example([0.25], REWARDS, logp="normal"),
    "bounded": example(FIVE, REWARDS, limit={"slot": 2.5, "triple": [0.0, 0.0, 2.5], "floor": 1e-8}),
    "floored": example(FIVE, REWARDS, limit={"slot": 0.1, "triple": [0.0, 0.0, 0.1], "floor": 4.0}),
    "unlikely": example(FIVE, REWARDS, logp=-80.0),
    "ties": example(
        FIVE,
        [0.0] * 4,
        logp=[[0.0] * 11 + [-90.0] * 10 + [0.0]] * 4,
        q=[[1.0, 1.0], [0.0, 1.0], [np.nan, -5.0], [np.nan, np.nan]],
    ),
}


@pytest.fixture(scope="module", params=[False, True], ids=["release", "debug"])
def found(request, tmp_path_factory):
    cases = [make(library()["c51_target"], e, name) for name, e in EXAMPLES.items()]
    with kernel_program(
        cases, make_backend("host"), tmp_path_factory.mktemp("c51"), request.param
    ) as program:
        program.run()
        yield {c.name: (c.values, program.found(k)) for k, c in enumerate(cases)}


def target(values):
    """Masses of the first action and where they go before any clamp, [B, N] each."""
    atoms, reward, terminated = (values[k].astype(np.float64) for k in ("atoms", "reward", "terminated"))
    q = np.where(np.isnan(values["q"]), -np.inf, values["q"])
    logp = values["logp"].astype(np.float64).reshape(len(q), q.shape[1], -1)
    p = np.exp(logp[np.arange(len(q)), q.argmax(axis=1)])
    raw = reward[:, None] + values["gamma"] * (1 - terminated[:, None]) * atoms
    return p / p.sum(axis=1, keepdims=True), raw


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_row_has_mass_one_and_the_mean_of_its_clamped_target(found, name):
    values, result = found[name]
    m, atoms = result["m"].astype(np.float64), values["atoms"].astype(np.float64)
    assert np.all(m >= 0)
    assert m.sum(axis=1) == pytest.approx(np.ones(len(m)), abs=1e-6)
    p, raw = target(values)
    limit = values["limit"].limit
    moved = np.clip(np.clip(raw, -limit, limit), atoms[0], atoms[-1])
    assert m @ atoms == pytest.approx((p * moved).sum(axis=1), abs=4e-6 * np.abs(atoms).max())


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_mean_is_that_before_all_clamps_so_that_its_bound_can_grow(found, name):
    values, result = found[name]
    p, raw = target(values)
    assert result["mean"] == pytest.approx((p * raw).sum(axis=1), rel=2e-6, abs=2e-6)


def test_known_answers_on_eleven_atoms(found):
    uniform = np.full(11, 1 / 11)
    assert found["kept"][1]["m"][0] == pytest.approx(uniform, abs=1e-7)
    halved = sum(np.maximum(0, 1 - np.abs(z / 2 - FIVE)) for z in FIVE) / 11
    assert found["halved"][1]["m"][0] == pytest.approx(halved, abs=1e-7)
    assert found["beyond"][1]["m"] == pytest.approx(np.eye(11)[[10, 0]], abs=1e-6)


def test_a_terminated_sample_ignores_what_the_next_state_promises(found):
    m = found["terminal"][1]["m"]
    assert m[0] == pytest.approx(np.eye(11)[8], abs=1e-6)
    assert m[1] == pytest.approx(0.75 * np.eye(11)[8] + 0.25 * np.eye(11)[9], abs=1e-6)
    assert not [p for p in library()["c51_target"].params if "trunc" in p]


def test_the_projection_is_the_gather_formula_of_uneven_supports(found):
    values, result = found["uneven"]
    z = values["atoms"].astype(np.float64)
    p = np.exp(values["logp"].astype(np.float64)[:, :51])
    p /= p.sum(axis=1, keepdims=True)
    moved = np.clip(values["reward"].astype(np.float64)[:, None] + 0.9 * z, z[0], z[-1])
    for i in range(51):
        below = (moved - z[i - 1]) / (z[i] - z[i - 1]) if i > 0 else np.ones_like(moved)
        above = (z[i + 1] - moved) / (z[i + 1] - z[i]) if i < 50 else np.ones_like(moved)
        share = np.maximum(0, np.minimum(np.minimum(below, above), 1))
        assert result["m"][:, i] == pytest.approx((p * share).sum(axis=1), abs=2e-4)


def test_ties_take_the_lowest_action_and_nan_is_never_chosen(found):
    m = found["ties"][1]["m"]
    uniform, last = np.full(11, 1 / 11), np.eye(11)[10]
    assert m == pytest.approx(np.stack([uniform, last, last, uniform]), abs=1e-6)


def test_targets_are_clamped_only_by_an_observed_bound(found):
    assert np.abs(found["bounded"][1]["m"] @ FIVE).max() == pytest.approx(2.5)
    assert found["bounded"][1]["m"][5] == pytest.approx(np.eye(11)[[7, 8]].mean(axis=0), abs=1e-6)
    assert np.abs(found["floored"][1]["m"] @ FIVE).max() == pytest.approx(4.0)
    assert np.abs(found["kept"][1]["m"][0, [0, -1]]).min() > 0.09

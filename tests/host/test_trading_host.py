"""The experience side on the host: environment against plain Python, replay ring, planted paths."""

from itertools import pairwise

import numpy as np
import pytest
from small_programs import training
from trading_program import dim, trading_program

from foxhunt.runtime.trading import RULES, compare, mean_distance, rule_returns, trade_unseen, tune_mean_rule

STATE = (
    "env_index", "env_account", "env_ended", "env_action", "env_reward", "env_rewards6", "env_terminated",
    "env_x", "env_xn", "env_dir", "env_reg",
)  # fmt: skip
WARM, BARS, GF = dim("WARM"), dim("BARS"), dim("GF")
LEN = WARM + BARS + 1
COST, SCALE = 2e-4, 1000.0


@pytest.fixture
def start(tmp_path):
    """A trainer with planted paths; more than one gets a folder of its own."""
    entered, count = [], iter(range(9))

    def begin(seed=0, debug=False, **dims):
        folder = tmp_path / str(next(count))
        folder.mkdir()
        context = training(trading_program(**dims), folder, seed=seed, debug=debug)
        entered.append(context)
        trainer = context.__enter__()
        trainer.run(1, "plant")
        return trainer

    yield begin
    for context in entered:
        context.__exit__(None, None, None)


def collect(trainer, steps):
    """Every tensor of STATE after each step, with the account and index before it."""
    found = []
    for _ in range(steps):
        before = {f"old_{n}": trainer.tensor(n) for n in ("env_index", "env_account", "env_ended")}
        trainer.run(1, "collect")
        found.append(before | {n: trainer.tensor(n) for n in STATE})
    return found


def trade(old, action):
    """The position after an action, in plain Python."""
    direction, magnitude, order, urgency = (int(a) for a in action)
    target = (-1, 0, 1)[direction] * (1 / 3, 2 / 3, 1)[magnitude]
    return old + (1, 0.5, 0)[order] * (1, 0.5, 0.25)[urgency] * (target - old)


def check_step(step, price, loss_limit):
    """One step of every environment against the same bar traded by hand."""
    for b in range(len(step["env_reward"])):
        after = step["env_account"][b]
        fresh = step["old_env_ended"][b] != 0
        row = int(step["env_index"][b, 0]) - 1 if fresh else int(step["old_env_index"][b, 0])
        old = np.zeros(5) if fresh else step["old_env_account"][b].astype(np.float64)
        last = min(row // LEN * LEN + LEN - 1, row + BARS) if fresh else step["old_env_index"][b, 1]
        since = 0 if fresh else step["old_env_index"][b, 2]
        assert WARM <= row % LEN < LEN - 1
        now = trade(old[0], step["env_action"][b])
        pnl = now * (float(price[row + 1]) - float(price[row]))
        cost = COST * abs(now - old[0])
        equity = old[2] + pnl - cost
        peak = max(old[3], equity)
        depth = max((peak - equity) - (old[3] - old[2]), 0)
        components = np.array([pnl, -cost, 0, -0.01 * depth, -1e-7 * abs(now), 0]) * SCALE
        assert after[0] == pytest.approx(now, abs=1e-6)
        assert after[[2, 3, 4]] == pytest.approx([equity, peak, pnl - cost], abs=1e-8)
        assert step["env_rewards6"][b] == pytest.approx(components, abs=1e-5)
        assert step["env_reward"][b] == pytest.approx(components.sum(), abs=1e-5)
        assert list(step["env_index"][b]) == [row + 1, last, 0 if abs(now - old[0]) > 1e-6 else since + 1]
        assert step["env_terminated"][b] == (equity <= -loss_limit)
        assert step["env_ended"][b] == (equity <= -loss_limit) + 2 * (row + 1 == last)


def test_every_step_keeps_to_its_arguments(start):
    trainer = start(debug=True)
    bars = np.cumsum(np.random.default_rng(0).normal(0, 1e-3, (dim("PATHS"), LEN)), axis=1)
    trainer.write_tensor("bars_train", bars)
    trainer.write_tensor("bars_eval", bars[: dim("N")])
    for step in ("use_bars", "collect", "collect", "sample", "evaluate", "evaluate", "baselines"):
        trainer.run(1, step)
    assert np.array_equal(trainer.tensor("log_price"), bars.astype(np.float32))
    assert not trainer.tensor("deviation").any()
    check_step(collect(trainer, 1)[0], trainer.tensor("log_price").ravel(), 0.05)


@pytest.mark.parametrize("debug", [False, True], ids=["release", "debug"])
def test_random_trading_agrees_with_the_same_trades_by_hand(start, debug):
    trainer = start(debug=debug)
    price = trainer.tensor("log_price").ravel()
    for step in collect(trainer, 40):
        check_step(step, price, 0.05)


def test_all_four_ends_of_an_episode_happen_and_only_ended_ones_start_anew(start):
    trainer = start(N=64)
    trainer.signals["LOSS_LIMIT"] = limit = 1.5e-3
    price = trainer.tensor("log_price").ravel()
    steps = collect(trainer, 30)
    assert {int(e) for step in steps for e in step["env_ended"]} == {0, 1, 2, 3}
    for step, following in pairwise(steps):
        check_step(step, price, limit)
        goes_on = step["env_ended"] == 0
        assert np.array_equal(step["env_terminated"] == 1, step["env_ended"] % 2 == 1)
        assert np.array_equal(step["env_xn"][goes_on], following["env_x"][goes_on])
        assert (following["env_x"][~goes_on][:, -GF] == 0).all(), "a new episode starts flat"
    truncated = next(s for s in steps if (s["env_ended"] == 2).any())
    b = int(np.argmax(truncated["env_ended"] == 2))
    last = truncated["env_index"][b, 0]
    assert np.array_equal(truncated["env_xn"][b, :-GF], trainer.tensor("market")[last]), "its true next state"


def test_states_are_the_bar_and_labels_what_follows_it_on_the_path(start):
    trainer = start(N=64)
    market, price = trainer.tensor("market"), trainer.tensor("log_price")
    for step in collect(trainer, 12):
        row = step["env_index"][:, 0] - 1
        assert np.array_equal(step["env_x"][:, :-GF], market[row])
        assert np.array_equal(step["env_xn"][:, :-GF], market[row + 1])
        for b, (path, bar) in enumerate(zip(row // LEN, row % LEN, strict=True)):
            ahead = price[path, bar + dim("HORIZON") : bar + dim("HORIZON") + 1] - price[path, bar]
            assert step["env_dir"][b] == (np.sign(ahead[0]) if len(ahead) else 0)
            assert (step["env_reg"][b] >= 0) == (bar + dim("AHEAD") < LEN)


def test_the_ring_holds_the_last_transitions_across_its_end(start):
    trainer = start()
    written = collect(trainer, 7)
    count, size = 7 * dim("N"), dim("CAP")
    assert trainer.tensor("ring_position")[0] == count > 2 * size
    names = ("x", "xn", "action", "reward", "terminated", "rewards6", "dir", "reg")
    for name in names:
        everything = np.concatenate([step[f"env_{name}"] for step in written])
        ring = trainer.tensor(f"ring_{name}")
        for k in range(count - size, count):
            assert np.array_equal(ring[k % size], everything[k]), (name, k)


def test_a_batch_is_drawn_from_what_has_been_written(start):
    trainer = start()
    trainer.run(1, "collect")
    for filled in (dim("N"), dim("CAP")):
        trainer.run(3 if filled == dim("CAP") else 0, "collect")
        ring, seen = trainer.tensor("ring_x"), set()
        for _ in range(4):
            trainer.run(1, "sample")
            rows = [int(np.flatnonzero((ring == x).all(axis=1))[0]) for x in trainer.tensor("x")]
            seen |= set(rows)
            for name, column in (
                ("xn", "xn"),
                ("action", "action"),
                ("reward", "reward"),
                ("reg_label", "reg"),
            ):
                assert np.array_equal(trainer.tensor(name), trainer.tensor(f"ring_{column}")[rows])
        assert seen == set(range(filled))


def test_the_same_seed_gives_the_same_bits_and_another_seed_other_episodes(start):
    runs = []
    for seed in (3, 3, 4):
        trainer = start(seed=seed)
        trainer.run(9, "collect")
        trainer.run(1, "sample")
        runs.append({v.name: trainer.tensor(v.name) for v in trainer.plan.views})
    assert all(np.array_equal(runs[0][n], runs[1][n]) for n in runs[0])
    assert not np.array_equal(runs[0]["env_index"], runs[2]["env_index"])
    assert np.array_equal(runs[0]["log_price"], runs[2]["log_price"]), "paths follow their own seeds"


def test_a_fold_starts_new_episodes_and_touches_nothing_else(start):
    trainer = start()
    trainer.run(6, "collect")
    before = {v.name: trainer.tensor(v.name) for v in trainer.plan.views}
    trainer.reset("fold")
    changed = {n for n, a in before.items() if not np.array_equal(a, trainer.tensor(n))}
    assert changed == {"env_ended"}
    trainer.run(1, "collect")
    assert (trainer.tensor("env_account")[:, 4] == trainer.tensor("env_account")[:, 2]).all(), "one bar old"


def test_without_exploration_the_lowest_of_the_best_actions_is_taken(start):
    trainer = start()
    trainer.signals["EPSILON"] = 0.0
    q = np.array([[0, 1, 1], [2, 2, 2], [0, 0, 1], [np.nan, -1, -1]], np.float32)
    for name in ("q_dir", "q_mag", "q_ord", "q_urg"):
        trainer.write_tensor(name, q)
    trainer.run(1, "collect")
    assert (trainer.tensor("env_action") == np.array([[1], [0], [2], [1]])).all()


# --- planted paths and evaluation


def test_paths_are_a_walk_and_a_deviation_that_reverts(start):
    trainer = start(PATHS=400, BARS=256)
    price, d = (trainer.tensor(n).astype(np.float64) for n in ("log_price", "deviation"))
    walk = np.diff(price - d, axis=1)
    assert (price[:, 0] == 0).all()
    assert walk.std() == pytest.approx(2e-4, rel=0.02)
    assert d.std() == pytest.approx(1e-3, rel=0.03)
    assert d[:, 0].std() == pytest.approx(1e-3, rel=0.1)
    assert (d[:, 1:] * d[:, :-1]).mean() / (d**2).mean() == pytest.approx(0.9, abs=0.01)
    assert abs(np.corrcoef(walk[:, 1:].ravel(), np.diff(d, axis=1)[:, 1:].ravel())[0, 1]) < 0.02
    unseen = trainer.tensor("eval_log_price")
    assert not (unseen == price[: len(unseen)])[:, 1:].any()
    trainer.run(1, "plant")
    assert np.array_equal(trainer.tensor("log_price"), price.astype(np.float32)), "whatever the step"


def test_a_policy_that_holds_earns_what_the_rule_that_holds_earns(start):
    trainer = start()
    wants = {"q_dir": 2, "q_mag": 2, "q_ord": 0, "q_urg": 0}
    for name, action in wants.items():
        trainer.write_tensor(name, np.eye(3, dtype=np.float32)[[action] * dim("N")])
    policy, rules = trade_unseen(trainer)
    price = trainer.tensor("eval_log_price").astype(np.float64)
    assert policy == pytest.approx(price[:, -1] - price[:, WARM] - COST, abs=1e-7)
    assert policy == pytest.approx(rules["buy and hold"], abs=1e-7)
    trainer.write_tensor("q_dir", np.eye(3, dtype=np.float32)[[1] * dim("N")])
    trainer.run(5, "evaluate")  # a round that is left unfinished
    policy, _ = trade_unseen(trainer)
    assert not policy.any()


def test_on_unseen_planted_paths_rules_earn_what_is_known_of_them(start):
    """A mean rule about 0.0075 a path, one that sees the deviation 0.0137; one feature gives the former."""
    trainer = start(N=1024, PATHS=1024, BARS=256, CAP=4)
    _, rules = trade_unseen(trainer)
    means = {name: float(returns.mean()) for name, returns in rules.items()}
    assert means["always flat"] == 0
    assert abs(means["buy and hold"]) < 5e-4
    assert means["random actions"] < -5e-3
    assert means["moving average"] == pytest.approx(0.0076, abs=6e-4)
    assert means["sees the deviation"] == pytest.approx(0.0137, abs=6e-4)
    leads = {lead.name: lead for lead in compare(rules["moving average"], rules)}
    assert all(leads[name].lead > 20 * leads[name].lead_error for name in RULES[:3])

    train, test = (trainer.tensor(n).astype(np.float64) for n in ("log_price", "eval_log_price"))
    rule = tune_mean_rule(train, WARM, COST)
    by_hand = rule_returns(test, mean_distance(test, rule.window), rule.threshold, WARM, COST)
    assert by_hand == pytest.approx(rules["moving average"], abs=1e-6)
    distance = trainer.tensor("eval_market").reshape(*test.shape, -1)[:, :, GF]
    assert rule_returns(test, distance, 0.5, WARM, COST).mean() > 0.9 * means["moving average"]

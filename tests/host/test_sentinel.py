"""The sentinel: the first launch and buffer with NaN or inf are named, and each policy does what it says."""

import io
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache

import numpy as np
import pytest
from rich.console import Console
from sentinel_program import POLICIES, PROGRAM, feed, found_rows, learnt, same, state
from small_programs import training

from foxhunt.cli.session import run_steps
from foxhunt.cli.train import run_summary
from foxhunt.diagnostics import TrainerError
from foxhunt.runtime.telemetry import MetricsWriter
from foxhunt.runtime.trainer import Trainer


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Trainers by policy and debug, each built once, with a checkpoint of its first state."""
    with ExitStack() as stack:

        @cache
        def get(policy, debug=False):
            folder = tmp_path_factory.mktemp(f"{policy}{debug}")
            text = PROGRAM + f"health: {{policy: {policy}}}\n"
            trainer = stack.enter_context(training(text, folder, debug=debug))
            trainer.save(folder / "first.safetensors")
            return trainer, folder / "first.safetensors"

        yield get


@pytest.fixture
def start(opened):
    """A trainer of a policy in its first state, with inputs."""

    def fresh(policy, debug=False):
        trainer, first = opened(policy, debug)
        trainer.load(first)
        for slot, value in (("LR", 0.01), ("WD", 0.0), ("WEIGHT", 1.0)):
            trainer.signals[slot] = value
        feed(trainer)
        return trainer

    return fresh


@pytest.mark.parametrize("debug", [False, True])
def test_nothing_is_found_where_all_is_finite(start, debug):
    trainer = start("report", debug)
    trainer.run(5)
    trainer.sync()
    assert trainer.not_finite().places == ()
    assert trainer.not_finite().text == ""
    assert not found_rows(trainer).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("bad", "launch", "buffer"), [("x", "train.linear", "y"), ("want", "train.mse_rows", "dy")]
)
def test_the_first_launch_and_buffer_are_named(start, bad, launch, buffer, value):
    trainer = start("report")
    trainer.run(4)
    feed(trainer, bad, value)
    trainer.run(2)
    feed(trainer)
    trainer.run(1)
    found = trainer.not_finite()
    first = found.places[0]
    assert (first.launch, first.buffer, first.first, first.steps, found.steps) == (launch, buffer, 5, 2, 2)
    assert f"{launch} left NaN or inf in {buffer} in step 5" in found.text


def test_an_overflow_is_found(start):
    trainer = start("report")
    trainer.run(1)
    trainer.signals["WEIGHT"] = 3e38
    trainer.run(1)
    first = trainer.not_finite().places[0]
    assert (first.launch, first.buffer, first.first) == ("train.mse_rows", "dy", 2)


def test_a_kernel_that_goes_wrong_is_named(tmp_path):
    with training(PROGRAM, tmp_path / "sound") as sound:
        plan = sound.plan
    folder = tmp_path / "sound" / "generated"
    body = folder / "kernels" / "mse_rows.cuh"
    text = body.read_text()
    assert text.count("loss[b] = sum") == 1
    body.write_text(text.replace("loss[b] = sum", "loss[b] = b != 5 ? sum : nan_() * sum"))
    with Trainer(plan, folder, backend="host") as trainer:
        feed(trainer)
        trainer.run(1)
        places = trainer.not_finite().places
    assert [(p.launch, p.buffer) for p in places] == [("train.mse_rows", "loss")]


def test_a_param_that_is_not_finite_is_found_where_it_is_first_used(start):
    trainer = start("report")
    w = trainer.tensor("w")
    w[0, 0] = np.nan
    trainer.write_tensor("w", w)
    trainer.run(1, "look")
    trainer.run(1)
    assert [str(p) for p in trainer.not_finite().places[:2]] == [
        "look.linear left NaN or inf in seen in step 1 of all",
        "train.linear left NaN or inf in y in step 2 of all",
    ]


@pytest.mark.parametrize("policy", ["report", "skip-update"])
def test_a_warning_comes_again_when_twice_as_many_steps_had_some(start, caplog, policy):
    trainer = start(policy)
    feed(trainer, "x")
    with caplog.at_level(logging.WARNING, "foxhunt"):
        for _ in range(9):
            trainer.run(1)
            trainer.sync()
    counts = [m.partition("outputs; ")[2].partition(" had")[0] for m in caplog.messages]
    assert counts == ["1 step", "2 steps", "4 steps", "8 steps"]
    assert "train.linear left NaN or inf in y in step 1 of all" in caplog.messages[0]
    assert "foxhunt verify trial --only finite --resume" in caplog.messages[0]
    assert "from a checkpoint of before step 1" in caplog.messages[0]
    assert trainer.not_finite().steps == 9


LOOKS = {
    "tensor": lambda trainer, _: trainer.tensor("w"),
    "write_tensor": lambda trainer, _: feed(trainer),
    "diagnostics": lambda trainer, _: trainer.diagnostics(),
    "save": lambda trainer, folder: trainer.save(folder / "c.safetensors"),
    "run": lambda trainer, _: trainer.run(1),
    "a long run": lambda trainer, _: trainer.run(100),
}


@pytest.mark.parametrize("name", LOOKS)
def test_every_call_that_shows_or_keeps_values_warns(start, caplog, tmp_path, name):
    trainer = start("report")
    feed(trainer, "x")
    with caplog.at_level(logging.WARNING, "foxhunt"):
        trainer.run(1)
        LOOKS[name](trainer, tmp_path)
    assert any("train.linear left NaN or inf in y in step 1" in m for m in caplog.messages)


def test_stop_raises_once_where_values_are_read_and_always_where_steps_go_on(start, caplog, tmp_path):
    trainer = start("stop")
    feed(trainer, "x")
    trainer.run(1)
    feed(trainer)
    with caplog.at_level(logging.WARNING, "foxhunt"):
        trainer.save(tmp_path / "c.safetensors")
    assert caplog.messages[0].startswith("train.linear left NaN or inf in y in step 1 of all")
    with pytest.raises(TrainerError, match="FH552"):
        trainer.tensor("w")
    trainer.tensor("w")
    trainer.diagnostics()
    for go_on in (trainer.sync, lambda: trainer.run(1)):
        with pytest.raises(TrainerError, match="FH552"):
            go_on()


def test_a_long_run_under_stop_ends_soon_after_the_first_bad_step(start):
    trainer = start("stop")
    trainer.run(1)
    feed(trainer, "x")
    with pytest.raises(TrainerError, match="in step 2 of all"):
        trainer.run(1000)
    assert trainer.counters()["foxhunt.step"] <= 2 + 64


def test_diagnostics_of_another_thread_do_not_raise(start):
    trainer = start("stop")
    feed(trainer, "x")
    trainer.run(1)
    feed(trainer)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(trainer.diagnostics).result()["t"] is not None
    with pytest.raises(TrainerError, match="FH552"):
        trainer.diagnostics()


@pytest.mark.parametrize("policy", POLICIES)
def test_the_policy_is_there_before_anything_was_found(start, policy):
    assert start(policy).not_finite().policy == policy


@pytest.mark.parametrize(("policy", "said"), [("report", "adamw leaves"), ("skip-update", "has not let")])
def test_a_checkpoint_says_what_became_of_the_update(start, caplog, tmp_path, policy, said):
    trainer = start(policy)
    feed(trainer, "x")
    trainer.run(1)
    with caplog.at_level(logging.WARNING, "foxhunt"):
        trainer.save(tmp_path / "c.safetensors")
    assert sum(said in m for m in caplog.messages) == 1


@pytest.mark.parametrize("debug", [False, True])
def test_skip_update_leaves_what_is_learnt_as_it_was(start, debug):
    trainer, other = start("skip-update", debug), start("report")
    for t in (trainer, other):
        t.run(3)
    assert same(learnt(trainer), learnt(other))
    before = learnt(trainer)
    for t in (trainer, other):
        feed(t, "want", np.inf)
        t.run(2)
    assert same(learnt(trainer), before)
    assert not same(
        learnt(other), before
    )  # moments of finite gradients, decay: a report does not hold them up
    feed(trainer)
    trainer.run(1)
    assert not same(learnt(trainer), before)
    assert "2 steps had some, and did not update params" in trainer.not_finite().text
    assert trainer.counters()["t"] == 6  # goes on: a counter may be what chooses the next batch


def test_skip_update_undoes_what_the_update_itself_spoils(start):
    trainer = start("skip-update")
    trainer.run(2)
    before = learnt(trainer)
    trainer.signals["LR"] = trainer.signals["WD"] = 3e38
    trainer.run(1)
    assert same(learnt(trainer), before)
    assert trainer.not_finite().places[0].launch == "train.adamw"


def test_stop_raises_and_keeps_params_from_before_the_first_bad_step(start, tmp_path):
    trainer = start("stop")
    trainer.run(3)
    trainer.sync()
    before = learnt(trainer)
    feed(trainer, "x", np.inf)
    trainer.run(2)
    feed(trainer)
    with pytest.raises(TrainerError, match=r"train\.linear left NaN or inf in y in step 4") as caught:
        trainer.sync()
    assert caught.value.diagnostics[0].code == "FH552"
    with pytest.raises(TrainerError, match="FH552"):
        trainer.run(1)
    trainer.save(tmp_path / "kept.safetensors")
    assert same(learnt(trainer), before)
    assert (trainer.counters()["t"], trainer.counters()["foxhunt.step"]) == (3, 5)
    trainer.load(tmp_path / "kept.safetensors")
    trainer.run(1)
    trainer.sync()
    assert not same(learnt(trainer), before)


@pytest.mark.parametrize("debug", [False, True])
def test_stop_holds_params_though_nobody_looks(start, debug):
    trainer = start("stop", debug)
    before = learnt(trainer)
    feed(trainer, "x")
    trainer.backend.run("train", 1)
    feed(trainer)
    trainer.backend.run("train", 3)
    with pytest.raises(TrainerError, match="FH552"):
        trainer.tensor("w")
    assert same(learnt(trainer), before)


def test_a_reset_forgets_what_was_found(start):
    trainer = start("stop")
    feed(trainer, "x")
    trainer.run(1)
    feed(trainer)
    trainer.reset("fold")
    assert trainer.not_finite().places == ()
    trainer.run(1)
    trainer.sync()


def test_policies_train_to_the_same_bits(start):
    states = []
    for policy in POLICIES:
        trainer = start(policy)
        trainer.run(20)
        states.append(state(trainer))
    assert all(same(states[0], s) for s in states[1:])


def test_finds_are_the_same_bits_in_two_runs(start):
    rows = []
    for _ in range(2):
        trainer = start("report")
        feed(trainer, "want")
        trainer.run(3)
        rows.append(found_rows(trainer))
    assert rows[0].any()
    assert (rows[0] == rows[1]).all()


def test_off_watches_nothing(start):
    trainer = start("off")
    feed(trainer, "x")
    trainer.run(1)
    trainer.sync()
    assert trainer.not_finite().text == ""
    assert trainer.plan.watched == ()
    assert "sentinel.rows" not in {b.name for b in trainer.plan.buffers}


def test_every_element_of_a_large_and_a_crooked_output_is_looked_at(tmp_path):
    text = """
dims: {N: 9001, ODD: 5, M: 2}
buffers:
  - {name: x, shape: [N], lifetime: input}
  - {name: odd, shape: [M, ODD], lifetime: input}
  - {name: kept, shape: [N], lifetime: persistent, reset: never}
  - {name: bits, shape: [M, ODD], lifetime: persistent, reset: never}
steps:
  - name: copy
    items:
      - {kernel: add_many, args: {xs: [x], y: kept}, as: whole}
      - {kernel: add_many, args: {xs: ["odd[0]"], y: "bits[0]"}, as: first}
      - {kernel: add_many, args: {xs: ["odd[1]"], y: "bits[1]"}, as: second}
"""
    with training(text, tmp_path) as trainer:
        for k in (0, 4095, 4096, 8191, 8192, 9000):
            x = np.zeros(9001, np.float32)
            x[k] = np.nan
            trainer.write_tensor("x", x)
            trainer.run(1)
        trainer.write_tensor("x", np.zeros(9001))
        odd = np.zeros((2, 5))
        odd[1, 4] = np.inf
        trainer.write_tensor("odd", odd)
        trainer.run(1)
        found = trainer.not_finite()
    assert [(p.launch, p.buffer, p.first, p.steps) for p in found.places] == [
        ("copy.whole", "kept", 1, 6),
        ("copy.second", "bits[1]", 7, 1),
    ]


def test_a_training_run_ends_with_one_line_or_stops_with_a_checkpoint(start, tmp_path):
    def trained(policy):
        trainer = start(policy)
        trainer.run(2)
        feed(trainer, "x")
        with MetricsWriter(tmp_path / "m.jsonl") as writer:
            console = Console(file=io.StringIO())
            return trainer, run_steps(trainer, 4, writer, console, checkpoint=tmp_path / policy)

    trainer, result = trained("report")
    found = dict(run_summary(trainer, result, 0))["NaN or inf"]
    assert found.startswith("train.linear left NaN or inf in y in step 3")
    assert found.endswith("4 steps had some")
    with pytest.raises(TrainerError, match="stop has params as before that step") as caught:
        trained("stop")
    assert "--resume goes on from it" in caught.value.diagnostics[0].help
    assert "reset" not in caught.value.diagnostics[0].help
    trainer = start("stop")
    before = learnt(trainer)
    trainer.run(2)
    expected = learnt(trainer)
    trainer.load(tmp_path / "stop")
    assert not same(learnt(trainer), before)
    assert same(learnt(trainer), expected)

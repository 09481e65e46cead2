"""The end of a trainer tells of NaN and inf that nobody heard of; a large group is never kept poisoned."""

import contextlib
import logging
from functools import cache

import numpy as np
import pytest
from kernel_harness import ROOT
from sentinel_program import PROGRAM, feed
from small_programs import training

import foxhunt
from foxhunt.diagnostics import TrainerError
from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program
from foxhunt.runtime.sentinel import advice
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.load import load_specs
from foxhunt.spec.models import Health


@pytest.fixture
def closing(tmp_path):
    """A trainer of its own in which a step has gone wrong and nobody has looked."""

    @cache
    def plan(policy):
        with training(PROGRAM + f"health: {{policy: {policy}}}\n", tmp_path / policy) as first:
            return first.plan

    def make(policy):
        trainer = Trainer(plan(policy), tmp_path / policy / "generated", backend="host")
        feed(trainer, "x")
        trainer.run(1)
        return trainer

    return make


@pytest.mark.parametrize("policy", ["report", "skip-update"])
def test_the_end_of_with_warns(closing, caplog, policy):
    with caplog.at_level(logging.WARNING, "foxhunt"), closing(policy):
        pass
    assert ["in step 1 of all" in m for m in caplog.messages] == [True]


def test_the_end_of_with_raises_under_stop_unless_it_was_raised_or_another_error_is_under_way(closing):
    trainer = closing("stop")
    with pytest.raises(TrainerError, match="FH552"), trainer:
        pass
    with pytest.raises(TrainerError, match="FH545"):
        trainer.sync()  # it is closed
    with closing("stop") as trainer, pytest.raises(TrainerError, match="FH552"):
        trainer.sync()
    with pytest.raises(ZeroDivisionError), closing("stop"):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), contextlib.closing(closing("stop")):
        raise ZeroDivisionError


@pytest.mark.parametrize("policy", ["skip-update", "stop"])
def test_a_large_group_that_a_moment_spoils_is_put_back(tmp_path, policy):
    specs = load_specs(ROOT / "specs")
    source = specs.programs["aux"].model_copy(update={"health": Health(policy=policy)})
    specs = specs.model_copy(update={"programs": {**specs.programs, "aux": source}})
    store(compile_program(specs, "aux", "default", {"B": 64}).files, tmp_path / "g")
    with foxhunt.load(tmp_path / "g", backend="host") as trainer:
        trainer.run(2)
        before = trainer.tensor("trunk")
        moments = trainer.tensor("aux_w1.m")
        moments[0, 0] = np.nan
        trainer.write_tensor("aux_w1.m", moments)
        trainer.run(1)
        if policy == "stop":
            with pytest.raises(TrainerError, match=r"trunk.* in step 3 of all.*params are as before step 3"):
                trainer.sync()
        assert np.array_equal(trainer.tensor("trunk"), before)
        found = trainer.not_finite()
        assert "foxhunt verify aux --dim B=64 --only finite" in advice(trainer.plan, found)
        assert {p.buffer for p in found.places} >= {"trunk", "trunk.m"}

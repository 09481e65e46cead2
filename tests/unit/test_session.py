"""How a training loop ends: signals and a full disk keep a checkpoint of a whole number of steps."""

import io
import os
import signal
from pathlib import Path

import pytest
from rich.console import Console
from runtime_toy import ToyBackend, plan

from foxhunt.cli.session import run_steps
from foxhunt.diagnostics import CheckpointError, TrainerError, fail
from foxhunt.runtime.interrupt import whole_steps
from foxhunt.runtime.telemetry import MetricsWriter, read_metrics
from foxhunt.runtime.trainer import Trainer


@pytest.fixture
def trainer():
    return Trainer(plan(), Path(), backend=ToyBackend(eager=True))


def run(trainer, folder, count=100):
    with MetricsWriter(folder / "m.jsonl") as writer:
        console = Console(file=io.StringIO())
        return run_steps(trainer, count, writer, console, checkpoint=folder / "kept.safetensors")


def steps_in(path):
    trainer = Trainer(plan(), Path(), backend=ToyBackend())
    trainer.load(path)
    return trainer.counters()["foxhunt.step"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_loop_between_steps_and_keeps_a_checkpoint(tmp_path, trainer, number, code):
    execute = trainer.backend._execute

    def signalled(step):
        execute(step)
        if trainer.backend.done == 20:
            os.kill(os.getpid(), number)

    trainer.backend._execute = signalled
    result = run(trainer, tmp_path)
    assert (result.exit_code, result.interrupted) == (code, True)
    assert result.steps == steps_in(tmp_path / "kept.safetensors")
    assert 20 <= result.steps < 100


def test_a_signal_while_the_checkpoint_is_written_comes_after_it(tmp_path, trainer, monkeypatch):
    save = trainer.save

    def signalled(path):
        os.kill(os.getpid(), signal.SIGTERM)
        save(path)

    monkeypatch.setattr(trainer, "save", signalled)
    with pytest.raises(KeyboardInterrupt):
        run(trainer, tmp_path, 3)
    assert steps_in(tmp_path / "kept.safetensors") == 3


def test_a_run_to_the_end_is_saved(tmp_path, trainer):
    result = run(trainer, tmp_path, 5)
    assert (result.steps, result.exit_code) == (5, 0)
    assert steps_in(tmp_path / "kept.safetensors") == 5
    assert [r["step"] for r in read_metrics(tmp_path / "m.jsonl")] == [1, 2, 3, 4, 5]


def full_disk(monkeypatch):
    write = MetricsWriter.write

    def failing(self, step, metrics):
        if step == 7:
            raise fail(TrainerError, "FH548", "cannot write metrics: No space left on device")
        write(self, step, metrics)

    monkeypatch.setattr(MetricsWriter, "write", failing)


def test_metrics_that_cannot_be_written_stop_the_run_after_a_checkpoint(tmp_path, trainer, monkeypatch):
    full_disk(monkeypatch)
    with pytest.raises(TrainerError, match=r"FH548.*No space left") as error:
        run(trainer, tmp_path)
    assert "kept.safetensors holds all steps so far" in error.value.diagnostics[0].help
    assert steps_in(tmp_path / "kept.safetensors") == 7


def test_a_checkpoint_that_does_not_fit_either_is_told_too(tmp_path, trainer, monkeypatch):
    full_disk(monkeypatch)

    def save(path):
        raise fail(CheckpointError, "FH511", "cannot be written")

    monkeypatch.setattr(trainer, "save", save)
    with pytest.raises(TrainerError) as error:
        run(trainer, tmp_path)
    assert [d.code for d in error.value.diagnostics] == ["FH548", "FH511"]


def test_what_the_system_does_with_a_signal_stays_as_it_was():
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with whole_steps():
        pass
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers

"""What `train` and `demo` share: a run folder, progress bars, the loop of steps, and the report."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from foxhunt.cli.report import Report, write_report
from foxhunt.diagnostics import Location, TrainerError, fail
from foxhunt.runtime.telemetry import MetricsWriter, read_metrics
from foxhunt.runtime.trainer import Trainer

METRICS = "metrics.jsonl"
SHOWN = 4  # metrics beside the bar


@dataclass(frozen=True)
class RunResult:
    """How a training loop ended."""

    steps: int
    seconds: float
    interrupted: bool

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds if self.seconds else 0.0


@contextmanager
def run_folder(root: Path, out: Path | None) -> Iterator[Path]:
    """`out`, or a new folder `root/<time>`; removed again when the block fails before any metrics are there.

    Raises TrainerError FH550 when it cannot be made.
    """
    folder, made = _make_folder(root, out)
    try:
        yield folder
    except BaseException:
        if made and not (folder / METRICS).exists():
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _make_folder(root: Path, out: Path | None) -> tuple[Path, bool]:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    names = (stamp if not k else f"{stamp}-{k}" for k in itertools.count())
    while True:
        folder = out or root / next(names)
        try:
            folder.mkdir(parents=True)
            return folder, True
        except FileExistsError:
            if out is not None and out.is_dir():
                return out, False
            if out is not None:
                message = "the run folder is a file"
                raise fail(TrainerError, "FH550", message, at=Location(str(out))) from None
        except OSError as error:
            message = f"cannot make the run folder: {error.strerror}"
            raise fail(TrainerError, "FH550", message, at=Location(str(folder))) from error


@contextmanager
def build_bar(console: Console) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar over the kernels being compiled; gone when all came from the cache."""
    columns = (
        TextColumn("building kernels"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total, name: progress.update(task, completed=done, total=total, description=name)


def run_steps(
    trainer: Trainer,
    count: int,
    writer: MetricsWriter,
    console: Console,
    *,
    step: str | None = None,
    every: int = 1,
    per_graph: int = 1,
) -> RunResult:
    """Run `count` steps with a live bar, writing the diagnostics every `every` steps.

    Ctrl-C stops between two steps and is reported in the result, so that the caller can keep a checkpoint.
    """
    first = trainer.counters()["foxhunt.step"]
    start, done, interrupted = time.perf_counter(), 0, False
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=count)
        try:
            while done < count:
                chunk = min(every, count - done)
                trainer.run(chunk, step, per_graph)
                trainer.sync()
                done = trainer.counters()["foxhunt.step"] - first
                metrics = trainer.diagnostics()
                writer.write(first + done, metrics)
                progress.update(task, completed=done, description=live_text(metrics))
        except KeyboardInterrupt:
            interrupted = True
            trainer.sync()
            done = trainer.counters()["foxhunt.step"] - first
    return RunResult(done, time.perf_counter() - start, interrupted)


def live_text(metrics: Mapping[str, Any]) -> str:
    """A few metrics for the bar: losses first, then accuracies, then the rest in declaration order."""
    scalars = {name: value for name, value in metrics.items() if isinstance(value, float)}
    ranked = sorted(scalars, key=lambda name: ("LOSS" not in name, "ACC" not in name))
    return "  ".join(f"{name.removesuffix('_EMA').lower()} {scalars[name]:.4f}" for name in ranked[:SHOWN])


def finish(folder: Path, report: Report, console: Console) -> None:
    """Write the run's report beside its metrics and say where everything is."""
    write_report(folder / "report.html", report, read_metrics(folder / METRICS))
    console.print(f"report      {folder / 'report.html'}")
    console.print(f"metrics     {folder / 'metrics.jsonl'}")
    console.print(f"checkpoint  {folder / 'checkpoint.safetensors'}")

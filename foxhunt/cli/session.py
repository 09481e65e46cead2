"""What `train` and `demo` share: a run folder, progress bars, the loop of steps, and the report."""

from __future__ import annotations

import itertools
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from foxhunt.cli.report import Report, write_report
from foxhunt.diagnostics import DataError, FoxhuntError, Location, TrainerError, fail
from foxhunt.runtime.interrupt import Terminated, terminable, whole_steps
from foxhunt.runtime.sentinel import advice
from foxhunt.runtime.telemetry import MetricsWriter, read_metrics
from foxhunt.runtime.trainer import Trainer

METRICS = "metrics.jsonl"
EMITTED = "program"  # the folder of the compiled program
CHECKPOINT = "checkpoint.safetensors"
_LOCK = "layout.lock"  # of a compiled program; the module that writes it imports what a run does without
_SPEC = re.compile(r"^(program|kernel)[ \t]*:", re.MULTILINE)
WIDE = 110  # columns for a long bar, the time left and four metrics


@dataclass(frozen=True)
class RunResult:
    """How a training loop ended."""

    steps: int
    seconds: float
    exit_code: int = 0  # 130 after Ctrl-C, 143 after SIGTERM

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended it early."""
        return self.exit_code != 0

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds if self.seconds else 0.0


@contextmanager
def run_folder(root: Path, out: Path | None, resume: Path | None = None) -> Iterator[Path]:
    """`out`, or a new folder `root/<time>`; removed again when the block fails before any metrics are there.

    Raises TrainerError FH550 when it cannot be made, when `out` has metrics of another run than the one
    whose checkpoint `resume` is, and when it holds specs or a compiled program.
    """
    if out is not None and (other := _other_use(out)):
        help = f"Name another with --out, such as {root / 'first'}."
        raise fail(TrainerError, "FH550", f"the run folder holds {other}", at=Location(str(out)), help=help)
    folder, made = _make_folder(root, out)
    if (folder / METRICS).exists() and (resume is None or resume.resolve().parent != folder.resolve()):
        message = "the run folder holds a run already"
        help = f"Name another with --out, or go on with --resume {folder / CHECKPOINT}."
        raise fail(TrainerError, "FH550", message, at=Location(str(folder)), help=help)
    try:
        yield folder
    except BaseException:
        if made and not (folder / METRICS).exists():
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _other_use(folder: Path) -> str:
    """What a folder holds that a run may not be mixed into. A run's own `program/` is no such thing."""
    places = [folder, *sorted(p for p in folder.glob("*") if p.is_dir() and p.name != EMITTED)]
    if any((place / _LOCK).is_file() for place in places):
        return "a compiled program"
    for file in (f for place in places for f in sorted(place.glob("*.yaml")) if f.is_file()):
        with suppress(OSError):
            if _SPEC.search(file.read_text(encoding="utf-8", errors="replace")):
                return f"specs: {file.relative_to(folder)}"
    return ""


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
def spec_places(specs: Path, program: str) -> Iterator[None]:
    """Give what does not fit the data its place in the specs: a trainer knows names, but no positions."""
    try:
        yield
    except DataError as error:
        from foxhunt.spec.load import load_specs

        places = {b.name: b.at for b in load_specs(specs).programs[program].buffers}
        found = (replace(d, location=d.location or places.get(d.about)) for d in error.diagnostics)
        raise DataError(tuple(found)) from error


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
    checkpoint: Path,
    step: str | None = None,
    every: int | None = None,
    per_graph: int = 1,
) -> RunResult:
    """Run `count` steps with a live bar, writing the diagnostics every `every` steps, then `checkpoint`.

    Without `every` there are about 1,000 lines, and more than one a second where steps are slow.

    Ctrl-C and SIGTERM stop between two steps. The checkpoint is written after these too, after metrics that
    could not be written, and after a stop. Raises TrainerError FH548 and CheckpointError when the disk is
    full, FH552 where the program's health policy stops at NaN or inf.
    """
    first = trainer.counters()["foxhunt.step"]
    start, done, code = time.perf_counter(), 0, 0
    narrow = console.width < WIDE
    columns = (
        TextColumn("training"),
        BarColumn(bar_width=12 if narrow else 30),
        MofNCompleteColumn(),
        *(() if narrow else (TimeRemainingColumn(),)),
        TextColumn("{task.description}"),
    )
    chunk = every or 1
    with terminable(), Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=count)
        try:
            while done < count:
                began = time.perf_counter()
                try:
                    trainer.run(min(chunk, count - done), step, per_graph)
                    trainer.sync()
                except TrainerError as error:
                    if error.diagnostics[0].code != "FH552":
                        raise
                    raise _held(trainer, checkpoint, error) from error
                chunk = every or _next_chunk(chunk, time.perf_counter() - began, count)
                done = trainer.counters()["foxhunt.step"] - first
                metrics = trainer.diagnostics()
                try:
                    writer.write(first + done, metrics)
                except TrainerError as error:
                    help = f"Free space; {checkpoint} holds all steps so far, for --resume."
                    raise _kept(trainer, checkpoint, error, help) from error
                shown = live_text(metrics, 2 if narrow else 4)
                progress.update(task, completed=done, description=shown)
        except KeyboardInterrupt as stop:
            code = 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)
            try:
                trainer.sync()
            except TrainerError as error:
                raise _held(trainer, checkpoint, error) from error
            stopped = trainer.counters()["foxhunt.step"] - first
            if stopped > done:
                writer.write(first + stopped, trainer.diagnostics())
            done = stopped
        seconds = time.perf_counter() - start
        with whole_steps():
            trainer.save(checkpoint)
    return RunResult(done, seconds, code)


def _next_chunk(chunk: int, seconds: float, count: int) -> int:
    """Steps until the next metrics line: more while that is quick, fewer when it took over a second."""
    if seconds > 1:
        return max(1, chunk // 2)
    return min(2 * chunk, max(1, count // 1000)) if seconds < 0.25 else chunk


def _held(trainer: Trainer, checkpoint: Path, error: TrainerError) -> TrainerError:
    """The error of a step that the health policy stops at, with what to do; the checkpoint is written."""
    found = advice(trainer.plan, trainer.not_finite())
    help = f"{checkpoint} has params as before that step; --resume goes on from it or an earlier one. {found}"
    return _kept(trainer, checkpoint, error, help)


def _kept(trainer: Trainer, checkpoint: Path, error: TrainerError, help: str) -> TrainerError:
    """The error, after an attempt to save what was trained so far: with `help`, or with what hindered it."""
    try:
        trainer.save(checkpoint)
    except FoxhuntError as second:
        return TrainerError((*error.diagnostics, *second.diagnostics))
    return TrainerError(tuple(replace(d, help=help) for d in error.diagnostics))


def live_text(metrics: Mapping[str, Any], count: int) -> str:
    """A few metrics for the bar: losses first, then accuracies, then the rest in declaration order."""
    scalars = {name: value for name, value in metrics.items() if isinstance(value, float)}
    ranked = sorted(scalars, key=lambda name: ("LOSS" not in name, "ACC" not in name))
    return "  ".join(f"{name.removesuffix('_EMA').lower()} {scalars[name]:.4f}" for name in ranked[:count])


def finish(folder: Path, report: Report, console: Console) -> None:
    """Write the run's report beside its metrics and say where everything is."""
    write_report(folder / "report.html", report, read_metrics(folder / METRICS))
    console.print(f"report      {folder / 'report.html'}")
    console.print(f"metrics     {folder / 'metrics.jsonl'}")
    console.print(f"checkpoint  {folder / 'checkpoint.safetensors'}")

"""`foxhunt demo`: the shipped program on real bars, from specs to a held-out table, on this machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from foxhunt.backend.plan import Plan
from foxhunt.cli.compile import compile_one, summary_table, write
from foxhunt.cli.report import Report
from foxhunt.cli.session import EMITTED, METRICS, build_bar, finish, run_folder, run_steps, spec_places
from foxhunt.cli.tables import Table, show_table
from foxhunt.cli.train import run_summary, signals_table
from foxhunt.runtime.data import WindowOptions, load_source
from foxhunt.runtime.evaluate import Result, direction_result, regime_result
from foxhunt.runtime.load import plan_of_text
from foxhunt.runtime.telemetry import MetricsWriter
from foxhunt.runtime.trainer import Trainer
from foxhunt.runtime.views import step_of


@click.command()
@click.option(
    "--specs", default="specs", show_default=True, type=click.Path(path_type=Path), help="Specs folder."
)
@click.option("--variant", default="demo", show_default=True, help="A variant of aux's dims.")
@click.option("--backend", default="auto", show_default=True, type=click.Choice(["auto", "host", "cuda"]))
@click.option("--seed", default=0, show_default=True, type=int, help="The first seed.")
@click.option(
    "--seeds", default=1, show_default=True, type=click.IntRange(min=1), help="How many seeds to run."
)
@click.option("--out", type=click.Path(path_type=Path), help="Run folder; runs/<time> unless given.")
def demo(specs: Path, variant: str, backend: str, seed: int, seeds: int, out: Path | None) -> None:
    """Compile specs/, train `aux` on a year of hourly EUR/USD bars, and test it on bars it never saw.

    Needs no GPU: a C++ compiler is enough. The number of steps is fixed in the spec, never chosen on
    held-out bars. --seeds 5 shows that the result is no accident of one seed.
    """
    console = Console()
    start = time.perf_counter()
    compiled = compile_one(specs, "aux", variant, {})
    show_table(console, summary_table([compiled]))
    plan = plan_of_text(compiled.files["trainer.py"], Path("aux") / "trainer.py")
    with spec_places(specs, "aux"), run_folder(Path("runs"), out) as folder:
        write(compiled, folder / EMITTED)
        runs = [train_seed(plan, folder, backend, k, k == seed, console) for k in range(seed, seed + seeds)]
    summary = (*runs[0].summary, ("whole demo", f"{time.perf_counter() - start:.1f} s"))
    tables = tuple(result_table(run.regime, run.direction, run.seed) for run in runs)
    show_table(console, Table("Run", ("", ""), summary))
    for table in tables:
        show_table(console, table)
    tables = (*tables, runs[0].signals)
    finish(folder, Report("foxhunt demo", "aux on hourly EUR/USD bars of 2017", summary, tables), console)


@dataclass(frozen=True)
class SeedRun:
    """One trained seed: how it ran, its signals at the end, and both heads on held-out bars."""

    seed: int
    summary: tuple[tuple[str, str], ...]
    signals: Table
    regime: Result
    direction: Result


def train_seed(plan: Plan, folder: Path, backend: str, seed: int, first: bool, console: Console) -> SeedRun:
    """Train one seed and test it; the first one's files have plain names. Exits 130 or 143 on a signal."""
    suffix = "" if first else f"-{seed}"
    emitted = folder / EMITTED
    with build_bar(console) as progress:
        trainer = Trainer(plan, emitted, backend=backend, seed=seed, progress=progress)
    with trainer:
        count = step_of(plan, "train").repeat or 1
        with MetricsWriter((folder / METRICS).with_stem(f"metrics{suffix}")) as writer:
            checkpoint = folder / f"checkpoint{suffix}.safetensors"
            result = run_steps(trainer, count, writer, console, checkpoint=checkpoint, step="train")
        if result.interrupted:
            text = f"stopped after {result.steps} steps; the checkpoint is kept in {folder}"
            console.print(text, style="yellow")
            raise click.exceptions.Exit(result.exit_code)
        summary, signals = run_summary(trainer, result, seed), signals_table(trainer, "train")
        regime, direction = held_out(trainer, emitted)
    return SeedRun(seed, summary, signals, regime, direction)


def held_out(trainer: Trainer, folder: Path) -> tuple[Result, Result]:
    """Regime and direction accuracy on the held-out windows, beside their baselines."""
    source = next(s for s in trainer.plan.data if s.name == "bars")
    arrays = load_source(source, folder)
    known: dict[str, Any] = dict(source.options)  # load_source has refused unknown ones
    options = WindowOptions(**known)
    trainer.run(step_of(trainer.plan, "evaluate").repeat or 1, "evaluate")
    classes = trainer.tensor("eval_reg_class").astype(np.int64)
    signs = np.where(trainer.tensor("eval_pred_tanh") > 0, 1, -1).astype(np.int64)
    return regime_result(classes, arrays, options), direction_result(signs, arrays, options)


def result_table(regime: Result, direction: Result, seed: int) -> Table:
    """Both heads against their baselines; leads with a block-bootstrap standard error."""
    rows = []
    for result in (regime, direction):
        rows.append((f"{result.head}: network", f"{result.accuracy:.3f}", "", "", str(result.windows)))
        for c in result.comparisons:
            verdict = ("beaten" if c.lead > 0 else "NOT beaten") if c.barred else "reported only"
            rows.append((f"  {c.name}", f"{c.accuracy:.3f}", f"{c.lead:+.3f} ± {c.error:.3f}", verdict, ""))
    note = (
        "Lead: network minus baseline on the same windows; ± block-bootstrap standard error, 63-bar blocks."
    )
    return Table(f"Held-out bars, seed {seed}", ("", "accuracy", "lead", "", "windows"), tuple(rows), note)

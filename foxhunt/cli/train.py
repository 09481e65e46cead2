"""`foxhunt train`: compile a program and run one of its steps, keeping metrics, a checkpoint and a report."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.console import Console

from foxhunt.backend.plan import Plan, Pointer
from foxhunt.cli.compile import compile_one, dim_overrides, write
from foxhunt.cli.report import Report
from foxhunt.cli.session import (
    CHECKPOINT,
    EMITTED,
    METRICS,
    RunResult,
    build_bar,
    finish,
    run_folder,
    run_steps,
    spec_places,
)
from foxhunt.cli.tables import Table, show_table
from foxhunt.diagnostics import TrainerError, fail
from foxhunt.runtime import checkpoint
from foxhunt.runtime.load import plan_of_text
from foxhunt.runtime.signals import Signals
from foxhunt.runtime.telemetry import MetricsWriter
from foxhunt.runtime.trainer import Trainer
from foxhunt.runtime.views import step_of

SHORT = 16  # digits of a hash that tell layouts apart on a line; `foxhunt fingerprint` prints all


@click.command()
@click.argument("program")
@click.option(
    "--specs", default="specs", show_default=True, type=click.Path(path_type=Path), help="Specs folder."
)
@click.option("--variant", default="default", show_default=True, help="A variant of the program's dims.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Override one dim; may be repeated.")
@click.option("--step", help="Which step to run; the program's first unless given.")
@click.option("--steps", type=click.IntRange(min=0), help="How many; the step's `repeat` unless given.")
@click.option("--backend", default="auto", show_default=True, type=click.Choice(["auto", "host", "cuda"]))
@click.option("--seed", default=0, show_default=True, type=int, help="Parameters and kernel randomness.")
@click.option("--set", "settings", multiple=True, metavar="SLOT=X", help="Set a host slot; may be repeated.")
@click.option("--resume", type=click.Path(path_type=Path), help="Continue from this checkpoint, bit for bit.")
@click.option(
    "--per-graph", default=1, show_default=True, type=click.IntRange(1, 64), help="Steps a CUDA graph."
)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    help="Steps between two metric lines; about 1,000 lines unless given.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Run folder; runs/<time> unless given.")
@click.option("--tensorboard", is_flag=True, help="Also write TensorBoard events (extra `tensorboard`).")
@click.option(
    "--debug", is_flag=True, help="Checked kernels: bounds, unwritten outputs, undeclared access. Slow."
)
def train(
    program: str,
    specs: Path,
    variant: str,
    dims: tuple[str, ...],
    step: str | None,
    steps: int | None,
    backend: str,
    seed: int,
    settings: tuple[str, ...],
    resume: Path | None,
    per_graph: int,
    every: int | None,
    out: Path | None,
    tensorboard: bool,
    debug: bool,
) -> None:
    """Compile PROGRAM and run it.

    \b
        foxhunt train aux --variant demo --steps 300 --set LR=1e-4
        foxhunt train aux --resume runs/20261130-120000/checkpoint.safetensors

    Ctrl-C and SIGTERM stop between two steps and keep a checkpoint, which --resume continues from.
    The first output with NaN or inf is named with its launches; `health:` says what happens then.
    """
    console = Console()
    compiled = compile_one(specs, program, variant, dim_overrides(dims))
    plan = plan_of_text(compiled.files["trainer.py"], Path(program) / "trainer.py")
    values = slot_values(plan, settings)
    count = steps if steps is not None else default_steps(plan, step)
    if resume is not None:
        checkpoint.load(resume, plan)  # refused before anything is built
    with run_folder(Path("runs"), out, resume) as folder:
        emitted = folder / EMITTED
        write(compiled, emitted)
        with spec_places(specs, program), build_bar(console) as progress:
            trainer = Trainer(plan, emitted, backend=backend, seed=seed, debug=debug, progress=progress)
        with trainer:
            if resume is not None:
                trainer.load(resume)
            for name, value in values.items():
                trainer.signals[name] = value
            with MetricsWriter(folder / METRICS, folder if tensorboard else None) as writer:
                result = run_steps(
                    trainer,
                    count,
                    writer,
                    console,
                    checkpoint=folder / CHECKPOINT,
                    step=step,
                    every=every,
                    per_graph=per_graph,
                )
            table = signals_table(trainer, step)
            summary = run_summary(trainer, result, seed)
    show_table(console, Table("Run", ("", ""), summary))
    show_table(console, table)
    title = f"{plan.program} ({plan.variant})"
    finish(folder, Report(title, f"{result.steps} steps", summary, (table,)), console)
    if result.interrupted:
        console.print(f"stopped after {result.steps} of {count} steps", style="yellow")
        raise click.exceptions.Exit(result.exit_code)


def slot_values(plan: Plan, settings: tuple[str, ...]) -> dict[str, float]:
    """`SLOT=X` texts as host slots and values. Raises for what is no number, no slot, or not the host's."""
    found = {}
    signals = Signals(plan, lambda: np.zeros(0, np.float32))  # refuses as a trainer's would, before the build
    for text in settings:
        name, equals, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise click.BadParameter(f"{text!r} is not SLOT=NUMBER, such as LR=1e-4", param_hint="--set")
        signals[name.strip()] = found[name.strip()] = number
    return found


def run_summary(trainer: Trainer, result: RunResult, seed: int) -> tuple[tuple[str, str], ...]:
    """What was run, where and how fast."""
    plan = trainer.plan
    return (
        ("program", f"{plan.program}, variant {plan.variant}, {plan.precision}"),
        ("layout fingerprint", plan.layout_hash[:SHORT]),
        ("semantics", plan.semantics_hash[:SHORT]),
        ("backend", trainer.backend.name),
        ("seed", str(seed)),
        ("steps", f"{result.steps} in {result.seconds:.2f} s, {result.rate:.1f} a second"),
        *((("NaN or inf", found),) if (found := trainer.not_finite().text) else ()),
    )


def signals_table(trainer: Trainer, step: str | None) -> Table:
    """Every diagnostic as last published after runs of `step`, and how many observations were refused."""
    unseen = never_observed(trainer, step)
    rows = [
        (name, unseen.get(name) or (f"{value:.6g}" if isinstance(value, float) else str(value)))
        for name, value in trainer.diagnostics().items()
    ]
    refused = {name: bad for name, (bad, _) in trainer.health().items() if bad}
    note = "refused observations (NaN, inf, too large): " + ", ".join(f"{n} {b}" for n, b in refused.items())
    return Table("Signals", ("signal", "value"), tuple(rows), note if refused else "")


def never_observed(trainer: Trainer, step: str | None) -> dict[str, str]:
    """What to show for each slot of a producer that holds no observation: its sentinel means nothing.

    Such a slot is at its sentinel with a zero triple, and observations were left out or `step` makes none; a
    producer that has observed just its sentinel looks alike but for that.
    """
    plan, health = trainer.plan, trainer.health()
    made = {
        (a.offset // 4, a.offset // 4 + a.count)
        for n in step_of(plan, step).launches
        for a in n.args
        if isinstance(a, Pointer) and a.buffer == "scratch" and a.access != "read"
    }
    count = next((b.count for b in plan.buffers if b.name == "wiener"), 0)
    triples = trainer.backend.read("wiener", 0, count, "f32").reshape(-1, 3) if count else np.zeros((0, 3))
    seen = set()
    for o in plan.observations:
        tried = any(first <= o.position < end for first, end in made)
        if triples[o.position].any() or (tried and not any(health[f"{o.producer}@{o.position}"])):
            seen.add(o.slot)
    return {
        s.name: "not observed"
        for s in plan.slots
        if s.source == "producer"
        and not seen.intersection(range(s.index, s.index + s.count))
        and np.all(np.asarray(trainer.signals[s.name]) == s.sentinel)
    }


def default_steps(plan: Plan, step: str | None) -> int:
    """How often a step runs by default. Raises TrainerError FH543 for none such, or one that does not say."""
    chosen = step_of(plan, step)
    if chosen.repeat is None:
        help = "Give --steps, or `repeat:` in the spec."
        raise fail(TrainerError, "FH543", f"step {chosen.name} says no number of steps", help=help)
    return chosen.repeat

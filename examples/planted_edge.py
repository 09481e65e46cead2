"""Trains program `dqn` on paths with a planted mean-reverting edge and trades paths it has never seen.

    python examples/planted_edge.py --variant small              # the host, reduced dims
    python examples/planted_edge.py --backend cuda               # full dims on a GPU
    python examples/planted_edge.py --backend cuda --bars        # real bars instead

Prints the greedy policy's mean net log return a path beside fixed rules on the same paths, with standard
errors of the paired differences. Training starts without costs and with random actions only; its signals go
to runs/planted_edge.jsonl, which `python examples/plot_signals.py` draws.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from foxhunt.diagnostics import FoxhuntError
from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program
from foxhunt.runtime.data import load_source
from foxhunt.runtime.load import load_plan
from foxhunt.runtime.telemetry import MetricsWriter
from foxhunt.runtime.trading import compare, overlap, trade_unseen
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.load import load_specs

Array = NDArray[Any]
ROOT = Path(__file__).parents[1]
OUT = Path("runs") / "planted_edge"  # below the project, whose data it finds
LINES = 10  # that training prints
COST = 2e-4  # log return for each unit of turnover, on unseen paths always
SEEDS = (2, 2**23)  # of unseen paths: TRAIN_SEED is 1, and a slot holds whole numbers up to 2^24


@dataclass(frozen=True)
class Options:
    """What to train, where and for how long; the command's options."""

    variant: str
    backend: str
    steps: int | None
    rate: float
    explore: float
    cost: float
    paths: int
    test_seed: int
    seed: int
    bars: bool
    out: Path


def between(share: float, start: float, end: float) -> float:
    """How much of the way from `start` to `end` is behind, 0 to 1."""
    return min(max((share - start) / (end - start), 0.0), 1.0)


def train(trainer: Trainer, options: Options, steps: int, metrics: MetricsWriter) -> None:
    """Act and learn in turn; rate, random actions and costs follow the share of steps that is behind."""
    chunk, started, tau = 20, time.perf_counter(), float(trainer.signals["TAU"])
    trainer.run(8, "collect")
    trainer.signals["TAU"] = 1.0  # the target network starts as a copy of the online one
    trainer.run(1, "train")
    trainer.signals["TAU"] = tau
    for step in range(0, steps, chunk):
        share = step / steps
        trainer.signals["EPSILON"] = 1 - (1 - options.explore) * between(share, 0.05, 0.4)
        trainer.signals["LR"] = options.rate * (1 - 0.98 * between(share, 0.5, 1.0))
        trainer.signals["COST"] = COST * options.cost * between(share, 0.3, 0.6)
        count = min(chunk, steps - step)
        for _ in range(count):
            trainer.run(1, "collect")
            trainer.run(1, "train")
        trainer.sync()
        metrics.write(step + count, trainer.diagnostics())
        if step // chunk % max(1, steps // chunk // LINES) == 0:
            signals = {n: trainer.signals[n] for n in ("TARGET_Q_BOUND", "GRAD_CLIP_BOUND", "H_S2_BOUND")}
            shown = ", ".join(f"{name} {float(value):.3g}" for name, value in signals.items())
            print(f"step {step:>7}, {time.perf_counter() - started:6.1f} s: {shown}", flush=True)


def trade(trainer: Trainer, options: Options) -> tuple[Array, dict[str, Array]]:
    """Log returns of the policy and of the rules, on as many rounds of unseen paths as `--paths` needs."""
    trainer.signals["COST"] = COST
    rounds = []
    for first in range(0, 1 if options.bars else options.paths, dict(trainer.plan.dims)["N"]):
        trainer.signals["TEST_SEED"] = options.test_seed + first
        trainer.run(1, "use_bars" if options.bars else "plant")
        trainer.sync()
        rounds.append(trade_unseen(trainer))
    policy = np.concatenate([policy for policy, _ in rounds])
    return policy, {name: np.concatenate([rules[name] for _, rules in rounds]) for name in rounds[0][1]}


def run(options: Options) -> None:
    """Compile, train, trade, print."""
    compiled = compile_program(load_specs(ROOT / "specs"), "dqn", options.variant)
    store(compiled.files, options.out)
    plan, metrics = load_plan(options.out), options.out.with_name(f"{options.out.name}.jsonl")
    dims = dict(plan.dims)
    with Trainer(plan, options.out, backend=options.backend, seed=options.seed) as trainer:
        trainer.run(1, "use_bars" if options.bars else "plant")
        metrics.unlink(missing_ok=True)
        with MetricsWriter(metrics) as writer:
            train(trainer, options, options.steps or dims["STEPS"], writer)
        policy, rules = trade(trainer, options)
    block = overlap(load_source(plan.data[0], options.out)["eval_starts"], dims["LEN"]) if options.bars else 1
    own = compare(policy, {"greedy policy": policy}, block)[0]
    print(f"\n{len(policy)} unseen paths of {dims['BARS']} bars, net of {COST} for each unit of turnover")
    print(f"{'arm':<20}{'log return a path':>20}{'lead of the policy':>28}")
    print(f"{own.name:<20}{own.mean:>10.5f} ± {own.error:.5f}")
    for arm in compare(policy, rules, block):
        print(f"{arm.name:<20}{arm.mean:>10.5f} ± {arm.error:.5f}{arm.lead:>18.5f} ± {arm.lead_error:.5f}")


HELP = (__doc__ or "").replace("\n\n    ", "\n\n\b\n    ")  # \b: click leaves those lines as they are
SHARE = click.FloatRange(0, 1)
LEAST_ONE = click.IntRange(1)


@click.command(help=HELP, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--variant", type=click.Choice(["default", "small", "tiny"]), default="default", help="Dims.")
@click.option("--backend", type=click.Choice(["auto", "host", "cuda"]), default="auto", help="Where it runs.")
@click.option("--steps", type=LEAST_ONE, help="Training steps; the program's STEPS unless given.")
@click.option(
    "--rate", type=click.FloatRange(0), default=2e-3, help="Learning rate; falls over the last half."
)
@click.option("--explore", type=SHARE, default=0.05, help="Share of random actions at the end.")
@click.option("--cost", type=SHARE, default=0.4, help="Share of the cost that training ends with.")
@click.option("--paths", type=LEAST_ONE, default=1024, help="Unseen paths to trade at least.")
@click.option("--test-seed", type=click.IntRange(*SEEDS), default=100, help="Of the unseen paths.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of parameters and randomness.")
@click.option("--bars", is_flag=True, help="Paths of the bars of examples/data instead.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=ROOT / OUT, show_default=str(OUT), help="Program."
)
def main(**given: Any) -> None:
    """Run, and print a user's mistake as one."""
    try:
        run(Options(**given))
    except (FoxhuntError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

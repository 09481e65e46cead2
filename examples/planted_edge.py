"""Trains program `dqn` on paths with a planted mean-reverting edge and trades paths it has never seen.

    python examples/planted_edge.py --variant small              # the host, reduced dims
    python examples/planted_edge.py --backend cuda               # full dims on a GPU
    python examples/planted_edge.py --backend cuda --bars        # real bars instead

Prints the greedy policy's mean net log return a path beside fixed rules on the same paths, with standard
errors of the paired differences. Training starts without costs and with random actions only; its signals go
to runs/planted_edge.jsonl, which `python examples/plot_signals.py` draws.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
LINES = 10  # that training prints
COST = 2e-4  # log return for each unit of turnover, on unseen paths always


def arguments() -> argparse.Namespace:
    """What to train, where and for how long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--variant", default="default", help="dims: default, small or tiny")
    parser.add_argument("--backend", default="auto", help="auto, host or cuda")
    parser.add_argument("--steps", type=int, help="training steps; the program's STEPS unless given")
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate; falls over the last half")
    parser.add_argument("--explore", type=float, default=0.05, help="share of random actions at the end")
    parser.add_argument("--cost", type=float, default=0.4, help="share of the cost that training ends with")
    parser.add_argument("--paths", type=int, default=1024, help="unseen paths to trade at least")
    parser.add_argument("--test-seed", type=int, default=100, help="of the unseen paths")
    parser.add_argument("--seed", type=int, default=0, help="of parameters and randomness")
    parser.add_argument("--bars", action="store_true", help="paths of the bars of examples/data")
    parser.add_argument("--set", action="append", default=[], metavar="SLOT=X", help="a host slot")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "planted_edge", help="emitted program")
    return parser.parse_args()


def between(share: float, start: float, end: float) -> float:
    """How much of the way from `start` to `end` is behind, 0 to 1."""
    return min(max((share - start) / (end - start), 0.0), 1.0)


def train(trainer: Trainer, options: argparse.Namespace, steps: int, metrics: MetricsWriter) -> None:
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
        for _ in range(chunk):
            trainer.run(1, "collect")
            trainer.run(1, "train")
        trainer.sync()
        metrics.write(step + chunk, trainer.diagnostics())
        if step // chunk % max(1, steps // chunk // LINES) == 0:
            signals = {n: trainer.signals[n] for n in ("TARGET_Q_BOUND", "GRAD_CLIP_BOUND", "H_S2_BOUND")}
            shown = ", ".join(f"{name} {float(value):.3g}" for name, value in signals.items())
            print(f"step {step:>7}, {time.perf_counter() - started:6.1f} s: {shown}", flush=True)


def trade(trainer: Trainer, options: argparse.Namespace) -> tuple[Array, dict[str, Array]]:
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


def main() -> None:
    """Compile, train, trade, print."""
    options = arguments()
    compiled = compile_program(load_specs(ROOT / "specs"), "dqn", options.variant)
    store(compiled.files, options.out)
    plan, metrics = load_plan(options.out), options.out.with_suffix(".jsonl")
    dims = dict(plan.dims)
    with Trainer(plan, options.out, backend=options.backend, seed=options.seed) as trainer:
        for text in options.set:
            name, _, value = text.partition("=")
            trainer.signals[name] = float(value)
        trainer.run(1, "use_bars" if options.bars else "plant")
        metrics.unlink(missing_ok=True)
        with MetricsWriter(metrics) as writer:
            train(trainer, options, options.steps or dims["STEPS"], writer)
        policy, rules = trade(trainer, options)
    block = overlap(load_source(plan.data[0], options.out)["eval_starts"], dims["LEN"]) if options.bars else 1
    error = policy.std() / len(policy) ** 0.5
    print(f"\n{len(policy)} unseen paths of {dims['BARS']} bars, net of {COST} for each unit of turnover")
    print(f"{'arm':<20}{'log return a path':>20}{'lead of the policy':>28}")
    print(f"{'greedy policy':<20}{policy.mean():>10.5f} ± {error:.5f}")
    for arm in compare(policy, rules, block):
        print(f"{arm.name:<20}{arm.mean:>10.5f} ± {arm.error:.5f}{arm.lead:>18.5f} ± {arm.lead_error:.5f}")


if __name__ == "__main__":
    main()

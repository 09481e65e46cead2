"""What the sentinel costs: one step of a program with each health policy, on the host or a GPU.

    python benchmarks/sentinel.py aux --variant demo --backend host
    python benchmarks/sentinel.py aux --dim B=64
    python benchmarks/sentinel.py dqn --before plant=1 collect=8

The same specs are compiled with `health: {policy: …}` and nothing else changed. Rounds of steps are timed,
policies taking turns, and medians printed beside that of `off`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program
from foxhunt.runtime.trainer import Trainer
from foxhunt.spec.load import load_specs
from foxhunt.spec.models import Health

POLICIES = ("off", "report", "skip-update", "stop")
ROUNDS, SECONDS = 11, 0.5


def arguments() -> argparse.Namespace:
    """What to time, and where."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--specs", type=Path, default=Path("specs"))
    parser.add_argument("--variant", default="default")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--step", default="train")
    parser.add_argument("--before", nargs="*", default=[], metavar="STEP=N", help="steps to run once, first")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--per-graph", type=int, default=1)
    return parser.parse_args()


def numbers(texts: list[str]) -> dict[str, int]:
    """`NAME=N` texts by name."""
    return {name: int(value) for name, _, value in (text.partition("=") for text in texts)}


def made(options: argparse.Namespace, policy: str, folder: Path) -> Trainer:
    """A trainer of the program with another policy, ready to be timed."""
    specs = load_specs(options.specs)
    declared = specs.programs[options.program]
    health = (declared.health or Health()).model_copy(update={"policy": policy})
    programs = specs.programs | {options.program: declared.model_copy(update={"health": health})}
    specs = specs.model_copy(update={"programs": programs})
    compiled = compile_program(specs, options.program, options.variant, numbers(options.dim))
    store(compiled.files, folder / policy)
    trainer = Trainer(compiled.plan, folder / policy, backend=options.backend)
    for step, count in numbers(options.before).items():
        trainer.run(count, step)
    trainer.run(2 * options.per_graph, options.step, options.per_graph)
    trainer.sync()
    return trainer


def microseconds(trainer: Trainer, options: argparse.Namespace, count: int) -> float:
    """A step's time, over `count` of them."""
    begin = time.perf_counter()
    trainer.run(count, options.step, options.per_graph)
    trainer.sync()
    return 1e6 * (time.perf_counter() - begin) / count


def main() -> None:
    """Time all policies in turn and print a table."""
    options, console = arguments(), Console()
    with tempfile.TemporaryDirectory(prefix="foxhunt-") as folder:
        trainers = {policy: made(options, policy, Path(folder)) for policy in POLICIES}
        once = microseconds(trainers["off"], options, options.per_graph)
        count = max(1, round(1e6 * SECONDS / once / options.per_graph)) * options.per_graph
        samples: dict[str, list[float]] = {policy: [] for policy in POLICIES}
        for _ in range(ROUNDS):
            for policy, trainer in trainers.items():
                samples[policy].append(microseconds(trainer, options, count))
        table = Table(title=f"{options.program}.{options.step} on {trainers['off'].backend.name}: µs a step")
        for column in ("policy", "launches", "watched", "median", "lowest", "highest", "against off"):
            table.add_column(column, justify="left" if column == "policy" else "right")
        base = statistics.median(samples["off"])
        for policy, trainer in trainers.items():
            median = statistics.median(samples[policy])
            step = next(s for s in trainer.plan.steps if s.name == options.step)
            watched = sum(w.launch.startswith(f"{options.step}.") for w in trainer.plan.watched)
            times = (f"{t:.1f}" for t in (median, min(samples[policy]), max(samples[policy])))
            table.add_row(policy, str(len(step.launches)), str(watched), *times, f"{median / base - 1:+.1%}")
            trainer.close()
    console.print(table)


if __name__ == "__main__":
    main()

"""Time one training step (W1, see w1_problem.py): foxhunt, PyTorch and JAX in one run on one GPU.

    python benchmarks/step.py [--batch 64 4096] [--precision fp32] [--json results.json]

Every arm gets the same weights, inputs and precision, and runs the whole step on the device. First the
outputs of 20 steps are compared with a NumPy float64 reference; then rounds of 200 steps are timed, arms
interleaved, and medians printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import w1_problem
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from w1_problem import Arm, Problem

COMPARED, TIMED, ROUNDS = 20, 200, 11
# What weights may be off after COMPARED steps, relative to how far they went; and the statistics.
TOLERANCE = {"fp32": (1e-3, 1e-5), "tf32": (2e-2, 2e-3)}


def arms(p: Problem, precision: str, only: set[str]) -> Iterator[tuple[str, Any]]:
    """Name and maker of each arm; the maker imports, so that an absent library drops one arm only."""

    def foxhunt_arm(per_graph: int) -> Arm:
        from w1_foxhunt import FoxhuntArm

        return FoxhuntArm(p, precision, per_graph)

    def torch_arm(compiled: bool) -> Arm:
        from w1_torch import TorchArm

        return TorchArm(p, compiled, precision)

    def jax_arm() -> Arm:
        from w1_jax import JaxArm

        return JaxArm(p, precision)

    makers = {
        "foxhunt": lambda: foxhunt_arm(1),
        "foxhunt-k20": lambda: foxhunt_arm(20),
        "torch": lambda: torch_arm(False),
        "torch.compile": lambda: torch_arm(True),
        "jax": jax_arm,
    }
    yield from ((name, make) for name, make in makers.items() if not only or name in only)


def errors(arm: Arm, p: Problem, expected: Any) -> tuple[float, float]:
    """How far weights (relative to the distance gone) and statistics are from the reference, at worst."""
    arm.restart()
    arm.run(COMPARED)
    weights, seen = arm.outputs()
    truth, true_seen = expected

    def distance(pairs: Any) -> float:
        return float(np.sqrt(sum(((a - b).astype(np.float64) ** 2).sum() for a, b in pairs)))

    gone = distance((truth[n], p.weights[n]) for n in truth)
    wrong = distance((weights[n].astype(np.float64), truth[n]) for n in truth)
    return wrong / gone, float(np.max(np.abs(seen / true_seen - 1)))


def compare(
    made: dict[str, Arm], p: Problem, precision: str, console: Console
) -> dict[str, tuple[float, float]]:
    """Each arm's errors; one beyond the tolerance stops the program, since times would mean nothing."""
    expected = w1_problem.reference(p, COMPARED)
    found = {name: errors(arm, p, expected) for name, arm in made.items()}
    limits = TOLERANCE[precision]
    for name, (weights, seen) in found.items():
        console.print(
            f"  {name}: weights off by {weights:.1e}, statistics by {seen:.1e} after {COMPARED} steps"
        )
    bad = [name for name, e in found.items() if not (e[0] <= limits[0] and e[1] <= limits[1])]
    if bad:
        console.print(f"[red]beyond the tolerance {limits}: {', '.join(bad)}; nothing is timed[/red]")
        sys.exit(1)
    return found


def measure(made: dict[str, Arm], console: Console) -> dict[str, list[float]]:
    """Microseconds a step of each arm, ROUNDS samples each, arms taking turns."""
    samples: dict[str, list[float]] = {name: [] for name in made}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("timing", total=(ROUNDS + 1) * len(made))
        for turn in range(ROUNDS + 1):
            for name, arm in made.items():
                begin = time.perf_counter()
                arm.run(TIMED)
                elapsed = time.perf_counter() - begin
                if turn:  # the first turn is a warm-up
                    samples[name].append(1e6 * elapsed / TIMED)
                progress.advance(task)
    return samples


def table(batch: int, made: dict[str, Arm], samples: dict[str, list[float]]) -> Table:
    """Medians, spreads, and how many times as long as the fastest foxhunt arm each takes."""
    medians = {name: statistics.median(values) for name, values in samples.items()}
    best = min(
        (m for name, m in medians.items() if name.startswith("foxhunt")), default=min(medians.values())
    )
    shown = Table(title=f"W1, B = {batch:,}: µs a step")
    for column in ("arm", "median", "lowest", "highest", "× foxhunt"):
        shown.add_column(column, justify="left" if column == "arm" else "right")
    for name, values in samples.items():
        cells = (f"{x:.1f}" for x in (medians[name], min(values), max(values)))
        shown.add_row(made[name].name, *cells, f"{medians[name] / best:.2f}")
    return shown


def launches(times: dict[str, float]) -> Table:
    """The launches of foxhunt's step, each by itself."""
    shown = Table(title="foxhunt, launch by launch (each alone, 100 in a row in one graph)")
    shown.add_column("launch")
    shown.add_column("µs", justify="right")
    for name, value in times.items():
        shown.add_row(name, f"{value:.2f}")
    shown.add_row("sum", f"{sum(times.values()):.2f}", style="bold")
    return shown


def run_batch(batch: int, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Everything for one batch size, printed and returned."""
    p = w1_problem.problem(batch)
    made: dict[str, Arm] = {}
    for name, make in arms(p, options.precision, set(options.arms)):
        with console.status(f"B = {batch:,}: preparing {name}"):
            try:
                made[name] = make()
            except ImportError as error:
                console.print(f"[yellow]{name} is left out: {error}[/yellow]")
    found = compare(made, p, options.precision, console)
    samples = measure(made, console)
    console.print(table(batch, made, samples))
    result = {
        name: {"median_us": statistics.median(v), "samples_us": v, "errors": found[name]}
        for name, v in samples.items()
    }
    if "foxhunt" in made:
        times = made["foxhunt"].launch_times()  # type: ignore[attr-defined]
        console.print(launches(times))
        result["foxhunt"]["launches_us"] = times
    return result


def run_aux(batch: int, console: Console) -> dict[str, float]:
    """Program `aux` beside W1: µs a step for 1 and 20 steps a graph."""
    from w1_foxhunt import aux_times

    with console.status(f"B = {batch:,}: program aux"):
        times = aux_times(batch, TIMED, ROUNDS)
    console.print(f"aux, B = {batch:,}: " + ", ".join(f"{name} {us:.1f} µs" for name, us in times.items()))
    return times


def main() -> None:
    """Parse options, run, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 4096])
    parser.add_argument("--precision", choices=tuple(TOLERANCE), default="fp32")
    parser.add_argument(
        "--arms", nargs="*", default=[], help="only these: foxhunt foxhunt-k20 torch torch.compile jax"
    )
    parser.add_argument("--no-aux", action="store_true", help="leave program aux out")
    parser.add_argument("--json", type=Path, help="write all samples here")
    options = parser.parse_args()
    options.json = options.json and options.json.resolve()
    os.chdir(Path(__file__).resolve().parents[1])  # programs name their data files from the root
    console = Console(width=100)
    results: dict[str, Any] = {
        "precision": options.precision,
        "steps": TIMED,
        "rounds": ROUNDS,
        "w1": {},
        "aux": {},
    }
    for batch in options.batch:
        results["w1"][batch] = run_batch(batch, options, console)
        if not options.no_aux:
            results["aux"][batch] = run_aux(batch, console)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

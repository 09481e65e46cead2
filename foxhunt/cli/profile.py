"""`foxhunt profile`: where a step's time goes, launch by launch."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foxhunt.cli.compile import dim_overrides
from foxhunt.cli.whole import open_programs, write_file

if TYPE_CHECKING:
    from rich.console import Console

    from foxhunt.cli.tables import Table
    from foxhunt.view.index import Index
    from foxhunt.view.profile import Profile

SHOWN = 40
"""Launches in the table, the longest first; the trace has all."""


@click.command()
@click.argument("program")
@click.option(
    "--specs", default="specs", show_default=True, type=click.Path(path_type=Path), help="Specs folder."
)
@click.option("--variant", default="default", show_default=True, help="A variant of the program's dims.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Override one dim; may be repeated.")
@click.option("--step", help="Which step to time; the program's first unless given.")
@click.option(
    "--steps", default=20, show_default=True, type=click.IntRange(1, 100_000), help="Executions timed."
)
@click.option("--backend", default="auto", show_default=True, type=click.Choice(["auto", "host", "cuda"]))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Trace file; runs/<program>-<step>.trace.json unless given.",
)
def profile(
    program: str,
    specs: Path,
    variant: str,
    dims: tuple[str, ...],
    step: str | None,
    steps: int,
    backend: str,
    out: Path | None,
) -> None:
    """Time each launch of PROGRAM's step on this machine, and write a trace.

    \b
        foxhunt profile aux --variant demo
        foxhunt profile aux --step evaluate --backend cuda

    Bytes are those of the distinct ranges that a launch names, so a launch whose data sits in a cache can
    pass the machine's copy rate. Open the trace in https://ui.perfetto.dev; Nsight shows each launch under
    the name of its entry.
    """
    from rich.console import Console

    from foxhunt.cli.tables import show_table
    from foxhunt.view.profile import trace

    (index,) = open_programs(specs, [program], variant, dim_overrides(dims))
    chosen = step or next(iter(index.steps))
    index.demand_step(chosen)
    console = Console()
    measured = measure(index, chosen, steps, backend, console)
    show_table(console, profile_table(measured))
    path = out or Path("runs") / f"{program}-{chosen}.trace.json"
    write_file(path, json.dumps(trace(measured), indent=1) + "\n")
    console.print(f"trace  {path}")


def measure(index: Index, step: str, steps: int, backend: str, console: Console) -> Profile:
    """Build the program in a folder of its own, run whole steps, then time the launches of one.

    Raises FoxhuntError as building and training do.
    """
    from foxhunt.backend.base import Timed
    from foxhunt.cli.session import build_bar
    from foxhunt.emit.store import store
    from foxhunt.runtime.trainer import Trainer
    from foxhunt.view.profile import profile as profiled

    with tempfile.TemporaryDirectory(prefix="foxhunt-") as folder, build_bar(console) as progress:
        store(index.compiled.files, Path(folder))
        plan = replace(index.compiled.plan, policy="off")  # a launch by itself may leave anything
        with Trainer(plan, Path(folder), backend=backend, progress=progress) as trainer:
            trainer.run(2, step)
            trainer.sync()
            start = time.perf_counter()
            trainer.run(steps, step)
            trainer.sync()
            whole = (time.perf_counter() - start) / steps * 1e6
            found = trainer.backend
            assert isinstance(found, Timed), "host and cuda are"
            rate = found.copy_rate()
            return profiled(index, step, found.launch_times(step, steps), whole, found.name, rate)


def profile_table(measured: Profile) -> Table:
    """The longest launches: time, share, rates."""
    from foxhunt.cli.tables import Table

    longest = sorted(measured.timings, key=lambda t: -t.microseconds)[:SHOWN]
    total = measured.sum_microseconds or 1.0
    rows = [
        (
            t.name.partition(".")[2],
            "*" if t.critical else "",
            f"{t.microseconds:,.1f}",
            f"{100 * t.microseconds / total:.1f} %",
            f"{t.bytes_per_second / 1e9:,.1f}",
            f"{100 * t.bytes_per_second / measured.copy_rate:.0f} %",
            f"{t.flops_per_second / 1e9:,.1f}" if t.flops else "",
        )
        for t in longest
    ]
    left = len(measured.timings) - len(longest)
    lanes = len({t.lane for t in measured.timings})
    differ = {
        "host": "they differ: a launch has its median, the step its mean on a machine that does more",
        "cuda": "they differ: each launch was repeated by itself; in the step they overlap",
    }
    note = "\n".join(
        [
            *([f"and {left} shorter launches"] if left else []),
            f"a step as run: {measured.step_microseconds:,.1f} µs on {lanes} lane{'s' * (lanes > 1)}; its "
            f"{len(measured.timings)} launches one after another: {measured.sum_microseconds:,.1f} µs",
            *([differ[measured.backend]] if measured.backend in differ else []),
            f"* critical path: {measured.critical_microseconds:,.1f} µs",
            f"memory copies here: {measured.copy_rate / 1e9:,.1f} GB/s, read and written bytes together",
        ]
    )
    title = f"{measured.program}.{measured.step} on {measured.backend}"
    return Table(title, ("launch", "", "µs", "share", "GB/s", "of copy", "GFLOP/s"), tuple(rows), note)

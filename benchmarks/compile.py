"""Time the compiler on this machine: shipped programs cold and warm, large synthetic ones, the host backend.

    python benchmarks/compile.py [--sizes 100 1000 10000] [--json results.json]

The commands are timed as a user runs them, each in a process of its own. A synthetic program of n has n
launches and n slots.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
CHAINS = 64
TARGETS = {
    "foxhunt --help": 0.2,
    "compile specs/, cold": 1.0,
    "compile specs/, warm": 0.3,
    "compile 10,000": 10.0,
}


def foxhunt(*arguments: str, cwd: Path) -> float:
    """Seconds that a `foxhunt` command takes; its output is shown if it fails."""
    command = [sys.executable, "-c", "from foxhunt.cli import main; main()", *arguments]
    environment = {**os.environ, "FOXHUNT_CACHE": str(cwd / "cache"), "PYTHONPATH": str(ROOT)}
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    elapsed = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"foxhunt {' '.join(arguments)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return elapsed


def synthetic(folder: Path, n: int) -> None:
    """A program of n slots and n launches: half of these in 64 chains, half producers of one slot each."""
    half = n // 2
    depth = -(-half // CHAINS)
    chains = [(c, d) for d in range(depth) for c in range(CHAINS)][:half]
    buffers = [f"  - {{name: x{c}_{d}, shape: [N], lifetime: persistent, reset: never}}" for c, d in chains]
    buffers.append("  - {name: seen, shape: [N], lifetime: input}")
    slots = [f"  - {{name: SEEN_{i}, reset: never}}" for i in range(half)]
    slots += [f"  - {{name: SET_{i}, source: host, init: 0.5, reset: never}}" for i in range(half)]
    producers = []
    for i in range(half):
        c, d = chains[i]
        producers.append(f"  - {{name: watch_{i}, kernel: rms, args: {{x: x{c}_{d}}}, out: {{y: SEEN_{i}}}}}")
    items = []
    for c, d in chains:
        source = f"x{c}_{d - 1}" if d else "seen"
        items.append(f"      - {{kernel: ema, args: {{x: {source}, s: x{c}_{d}}}, as: c{c}_{d}}}")
    names = ", ".join(f"watch_{i}" for i in range(half))
    diagnostics = [f"  - {{name: {kind}_{i}}}" for kind in ("SET", "SEEN") for i in range(half)]
    lines = [f"program: big{n}", "dims: {N: 1024}", "isv:", *slots, "buffers:", *buffers]
    lines += ["producers:", *producers, "steps:", "  - name: train", "    items:", *items]
    lines += [f"      - producers: [{names}]", "diagnostics:", *diagnostics]
    (folder / f"big{n}").mkdir(parents=True)
    (folder / f"big{n}" / "big.yaml").write_text("\n".join(lines) + "\n")


def shipped(repeats: int) -> dict[str, float]:
    """Medians of `--help`, and of compiling specs/ into nothing and again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "specs", folder / "specs")
        cold, warm, help_ = [], [], []
        for _ in range(repeats):
            help_.append(foxhunt("--help", cwd=folder))
            shutil.rmtree(folder / "generated", ignore_errors=True)
            shutil.rmtree(folder / "cache", ignore_errors=True)
            cold.append(foxhunt("compile", "specs", cwd=folder))
            warm.append(foxhunt("compile", "specs", cwd=folder))
    pairs = (("foxhunt --help", help_), ("compile specs/, cold", cold), ("compile specs/, warm", warm))
    return {what: statistics.median(seconds) for what, seconds in pairs}


def large(n: int) -> float:
    """Seconds of `foxhunt compile` on a synthetic program of n launches and n slots."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        synthetic(folder / "specs", n)
        return foxhunt("compile", "specs", cwd=folder)


def host_steps(batch: int, steps: int) -> float:
    """Steps a second of program `aux` on the host backend."""
    from w1_foxhunt import trainer_of

    with trainer_of(ROOT / "specs", "aux", batch, backend="host") as trainer:
        trainer.run(3)
        trainer.sync()
        begin = time.perf_counter()
        trainer.run(steps)
        trainer.sync()
        return steps / (time.perf_counter() - begin)


def main() -> None:
    """Parse options, time, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1000, 10000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--host-batch", type=int, default=256)
    parser.add_argument("--json", type=Path, help="write the numbers here")
    options = parser.parse_args()
    options.json = options.json and options.json.resolve()
    os.chdir(ROOT)  # programs name their data files from the root
    console = Console(width=100)
    with console.status("shipped programs"):
        results: dict[str, Any] = shipped(options.repeats)
    for n in options.sizes:
        with console.status(f"{n:,} launches and slots"):
            results[f"compile {n:,}"] = large(n)
    shown = Table(title="The compiler, seconds")
    for column in ("what", "seconds", "target"):
        shown.add_column(column, justify="left" if column == "what" else "right")
    for what, seconds in results.items():
        shown.add_row(what, f"{seconds:.3f}", f"{TARGETS[what]:.1f}" if what in TARGETS else "")
    console.print(shown)
    with console.status("host backend"):
        results["host steps a second"] = host_steps(options.host_batch, 20)
    rate = results["host steps a second"]
    console.print(f"aux on the host, B = {options.host_batch}: {rate:.1f} steps a second")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

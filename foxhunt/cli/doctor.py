"""`foxhunt doctor`: what this machine can do, and how to get the rest."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import click

from foxhunt.backend.cache import cache_folder
from foxhunt.diagnostics import FoxhuntError
from foxhunt.diagnostics import extra as how_to_get


@dataclass(frozen=True)
class Finding:
    """One ability: whether it is there, what was found, and how to get it."""

    name: str
    there: bool
    found: str
    mend: str = ""


@click.command()
@click.option("--format", "style", default="text", show_default=True, type=click.Choice(["text", "json"]))
def doctor(style: str) -> None:
    """Say what this machine can do, and how to get the rest. Exits 1 where no backend works."""
    found = list(examine())
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    head = f"foxhunt {metadata.version('foxhunt')}, Python {platform.python_version()}, {machine}"
    if style == "json":
        click.echo(json.dumps({"machine": head, "abilities": [asdict(f) for f in found]}, indent=2))
    else:
        click.echo(head)
        for f in found:
            click.echo(f"  {'yes' if f.there else 'no ':<3}  {f.name:<14} {f.found}")
            if f.mend and not f.there:
                click.echo(f"       {'':<14} to get it: {f.mend}")
    if not any(f.there for f in found if f.name in ("host backend", "CUDA backend")):
        raise click.exceptions.Exit(1)


def examine() -> Iterator[Finding]:
    """Every ability in the order in which one needs them."""
    yield _tried("host backend", _host)
    yield _tried("CUDA backend", _cuda)
    yield _tried("GPU cubins", _cubins)
    yield _tried("kernel cache", _cache)
    yield _module("Parquet bars", "pyarrow", "parquet")
    yield _module("TensorBoard", "tensorboardX", "tensorboard")
    yield _git()


def _tried(name: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except FoxhuntError as error:
        first = error.diagnostics[0]
        return Finding(name, False, first.message, first.help)


def _host() -> Finding:
    """A compiler that makes a shared library with the flags of every kernel."""
    from foxhunt.backend.host_toolchain import INSTALL, RELEASE_FLAGS, find_toolchain

    toolchain = find_toolchain()
    version = toolchain.version.splitlines()[0]
    with tempfile.TemporaryDirectory(prefix="foxhunt-") as folder:
        source = Path(folder) / "try.cpp"
        source.write_text(
            '#include <cmath>\nextern "C" float twice(float x) { return 2.0f * std::sqrt(x); }\n'
        )
        command = [*toolchain.command, *RELEASE_FLAGS, "-shared", "-o", f"{folder}/try.so", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it says nothing"]
        return Finding("host backend", False, f"{version} does not compile: {lines[0]}", INSTALL)
    return Finding("host backend", True, f"{version}: every program runs on this processor")


def _cuda() -> Finding:
    from foxhunt.backend.cuda import INSTALL, load_cupy, unavailable

    reason = unavailable()
    if reason:
        return Finding("CUDA backend", False, reason, INSTALL)
    runtime = load_cupy().cuda.runtime
    names = []
    for device in range(runtime.getDeviceCount()):
        properties = runtime.getDeviceProperties(device)
        names.append(f"{properties['name'].decode()}, {properties['totalGlobalMem'] / 2**30:.0f} GiB")
    return Finding("CUDA backend", True, f"{'; '.join(names)}; driver for CUDA {runtime.driverGetVersion()}")


def _cubins() -> Finding:
    from foxhunt.backend.cubin_compilers import find_compiler

    compiler = find_compiler()
    return Finding("GPU cubins", True, f"{compiler.name} {compiler.version}: `foxhunt compile --cubin sm_90`")


def _cache() -> Finding:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        help = "Set FOXHUNT_CACHE to a folder that you can write."
        return Finding("kernel cache", False, f"{folder} cannot be written: {error.strerror}", help)
    size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    return Finding("kernel cache", True, f"{folder}, {size / 2**20:.0f} MiB")


def _module(name: str, module: str, extra: str) -> Finding:
    if importlib.util.find_spec(module) is None:
        return Finding(name, False, f"{module} is not installed", how_to_get(extra))
    return Finding(name, True, f"{module} {metadata.version(module)}")


def _git() -> Finding:
    path = shutil.which("git")
    if path is None:
        return Finding("git", False, "git is not installed", "needed for `foxhunt diff --against REF` only")
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("git", False, f"{path} does not run: {error}", "install git anew")
    return Finding(
        "git", True, f"{done.stdout.strip()}, for `foxhunt diff --against`; Python {sys.executable}"
    )

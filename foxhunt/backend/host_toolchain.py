"""The C++ compiler of this machine, and its flags."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from foxhunt.diagnostics import BuildError, fail

NATIVE = "-mcpu=native" if platform.machine() in ("arm64", "aarch64") else "-march=native"
# No value depends on -fno-trapping-math; without it g++ does not vectorise loops with selects.
FLOATS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
BASE_FLAGS = ("-std=c++17", NATIVE, *FLOATS, "-fPIC", "-pthread", "-w")
RELEASE_FLAGS = (*BASE_FLAGS, "-O3")
DEBUG_FLAGS = (*BASE_FLAGS, "-O1", "-g1", "-DFOXHUNT_DEBUG")
INSTALL = (
    "Install one: Debian and Ubuntu `apt install g++`, Fedora `dnf install gcc-c++`, "
    "macOS `xcode-select --install`, or in this Python environment `pip install ziglang`."
)


@dataclass(frozen=True)
class Toolchain:
    """A compiler's command line and what decides its output besides the source."""

    command: tuple[str, ...]
    version: str
    processor: str


@cache
def find_toolchain() -> Toolchain:
    """`$CXX`, else g++, clang++, c++, or the ziglang wheel. Raises BuildError FH461 when none runs."""
    for command in _candidates():
        version = _version(command)
        if version:
            return Toolchain(command, version, processor())
    raise fail(BuildError, "FH461", "no C++ compiler was found", help=INSTALL)


def processor() -> str:
    """The processor's model and features: code for one processor may not run on another."""
    try:
        rows = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    keys = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    named = dict.fromkeys(r for r in rows if r.startswith(keys))
    return " ".join([platform.machine(), *named])


def _candidates() -> Iterator[tuple[str, ...]]:
    if chosen := os.environ.get("CXX"):
        yield tuple(shlex.split(chosen))
    yield from (("g++",), ("clang++",), ("c++",))
    if importlib.util.find_spec("ziglang"):
        yield (sys.executable, "-m", "ziglang", "c++")


def _version(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()

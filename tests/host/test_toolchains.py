"""The C++ compilers that the host backend takes: which, with what flags, and the same bits from each."""

import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from host_programs import Program, run
from kernel_harness import kernel_program, library

from foxhunt.backend import host_build, host_toolchain
from foxhunt.backend.base import make_backend
from foxhunt.diagnostics import BuildError
from foxhunt.emit.filters import f32
from foxhunt.verify.cases import cases

FAKE = """#!/bin/sh
echo "{name} $@" >> {log}
case "$*" in
  *--version*) echo "{name} 1.0"; exit {status};;
esac
for last; do :; done
echo made > "$last"
"""
KERNELS = library()
TRIED = ("adamw", "aux_heads", "linear_elu", "p99_abs")  # a map, rows with tanh and exp, a gemm, a statistic


@pytest.fixture(autouse=True)
def fresh():
    """No compiler is remembered from, or for, another test."""
    host_toolchain.find_toolchain.cache_clear()
    yield
    host_toolchain.find_toolchain.cache_clear()


class Machine:
    """A machine whose only programs are fake compilers, which write down how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"

    def add(self, name: str, status: int = 0) -> Path:
        path = self.folder / name
        path.write_text(FAKE.format(name=name, log=self.log, status=status))
        path.chmod(0o755)
        return path

    def calls(self) -> list[list[str]]:
        return [line.split() for line in self.log.read_text().splitlines()]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("FOXHUNT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(host_toolchain.importlib.util, "find_spec", lambda name: None)
    return Machine(folder)


@pytest.mark.parametrize(
    ("present", "broken", "chosen"),
    [
        (("g++", "clang++", "c++"), (), "g++"),
        (("clang++", "c++"), (), "clang++"),
        (("c++",), (), "c++"),
        (("g++", "clang++"), ("g++",), "clang++"),
        (("g++", "clang++", "c++"), ("g++", "clang++"), "c++"),
    ],
)
def test_the_first_compiler_that_runs_is_taken(machine, present, broken, chosen):
    for name in present:
        machine.add(name, status=int(name in broken))
    found = host_toolchain.find_toolchain()
    assert (found.command, found.version) == ((chosen,), f"{chosen} 1.0")


def test_the_environments_choice_comes_first_with_its_options(machine, monkeypatch):
    machine.add("g++")
    own = machine.add("my cc")
    monkeypatch.setenv("CXX", f"'{own}' -m64")
    assert host_toolchain.find_toolchain().command == (str(own), "-m64")
    monkeypatch.setenv("CXX", "gone")
    host_toolchain.find_toolchain.cache_clear()
    assert host_toolchain.find_toolchain().command == ("g++",)


def test_the_ziglang_wheel_is_the_last_resort(machine, monkeypatch):
    monkeypatch.setattr(host_toolchain.importlib.util, "find_spec", lambda name: name == "ziglang" or None)
    python = machine.add("python")
    monkeypatch.setattr(host_toolchain.sys, "executable", str(python))
    assert host_toolchain.find_toolchain().command == (str(python), "-m", "ziglang", "c++")
    assert machine.calls() == [["python", "-m", "ziglang", "c++", "--version"]]
    machine.add("c++")
    host_toolchain.find_toolchain.cache_clear()
    assert host_toolchain.find_toolchain().command == ("c++",)


def test_without_any_the_message_names_what_to_install(machine):
    machine.add("g++", status=1)
    with pytest.raises(BuildError) as error:
        host_toolchain.find_toolchain()
    (found,) = error.value.diagnostics
    assert found.code == "FH461"
    for way in ("apt install g++", "dnf install gcc-c++", "xcode-select --install", "pip install ziglang"):
        assert way in found.help


@pytest.mark.parametrize("debug", [False, True])
def test_every_compiler_gets_the_flags_that_fix_the_bits(machine, tmp_path, debug):
    machine.add("clang++")
    program = Program({"y": np.zeros(1, np.int64)}).kernel("count", "")
    program.launch("count", program.pointer("y", "update"))
    made = host_build.build_library(program.write_to(tmp_path / "program"), ["count"], debug)
    assert made.read_text() == "made\n"
    _, *compiled, linked = machine.calls()
    assert len(compiled) == 2  # the runner and the launch
    for call in compiled:
        assert call[0] == "clang++"
        assert {"-std=c++17", "-ffp-contract=off", "-fPIC", "-c"} <= set(call)
        assert ("-DFOXHUNT_DEBUG" in call) == debug
        assert not {"-ffast-math", "-Ofast", "-funsafe-math-optimizations"} & set(call)
    assert {"-shared", "-pthread"} <= set(linked)


def test_what_one_compiler_made_is_not_taken_for_anothers(machine, tmp_path):
    program = Program({"y": np.zeros(1, np.int64)}).kernel("count", "")
    program.launch("count", program.pointer("y", "update"))
    folder, made = program.write_to(tmp_path / "program"), []
    for name in ("c++", "clang++", "g++"):
        machine.add(name)
        host_toolchain.find_toolchain.cache_clear()
        made.append(host_build.build_library(folder, ["count"]))
    assert len(set(made)) == 3


def compilers() -> dict[str, str]:
    """How each compiler of this machine is called in $CXX."""
    found = {name: name for name in ("g++", "clang++") if shutil.which(name)}
    zig = [sys.executable, "-m", "ziglang", "c++"]
    if subprocess.run([*zig, "--version"], capture_output=True, check=False).returncode == 0:
        found["ziglang"] = " ".join(zig)
    return found


def results(name: str, folder: Path) -> list[bytes]:
    """What a kernel makes of its examples, bit for bit."""
    tried = list(cases(KERNELS[name]))
    host_toolchain.find_toolchain.cache_clear()
    with kernel_program(tried, make_backend("host"), folder) as program:
        program.run()
        found = [program.found(number) for number in range(len(tried))]
    values = [value for outputs in found for _, value in sorted(outputs.items())]
    return [one.tobytes() for value in values for one in (value if isinstance(value, list) else [value])]


def test_emitted_constants_keep_their_bits(tmp_path, monkeypatch):
    values = (-math.inf, math.inf, math.nan, -3.4028235e38, 1e-45, -0.0, 1.0, 1e16, 1e-7, 1 / 3)
    program = Program({"y": np.zeros(len(values), np.float32)})
    stores = "".join(
        f"{'constexpr' * math.isfinite(v)} f32 C{k} = {f32(v)}; y[{k}] = C{k};" for k, v in enumerate(values)
    )
    program.kernel("constants", stores, "const auto y = w.out<f32>(0);", threads="one")
    program.launch("constants", program.pointer("y", "write"), block=1)
    for compiler, command in compilers().items():
        monkeypatch.setenv("CXX", command)
        host_toolchain.find_toolchain.cache_clear()
        found = run(program, tmp_path / compiler)["y"]
        assert found.tobytes() == np.array(values, np.float32).tobytes(), compiler


@pytest.mark.parametrize("name", TRIED)
def test_all_compilers_and_levels_of_optimisation_give_the_same_bits(name, tmp_path, monkeypatch):
    found = compilers()
    assert found, host_toolchain.INSTALL
    made = {}
    for compiler, command in found.items():
        monkeypatch.setenv("CXX", command)
        made[compiler] = results(name, tmp_path / compiler)
    lower = tuple("-O1" if flag == "-O3" else flag for flag in host_toolchain.RELEASE_FLAGS)
    monkeypatch.setattr(host_build, "RELEASE_FLAGS", lower)
    made["the last one at -O1"] = results(name, tmp_path / "lower")
    first, *others = made
    assert made[first]
    assert [other for other in others if made[other] != made[first]] == []

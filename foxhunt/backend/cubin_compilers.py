"""The two compilers that turn one emitted kernel into machine code without a GPU: NVRTC and nvcc."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from foxhunt.backend.assertions import HELP, failed_assertion
from foxhunt.diagnostics import BuildError, extra, fail

# IEEE results for + - * / and sqrt, no contraction, no flush to zero: so a GPU gives the host's bits.
FLAGS = (
    "-std=c++17",
    "-fmad=false",
    "-ftz=false",
    "-prec-div=true",
    "-prec-sqrt=true",
    "-lineinfo",
    "-DFOXHUNT_CUDA",
)
INSTALL = f"Install the CUDA toolkit, or the NVRTC wheel, which needs no GPU: {extra('nvrtc')}."


class Compiler(Protocol):
    """Compiles one source file for one architecture."""

    name: str
    version: str

    def compile(self, source: Path, arch: str) -> tuple[bytes, str]:
        """The cubin of `source` and the assembler's report. Raises BuildError with what the compiler says."""
        ...


class Nvrtc:
    """NVRTC through cuda-bindings: in process, about ten times as fast as nvcc, and parallel in threads."""

    name = "nvrtc"

    def __init__(self) -> None:
        """Raises whatever the binding raises where the library is not installed."""
        from cuda.bindings import nvrtc

        self._api: Any = nvrtc
        major, minor = self._call(nvrtc.nvrtcVersion())
        self.version = f"{major}.{minor}"

    def compile(self, source: Path, arch: str) -> tuple[bytes, str]:
        """See `Compiler.compile`."""
        api = self._api
        folder = source.parent
        # The name is relative, so that neither messages nor line tables depend on where the folder stands.
        name = f"{folder.name}/{source.name}"
        options = [f"-arch={arch}", *FLAGS, "--ptxas-options=-v", f"-I{folder.resolve()}"]
        program = self._call(api.nvrtcCreateProgram(source.read_bytes(), name.encode(), 0, [], []))
        try:
            (status,) = api.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
            log = self._text(api.nvrtcGetProgramLogSize(program), api.nvrtcGetProgramLog, program)
            if int(status):
                reason = self._call(api.nvrtcGetErrorString(status)).decode()
                raise _refused(source, arch, f"NVRTC {self.version}", log or reason)
            image = bytearray(self._call(api.nvrtcGetCUBINSize(program)))
            self._call(api.nvrtcGetCUBIN(program, image))
            return bytes(image), log
        finally:
            api.nvrtcDestroyProgram(program)

    def _text(self, size: tuple[Any, int], read: Any, program: Any) -> str:
        buffer = bytearray(self._call(size))
        self._call(read(program, buffer))
        return buffer.rstrip(b"\0").decode(errors="replace").strip()

    def _call(self, result: tuple[Any, ...]) -> Any:
        status, *values = result
        if int(status):
            raise fail(BuildError, "FH481", f"NVRTC failed: {status.name}.", help=INSTALL)
        return values[0] if len(values) == 1 else values


class Nvcc:
    """nvcc of an installed CUDA toolkit, one process a file."""

    name = "nvcc"

    def __init__(self, path: str) -> None:
        """Ask the nvcc at `path` for its version."""
        self._path = path
        text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"V([\d.]+)", text)
        self.version = found.group(1) if found else text.strip().splitlines()[-1]

    def compile(self, source: Path, arch: str) -> tuple[bytes, str]:
        """See `Compiler.compile`."""
        with tempfile.TemporaryDirectory(prefix="foxhunt-") as folder:
            image = Path(folder) / "kernel.cubin"
            command = [self._path, "-cubin", f"-arch={arch}", *FLAGS, "-Xptxas", "-v"]
            done = subprocess.run(
                [*command, "-o", str(image), str(source)], capture_output=True, text=True, errors="replace"
            )
            log = done.stderr + done.stdout
            if done.returncode:
                raise _refused(source, arch, f"nvcc {self.version}", log)
            return image.read_bytes(), log


@cache
def find_compiler(choice: str = "auto") -> Compiler:
    """The compiler named (`nvrtc` or `nvcc`), or for `auto` NVRTC where it is installed, else nvcc.

    Raises BuildError FH481, naming what to install, when it is not there.
    """
    missing = []
    if choice in ("auto", "nvrtc"):
        try:
            return Nvrtc()
        except Exception as error:  # the binding raises many kinds for a library that it cannot find
            missing.append(f"NVRTC cannot be loaded ({_first_line(error)})")
    if choice in ("auto", "nvcc"):
        path = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
        if path:
            return Nvcc(path)
        missing.append("nvcc is not on the PATH")
    if not missing:
        raise fail(BuildError, "FH481", f"unknown CUDA compiler {choice!r}: use auto, nvrtc or nvcc.")
    raise fail(BuildError, "FH481", f"no CUDA compiler: {', and '.join(missing)}.", help=INSTALL)


def _refused(source: Path, arch: str, compiler: str, log: str) -> BuildError:
    asserted = failed_assertion(log)
    text = f" {asserted}" if asserted else "\n" + "\n".join(log.strip().splitlines()[:40])
    message = f"{compiler} refuses {source.name} for {arch}:{text}"
    error = fail(BuildError, "FH482", message, help=HELP if asserted else "")
    assert isinstance(error, BuildError)
    return error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

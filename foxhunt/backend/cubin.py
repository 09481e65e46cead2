"""Emitted kernels to cubins, in parallel, cached by content. Needs a CUDA compiler, but no GPU.

A cubin's key is its source with everything that it includes, the flags, the architecture and the compiler's
version; never a time stamp. With it comes the assembler's report of registers, spills and shared memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from foxhunt.backend.cache import cache_folder, write_atomically
from foxhunt.backend.cubin_compilers import FLAGS, Compiler, find_compiler
from foxhunt.backend.includes import included
from foxhunt.diagnostics import BuildError, Diagnostic, fail, sort_diagnostics


@dataclass(frozen=True)
class Resources:
    """What the assembler says that one thread or block of a kernel takes; all but `registers` in bytes."""

    registers: int
    spill: int
    stack: int
    shared: int


@dataclass(frozen=True)
class Cubin:
    """The machine code of one entry for one architecture."""

    entry: str
    arch: str
    image: bytes
    resources: Resources


def compile_cubins(folder: Path, arch: str, compiler: str = "auto") -> dict[str, bytes]:
    """Entry → cubin for every `launches/*.cu` below `folder`, for `arch` such as `sm_90`.

    `compiler` is `auto`, `nvrtc` or `nvcc`. Raises BuildError with the messages of every refused file.
    """
    return {entry: cubin.image for entry, cubin in build_cubins(folder, arch, compiler).items()}


def build_cubins(folder: Path, arch: str, compiler: str = "auto") -> dict[str, Cubin]:
    """Like `compile_cubins`, with each entry's resources."""
    if not re.fullmatch(r"sm_\d+[af]?", arch):
        raise fail(BuildError, "FH483", f"unknown architecture {arch!r}.", help="Write it like sm_90.")
    sources = sorted((folder / "launches").glob("*.cu"))
    chosen = find_compiler(compiler)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        jobs = [pool.submit(_cached, source, arch, chosen) for source in sources]
    findings = [d for job in jobs if isinstance(e := job.exception(), BuildError) for d in e.diagnostics]
    if findings:
        raise BuildError(_merged(findings))
    return {cubin.entry: cubin for cubin in (job.result() for job in jobs)}


def _merged(findings: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The first finding of each compiler text, with how many kernels share it."""
    groups: dict[str, list[Diagnostic]] = {}
    for found in sort_diagnostics(findings):
        groups.setdefault(found.message.partition("\n")[2] or found.message, []).append(found)
    more = {g[0]: len(g) - 1 for g in groups.values()}
    return tuple(
        replace(d, message=f"{d.message}\n(and for {n} more kernels)") if n else d for d, n in more.items()
    )


def _cached(source: Path, arch: str, compiler: Compiler) -> Cubin:
    key = _key(source, arch, compiler)
    image_path = cache_folder() / "cubin" / f"{source.stem}-{key}.cubin"
    report_path = image_path.with_suffix(".json")
    try:
        resources = Resources(**json.loads(report_path.read_text()))
        return Cubin(source.stem, arch, image_path.read_bytes(), resources)
    except (OSError, ValueError, TypeError):
        pass  # not compiled yet, or damaged: compile it (again)
    image, log = compiler.compile(source, arch)
    resources = _resources(log)
    write_atomically(image_path, image)
    write_atomically(report_path, json.dumps(asdict(resources)).encode())
    return Cubin(source.stem, arch, image, resources)


def _key(source: Path, arch: str, compiler: Compiler) -> str:
    digest = hashlib.sha256("\0".join((compiler.name, compiler.version, arch, *FLAGS)).encode())
    for path in _with_includes(source, set()):
        digest.update(b"\0" + path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:32]


def _with_includes(path: Path, seen: set[Path]) -> Iterator[Path]:
    """`path` and every file that it includes by quotes, each once, in the order first seen."""
    path = path.resolve()
    if path in seen or not path.is_file():
        return
    seen.add(path)
    yield path
    for other in included(path, path.read_text(encoding="utf-8")):
        yield from _with_includes(other, seen)


def _resources(log: str) -> Resources:
    def largest(pattern: str) -> int:
        return max((int(n) for n in re.findall(pattern, log)), default=0)

    return Resources(
        registers=largest(r"Used (\d+) registers"),
        spill=largest(r"(\d+) bytes spill stores"),
        stack=largest(r"(\d+) bytes stack frame"),
        shared=largest(r"(\d+) bytes smem"),
    )

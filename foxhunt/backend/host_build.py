"""Emitted launches to one shared library, compiled in parallel and cached by content."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from foxhunt.backend.assertions import HELP, failed_assertion
from foxhunt.backend.base import BuildProgress
from foxhunt.backend.cache import cache_folder, write_atomically
from foxhunt.backend.host_toolchain import DEBUG_FLAGS, RELEASE_FLAGS, Toolchain, find_toolchain
from foxhunt.backend.includes import included
from foxhunt.diagnostics import BuildError, Diagnostic, Location, fail, sort_diagnostics

RUNNER = Path(__file__).with_name("host_runner.cpp")
LOG_LINES = 30


def build_library(
    folder: Path, entries: Iterable[str], debug: bool = False, progress: BuildProgress | None = None
) -> Path:
    """The shared library with the runner and every entry's `launches/<entry>.cu`.

    Raises BuildError: FH461 no compiler, FH462 a refused file, FH463 unwritable cache, FH464 a missing file.
    """
    sources = {entry: folder / "launches" / f"{entry}.cu" for entry in entries}
    _refuse_missing(folder, sources.values())
    toolchain = find_toolchain()
    flags = DEBUG_FLAGS if debug else RELEASE_FLAGS
    try:
        objects = _compile_all([RUNNER, *sources.values()], folder / "prelude", toolchain, flags, progress)
        return _link(folder.name, objects, toolchain)
    except OSError as error:
        message = f"compiled kernels cannot be kept in {cache_folder()}: {error}"
        raise fail(
            BuildError, "FH463", message, help="Set FOXHUNT_CACHE to a folder that you can write."
        ) from error


def _refuse_missing(folder: Path, sources: Iterable[Path]) -> None:
    missing = [path for path in sources if not path.is_file()]
    if missing:
        raise fail(
            BuildError,
            "FH464",
            f"{missing[0].name} is missing in {folder / 'launches'}"
            + (f", and {len(missing) - 1} more" * (len(missing) > 1)),
            help="Run `foxhunt compile` again.",
        )


def _compile_all(
    sources: list[Path],
    include: Path,
    toolchain: Toolchain,
    flags: tuple[str, ...],
    progress: BuildProgress | None,
) -> list[Path]:
    pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
    try:
        jobs = {pool.submit(_object, source, include, toolchain, flags): source for source in sources}
        for done, job in enumerate(as_completed(jobs), 1):
            if progress:
                progress(done, len(jobs), jobs[job].stem)
    finally:
        pool.shutdown(cancel_futures=True)
    findings = [d for job in jobs if isinstance(e := job.exception(), BuildError) for d in e.diagnostics]
    if findings:
        raise BuildError(sort_diagnostics(findings))
    return [job.result() for job in jobs]


def _object(source: Path, include: Path, toolchain: Toolchain, flags: tuple[str, ...]) -> Path:
    key = _key(toolchain, flags, *_texts(source, include))
    target = cache_folder() / "host" / f"{source.stem}-{key}.o"
    if not target.is_file():
        _compile([f"-I{include}", "-c", "-x", "c++", str(source)], target, toolchain, flags, source)
    return target


def _link(program: str, objects: list[Path], toolchain: Toolchain) -> Path:
    key = _key(toolchain, (), *(path.name.encode() for path in objects))
    target = cache_folder() / "host" / f"{program}-{key}.so"
    if not target.is_file():
        _compile([*map(str, objects)], target, toolchain, ("-shared", "-fPIC", "-pthread"), target)
    return target


def _compile(
    what: list[str], target: Path, toolchain: Toolchain, flags: tuple[str, ...], source: Path
) -> None:
    """Run the compiler; its output comes into place whole: several builders may do the same at once."""
    with tempfile.TemporaryDirectory(prefix="foxhunt-") as scratch:
        output = Path(scratch) / "output"
        command = [*toolchain.command, *flags, *what, "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise BuildError((_refusal(source, done.stderr or done.stdout),))
        write_atomically(target, output.read_bytes())


def _refusal(source: Path, log: str) -> Diagnostic:
    if asserted := failed_assertion(log):
        message = f"{source.stem} cannot be compiled: {asserted}"
        return Diagnostic("FH462", message, Location(str(source)), HELP)
    lines = log.strip().splitlines()
    shown = lines[:LOG_LINES] + [f"… {len(lines) - LOG_LINES} more lines"] * (len(lines) > LOG_LINES)
    message = f"the C++ compiler refused {source.stem}:\n" + "\n".join(f"    {line}" for line in shown)
    return Diagnostic(
        "FH462", message, Location(str(source)), "Mend the kernel's template, then compile again."
    )


def _key(toolchain: Toolchain, flags: tuple[str, ...], *texts: bytes) -> str:
    digest = hashlib.sha256(
        "\0".join((*toolchain.command, toolchain.version, toolchain.processor, *flags)).encode()
    )
    for text in texts:
        digest.update(b"\0" + hashlib.sha256(text).digest())
    return digest.hexdigest()[:32]


def _texts(source: Path, include: Path) -> Iterator[bytes]:
    """The text of `source` and of every file that it includes by quotes, each once. Raises FH464."""
    seen: set[Path] = set()
    waiting = [source.resolve()]
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        text = path.read_bytes()
        yield path.name.encode() + b"\0" + text
        waiting += reversed(included(path, text.decode(errors="replace"), (include,)))

"""A whole specs folder compiled, or the remembered result of compiling the same bytes before.

The key is the content of everything that a result depends on: specs, templates, locks, options and
foxhunt's own source. Nothing goes by time stamps. A hit imports neither pydantic nor jinja2 nor networkx.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foxhunt.backend.cache import cache_folder, write_atomically
from foxhunt.diagnostics import Diagnostic, FoxhuntError, Location, SpecError, fail
from foxhunt.spec.library import library_root

if TYPE_CHECKING:
    from foxhunt.contract.lock import Change
    from foxhunt.ir.layout import Lock
    from foxhunt.pipeline.compile import Compiled
    from foxhunt.spec.models import SpecSet

KEPT = 64
"""Remembered results; the least recently written ones go."""


@dataclass(frozen=True)
class Summary:
    """One line of the table that `foxhunt compile` prints."""

    program: str
    variant: str
    slots: int  # positions on the bus, retired and free ones included
    producers: int  # observations a step can make, retired ones included
    wiener: int  # floats of their smoothing state
    params: int  # trainable elements
    kernels: int  # distinct library kernels
    declared: int  # launches before fusion, system launches included
    launches: int  # after
    arena_bytes: int
    layout: str
    semantics: str


@dataclass(frozen=True)
class Result:
    """A compiled program: its summary, its files (layout.lock included), what changed since the lock, and
    the findings that its spec suppresses.
    """

    summary: Summary
    files: Mapping[str, str]
    changes: tuple[str, ...]
    suppressed: tuple[Diagnostic, ...] = ()


def compile_specs(
    root: Path,
    generated: Path,
    programs: Iterable[str] | None = None,
    variant: str = "default",
    dims: Mapping[str, int] | None = None,
    breaks: Iterable[str] | None = (),
    cache: bool = True,
) -> tuple[Result, ...]:
    """Every program below `root` (or those named), by name. `generated` holds the locks, and nothing is
    written there.

    Raises SpecError and EmissionError with findings, DriftError (FH603) for a layout change that
    checkpoints do not survive and that `breaks` does not name; None allows all. SpecError FH609 for a name
    in `breaks` that no such change has.
    """
    chosen = None if programs is None else tuple(sorted(set(programs)))
    allowed = None if breaks is None else tuple(sorted(set(breaks)))
    options = (chosen, variant, tuple(sorted((dims or {}).items())), allowed)
    path = cache_folder() / "compile" / f"{_key(root, generated, options)}.json"
    if cache and (known := _recall(path)) is not None:
        return known
    with _collector_paused():
        results = _compile(root, generated, chosen, variant, dict(dims or {}), allowed)
    if cache:
        _remember(path, results)
    return results


@contextmanager
def _collector_paused() -> Iterator[None]:
    """A compile makes many values and no cycles; walking them again and again took a third of a large one."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _compile(
    root: Path,
    generated: Path,
    programs: tuple[str, ...] | None,
    variant: str,
    dims: Mapping[str, int],
    breaks: tuple[str, ...] | None,
) -> tuple[Result, ...]:
    """Every chosen program; the findings of all of them together."""
    from foxhunt.contract.lock import LOCK_FILE, check_allowed, compare, unused_breaks
    from foxhunt.pipeline.compile import compile_program, project_templates
    from foxhunt.spec.load import load_specs

    specs = load_specs(root)
    templates = project_templates(root)
    results, errors = [], []
    changed: list[Change] = []
    for name in whole_programs(specs) if programs is None else programs:
        try:
            lock = committed_lock(generated / name / LOCK_FILE)
            compiled = compile_program(specs, name, variant, dims, templates, lock)
            changes = compare(lock, compiled.laid_out) if lock is not None else ()
            changed += changes
            if breaks is not None:
                check_allowed(changes, breaks)
        except FoxhuntError as error:
            errors.append(error)
            continue
        found = tuple(c.text for c in changes)
        results.append(Result(_summary(compiled), compiled.files, found, compiled.suppressed))
    if errors:
        worst = max(errors, key=lambda e: e.exit_code)
        worst.diagnostics = tuple(dict.fromkeys(d for e in errors for d in e.diagnostics))
        raise worst
    if unused := tuple(unused_breaks(changed, breaks or ())):
        raise SpecError(unused)
    return tuple(results)


def _summary(compiled: Compiled) -> Summary:
    program, steps = compiled.laid_out.program, compiled.schedule.steps
    return Summary(
        program=program.name,
        variant=program.variant,
        slots=compiled.laid_out.isv_total,
        producers=compiled.laid_out.scratch_total,
        wiener=next((a.count for a in compiled.laid_out.allocations if a.name == "wiener"), 0),
        params=sum(t.count for t in program.tensors if t.role == "param" and t.retired is None),
        kernels=sum(path.startswith("kernels/") for path in compiled.files),
        declared=sum(s.declared for s in steps),
        launches=sum(len(s.launches) for s in steps),
        arena_bytes=compiled.schedule.arena_bytes,
        layout=compiled.fingerprint.layout,
        semantics=compiled.fingerprint.semantics,
    )


def whole_programs(specs: SpecSet) -> list[str]:
    """The programs to compile, by name: a folder of blocks alone, which another one uses, is none."""
    used = {name for p in specs.programs.values() for name in p.uses}
    return sorted(n for n, p in specs.programs.items() if p.steps or n not in used)


def committed_lock(path: Path) -> Lock | None:
    """The lock in a file; None where there is no file. Raises SpecError FH601 or FH602."""
    from foxhunt.contract.lock import parse_lock

    try:
        return parse_lock(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise fail(SpecError, "FH601", f"{path} cannot be read: {error}", help="restore it") from error


def _key(root: Path, generated: Path, options: object) -> str:
    """SHA-256 over names and bytes of all that a compile reads, and over its options."""
    state = hashlib.sha256(repr((str(root), options)).encode())
    package = Path(__file__).resolve().parent.parent
    library = library_root()
    sources = (
        ("specs", root, (".yaml", ".yml")),
        ("templates", root.resolve().parent / "templates", (".j2", ".cuh")),
        ("locks", generated, (".lock",)),
        ("library specs", library / "specs" / "kernels", (".yaml", ".yml")),
        ("library kernels", library / "kernels", (".yaml", ".yml")),
        ("library templates", library / "templates", (".j2", ".cuh")),
        ("foxhunt", package, (".py",)),
    )
    for label, folder, endings in sources:
        for name, data in _contents(folder, endings):
            state.update(f"{label}\0{name}\0{len(data)}\0".encode())
            state.update(data)
    return state.hexdigest()


def _contents(folder: Path, endings: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    found = []
    for base, _, names in os.walk(folder):
        found += [os.path.join(base, n) for n in names if n.endswith(endings)]
    for path in sorted(found):
        with suppress(OSError):  # what cannot be read is the loader's to report
            yield os.path.relpath(path, folder), Path(path).read_bytes()


def _recall(path: Path) -> tuple[Result, ...] | None:
    try:
        data = json.loads(path.read_bytes())
        return tuple(map(_result, data))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _result(data: dict[str, Any]) -> Result:
    suppressed = tuple(map(_diagnostic, data["suppressed"]))
    return Result(Summary(**data["summary"]), data["files"], tuple(data["changes"]), suppressed)


def _diagnostic(data: dict[str, Any]) -> Diagnostic:
    at = Location(**data["location"]) if data["location"] else None
    related = tuple((Location(**place), text) for place, text in data["related"])
    return Diagnostic(**(data | {"location": at, "related": related}))


def _remember(path: Path, results: tuple[Result, ...]) -> None:
    """Keep the results; a cache that cannot be written is no reason to fail."""
    data = [
        {
            "summary": asdict(r.summary),
            "files": dict(r.files),
            "changes": r.changes,
            "suppressed": [asdict(d) for d in r.suppressed],
        }
        for r in results
    ]
    with suppress(OSError):
        write_atomically(path, json.dumps(data).encode())
        kept = sorted(path.parent.glob("*.json"), key=lambda p: p.stat().st_mtime, reverse=True)
        for old in kept[KEPT:]:
            old.unlink(missing_ok=True)

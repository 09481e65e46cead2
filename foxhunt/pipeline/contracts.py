"""Contracts of compiled programs: from generated folders, from a git revision, or by compiling specs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from foxhunt.contract.diff import Contract, ProgramDiff, diff_programs
from foxhunt.contract.lock import LOCK_FILE, parse_lock
from foxhunt.diagnostics import FoxhuntError, Location, SpecError, fail
from foxhunt.emit.source import normalise
from foxhunt.emit.store import MANIFEST
from foxhunt.pipeline.cached import compile_specs
from foxhunt.pipeline.revision import files_at
from foxhunt.spec.load import load_specs
from foxhunt.spec.models import Program, SpecSet

Contracts = dict[str, Contract]


def from_specs(specs: Path, generated: Path, programs: Iterable[str] | None = None) -> Contracts:
    """Compile specs at the positions of the locks in `generated`; layout breaks are allowed, to be shown."""
    results = compile_specs(specs, generated, programs, breaks=None)
    return {r.summary.program: contract(r.files, r.summary.program) for r in results}


def from_folder(folder: Path) -> Contracts:
    """The compiled programs in `folder`, or the one that it holds. Raises SpecError FH612 without any."""
    locks = [folder / LOCK_FILE] if (folder / LOCK_FILE).is_file() else sorted(folder.glob(f"*/{LOCK_FILE}"))
    if not locks:
        raise fail(SpecError, "FH612", "there is no compiled program here", at=Location(str(folder)))
    found = {}
    for lock in locks:
        paths = [p for p in sorted(lock.parent.rglob("*")) if p.is_file()]
        names = {p: p.relative_to(lock.parent).as_posix() for p in paths}
        files = {name: _text(p.read_bytes(), p) for p, name in names.items() if _counts(name)}
        found[lock.parent.resolve().name] = contract(files, str(lock.parent))
    return found


def from_revision(revision: str, generated: Path) -> Contracts:
    """The compiled programs that were committed; empty when there were none."""
    files = files_at(revision, generated, lambda path: _counts(path.partition("/")[2]))
    programs: dict[str, dict[str, str]] = {}
    for path, data in files.items():
        program, _, inside = path.partition("/")
        where = Path(f"{revision}:{generated.name}/{path}")
        programs.setdefault(program, {})[inside] = _text(data, where)
    return {
        name: contract(inside, f"{revision}:{generated.name}/{name}")
        for name, inside in sorted(programs.items())
        if LOCK_FILE in inside
    }


def _counts(path: str) -> bool:
    return path in (LOCK_FILE, MANIFEST) or (path.startswith("kernels/") and path.endswith(".cuh"))


def _text(data: bytes, path: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _damaged(f"{path.name} is not UTF-8", str(path)) from error


def contract(files: Mapping[str, str], where: str) -> Contract:
    """The contract that generated files state; `where` is named in errors.

    A manifest of an older foxhunt says nothing of meanings, and then only the layout can be compared. Raises
    SpecError and DriftError for a damaged lock or manifest.
    """
    lock = parse_lock(files[LOCK_FILE], f"{where}/{LOCK_FILE}")
    try:
        manifest = json.loads(files.get(MANIFEST, "{}"))
        meanings = manifest.get("meaning", {})
        sound = all(isinstance(text, str) for text in meanings.values())
        slots = [text for key, text in meanings.items() if key.startswith("slot ")]
        sound = sound and all(len(text.split(" ")) == 5 for text in slots)
    except (ValueError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise _damaged("the manifest is damaged", f"{where}/{MANIFEST}")
    kernels = {
        PurePosixPath(path).stem: normalise(text)
        for path, text in files.items()
        if path.startswith("kernels/")
    }
    return Contract(str(manifest.get("program", where)), lock, meanings, kernels)


def _damaged(message: str, where: str) -> FoxhuntError:
    help = "restore the generated folder from version control, or compile again"
    return fail(SpecError, "FH612", message, at=Location(where), help=help)


def compare(old: Contracts, new: Contracts, specs: Path | None) -> tuple[ProgramDiff, ...]:
    """The differences, each with the place of its declaration where `specs` are those of `new`."""
    found = diff_programs(old, new)
    if specs is None or not any(d.differences for d in found):
        return found
    loaded = load_specs(specs)
    return tuple(_located(diff, loaded) for diff in found)


def _located(found: ProgramDiff, specs: SpecSet) -> ProgramDiff:
    program = specs.programs.get(found.program)
    places = _places(program) if program is not None else {}
    kernels = {name: kernel.at for name, kernel in specs.kernels.items() if name not in specs.library}
    whole = program.at if program is not None else Location(specs.root)
    placed = (
        replace(d, at=_nearest(kernels if d.what == "kernel" else places, d.name, whole))
        for d in found.differences
    )
    return replace(found, differences=tuple(placed))


def _nearest(places: Mapping[str, Location], name: str, whole: Location) -> Location:
    """The place of `name`, or of the block or launch that it belongs to."""
    while name and name not in places:
        name = name.rpartition(".")[0]
    return places.get(name, whole)


def _places(program: Program) -> dict[str, Location]:
    sections = (program.isv, program.params, program.buffers, program.counters)
    places = {entry.name: entry.at for section in sections for entry in section}
    steps = {step.name: step.at for step in program.steps}
    launches = {
        f"{step.name}.{item.as_ or item.kernel or item.use}": item.at
        for step in program.steps
        for item in step.items
    }
    return steps | launches | places

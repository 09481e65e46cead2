"""A folder of specs to a `SpecSet`: `kernels/*.yaml`, `<program>/*.yaml`, every mistake in one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, TypeVar

from pydantic import ValidationError

from foxhunt.diagnostics import Diagnostic, Location, SpecError, fail, sort_diagnostics
from foxhunt.spec.explain import explain
from foxhunt.spec.files import KERNELS, Folder, SpecFile, read_folder, shown
from foxhunt.spec.library import library_root
from foxhunt.spec.models import Entry, Kernel, Program, SpecSet
from foxhunt.spec.names import SYSTEM_KERNELS
from foxhunt.spec.positions import Map, Mark
from foxhunt.spec.text import preview
from foxhunt.spec.uses import check_uses

E = TypeVar("E", bound=Entry)
Findings = list[Diagnostic]


def load_specs(root: Path) -> SpecSet:
    """Everything below a specs folder, with the library's kernels where the folder has none of that name.

    Raises SpecError with every finding of every file. What is returned never depends on the order of
    files or of mapping keys.
    """
    root = Path(root)
    if not root.is_dir():
        reason = "it is a file; name the folder that holds it" if root.exists() else "there is no such folder"
        raise fail(SpecError, "FH101", f"the specs folder cannot be read: {reason}", at=Location(shown(root)))
    folder = read_folder(root)
    findings: Findings = [*folder.findings, *(f for file in folder.files for f in file.findings)]
    if not folder.files and not findings:
        help = "write `<program>/program.yaml`, or name another folder"
        raise fail(
            SpecError, "FH101", "the specs folder has no YAML files", at=Location(shown(root)), help=help
        )
    library_folder = _library_folder(root)
    findings += (f for file in library_folder.files for f in file.findings)
    kernels, library = _kernels(folder, findings), _kernels(library_folder, findings)
    programs = _programs(folder, findings)
    findings += check_uses(programs, frozenset(folder.programs))
    for program in programs.values():
        findings += _check_data_paths(program, root.resolve().parent)
    if findings:
        raise SpecError(sort_diagnostics(_first_per_place(findings)))
    return SpecSet(
        root=shown(root),
        programs=programs,
        kernels=dict(sorted({**library, **kernels}.items())),
        sources={file.path: file.text for file in (*library_folder.files, *folder.files)},
        library=frozenset(kernels if _is_library(root) else library),
    )


def _is_library(root: Path) -> bool:
    return root.resolve() == library_root() / "specs"


def _library_folder(root: Path) -> Folder:
    """The library's kernels as read; nothing when `root` is the library itself or there is none."""
    specs = library_root() / "specs"
    if _is_library(root) or not (specs / KERNELS).is_dir():
        return Folder({}, (), ())
    return read_folder(specs, only_kernels=True)


def _first_per_place(findings: Findings) -> Iterator[Diagnostic]:
    """Findings without those that only follow from a key or number already found wrong at their place."""
    unreadable = {f.location for f in findings if f.code in ("FH105", "FH106", "FH107")}
    for finding in findings:
        if finding.location not in unreadable or finding.code in ("FH105", "FH106", "FH107"):
            yield finding


def _validated(model: type[E], root: Map, findings: Findings) -> E | None:
    try:
        return model.model_validate(root, by_alias=True, by_name=False)
    except ValidationError as error:
        findings += explain(error, root, model)
        return None


def _kernels(folder: Folder, findings: Findings) -> dict[str, Kernel]:
    kernels: dict[str, Kernel] = {}
    written: dict[str, Kernel] = {}
    for file in folder.kernels:
        kernel = _validated(Kernel, file.root, findings) if file.root is not None else None
        if kernel is None:
            continue
        findings += _check_kernel(kernel, file)
        other = written.setdefault(kernel.kernel.casefold(), kernel)
        if other is not kernel:
            message = f"the kernel `{kernel.kernel}` is written twice, or differs from another in case only"
            note = ((other.spot("kernel"), "the other one"),)
            findings.append(
                Diagnostic("FH117", message, kernel.spot("kernel"), "rename one of them", related=note)
            )
        kernels[kernel.kernel] = kernel
    return kernels


def _check_kernel(kernel: Kernel, file: SpecFile) -> Iterator[Diagnostic]:
    if kernel.kernel != file.stem:
        message = f"the kernel `{kernel.kernel}` stands in the file {preview(file.stem)}"
        yield Diagnostic(
            "FH117", message, kernel.spot("kernel"), f"rename the file to `{kernel.kernel}.yaml`"
        )
    if kernel.kernel in SYSTEM_KERNELS:
        message = f"the name `{kernel.kernel}` belongs to a kernel that foxhunt generates"
        yield Diagnostic("FH113", message, kernel.spot("kernel"), "choose another name")


def _programs(folder: Folder, findings: Findings) -> dict[str, Program]:
    programs: dict[str, Program] = {}
    for name, files in sorted(folder.programs.items()):
        broken = any(file.root is None for file in files)
        merged = _merged(name, files, findings)
        if broken and "program" not in merged:
            continue  # the broken file may be the one that has it
        if "program" not in merged:
            at = Location(_folder_of(files[0]))
            help = f"write `program: {name}` into one file"
            findings.append(Diagnostic("FH115", "no file of the folder says `program:`", at, help))
            continue
        program = _validated(Program, merged, findings)
        if program is None:
            continue
        if program.program != name:
            message = f"the program `{program.program}` stands in the folder {preview(name)}"
            findings.append(Diagnostic("FH115", message, program.spot("program"), f"write `program: {name}`"))
        programs[name] = program
    return programs


def _folder_of(file: SpecFile) -> str:
    return file.path.rsplit("/", 1)[0]


def _merged(name: str, files: tuple[SpecFile, ...], findings: Findings) -> Map:
    """The sections of all files as one mapping that stands where `program:` does."""
    sections: dict[str, Any] = {}
    marks: dict[str, Mark] = {}
    at = Location(_folder_of(files[0]))
    for file in files:
        if file.root is None:
            continue
        if "kernel" in file.root and "program" not in file.root:
            findings.append(_kernel_in_program(file.root))
            continue
        for key, value in file.root.items():
            mark = file.root.marks[key]
            if key in sections:
                findings.append(_split(name, key, marks[key], mark))
                continue
            sections[key], marks[key] = value, mark
        if "program" in file.root:
            at = file.root.at
    return Map(sections, at, marks)


def _kernel_in_program(root: Map) -> Diagnostic:
    help = f"move the file into `{KERNELS}`"
    return Diagnostic("FH117", "a kernel stands in a program folder", root.marks["kernel"].key, help)


def _split(name: str, key: str, first: Mark, second: Mark) -> Diagnostic:
    note = ((first.key, "it also stands here"),)
    if key == "program":
        message = f"two files of the folder `{name}` say `program:`"
        return Diagnostic("FH115", message, second.key, "remove one of the two", related=note)
    message = f"the section {preview(key)} stands in two files"
    return Diagnostic("FH116", message, second.key, "move all of its entries into one file", related=note)


def _check_data_paths(program: Program, project: Path) -> Iterator[Diagnostic]:
    for n, source in enumerate(program.data):
        if source.path is None:
            continue
        reason = _reason_against_path(source.path, project)
        if reason:
            at = program.spot("data", n, "path")
            yield Diagnostic(
                "FH119", f"the path {preview(source.path)} {reason}", at, "name a file of the project"
            )


def _reason_against_path(text: str, project: Path) -> str:
    """Why a data path is refused, or ''. Whether the file exists is asked when it is read."""
    if not text or not text.isprintable():
        return "is empty or not printable"
    if PurePosixPath(text).is_absolute() or PureWindowsPath(text).drive or text[0] in "~\\":
        return "is absolute"
    if ".." in PurePosixPath(text.replace("\\", "/")).parts:
        return "has `..`"
    try:
        inside = (project / text).resolve().is_relative_to(project)
    except (OSError, RuntimeError, ValueError):
        return "cannot be resolved"
    return "" if inside else "is a symbolic link out of the project"

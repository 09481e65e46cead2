"""A specs folder to parsed files: which files count, and what is wrong with each as a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from foxhunt.diagnostics import Diagnostic, Location
from foxhunt.spec.names import reason_against
from foxhunt.spec.positions import Map
from foxhunt.spec.text import preview
from foxhunt.spec.yaml import MAX_BYTES, parse_bytes

KERNELS = "kernels"
_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class SpecFile:
    """One YAML file of a specs folder. `root` is its mapping, None where it could not be read."""

    path: str  # as locations name it
    folder: str  # "kernels" or the program
    stem: str
    text: str
    root: Map | None
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Folder:
    """A specs folder as read: its program folders by name, its kernel files, findings about neither."""

    programs: dict[str, tuple[SpecFile, ...]]
    kernels: tuple[SpecFile, ...]
    findings: tuple[Diagnostic, ...]

    @property
    def files(self) -> tuple[SpecFile, ...]:
        """Every file, kernels first, by path."""
        return (*self.kernels, *(file for files in self.programs.values() for file in files))


def read_folder(root: Path, *, only_kernels: bool = False) -> Folder:
    """Every YAML file below `root`; hidden files, editors' backups and other files are passed over."""
    findings: list[Diagnostic] = []
    if only_kernels:
        return Folder({}, tuple(_read_files(root / KERNELS, root, findings)), tuple(findings))
    programs: dict[str, tuple[SpecFile, ...]] = {}
    kernels: tuple[SpecFile, ...] = ()
    for entry in _entries(root, findings):
        path = root / entry.name
        if not path.is_dir():
            if _is_yaml(entry.name):
                findings.append(_misplaced(path, "a file stands outside `kernels` and the program folders"))
            continue
        files = tuple(_read_files(path, root, findings))
        if entry.name == KERNELS:
            kernels = files
        elif files:
            programs[entry.name] = files
            findings += _bad_folder_name(path)
    findings += _collisions(programs, root)
    return Folder(programs, kernels, tuple(findings))


def shown(path: Path) -> str:
    """A path as locations name it: with `/`, on one line."""
    text = path.as_posix()
    return text if text.isprintable() else ascii(text)


def _entries(folder: Path, findings: list[Diagnostic]) -> list[os.DirEntry[str]]:
    """What counts in a folder, by name."""
    try:
        with os.scandir(folder) as entries:
            return sorted((e for e in entries if e.name[0] not in ".#_~"), key=lambda e: e.name)
    except OSError as error:
        findings.append(_unreadable(folder, error.strerror or str(error)))
        return []


def _is_yaml(name: str) -> bool:
    return name.lower().endswith(_SUFFIXES)


def _read_files(folder: Path, root: Path, findings: list[Diagnostic]) -> Iterator[SpecFile]:
    for entry in _entries(folder, findings):
        path = folder / entry.name
        if _is_yaml(entry.name):
            yield _read_file(path, root)
        elif path.is_dir() and any(_is_yaml(e.name) for e in _entries(path, [])):
            findings.append(_misplaced(path, "a folder of specs stands inside another"))


def _read_file(path: Path, root: Path) -> SpecFile:
    text, top, findings = "", None, ()  # type: str, Map | None, tuple[Diagnostic, ...]
    try:
        if not path.resolve().is_relative_to(root.resolve()):
            help = "put a copy of the file into the specs folder"
            message = "a symbolic link leads out of the specs folder"
            findings = (Diagnostic("FH119", message, Location(shown(path)), help),)
        elif not path.is_file():
            findings = (_unreadable(path, "it is not a regular file"),)
        else:
            with path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
            text, top, findings = parse_bytes(data, shown(path))
    except (OSError, RuntimeError) as error:  # RuntimeError: pathlib's name for a loop of links
        findings = (_unreadable(path, getattr(error, "strerror", None) or "a loop of symbolic links"),)
    return SpecFile(shown(path), path.parent.name, path.stem, text, top, findings)


def _unreadable(path: Path, reason: str) -> Diagnostic:
    return Diagnostic("FH101", f"cannot be read: {reason}", Location(shown(path)))


def _misplaced(path: Path, message: str) -> Diagnostic:
    help = "a kernel belongs into `kernels/<kernel>.yaml`, a section into `<program>/<section>.yaml`"
    return Diagnostic("FH120", message, Location(shown(path)), help)


def _bad_folder_name(folder: Path) -> list[Diagnostic]:
    reason = reason_against(folder.name)
    message = f"the program folder {preview(folder.name)} {reason}"
    return [Diagnostic("FH113", message, Location(shown(folder)), "rename the folder")] if reason else []


def _collisions(programs: dict[str, tuple[SpecFile, ...]], root: Path) -> Iterator[Diagnostic]:
    seen: dict[str, str] = {KERNELS: KERNELS}
    for name in programs:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            message = f"the folders `{other}` and `{name}` differ in case only"
            yield Diagnostic("FH115", message, Location(shown(root / name)), "rename one of them")

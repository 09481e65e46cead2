"""The texts that emission is made of: a project's own templates before the built-in library's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from foxhunt.diagnostics import EmissionError, Location, fail

PRELUDE = "base/prelude/"
SUFFIXES = (".j2", ".cuh")
SIZE_LIMIT = 4 << 20


@dataclass(frozen=True)
class TemplateSet:
    """Template texts by name ("kernels/rms.cu.j2"), and where each was read, for messages only."""

    files: Mapping[str, str] = field(hash=False)
    origins: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all names and texts."""
        state = hashlib.sha256()
        for name in sorted(self.files):
            for part in (name, self.files[name]):
                data = part.encode()
                state.update(len(data).to_bytes(8, "big") + data)
        return state.hexdigest()

    @property
    def prelude(self) -> dict[str, str]:
        """The files that are copied verbatim, by file name."""
        return {n.removeprefix(PRELUDE): t for n, t in sorted(self.files.items()) if n.startswith(PRELUDE)}

    def path(self, name: str) -> str:
        """How a template is named in messages."""
        return self.origins.get(name, f"templates/{name}")


def load_templates(folders: Iterable[Path]) -> TemplateSet:
    """The templates below `folders`, an earlier folder's before a later one's. Line ends become LF.

    Raises EmissionError FH405 for a file that cannot be read, is no UTF-8 or is huge.
    """
    files: dict[str, str] = {}
    origins: dict[str, str] = {}
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file()):
            name = path.relative_to(folder).as_posix()
            if name not in files:
                files[name] = _read(path)
                origins[name] = _shown(path, folder)
    return TemplateSet(files, origins)


def _shown(path: Path, folder: Path) -> str:
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return f"templates/{path.relative_to(folder).as_posix()}"


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
        if len(data) > SIZE_LIMIT:
            raise ValueError(f"{len(data)} bytes, more than {SIZE_LIMIT}")
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise fail(
            EmissionError, "FH405", f"the template cannot be read: {error}", at=Location(str(path))
        ) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.endswith("\n") or not text else text + "\n"

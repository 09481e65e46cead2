"""Generated folders: write what changed, remove what foxhunt itself wrote and no longer does, say what is
stale.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from foxhunt.diagnostics import EmissionError, Location, fail

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Stored:
    """What `store` did: paths below the folder."""

    written: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """One way in which a folder is not what the specs say; `line` is the first line that differs, from 1."""

    path: str
    reason: str
    line: int = 0


def store(files: Mapping[str, str], folder: Path) -> Stored:
    """Make `folder` hold exactly `files`, besides what foxhunt did not generate.

    Files with the right bytes are left alone. All new texts are written beside their targets first and then
    renamed, one by one, the manifest last: on a failure before the first rename nothing has changed, and no
    file is ever half written. Removed are only files that the folder's manifest lists. Raises EmissionError
    FH408.
    """
    paths = {path: _inside(folder, path) for path in sorted(files)}
    changed = [p for p in paths if _read(paths[p]) != files[p].encode()]
    changed.sort(key=lambda p: (p == MANIFEST, p))
    dropped = [p for p in _listed(folder) if p not in files and (folder / p).is_file()]
    temporary: dict[str, Path] = {}
    try:
        for path in changed:
            temporary[path] = _write_beside(paths[path], files[path])
        for path in dropped:
            (folder / path).unlink()
        for path in changed:
            os.replace(temporary.pop(path), paths[path])
    except OSError as error:
        at = Location(str(error.filename or folder))
        raise fail(EmissionError, "FH408", f"cannot write: {error.strerror}", at=at) from error
    finally:
        for left in temporary.values():
            with suppress(OSError):
                left.unlink()
    _remove_empty(folder, dropped)
    return Stored(tuple(sorted(changed)), tuple(dropped))


def stale(files: Mapping[str, str], folder: Path) -> tuple[Difference, ...]:
    """What `store` would change, by path, each with its reason."""
    found = []
    for path in sorted(files):
        data = _read(_inside(folder, path))
        if data is None:
            found.append(Difference(path, "is missing"))
        elif data != files[path].encode():
            line = _first_difference(data, files[path].encode())
            found.append(Difference(path, f"differs from what the specs say at line {line}", line))
    for path in _listed(folder):
        if path not in files and (folder / path).is_file():
            found.append(Difference(path, "is no longer generated"))
    return tuple(sorted(found, key=lambda d: d.path))


def _inside(folder: Path, path: str) -> Path:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts or "\\" in path or "\0" in path:
        raise fail(EmissionError, "FH408", f"{path!r} is no path inside the generated folder")
    return folder.joinpath(*parts.parts)


def _listed(folder: Path) -> Iterator[str]:
    """The paths that the folder's manifest claims, as far as they are plain paths inside it."""
    data = _read(folder / MANIFEST)
    try:
        listed = json.loads(data or b"{}")["files"]
        names = sorted({p for p in listed if isinstance(p, str)})
    except (ValueError, KeyError, TypeError):
        return
    for name in names:
        with suppress(EmissionError):
            if not _inside(folder, name).is_symlink():
                yield name


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise fail(
            EmissionError, "FH408", f"cannot read: {error.strerror}", at=Location(str(path))
        ) from error


def _write_beside(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".foxhunt-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        os.chmod(name, 0o644)
    except OSError:
        os.unlink(name)
        raise
    return Path(name)


def _first_difference(one: bytes, other: bytes) -> int:
    pairs = zip(one.split(b"\n"), other.split(b"\n"), strict=False)
    return next(
        (n for n, (a, b) in enumerate(pairs, start=1) if a != b),
        min(one.count(b"\n"), other.count(b"\n")) + 1,
    )


def _remove_empty(folder: Path, dropped: list[str]) -> None:
    for path in dropped:
        parent = (folder / path).parent
        while parent != folder:
            try:
                parent.rmdir()
            except OSError:
                break
            parent = parent.parent

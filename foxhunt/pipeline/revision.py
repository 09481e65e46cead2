"""The files of a folder at a git revision, read from the repository without touching the working tree."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from foxhunt.diagnostics import FoxhuntError, SpecError, fail

_SECONDS = 120


def files_at(revision: str, folder: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Path below `folder` → contents, for the regular files that `wanted` takes; empty if it was not there.

    `folder` need not exist any more, but its parent must. Raises SpecError FH610 without git, outside of a
    repository, and for a revision that it does not have.
    """
    base = folder.resolve().parent
    commit = _commit(base, revision)
    listed = _git(base, "ls-tree", "-r", "-z", commit, "--", f"{folder.resolve().name}/")
    blobs: dict[str, str] = {}
    for row in listed.decode("utf-8", "surrogateescape").split("\0"):
        head, _, path = row.partition("\t")
        inside = path.partition("/")[2]
        if head.startswith("100") and wanted(inside):
            blobs[inside] = head.split(" ")[2]
    return dict(zip(blobs, _contents(base, list(blobs.values())), strict=True))


def _commit(base: Path, revision: str) -> str:
    if not base.is_dir():
        raise _refusal(f"{base} is no folder")
    _git(base, "rev-parse", "--show-toplevel")
    name = f"{revision}^{{commit}}"
    done = _run(base, "rev-parse", "--verify", "--quiet", "--end-of-options", name)
    if done.returncode:
        help = "name a branch, tag or commit; in CI fetch it first, with `fetch-depth: 0` or `git fetch`"
        raise fail(SpecError, "FH610", f"the repository has no revision {revision!r}", help=help)
    return done.stdout.decode().strip()


def _contents(base: Path, blobs: list[str]) -> list[bytes]:
    """The contents of blobs, in their order."""
    data = _git(base, "cat-file", "--batch", feed="".join(f"{b}\n" for b in blobs).encode()) if blobs else b""
    found, at = [], 0
    for _ in blobs:
        end = data.index(b"\n", at)
        size = int(data[at:end].split(b" ")[2])
        found.append(data[end + 1 : end + 1 + size])
        at = end + size + 2
    return found


def _git(base: Path, *args: str, feed: bytes = b"") -> bytes:
    done = _run(base, *args, feed=feed)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise _refusal(lines[0] if lines else f"git {args[0]} failed")
    return done.stdout


def _run(base: Path, *args: str, feed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-C", str(base), *args], input=feed, capture_output=True, timeout=_SECONDS
        )
    except FileNotFoundError as error:
        raise _refusal("git is not installed") from error
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise _refusal(f"git cannot be run: {error}") from error


def _refusal(reason: str) -> FoxhuntError:
    help = "`--against` needs git and a repository; without them name two folders: `foxhunt diff OLD NEW`"
    return fail(SpecError, "FH610", f"no revision can be read: {reason}", help=help)

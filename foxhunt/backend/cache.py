"""Where compiled kernels are kept between runs, and how a file gets there whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """`$FOXHUNT_CACHE`, else the user's cache folder for foxhunt; it may not exist yet."""
    chosen = os.environ.get("FOXHUNT_CACHE")
    if chosen:
        return Path(chosen)
    try:
        from platformdirs import user_cache_path
    except ImportError:  # a generated trainer runs where only numpy and safetensors are installed
        return Path.home() / ".cache" / "foxhunt"
    return user_cache_path("foxhunt")


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` so that a reader, or another process that writes the same file, sees it whole or not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise

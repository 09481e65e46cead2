"""Where the kernel library that comes with foxhunt lies: in a checkout beside the package, else inside it."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def library_root() -> Path:
    """The folder that holds `templates/` and `specs/kernels/`."""
    package = Path(__file__).resolve().parent.parent
    checkout = package.parent
    is_checkout = (checkout / "specs" / "kernels").is_dir() and (checkout / "templates").is_dir()
    return checkout if is_checkout else package / "_library"

"""A declarative kernel-graph compiler: `foxhunt compile` compiles specs, `foxhunt.load` runs the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foxhunt.backend.base import Backend, BuildProgress
    from foxhunt.runtime.trainer import Trainer


def load(
    folder: str | Path,
    *,
    backend: str | Backend = "auto",
    seed: int = 0,
    debug: bool = False,
    progress: BuildProgress | None = None,
) -> Trainer:
    """A trainer for a compiled program, such as `load("generated/aux")`.

    `backend` is "auto", "host" or "cuda"; see `foxhunt.runtime.trainer.Trainer` for the rest. Logs a warning
    of generated files that were edited. Raises FoxhuntError.
    """
    from foxhunt.diagnostics import TrainerError
    from foxhunt.runtime.arguments import path_of
    from foxhunt.runtime.checkpoint import log_warnings
    from foxhunt.runtime.load import edited, load_plan
    from foxhunt.runtime.trainer import Trainer

    path = path_of(folder, TrainerError, "FH546")
    plan = load_plan(path)
    log_warnings(edited(path))
    return Trainer(plan, path, backend=backend, seed=seed, debug=debug, progress=progress)

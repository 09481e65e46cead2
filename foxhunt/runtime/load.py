"""Reading the plan that a generated folder carries in its `trainer.py`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from foxhunt.backend.plan import Plan
from foxhunt.diagnostics import Location, TrainerError, fail


def load_plan(folder: Path) -> Plan:
    """`PLAN` of `<folder>/trainer.py`. Raises TrainerError FH546 if there is none."""
    path = folder / "trainer.py"
    help = "Name a folder that `foxhunt compile` wrote, such as generated/aux."
    if not path.is_file():
        raise fail(
            TrainerError, "FH546", "there is no compiled program here", at=Location(str(path)), help=help
        )
    try:
        spec = importlib.util.spec_from_file_location(f"foxhunt_generated_{folder.resolve().name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        plan = module.PLAN
    except Exception as error:
        message = f"the generated trainer does not run: {type(error).__name__}: {error}"
        raise fail(
            TrainerError, "FH546", message, at=Location(str(path)), help="Compile it again."
        ) from error
    if not isinstance(plan, Plan):
        raise fail(TrainerError, "FH546", "PLAN is not a foxhunt plan", at=Location(str(path)), help=help)
    return plan

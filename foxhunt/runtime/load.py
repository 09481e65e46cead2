"""Reading the plan that a generated folder carries in its `trainer.py`."""

from __future__ import annotations

from pathlib import Path

from foxhunt.backend.plan import Plan
from foxhunt.diagnostics import Location, TrainerError, fail


def load_plan(folder: Path) -> Plan:
    """`PLAN` of `<folder>/trainer.py`. Raises TrainerError FH546 if there is none."""
    path = folder / "trainer.py"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        help = "Name a folder that `foxhunt compile` wrote, such as generated/aux."
        message = "there is no compiled program here"
        raise fail(TrainerError, "FH546", message, at=Location(str(path)), help=help) from error
    return plan_of_text(text, path)


def plan_of_text(text: str, path: Path) -> Plan:
    """`PLAN` of a generated trainer's text that belongs at `path`. Raises TrainerError FH546."""
    module: dict[str, object] = {"__name__": "foxhunt_generated", "__file__": str(path)}
    try:
        exec(compile(text, str(path), "exec"), module)
    except Exception as error:
        message = f"the generated trainer does not run: {type(error).__name__}: {error}"
        help = "Compile it again."
        raise fail(TrainerError, "FH546", message, at=Location(str(path)), help=help) from error
    plan = module.get("PLAN")
    if not isinstance(plan, Plan):
        raise fail(TrainerError, "FH546", "PLAN is not a foxhunt plan", at=Location(str(path)))
    return plan

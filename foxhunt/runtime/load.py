"""Reading the plan that a generated folder carries in its `trainer.py`."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from foxhunt.backend.plan import Plan
from foxhunt.diagnostics import Diagnostic, Location, TrainerError, fail

MANIFEST = "manifest.json"
_SHOWN = 3


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


def edited(folder: Path) -> tuple[Diagnostic, ...]:
    """A warning FH553 that names the generated files whose bytes are not those that the manifest has, or says
    that the manifest does not tell.
    """
    digests = _digests(folder / MANIFEST)
    if "trainer.py" not in digests:
        where = folder / MANIFEST
        state = "damaged, or of an older foxhunt" if where.is_file() else "missing"
        message = f"{where} is {state}: nothing says whether generated files were changed."
        return (Diagnostic("FH553", message, Location(str(where)), "Compile again.", "warning"),)
    wrong = [path for path, digest in sorted(digests.items()) if digest and _digest(folder / path) != digest]
    if not wrong:
        return ()
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    message = f"{folder} was changed after it was compiled: {', '.join(wrong[:_SHOWN])}{more}."
    help = "Nothing else knows of an edit there; change specs or templates, and compile again."
    return (Diagnostic("FH553", message, Location(str(folder / wrong[0])), help, "warning"),)


def _digests(manifest: Path) -> dict[str, str]:
    """Generated file → digest; nothing where the manifest is missing, damaged or of an older foxhunt."""
    try:
        listed = json.loads(manifest.read_bytes())["files"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    sound = isinstance(listed, dict) and all(isinstance(d, str) for d in listed.values())
    return listed if sound else {}


def _digest(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()[:16]
    except OSError:
        return "missing"


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

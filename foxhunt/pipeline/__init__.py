"""The stages composed. Importing this is cheap: the compiler itself is loaded when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foxhunt.pipeline.cached import Result, Summary, compile_specs

if TYPE_CHECKING:
    from foxhunt.pipeline.compile import Compiled, compile_program, project_templates
    from foxhunt.pipeline.plan import plan_of

__all__ = [
    "Compiled",
    "Result",
    "Summary",
    "compile_program",
    "compile_specs",
    "plan_of",
    "project_templates",
]


def __getattr__(name: str) -> Any:
    if name in ("Compiled", "compile_program", "plan_of", "project_templates"):
        from foxhunt.pipeline import compile

        return getattr(compile, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

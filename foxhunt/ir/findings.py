"""Collects every finding of one stage, so that a run reports all mistakes together."""

from __future__ import annotations

from collections.abc import Iterable

from foxhunt.diagnostics import Diagnostic, Location, SpecError, closest, sort_diagnostics

_MAX_HINTS = 50  # the nearest name is a search through all names; a broken folder must stay linear


class Findings:
    """The findings so far; `raise_if_any` ends the stage."""

    def __init__(self) -> None:
        """None yet."""
        self.found: list[Diagnostic] = []
        self._hints = 0

    def add(
        self,
        code: str,
        message: str,
        at: Location | None,
        help: str = "",
        related: tuple[tuple[Location, str], ...] = (),
        about: str = "",
    ) -> None:
        """One more finding; `about` names the entry whose spec may suppress it."""
        self.found.append(Diagnostic(code, message, at, help, related=related, about=about))

    def nearest(self, name: str, names: Iterable[str]) -> str:
        """`did you mean ...?` for the nearest of `names`, or nothing."""
        self._hints += 1
        if self._hints > _MAX_HINTS:
            return ""
        near = closest(name, names)
        return f"did you mean `{near}`?" if near is not None else ""

    def raise_if_any(self) -> None:
        """Raises SpecError with all findings in reading order."""
        if self.found:
            raise SpecError(sort_diagnostics(self.found))

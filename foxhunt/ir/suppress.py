"""Suppressions: findings that a spec lets pass for a stated reason, and those that let nothing pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from foxhunt.diagnostics import Diagnostic
from foxhunt.ir.findings import Findings
from foxhunt.spec import models as spec

SUPPRESSIBLE = ("FH250", "FH255")
"""Rules of judgement: a program that breaks one is still emitted as declared."""


def apply_suppressions(entries: Sequence[spec.Suppression], findings: Findings) -> tuple[Diagnostic, ...]:
    """Takes what `entries` name out of the findings and returns it, as notes with their reason.

    Adds FH260 for an entry that names a rule that cannot be suppressed, or that suppresses nothing.
    """
    wanted: dict[tuple[str, str], spec.Suppression] = {}
    for entry in entries:
        if entry.rule not in SUPPRESSIBLE:
            hint = f"rules that can be suppressed: {', '.join(SUPPRESSIBLE)}"
            findings.add("FH260", f"{entry.rule} cannot be suppressed", entry.spot("rule"), hint)
        elif (entry.rule, entry.name) in wanted:
            message = f"{entry.rule} of {entry.name} is suppressed twice"
            findings.add("FH260", message, entry.at, "remove one of the two")
        else:
            wanted[entry.rule, entry.name] = entry
    passed, kept = [], []
    for found in findings.found:
        match = wanted.get((found.code, found.about)) if found.about else None
        if match is None:
            kept.append(found)
        else:
            passed.append(replace(found, severity="note", suppressed=match.reason))
    findings.found = kept
    used = {(d.code, d.about) for d in passed}
    for key, entry in wanted.items():
        if key not in used:
            message = f"the suppression of {entry.rule} for {entry.name} has nothing to suppress"
            findings.add("FH260", message, entry.at, "remove it")
    return tuple(passed)

"""Findings for machines: JSON, GitHub annotations and SARIF 2.1.0, beside the text for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from foxhunt.diagnostics import Diagnostic, Location, render_text
from foxhunt.rules import RULES

FORMATS = ("text", "json", "github", "sarif")
_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_findings(diagnostics: Iterable[Diagnostic], style: str, sources: Mapping[str, str]) -> str:
    """Findings in a style of `FORMATS`. `sources` (path → text) gives `text` its source lines."""
    found = tuple(diagnostics)
    if style == "json":
        return json.dumps({"diagnostics": [as_json(d) for d in found]}, indent=2)
    if style == "github":
        return "\n".join(map(_annotation, found))
    if style == "sarif":
        return json.dumps(_sarif(found), indent=2)
    return render_text(found, sources)


def as_json(found: Diagnostic) -> dict[str, Any]:
    """One finding as JSON values. `line` and `column` count from 1; null means unknown."""
    at = found.location
    return {
        "code": found.code,
        "rule": _rule_name(found.code),
        "severity": found.severity,
        "message": found.message,
        "help": found.help,
        "path": at.path if at else None,
        "line": (at.line or None) if at else None,
        "column": (at.column or None) if at else None,
        "related": [{"path": p.path, "line": p.line or None, "message": text} for p, text in found.related],
        "suppressed": found.suppressed or None,
    }


def _rule_name(code: str) -> str:
    return RULES[code].name if code in RULES else code


def _annotation(found: Diagnostic) -> str:
    """A workflow command: GitHub shows it at the line of the pull request.

    >>> _annotation(Diagnostic("FH203", "100 % odd", Location("a.yaml", 3, 5), "mend"))
    '::error title=FH203 slot-unfed,file=a.yaml,line=3,col=5::100 %25 odd%0Ahelp: mend'
    """
    properties = {"title": f"{found.code} {_rule_name(found.code)}"}
    if found.location:
        at = found.location
        properties |= {"file": at.path}
        properties |= {k: str(n) for k, n in (("line", at.line), ("col", at.column)) if n}
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    text = found.message + (f"\nhelp: {found.help}" if found.help else "")
    text += f"\nsuppressed: {found.suppressed}" if found.suppressed else ""
    return f"::{_LEVELS[found.severity]} {shown}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(found: tuple[Diagnostic, ...]) -> dict[str, Any]:
    from importlib import metadata  # slow to import, and wanted here alone

    codes = sorted({d.code for d in found})
    driver = {
        "name": "foxhunt",
        "version": metadata.version("foxhunt"),
        "rules": [_sarif_rule(code) for code in codes],
    }
    results = [_sarif_result(d, codes.index(d.code)) for d in found]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_rule(code: str) -> dict[str, Any]:
    rule = RULES.get(code)
    if rule is None:
        return {"id": code}
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.mend},
    }


def _sarif_result(found: Diagnostic, index: int) -> dict[str, Any]:
    text = found.message + (f"\n{found.help}" if found.help else "")
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": index,
        "level": found.severity,
        "message": {"text": text},
    }
    if found.location:
        result["locations"] = [{"physicalLocation": _sarif_place(found.location)}]
    if found.related:
        result["relatedLocations"] = [
            {"id": k, "physicalLocation": _sarif_place(at), "message": {"text": text}}
            for k, (at, text) in enumerate(found.related)
        ]
    if found.suppressed:
        result["suppressions"] = [{"kind": "inSource", "justification": found.suppressed}]
    return result


def _sarif_place(at: Location) -> dict[str, Any]:
    path = Path(at.path)
    uri = path.as_uri() if path.is_absolute() else path.as_posix()
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if at.line:
        place["region"] = {"startLine": at.line} | ({"startColumn": at.column} if at.column else {})
    return place

"""Every diagnostic code: its name, its meaning and its mend, for `foxhunt rule FH203` and docs/rules.md."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple


class Rule(NamedTuple):
    """One stable code. `summary` says what is refused and why, `mend` what to do about it."""

    code: str
    name: str
    summary: str
    mend: str


RANGES = (
    ("FH1", "YAML and models"),
    ("FH2", "Names, shapes, layout and graph"),
    ("FH3", "Schedule"),
    ("FH4", "Templates, emission and build"),
    ("FH5", "Backends, runtime, data and checkpoints"),
    ("FH6", "Lock, fingerprint and check"),
    ("FH7", "Evidence"),
)

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
RULES = {code: Rule(code, **entry) for code, entry in sorted(_TABLE.items())}


def markdown() -> str:
    """The rule list as docs/rules.md."""
    lines = ["# Rules", "", "Generated from `foxhunt/rules.toml`. `foxhunt rule CODE` prints one.", ""]
    for prefix, title in RANGES:
        lines += [f"## {prefix}xx: {title}", ""]
        for rule in (r for r in RULES.values() if r.code.startswith(prefix)):
            lines += [f"- **{rule.code} {rule.name}**. {rule.summary} *Mend:* {rule.mend}"]
        lines.append("")
    return "\n".join(lines)

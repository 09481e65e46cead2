"""Every diagnostic code with its name, its meaning and how to mend it: `foxhunt rule FH203` and docs/rules.md."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One stable code. `summary` says what is refused and why, `mend` what to do about it."""

    code: str
    name: str
    summary: str
    mend: str


SPEC = (
    Rule(
        "FH101",
        "unreadable",
        "A specs folder or file is missing or cannot be read.",
        "Check the path and its permissions.",
    ),
    Rule("FH102", "yaml-syntax", "A file is not YAML.", "Mend the syntax at the position named."),
    Rule(
        "FH103",
        "not-text",
        "A file is not UTF-8 text, or has control characters.",
        "Save the file as UTF-8.",
    ),
    Rule(
        "FH104",
        "too-large",
        "A file passes a limit on bytes, nesting, or values after aliases are expanded.",
        "Split the file, or write the values out.",
    ),
    Rule(
        "FH105",
        "duplicate-key",
        "A key stands twice in one mapping; stock YAML would silently keep the last one.",
        "Remove or rename one of the two.",
    ),
    Rule(
        "FH106",
        "yaml-feature",
        "Specs use a subset of YAML: one document a file, text keys, no tags, no merge keys, no alias of itself.",
        "Write the value out.",
    ),
    Rule(
        "FH107",
        "ambiguous-number",
        "A number is written in a form that readers of YAML disagree on, or has too many digits.",
        "Write it as a plain decimal number, or quote it if it is text.",
    ),
    Rule(
        "FH110", "unknown-key", "A key that the spec language does not have.", "Use the nearest name offered."
    ),
    Rule("FH111", "missing-key", "A key that an entry must have is missing.", "Add the key."),
    Rule(
        "FH112",
        "wrong-value",
        "A value of the wrong type, or outside the values allowed.",
        "Use an allowed value.",
    ),
    Rule(
        "FH113",
        "bad-name",
        "A name is not an identifier of at most 64 ASCII characters, or is reserved in C++ or CUDA.",
        "Choose another name.",
    ),
    Rule(
        "FH114",
        "item-form",
        "An item of a block or step is not exactly one of `kernel`, `use` and `producers`.",
        "Split the item, or remove the key that does not belong to it.",
    ),
    Rule(
        "FH115",
        "program-header",
        "A program folder needs exactly one `program:` line, equal to the folder's name.",
        "Name the program once, as its folder is named.",
    ),
    Rule(
        "FH116",
        "split-section",
        "A section of a program is spread over several files; it must stand whole in one.",
        "Move the section's entries into one file.",
    ),
    Rule(
        "FH117",
        "kernel-file",
        "A kernel stands alone in `kernels/<kernel>.yaml`, once.",
        "Name the file as the kernel is named.",
    ),
    Rule(
        "FH118",
        "uses",
        "`uses:` names a program that does not exist, or leads back to itself.",
        "Remove the import that closes the circle.",
    ),
    Rule(
        "FH119",
        "path-outside",
        "A path leaves the specs folder: absolute, `..`, or a symbolic link out of it.",
        "Use a relative path of files inside the project.",
    ),
)
GRAPH: tuple[Rule, ...] = ()
SCHEDULE: tuple[Rule, ...] = ()
EMISSION: tuple[Rule, ...] = ()
RUNTIME: tuple[Rule, ...] = ()
CONTRACT: tuple[Rule, ...] = ()

RANGES = (
    ("FH1", "YAML and models", SPEC),
    ("FH2", "Names, shapes, layout and graph", GRAPH),
    ("FH3", "Schedule", SCHEDULE),
    ("FH4", "Templates, emission and build", EMISSION),
    ("FH5", "Backends, runtime, data and checkpoints", RUNTIME),
    ("FH6", "Lock, fingerprint and check", CONTRACT),
)

RULES: dict[str, Rule] = {rule.code: rule for _, _, rules in RANGES for rule in rules}


def markdown() -> str:
    """The rule list as docs/rules.md."""
    lines = ["# Rules", "", "Generated from `foxhunt/rules.py`. `foxhunt rule CODE` prints one of them.", ""]
    for prefix, title, rules in RANGES:
        lines += [f"## {prefix}xx: {title}", ""]
        for rule in sorted(rules):
            lines += [f"- **{rule.code} {rule.name}**. {rule.summary} *Mend:* {rule.mend}"]
        lines.append("")
    return "\n".join(lines)

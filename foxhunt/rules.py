"""Every diagnostic code: its name, its meaning and its mend, for `foxhunt rule FH203` and docs/rules.md."""

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
        "Specs use a part of YAML: one document a file, text keys, no tags, merge keys or circular aliases.",
        "Write the value out.",
    ),
    Rule(
        "FH107",
        "ambiguous-number",
        "A number is written in a form that readers of YAML disagree on, or has too many digits.",
        "Write it as a plain decimal number, or quote it if it is text.",
    ),
    Rule("FH108", "empty-file", "A spec file has nothing in it.", "Write a section, or delete the file."),
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
    Rule(
        "FH120",
        "misplaced-file",
        "A YAML file stands outside of `kernels` and the program folders, or deeper than them.",
        "Move it into `kernels/` or into its program's folder.",
    ),
)
GRAPH: tuple[Rule, ...] = ()
SCHEDULE: tuple[Rule, ...] = ()
EMISSION = (
    Rule(
        "FH481",
        "no-cuda-compiler",
        "Compiling kernels for a GPU needs NVRTC or nvcc, and neither works here.",
        "Install the CUDA toolkit, or `uv sync --extra nvrtc`.",
    ),
    Rule(
        "FH482",
        "cuda-compile",
        "The CUDA compiler refuses an emitted kernel; its messages follow.",
        "Mend the kernel's template at the line named.",
    ),
    Rule(
        "FH483", "architecture", "A GPU architecture is not written like `sm_90`.", "Write it like `sm_90`."
    ),
)
RUNTIME: tuple[Rule, ...] = (
    Rule(
        "FH520",
        "data-missing",
        "A data file is missing, unreadable or empty.",
        "Check the path of the data source.",
    ),
    Rule(
        "FH521",
        "data-format",
        "A data file is not UTF-8 text, lacks a column, or has a malformed row, time or number.",
        "Mend the line named.",
    ),
    Rule(
        "FH522",
        "data-order",
        "Bars are not in rising order of time, or two have the same time.",
        "Sort the bars and remove duplicates.",
    ),
    Rule(
        "FH523",
        "data-values",
        "A price or volume cannot be: NaN, not positive, high below low, or prices that never move.",
        "Mend or remove the bar named.",
    ),
    Rule(
        "FH524",
        "data-gap",
        "Bars are missing for longer than weekends explain and the reader's max_gap_hours allows.",
        "Fill the hole, or raise max_gap_hours.",
    ),
    Rule(
        "FH525",
        "data-too-short",
        "There are too few bars for one window and one label on each side of the split.",
        "Use a longer file, or a smaller window or horizon.",
    ),
    Rule(
        "FH526",
        "data-shape",
        "A resident buffer and the array that fills it differ in dtype or shape, or there is no such array.",
        "Set the program's dims to the sizes that the data has.",
    ),
    Rule(
        "FH527",
        "data-reader",
        "A data source names an unknown reader or option, a wrong value, or needs a missing extra.",
        "Use a name offered, or install the extra named.",
    ),
    Rule("FH530", "checkpoint-missing", "A checkpoint file is missing or cannot be read.", "Check the path."),
    Rule(
        "FH531",
        "checkpoint-damaged",
        "A checkpoint is cut off, has trailing bytes, overlapping or missing data, or an unsound header.",
        "Use another checkpoint.",
    ),
    Rule(
        "FH532",
        "checkpoint-layout",
        "A checkpoint was written with another layout; loading it would put values where others belong.",
        "Compile the specs it was trained with, or migrate it.",
    ),
    Rule(
        "FH533",
        "checkpoint-tensor",
        "A checkpoint lacks a tensor, has one too many, or one of another dtype or shape.",
        "Use a checkpoint that this program wrote.",
    ),
    Rule(
        "FH534",
        "checkpoint-not-identical",
        "A warning: training continues, but not bit-identically.",
        "Nothing, if that is what you want.",
    ),
    Rule(
        "FH535",
        "checkpoint-not-written",
        "A checkpoint could not be written; the old file, if any, is unchanged.",
        "Free space on the disk, or choose another path.",
    ),
    Rule(
        "FH540",
        "unknown-slot",
        "There is no slot, or element of a slot, of that name.",
        "Use the nearest name offered.",
    ),
    Rule(
        "FH541",
        "slot-not-host",
        "Only slots with `source: host` are set from Python; a producer or kernel writes the others.",
        "Set a host slot, or declare the slot `source: host`.",
    ),
    Rule(
        "FH542",
        "slot-value",
        "A slot takes finite float32 numbers, one or as many as it has elements; a seed fits in 64 bits.",
        "Pass such a value.",
    ),
    Rule(
        "FH543",
        "unknown-step",
        "There is no step or reset policy of that name, or it cannot run that often.",
        "Use the nearest name offered.",
    ),
    Rule(
        "FH544",
        "tensor-access",
        "There is no tensor of that name, it lives only within a step, or the values do not fit.",
        "Use a persistent tensor and an array of its shape.",
    ),
    Rule("FH545", "trainer-closed", "A closed trainer has no device memory any more.", "Make a new trainer."),
    Rule(
        "FH546",
        "not-compiled",
        "A folder holds no compiled program, or one that does not load.",
        "Run `foxhunt compile`.",
    ),
    Rule(
        "FH547",
        "state-undefined",
        "A step failed half-way, so the state is that of no step and must not be saved or continued.",
        "Load a checkpoint, or make a new trainer.",
    ),
    Rule(
        "FH548",
        "metrics-not-written",
        "A metrics file cannot be written, or tensorboardX is not installed.",
        "Free space, choose another path, or install the extra.",
    ),
    Rule(
        "FH549",
        "metrics-unreadable",
        "A metrics file is missing or has a line that is not a JSON record.",
        "Mend or remove the line named.",
    ),
    Rule(
        "FH580",
        "no-cuda",
        "The CUDA backend needs cupy, an NVIDIA driver and a GPU.",
        "`uv sync --extra cuda13` (or cuda12); without a GPU use the host backend.",
    ),
    Rule(
        "FH581",
        "device-memory",
        "The program's buffers do not fit in the device's free memory.",
        "Reduce the dims of the largest buffers.",
    ),
    Rule(
        "FH582",
        "launch-failed",
        "A launch cannot start, or failed on the device; the state is undefined.",
        "Run with the debug option, which names the launch.",
    ),
    Rule(
        "FH583",
        "capture-failed",
        "CUDA refused something in the middle of a capture, often an allocation or copy of another thread.",
        "Keep other use of the device out of the capture, and capture again.",
    ),
    Rule(
        "FH584",
        "busy-capturing",
        "Building, allocating, copying and waiting are refused while a step is captured.",
        "Do it before the first run.",
    ),
    Rule(
        "FH585",
        "not-built",
        "A step, entry or buffer is used that was not built or allocated.",
        "Compile the program again, then build and allocate before running.",
    ),
)
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

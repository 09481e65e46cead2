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
        "A file passes a limit on bytes, nesting, mistakes, or values after aliases are expanded.",
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
GRAPH = (
    Rule(
        "FH201",
        "unknown-name",
        "A name that nobody declared: a program, variant, dim, entity, kernel, block, producer or item.",
        "Use the nearest name offered, or declare it.",
    ),
    Rule(
        "FH202",
        "name-taken",
        "Two entries have one name. Slots, counters, params, buffers and groups share one "
        "namespace, which ignores case.",
        "Rename one of the two.",
    ),
    Rule(
        "FH203",
        "slot-unfed",
        "A slot has no source: no producer that a step lists, no launch that writes it, and "
        "it is not set by the host.",
        "Declare and list a producer, write the slot in a step, or give it another `source:`.",
    ),
    Rule(
        "FH204",
        "retired-used",
        "A retired entry is read, written or listed. Its place stays reserved so that "
        "checkpoints keep their layout.",
        "Remove the use, or retire the user too.",
    ),
    Rule(
        "FH205",
        "bad-reference",
        "Text that is no reference, a literal in the place of one, or a name that belongs to foxhunt.",
        "Write `name`, `name[i]` or `name[i:j]`.",
    ),
    Rule(
        "FH206",
        "bad-size",
        "A size that cannot be evaluated: unknown symbol, division by zero, or more than 64 bits.",
        "Mend the expression at the column named.",
    ),
    Rule(
        "FH207",
        "named-constants",
        "A number other than 1 in a shape, count, foreach bound, bind or repeat. Numbers get "
        "their names under `dims:`.",
        "Name the number under `dims:` (in a kernel under `consts:`) and write the name.",
    ),
    Rule(
        "FH208",
        "dims-circle",
        "Dims are defined by one another in a circle.",
        "Give one of them a value.",
    ),
    Rule(
        "FH209",
        "index-outside",
        "An index or slice reaches outside the first axis.",
        "Use an index within the axis.",
    ),
    Rule(
        "FH210",
        "shape-mismatch",
        "The shapes of a launch's arguments do not fit the kernel's shapes, or one another.",
        "Pass tensors of the shapes named, or choose another kernel.",
    ),
    Rule(
        "FH211",
        "unbound-symbol",
        "A symbol of a kernel gets no value from any shape, or `bind` names one that the "
        "kernel does not have.",
        "Add or mend `bind:`.",
    ),
    Rule(
        "FH212",
        "dtype-mismatch",
        "An argument has another element type than the parameter.",
        "Pass a tensor of that type.",
    ),
    Rule(
        "FH213",
        "arguments",
        "A launch or a use of a block gives an argument too many or too few.",
        "Give exactly the parameters of the kernel, or the formals of the block.",
    ),
    Rule(
        "FH214",
        "kind-mismatch",
        "A parameter of one kind (data, slot, counter, many) is given an entity of another.",
        "Pass an entity of the kind named.",
    ),
    Rule(
        "FH215",
        "adaptive-bounds",
        "A bound takes only a slot that is observed by a producer and has a floor; never a "
        "literal or a buffer.",
        "Make the limit a slot with `floor:` and a producer.",
    ),
    Rule(
        "FH216",
        "too-big",
        "Bytes, blocks or items pass a limit: 2^63 - 1 bytes, 2^31 - 1 blocks, or a million items a step.",
        "Lower a dim, or let each thread do more.",
    ),
    Rule(
        "FH217",
        "empty",
        "A tensor, an argument, a foreach or a grid has nothing in it. A launch of 0 blocks "
        "is an error on a GPU.",
        "Make every dim of it at least 1, or leave the launch out.",
    ),
    Rule(
        "FH218",
        "ambiguous-item",
        "Two items of one list have one name, or a step lists a producer twice.",
        "Add `as:`, or remove one.",
    ),
    Rule(
        "FH219",
        "block-circle",
        "A block uses itself, directly or through others, or blocks are nested too deep.",
        "Break the chain named.",
    ),
    Rule(
        "FH222",
        "slot-values",
        "Values that a slot of that source cannot have: a host slot needs `init`, a producer "
        "slot has `sentinel` only, a floor is not negative.",
        "Give the value that belongs to the source.",
    ),
    Rule(
        "FH223",
        "kernel-declaration",
        "A kernel's declaration contradicts itself: outputs, read-only kinds, names.",
        "Mend the kernel's entry.",
    ),
    Rule(
        "FH230",
        "positions-overlap",
        "Two entries claim the same position.",
        "Leave `index:` out of one; the next free place is found.",
    ),
    Rule(
        "FH231",
        "group-position",
        "A param's index breaks its group, which is one run from a 64-element boundary.",
        "Give `index:` only to the group's first param, a multiple of 64.",
    ),
    Rule(
        "FH240",
        "cycle",
        "Launches wait for each other in a circle: hazards, slot writers and `after` contradict.",
        "Remove one of the edges named.",
    ),
    Rule(
        "FH250",
        "wire-everything",
        "Something declared is used by nothing. A diagnostics listing is a use; kernels of "
        "the library are exempt.",
        "Use it, or remove it.",
    ),
    Rule(
        "FH251",
        "no-writer",
        "A range is read that nothing has written: a step buffer before its first write, or a "
        "resident buffer without `fill`.",
        "Write all of it earlier in the step, or make it persistent.",
    ),
    Rule(
        "FH252",
        "no-reset-policy",
        "A stateful entry says nothing about resets. Forgetting half of a state is how resets go wrong.",
        "Add `reset: never` or the name of a policy.",
    ),
    Rule(
        "FH253",
        "two-writers",
        "A slot has two producers, or an element of it is written by two launches.",
        "Keep one; every element of a slot has a sole writer.",
    ),
    Rule(
        "FH254",
        "no-host-in-graph",
        "A launch writes what the host sets or feeds, or a slot that only the applicator writes.",
        "Write another entry, or change its source or lifetime.",
    ),
    Rule(
        "FH255",
        "no-self-limiting-bound",
        "A bound's producer observes a range that was last clamped by that bound: it could only shrink.",
        "Observe the value before the clamp.",
    ),
    Rule(
        "FH256",
        "argument-overlap",
        "A written range overlaps another argument of its launch.",
        "Pass disjoint ranges, or declare one `update` parameter.",
    ),
    Rule(
        "FH257",
        "producer-outputs",
        "A producer writes exactly its outputs, as f32 observations that cover whole producer "
        "slots in order.",
        "Mend `out:`, the foreach, or the slot's count.",
    ),
    Rule(
        "FH258",
        "counter-advance",
        "A counter advances with a step that does not exist.",
        "Name a step, or remove `advance:`.",
    ),
    Rule(
        "FH259",
        "no-steps",
        "A program declares no step, so there is nothing to compile.",
        "Add `steps:`; a program is at least one step.",
    ),
    Rule(
        "FH260",
        "suppression",
        "A `suppress:` entry has nothing to suppress any more, or names a rule that cannot be suppressed.",
        "Remove the entry.",
    ),
    Rule(
        "FH290",
        "nothing-so-called",
        "`foxhunt explain` was asked for a name that no program has, or for a pair that never runs in "
        "one step.",
        "Use the nearest name offered; a launch may be named by the end of its qualified name.",
    ),
)
SCHEDULE = (
    Rule(
        "FH301",
        "cycle",
        "Launches wait for one another in a circle.",
        "Remove one of the `after:` entries, or reorder the items.",
    ),
    Rule(
        "FH302",
        "grid-limit",
        "A launch needs no block, or more blocks than a device launch can have.",
        "Change the kernel's `grid:` or the dims behind it.",
    ),
    Rule(
        "FH303",
        "argument-words",
        "A launch has more arguments than a CUDA kernel can take.",
        "Give a `many` parameter fewer rows, or put the ranges into one buffer.",
    ),
    Rule(
        "FH304",
        "arena-overflow",
        "The step buffers that live at one time pass the arena's limit.",
        "Lower a dim, or make the largest buffers named smaller.",
    ),
    Rule(
        "FH305",
        "rng-collision",
        "Two launches would draw the same random numbers: their names hash alike.",
        "Name one of them differently with `as:`.",
    ),
)
EMISSION = (
    Rule(
        "FH401",
        "template-missing",
        "A kernel has no body: its template, or one that it includes, does not exist.",
        "Write templates/kernels/<kernel>.cu.j2.",
    ),
    Rule(
        "FH402",
        "template-syntax",
        "A template is not valid jinja.",
        "Mend the line named.",
    ),
    Rule(
        "FH403",
        "template-value",
        "A template names what it is not given, or computes something impossible.",
        "Use what docs/architecture.md says a template is given.",
    ),
    Rule(
        "FH404",
        "template-assert",
        "An assert tag of a template does not hold.",
        "Mend the spec that the message speaks of.",
    ),
    Rule(
        "FH405",
        "template-unreadable",
        "A template cannot be read, is not UTF-8, or is huge.",
        "Save it as UTF-8 text.",
    ),
    Rule(
        "FH406",
        "signature-clash",
        "Two things in a kernel's generated signature have one name, or one that the prelude uses.",
        "Rename a parameter, workspace, const or shape symbol.",
    ),
    Rule(
        "FH407",
        "two-writers",
        "Two things would be written to one generated file, also where case is ignored.",
        "Rename one of them.",
    ),
    Rule(
        "FH408",
        "not-written",
        "A generated folder cannot be read or written, or a path would leave it.",
        "Check the folder's permissions and the disk; nothing was left half written.",
    ),
    Rule(
        "FH411",
        "libm-name",
        "A kernel calls the C or C++ library, whose bits differ between host and GPU.",
        "Use the prelude's functions: exp_ log_ tanh_ sin_ cos_ sqrt_ fma_ and so on.",
    ),
    Rule(
        "FH412",
        "intrinsic",
        "A kernel uses a compiler's own names: fast intrinsics round differently.",
        "Use the prelude's functions.",
    ),
    Rule(
        "FH413",
        "no-atomics",
        "A kernel uses atomics; a float sum must have one order and one writer an output.",
        "Write partials to fixed slots; the last block combines them (`block.last_block`).",
    ),
    Rule(
        "FH414",
        "bare-cast",
        "A kernel casts to an integer with a bare cast: undefined for floats out of range.",
        "Use to_i32 or to_i64, which saturate.",
    ),
    Rule(
        "FH415",
        "raw-limit",
        "A kernel takes a limit from a header instead of a bound or a named constant.",
        "Use a `bound` parameter or `consts`.",
    ),
    Rule(
        "FH416",
        "preprocessor",
        "A kernel includes, defines, allocates or jumps, which a body has no need of.",
        "The prelude is included already; name constants in `consts`.",
    ),
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
    Rule(
        "FH461",
        "no-compiler",
        "The host backend found no C++ compiler: neither $CXX nor g++, clang++, c++ or the ziglang wheel.",
        "Install g++ (apt install g++, dnf install gcc-c++, xcode-select --install) or pip install ziglang.",
    ),
    Rule(
        "FH462",
        "kernel-refused",
        "The C++ compiler refused a kernel; a debug build also refuses reads of what is only written.",
        "Mend the kernel's template where the compiler says.",
    ),
    Rule(
        "FH463",
        "cache-unwritable",
        "Compiled kernels cannot be kept in the cache folder.",
        "Set FOXHUNT_CACHE to a folder that you can write.",
    ),
    Rule(
        "FH464",
        "launch-missing",
        "The emitted folder lacks a launch that the program uses.",
        "Run `foxhunt compile` again.",
    ),
    Rule(
        "FH495",
        "output-not-written",
        "A drawing, page or trace cannot be written where it was asked for.",
        "Choose another path, or free space.",
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
        "FH536",
        "checkpoint-not-finite",
        "A warning: params or moments in a checkpoint hold NaN or inf, which no later step takes out again.",
        "Continue from an earlier checkpoint; seek the cause with `foxhunt verify`.",
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
        "FH550",
        "run-folder",
        "The folder of a run cannot be made.",
        "Name another with --out, or free the name.",
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
    Rule("FH560", "unknown-backend", "A backend that foxhunt does not have.", "Use auto, host or cuda."),
    Rule(
        "FH561",
        "host-memory",
        "The program's buffers do not fit in memory.",
        "Reduce the dims of the buffer named.",
    ),
    Rule(
        "FH562",
        "out-of-range",
        "A debug run: a kernel used an element outside of an argument, or an unaligned group of four.",
        "Mend the index in the kernel's template.",
    ),
    Rule(
        "FH563",
        "collective-misuse",
        "Threads of a block waited for each other in vain, or some had left before a reduction.",
        "Let all threads of the block, or of the warp, come to the same collective.",
    ),
    Rule(
        "FH564",
        "unwritten",
        "A debug run: a launch left elements unwritten of a range that it declares to write.",
        "Write every element, or declare `access: update`.",
    ),
    Rule(
        "FH565",
        "undeclared-write",
        "A debug run: a launch changed memory that it does not declare.",
        "Declare the range in the kernel's params, or mend the index.",
    ),
    Rule(
        "FH567",
        "reference-unloadable",
        "A Python file of a project's `reference/` does not run.",
        "Mend the line named.",
    ),
    Rule(
        "FH566",
        "library-unloadable",
        "The compiled program cannot be loaded, as after a change of the processor or a damaged cache.",
        "Run again: it was removed and is built anew.",
    ),
)
CONTRACT = (
    Rule(
        "FH601",
        "lock-damaged",
        "`layout.lock` is no lock: a malformed, repeated or missing line.",
        "Restore it from version control, or delete it to lay out anew.",
    ),
    Rule(
        "FH602",
        "lock-edited",
        "The lines of `layout.lock` do not have the layout hash that the file states.",
        "Restore it from version control; positions are changed in the specs.",
    ),
    Rule(
        "FH603",
        "layout-break",
        "The specs would move, reshape, retype, rename or delete something that checkpoints hold.",
        "Put it back, retire it instead, or accept the break with `--break NAME`.",
    ),
    Rule(
        "FH604",
        "lock-stale",
        "`layout.lock` does not say what the specs say: something was appended, moved, reshaped or retired.",
        "Compile again and commit the lock, or put the specs back.",
    ),
    Rule(
        "FH605",
        "generated-stale",
        "A generated file is missing, left over, edited by hand or older than specs and templates; or a "
        "foreign source lies in a folder that kernels include from.",
        "Compile again and commit the result; change specs or templates, never generated files.",
    ),
    Rule(
        "FH606",
        "program-gone",
        "A generated folder belongs to a program that has no specs any more.",
        "Delete the folder, or bring its specs back.",
    ),
    Rule(
        "FH607",
        "meaning-changed",
        "A warning: a producer, smoothing, reset policy, value, launch or template changed, so numbers mean "
        "something else from here on.",
        "Nothing, if it is meant; else put it back.",
    ),
    Rule(
        "FH608",
        "layout-changed",
        "A note: the layout grew, something was retired, or a break was allowed by name.",
        "Carry older checkpoints over with `foxhunt migrate`.",
    ),
    Rule(
        "FH610",
        "no-revision",
        "A git revision cannot be read: no git, no repository, or no such revision.",
        "Fetch the revision, or compare two folders.",
    ),
    Rule(
        "FH611",
        "not-carried",
        "A checkpoint holds values that have no place in the program's layout, or whose shape or dtype "
        "changed.",
        "Say `was:` for what was renamed, retire instead of deleting, or give values up with `--drop NAME`.",
    ),
    Rule(
        "FH612",
        "no-contract",
        "A folder to compare holds no compiled program, or a damaged one.",
        "Name a specs folder or a generated folder; compile again.",
    ),
    Rule(
        "FH613",
        "project-folder",
        "`foxhunt init` finds something in the folder already, or cannot write it.",
        "Name a new or empty folder that you can write.",
    ),
)

EVIDENCE = (
    Rule(
        "FH701",
        "order-dependent",
        "A launch leaves other bits when launches that may run in any order run in another one.",
        "Declare what the launch touches, so that the hazard is known.",
    ),
    Rule(
        "FH702",
        "form-dependent",
        "A launch leaves other bits fused than alone, or in a debug build than in a release build.",
        "Let no result depend on the grid, on other tasks of the launch, or on memory that nothing wrote.",
    ),
    Rule(
        "FH703",
        "replay-dependent",
        "Steps replayed as in training leave other bits than the same launches one by one.",
        "Read in each launch what may change; let no result depend on timing or on the device.",
    ),
    Rule(
        "FH704",
        "frozen-value",
        "A launch takes a slot, a counter or random numbers, and leaves the same bits whatever their value.",
        "Read the value in each launch, or do not pass it.",
    ),
    Rule(
        "FH705",
        "wrong-formula",
        "A kernel is further from its float64 reference than its tolerance.",
        "Mend the formula in the template, or the reference.",
    ),
    Rule(
        "FH706",
        "no-evidence",
        "A kernel has no examples, or its reference is not there, so nothing shows that it is right.",
        "Add `examples:` to its spec, and a function with `@reference` to a file of reference/.",
    ),
    Rule(
        "FH707",
        "wrong-slope",
        "What a kernel gives is not the slope that `gradient_of` declares: differences say otherwise.",
        "Mend the formula of the kernel and of its reference.",
    ),
    Rule(
        "FH708",
        "misdeclared-slope",
        "`gradient_of` names a kernel or a parameter that is not there, or one of the wrong direction.",
        "Use the names of the two kernels' parameters; see `gradient_of` in the spec reference.",
    ),
    Rule(
        "FH709",
        "not-finite",
        "A launch is the first of a run to leave NaN or inf. A warning: some kernels mean something by one.",
        "Look at what that launch reads; everything before it was finite.",
    ),
)

RANGES = (
    ("FH1", "YAML and models", SPEC),
    ("FH2", "Names, shapes, layout and graph", GRAPH),
    ("FH3", "Schedule", SCHEDULE),
    ("FH4", "Templates, emission and build", EMISSION),
    ("FH5", "Backends, runtime, data and checkpoints", RUNTIME),
    ("FH6", "Lock, fingerprint and check", CONTRACT),
    ("FH7", "Evidence", EVIDENCE),
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

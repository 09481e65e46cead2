"""What a person reads after a mistake in a spec: the place, the rule, the source line and the mend."""

import pytest
from conftest import KERNEL

from foxhunt.rules import RULES

HEAD = "program: p\n"


def place(found) -> str:
    return str(found.location).removeprefix("specs/p/program.yaml:")


def test_every_mistake_of_every_file_is_told_in_one_run(told):
    text = told(
        {
            "p/program.yaml": "program: p\ndims: {B: 4096, H1: 10 /2}\n",
            "p/isv.yaml": (
                "isv:\n"
                "  - {name: BOUND, flor: 1.0e-8, reset: fold}\n"
                "  - {name: LR, source: hots, init: yes}\n"
            ),
            "p/buffers.yaml": (
                "buffers:\n  - {name: h1, shape: [B, H1]}\n  - {name: asm, shape: B, lifetime: step}\n"
            ),
            "kernels/rms.yaml": KERNEL.replace("access: write", "acess: write"),
            "q/x.yaml": 'program: q\ndims: {B: 1, "B": 2}\n',
        }
    )
    assert (
        text
        == """\
specs/kernels/rms.yaml:6:7: error[FH110] unknown key `acess` in a kernel param
    6 |   y: {acess: write, dtype: f32, shape: [1]}
      |       ^
  help: did you mean `access`?
specs/p/buffers.yaml:2:5: error[FH111] a buffer `h1` has no `lifetime`
    2 |   - {name: h1, shape: [B, H1]}
      |     ^
  help: add `lifetime:`
specs/p/buffers.yaml:3:12: error[FH113] the name 'asm' is reserved in C++, CUDA, Python or the prelude
    3 |   - {name: asm, shape: B, lifetime: step}
      |            ^
  help: choose another name
specs/p/buffers.yaml:3:24: error[FH112] `shape` must be a list, not the text 'B'
    3 |   - {name: asm, shape: B, lifetime: step}
      |                        ^
  help: write it as [ … ]
specs/p/isv.yaml:2:19: error[FH110] unknown key `flor` in a slot
    2 |   - {name: BOUND, flor: 1.0e-8, reset: fold}
      |                   ^
  help: did you mean `floor`?
specs/p/isv.yaml:3:24: error[FH112] `source` cannot be the text 'hots'
    3 |   - {name: LR, source: hots, init: yes}
      |                        ^
  help: did you mean `host`?
specs/p/isv.yaml:3:36: error[FH112] `init` must be a number, not the text 'yes'
    3 |   - {name: LR, source: hots, init: yes}
      |                                    ^
specs/p/program.yaml:2:24: error[FH112] bad size: unexpected '/'
    2 | dims: {B: 4096, H1: 10 /2}
      |                        ^
  help: division is `//` (rounds down) or `ceil_div(a, b)` (rounds up)
specs/q/x.yaml:2:15: error[FH105] the key `B` stands twice in one mapping
    2 | dims: {B: 1, "B": 2}
      |               ^
  note: specs/q/x.yaml:2:8: first written here
  help: remove it here or in line 2"""
    )


@pytest.mark.parametrize(
    ("text", "at", "message", "help"),
    [
        ("stpes: []", "2:1", "unknown key `stpes` in a program", "did you mean `steps`?"),
        ("diagnostic: []", "2:1", "unknown key `diagnostic` in a program", "did you mean `diagnostics`?"),
        ("steps: [{name: t, item: []}]", "2:19", "unknown key `item` in a step", "did you mean `items`?"),
        (
            "steps: [{name: t, items: [{krenel: x}]}]",
            "2:28",
            "unknown key `krenel` in an item",
            "did you mean `kernel`?",
        ),
        (
            "steps: [{name: t, items: [{kernel: x, as_: y}]}]",
            "2:39",
            "unknown key `as_` in an item",
            "did you mean `as`?",
        ),
        (
            "steps: [{name: t, items: [{kernel: x, with_: {}}]}]",
            "2:39",
            "unknown key `with_` in an item",
            "did you mean `with`?",
        ),
        ("counters: [{name: t, at: 3}]", "2:22", "unknown key `at` in a counter", None),
        ("counters: [{name: t, written: 3}]", "2:22", "unknown key `written` in a counter", None),
        ("diagnostics: [{name: t, zzz: 3}]", "2:25", "unknown key `zzz` in a diagnostic", "its keys: `name`"),
        (
            "blocks: [{name: b, items: [], locals: [{name: x, shape: [B], lifetime: step, dtpye: f32}]}]",
            "2:78",
            "unknown key `dtpye` in a buffer",
            "did you mean `dtype`?",
        ),
        (
            "data: [{name: x, readr: y}]",
            "2:18",
            "unknown key `readr` in a data source",
            "did you mean `reader`?",
        ),
    ],
)
def test_a_misspelt_key_is_named_with_the_nearest_right_one(findings, text, at, message, help):
    found = next(d for d in findings({"p/program.yaml": HEAD + text}) if d.code == "FH110")
    assert (place(found), found.message) == (at, message)
    assert help is None or found.help == help


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("doc: 7", "2:6", "`doc` must be a text, not 7"),
        ("dims: [B]", "2:7", "`dims` must be a mapping, not a list"),
        ("dims: {B: 1.5}", "2:11", "`B` must be an integer or a text, not 1.5"),
        ("dims: {B: true}", "2:11", "`B` must be an integer or a text, not true"),
        ("dims: {B: -4}", "2:11", "bad size: the result -4 is negative"),
        ("dims: {B: [4]}", "2:11", "`B` must be an integer or a text, not a list"),
        ("dims: {B: A *}", "2:14", "bad size: an operand is missing"),
        ("dims: {B: 'A * )'}", "2:16", "bad size: an operand is missing before `)`"),
        ("isv: {name: X}", "2:6", "`isv` must be a list, not a mapping"),
        ("isv: [X]", "2:7", "an element of `isv` must be a mapping, not the text 'X'"),
        ("isv: [{name: X, index: -1}]", "2:24", "`index` must be at least 0, not -1"),
        ("isv: [{name: X, index: 1e3}]", "2:24", "`index` must be an integer, not 1000.0"),
        (
            "isv: [{name: X, index: 281474976710656}]",
            "2:24",
            "`index` must be below 281474976710656, not 281474976710656",
        ),
        (
            "params: [{name: x, shape: [1], group: g, separate: yes}]",
            "2:52",
            "`separate` must be true or false, not the text 'yes'",
        ),
        (
            "buffers: [{name: x, shape: [[1]], lifetime: step}]",
            "2:29",
            "an element of `shape` must be an integer or a text, not a list",
        ),
        (
            "buffers: [{name: x, shape: [B, ...n], lifetime: step}]",
            "2:28",
            "`...n` takes all of a shape and stands alone in it",
        ),
        ("buffers: [{name: x, shape: [....], lifetime: step}]", "2:29", "'....' must be `...` and a symbol"),
        (
            "buffers: [{name: x, shape: [B B], lifetime: step}]",
            "2:31",
            "bad size: unexpected `B` after the expression",
        ),
        ("precision: fp16", "2:12", "`precision` cannot be the text 'fp16'"),
        (
            "steps: [{name: t, items: [{kernel: x, args: {a: [b, 3]}}]}]",
            "2:53",
            "an element of `a` must be a text, not 3",
        ),
        ("steps: [{name: t, items: [~]}]", "2:27", "an element of `items` must be a mapping, not nothing"),
        (
            "data: [{name: x, reader: y, options: {f: .nan}}]",
            "2:42",
            "`f` must be an integer, a finite number or a text, not nan",
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(findings, text, at, message):
    (found,) = findings({"p/program.yaml": HEAD + text})
    assert found.code == "FH112"
    assert (place(found), found.message) == (at, message)


def test_a_number_for_an_argument_is_a_frozen_scalar(findings):
    (found,) = findings({"p/program.yaml": HEAD + "steps: [{name: t, items: [{kernel: x, args: {a: 3}}]}]"})
    message = "the literal 3 stands where `a` takes a slot, a counter or a tensor"
    assert (found.code, place(found), found.message) == ("FH215", "2:49", message)


def test_yes_and_no_are_no_truth_values(findings):
    text = "params: [{name: x, shape: [1], group: g, separate: no}]"
    (found,) = findings({"p/program.yaml": HEAD + text})
    assert found.help == "in YAML 1.2 only `true` and `false` are truth values"


@pytest.mark.parametrize("key", ["init", "sentinel", "floor"])
@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        (".nan", "FH112", "nan is not a finite number"),
        (".inf", "FH112", "inf is not a finite number"),
        ("-.inf", "FH112", "-inf is not a finite number"),
        ("1e400", "FH107", "outside the range of a float64"),
        ("true", "FH112", "must be a number, not true"),
        ("'1e-3'", "FH112", "must be a number, not the text '1e-3'"),
        ("0.99999999", "FH112", "0.99999999 becomes 1 in float32"),
        ("1.00000001", "FH112", "becomes 1 in float32"),
        ("1e39", "FH112", "1e+39 is outside the range of float32"),
        ("1e-50", "FH112", "1e-50 becomes 0 in float32"),
    ],
)
def test_numbers_that_float32_cannot_hold_are_refused_for_slots(findings, key, text, code, part):
    (found,) = findings({"p/program.yaml": f"{HEAD}isv:\n  - {{name: GAMMA, source: host, {key}: {text}}}"})
    assert (found.code, found.location.line) == (code, 3)
    assert part in found.message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (".nan", "nan is not a finite number"),
        ("-.inf", "-inf is not a finite number"),
        ("true", "must be a number or an integer, not true"),
        ("0.99999999", "becomes 1 in float32"),
        ("3.5e38", "is outside the range of float32"),
    ],
)
def test_numbers_that_float32_cannot_hold_are_refused_for_kernel_constants(findings, text, part):
    (found,) = findings({"kernels/rms.yaml": f"{KERNEL}consts: {{v_min: {text}}}"})
    assert (found.code, str(found.location)) == ("FH112", "specs/kernels/rms.yaml:11:17")
    assert part in found.message


@pytest.mark.parametrize("text", ["1e-40", "-0.0", "1.0", "0.9999999", "3.4028235e38", "1e-45", "3", "-7.5"])
def test_numbers_that_float32_holds_are_allowed(findings, text):
    assert findings({"p/program.yaml": f"{HEAD}isv:\n  - {{name: X, source: host, init: {text}}}"}) == ()


def test_examples_may_hold_what_tests_need(findings):
    assert findings({"kernels/rms.yaml": KERNEL.replace("x: [3.5]", "x: [.nan, .inf, 1e-45]")}) == ()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("asm", "is reserved"),
        ("new", "is reserved"),
        ("float", "is reserved"),
        ("lambda", "is reserved"),
        ("threadIdx", "is reserved"),
        ("'NULL'", "is reserved"),
        ("f32", "is reserved"),
        ("__x", "is not a letter followed by"),
        ("x__y", "has `__`, which C++ keeps to itself"),
        ("FH_DEVICE", "starts as the prelude's macros do"),
        ("a.b", "is not a letter followed by"),
        ("a-b", "is not a letter followed by"),
        ("a b", "is not a letter followed by"),
        ("9lives", "is not a letter followed by"),
        ("_x", "is not a letter followed by"),
        ("''", "is not a letter followed by"),
        ("'1'", "is not a letter followed by"),
        ("\u00b5", "has a character that is not ASCII"),
        ("\u03bc", "has a character that is not ASCII"),
        ("x\u0661", "has a character that is not ASCII"),
        ("x" * 200, "is longer than 64 characters"),
        ("'x;y'", "is not a letter followed by"),
        ("'x}'", "is not a letter followed by"),
        ("'x\"'", "is not a letter followed by"),
        ('"x\\ny"', "is not a letter followed by"),
        ("'x*/'", "is not a letter followed by"),
        ('"x\\\\\\n"', "is not a letter followed by"),
        ("'x??/'", "is not a letter followed by"),
        ("'#include <x>'", "is not a letter followed by"),
        ("'{{ x }}'", "is not a letter followed by"),
    ],
)
@pytest.mark.parametrize(
    "where",
    [
        "isv: [{name: NAME}]",
        "buffers: [{name: NAME, shape: [1], lifetime: step}]",
        "blocks: [{name: b, formals: [NAME], items: []}]",
        "dims: {? NAME : 4}",
        "steps: [{name: s, items: [{kernel: k, as: NAME}]}]",
        "counters: [{name: c, reset: NAME}]",
    ],
)
def test_names_that_some_compiler_would_misread_are_refused(findings, where, name, reason):
    if where.startswith("dims") and name == "''":
        name = "' '"
    (found,) = findings({"p/program.yaml": HEAD + where.replace("NAME", name)})
    hidden_from_keys = where.startswith("dims") and "\\n" in name
    assert found.code == ("FH106" if hidden_from_keys else "FH113")
    assert found.message.isprintable()
    assert len(found.message) < 160
    assert hidden_from_keys or reason in found.message


@pytest.mark.parametrize("name", ["x", "B", "H1", "aux_w1", "adam_t", "x" * 64, "Asm", "new_", "i", "n"])
def test_ordinary_names_are_allowed(findings, name):
    assert findings({"p/program.yaml": f"{HEAD}isv: [{{name: {name}}}]\ndims: {{{name}: 1}}"}) == ()


HOSTILE = """; } " */ /* // \\ ??/ #include <x> {{ x }} {% raw %} `code` $(id) %s {0} \\u0022 é µ"""


@pytest.mark.parametrize("key", ["doc", "retired"])
def test_texts_are_data_whatever_they_hold(write, key):
    from foxhunt.spec.load import load_specs

    quoted = HOSTILE.replace("'", "''")
    specs = load_specs(write({"p/program.yaml": f"{HEAD}isv:\n  - name: X\n    {key}: '{quoted}'\n"}))
    assert getattr(specs.programs["p"].isv[0], key) == HOSTILE


def test_hostile_values_are_shown_on_one_short_line(findings):
    text = f'precision: "\\u001b[2J\\n{"x" * 5000}"\nuses: 3\n"\\u0041{"y" * 500}": 1'
    found = findings({"p/program.yaml": HEAD + text})
    assert len(found) == 3
    for finding in found:
        assert finding.message.isprintable()
        assert len(finding.message) < 200
        assert len(finding.help) < 400


ONE_OF = "an item is exactly one of `kernel`, `use` and `producers`; this one is "


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("{}", ONE_OF + "none of them"),
        ("{as: x}", ONE_OF + "none of them"),
        ("{kernel: k, use: b}", ONE_OF + "`kernel` and `use`"),
        ("{use: b, producers: [p]}", ONE_OF + "`use` and `producers`"),
        ("{use: b, args: {}}", "an item with `use` takes no `args`"),
        ("{use: b, bind: {n: 1}}", "an item with `use` takes no `bind`"),
        ("{kernel: k, with: {}}", "an item with `kernel` takes no `with`"),
        ("{producers: [p], as: x}", "an item with `producers` takes no `as`"),
    ],
)
def test_an_item_is_exactly_one_thing(findings, item, message):
    (found,) = findings({"p/program.yaml": f"{HEAD}steps:\n  - {{name: t, items: [{item}]}}"})
    assert (found.code, place(found), found.message) == ("FH114", "3:23", message)


@pytest.mark.parametrize(
    ("old", "new", "at", "message"),
    [
        ("kind: statistic", "kind: statstic", "2:7", "`kind` cannot be the text 'statstic'"),
        ("degenerate: zero", "degenerate: one", "7:13", "`degenerate` cannot be the text 'one'"),
        ("dtype: f32, shape: [1]", "dtype: f64, shape: [1]", "6:29", "`dtype` cannot be the text 'f64'"),
        ("rtol: 1.0e-6", "rtol: -1", "10:19", "`rtol` must be at least 0, not -1"),
        ("rtol: 1.0e-6", "rtol: .inf", "10:19", "`rtol` must be a finite number, not inf"),
        ("degenerate: zero", "block: 100", "7:8", "`block` must be a multiple of 32, not 100"),
        ("degenerate: zero", "block: 2048", "7:8", "`block` must be at most 1024, not 2048"),
        ("degenerate: zero", "block: 0", "7:8", "`block` must be at least 32, not 0"),
        (
            "degenerate: zero",
            "grid: ceil_div(n, 0x10)",
            "7:20",
            "bad size: expected `)` for `ceil_div`, found `x10`",
        ),
        ("degenerate: zero", "passes: 0", "7:9", "`passes` must be at least 1, not 0"),
        ("degenerate: zero", "workspace: {w: {}}", "7:16", "a workspace has no `shape`"),
    ],
)
def test_mistakes_in_a_kernel(findings, old, new, at, message):
    (found,) = findings({"kernels/rms.yaml": KERNEL.replace(old, new)})
    assert (str(found.location), found.message) == (f"specs/kernels/rms.yaml:{at}", message)


def test_a_number_already_refused_is_not_refused_again(findings):
    (found,) = findings({"p/program.yaml": HEAD + "isv: [{name: X, index: 010}]"})
    assert found.code == "FH107"


def test_every_code_has_a_rule():
    import re
    from pathlib import Path

    import foxhunt.spec

    used = set()
    for path in Path(foxhunt.spec.__file__).parent.glob("*.py"):
        used |= set(re.findall(r"FH1\d\d", path.read_text()))
    assert used == {code for code in RULES if code.startswith("FH1")}


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("a: 1\n" * 5000, "more than 50 mistakes; the rest is not read"),
        ("isv: [" + "1," * 5000 + "]", "4600 more mistakes are not shown"),
        ("".join(f"k{n}: 1\n" for n in range(5000)), "4600 more mistakes are not shown"),
    ],
)
def test_a_file_full_of_mistakes_is_not_told_to_its_end(findings, text, last):
    found = findings({"p/program.yaml": HEAD + text})
    assert len(found) <= 401
    assert last in {d.message for d in found}


def test_megabytes_of_one_scalar_end_quickly(findings):
    import time

    start = time.perf_counter()
    for scalar in ("1" + "_" * 2_000_000 + "x", "9" * 2_000_000, "1." + "9" * 2_000_000, "B+" * 1_000_000):
        findings({"p/program.yaml": f"{HEAD}dims: {{B: {scalar}}}"})
    assert time.perf_counter() - start < 60

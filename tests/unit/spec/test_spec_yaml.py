"""What YAML means here: cases 26 to 28 of the design, and files that are no sound YAML at all."""

import math
import time

import pytest
import yaml as pyyaml

from foxhunt.diagnostics import Location
from foxhunt.spec.positions import locate
from foxhunt.spec.yaml import MAX_BYTES, MAX_DEPTH, parse, parse_bytes


def value(text: str):
    root, findings = parse(f"x: {text}", "f.yaml")
    assert findings == ()
    return root["x"]


def only(text: str | bytes):
    """The one finding about a text, as (code, line:col, message)."""
    data = text if isinstance(text, bytes) else text.encode()
    _, _, findings = parse_bytes(data, "f.yaml")
    (found,) = findings
    assert found.message.isprintable()
    assert len(found.message) < 200
    return found.code, str(found.location).removeprefix("f.yaml").lstrip(":"), found.message


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("1e-3", 1e-3),
        ("1.0e-3", 1e-3),
        ("1.e+3", 1000.0),
        ("1E5", 1e5),
        (".5", 0.5),
        ("-0.0", -0.0),
        ("3.", 3.0),
        ("+12", 12),
        ("-7", -7),
        ("0", 0),
        ("0x1F", 31),
        ("0o17", 15),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("true", True),
        ("False", False),
        ("on", "on"),
        ("no", "no"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("y", "y"),
        ("12:30", "12:30"),
        ("12:30:45", "12:30:45"),
        ("2026-01-01", "2026-01-01"),
        ("1e", "1e"),
        (".", "."),
        ("-", "-"),
        ("...n", "...n"),
        ("0x", "0x"),
        ("'010'", "010"),
        ('"1e-3"', "1e-3"),
        ("'true'", "true"),
        ("=", "="),
        ("B * 2", "B * 2"),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("[1, 1.0, '1']", (1, 1.0, "1")),
        ("{n: 1, y: 2}", {"n": 1, "y": 2}),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(text, meaning):
    if text.startswith("-") and len(text) == 1:
        text = "'-'"
    found = value(text)
    assert found == meaning
    assert type(found) is type(meaning) or isinstance(found, type(meaning))
    if isinstance(meaning, float):
        assert math.copysign(1, found) == math.copysign(1, meaning)


def test_nan_is_a_number():
    assert math.isnan(value(".nan"))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("010", "`010` is octal in some readers"),
        ("-010", "`-010` is octal"),
        ("1_000", "`1_000` is a number in some readers"),
        ("1_0.5", "`1_0.5` is a number in some readers"),
        ("0b101", "`0b101` is a number in some readers"),
        ("1e400", "`1e400` is outside the range of a float64"),
        ("-1e400", "`-1e400` is outside"),
        ("1e-400", "`1e-400` is outside"),
        ("9223372036854775808", "an integer of 19 digits does not fit in 64 bits"),
        ("9" * 5000, "an integer of 5000 digits does not fit in 64 bits"),
        ("-" + "9" * 5000, "an integer of 5000 digits does not fit in 64 bits"),
        ("0x" + "f" * 5000, "digits does not fit in 64 bits"),
    ],
)
def test_numbers_that_readers_disagree_on_are_refused(text, part):
    code, at, message = only(f"x: {text}")
    assert (code, at) == ("FH107", "1:4")
    assert part in message


@pytest.mark.parametrize(
    ("text", "second", "first"),
    [
        ("a: 1\nb: 2\na: 3", "3:1", "1:1"),
        ('a: 1\n"a": 2', "2:2", "1:1"),
        ("{a: 1, 'a': 2}", "1:9", "1:2"),
        ("x:\n  - {y: 1, z: 2, y: 1}", "2:18", "2:6"),
        ("a: {b: 1}\na: [1]", "2:1", "1:1"),
    ],
)
def test_a_key_twice_is_refused_with_both_places(text, second, first):
    root, (found,) = parse(text, "f.yaml")
    assert found.code == "FH105"
    assert str(found.location) == f"f.yaml:{second}"
    assert str(found.related[0][0]) == f"f.yaml:{first}"
    assert root is not None, "the rest of the file is still read, for its other mistakes"


def test_merge_keys_are_refused_once_and_twice():
    _, found = parse("<<: {a: 1}\n<<: {b: 2}", "f.yaml")
    assert [(d.code, str(d.location)) for d in found] == [("FH106", "f.yaml:1:1"), ("FH105", "f.yaml:2:1")]


def _nested_merges(depth: int) -> str:
    lines = ["l0: &l0 {a: 1}"] + [f"l{n}: &l{n} {{<<: [*l{n - 1}, *l{n - 1}]}}" for n in range(1, depth)]
    return "\n".join(lines)


def _billion_laughs() -> str:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 10)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 3000 + "]" * 3000, "FH104"),
        ("x: " + "[" * 200_000, "FH104"),
        ("- " * 3000, "FH104"),
        ("{a: " * 3000, "FH104"),
        ("\n".join("  " * n + "a:" for n in range(1500)), "FH104"),
        ("&a [*a]", "FH106"),
        ("x: &a [1, {y: *a}]", "FH106"),
        ("x: &a {y: &b [*a]}", "FH106"),
        ("x: *nowhere", "FH106"),
        ("? " * 3000, "FH106"),
        (_billion_laughs(), "FH104"),
    ],
)
def test_hostile_nesting_ends_quickly_in_one_line(text, code):
    start = time.perf_counter()
    assert only(text)[0] == code
    assert time.perf_counter() - start < 60


def test_26_nested_merges_end_quickly():
    start = time.perf_counter()
    _, found = parse(_nested_merges(26), "f.yaml")
    assert {d.code for d in found} == {"FH106", "FH104"}
    assert all(d.message.isprintable() for d in found)
    assert time.perf_counter() - start < 60


def test_nesting_up_to_the_limit_is_read():
    inside = MAX_DEPTH - 1
    _, findings = parse("x: " + "[" * inside + "]" * inside, "f.yaml")
    assert findings == ()
    assert only("x: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH)[0] == "FH104"


def test_an_alias_is_the_value_it_names():
    root, findings = parse("a: &s [B, 2]\nb: *s\nc: &n 7\nd: *n", "f.yaml")
    assert findings == ()
    assert root == {"a": ("B", 2), "b": ("B", 2), "c": 7, "d": 7}


@pytest.mark.parametrize(
    ("text", "code", "at", "part"),
    [
        (b"", "FH108", "", "the file is empty"),
        (b"\xef\xbb\xbf", "FH108", "", "the file is empty"),
        (b"# only a comment\n", "FH108", "", "the file is empty"),
        (b"---\n", "FH108", "", "the file is empty"),
        (b"null", "FH108", "", "the file is empty"),
        (b"just text", "FH112", "1:1", "not the text 'just text'"),
        (b"- a\n- b", "FH112", "1:1", "not a list"),
        (b"a: 1\nb: \xff", "FH103", "2:4", "0xff is not UTF-8"),
        (b"a: caf\xe9", "FH103", "1:7", "0xe9 is not UTF-8"),
        (b"\xff\xfea\x00", "FH103", "", "UTF-16"),
        (b"\xfe\xff\x00a", "FH103", "", "UTF-16"),
        (b"a: 1\nb: \x00", "FH103", "2:4", "U+0000"),
        (b"a: \x1b[31m", "FH103", "1:4", "U+001B"),
        ("a: x\u202ey".encode(), "FH103", "1:5", "U+202E"),
        ("a: x\u2028y".encode(), "FH103", "1:5", "U+2028"),
        ("a: x\ufeffy".encode(), "FH103", "1:5", "U+FEFF"),
        (b"a: x\xc2\x85y", "FH103", "1:5", "U+0085"),
        (b"a: 1\n---\nb: 2", "FH106", "2:1", "a second document"),
        (b"a: 1\n...\n---\nb: 2", "FH106", "3:1", "a second document"),
        (b"%YAML 1.1\n---\na: 1", "FH106", "1:1", "YAML 1.2"),
        (b"a:\n\tb: 1", "FH102", "2:1", "cannot start any token"),
        (b"a: [1, 2", "FH102", "1:9", "did not find expected"),
        (b"a: 'x\nb: 1\n", "FH102", "2:5", "quoted scalar"),
        (b"a: b: c", "FH102", "1:5", "mapping values are not allowed"),
        (b"a: @x", "FH102", "1:4", "cannot start any token"),
        (b"a: 1\n b: 2", "FH102", "2:3", "mapping values are not allowed"),
        (b"a: !!python/object:os.system x", "FH106", "1:4", "tags"),
        (b"a: !x {b: 1}", "FH106", "1:4", "tags"),
        (b"1: x", "FH106", "1:1", "`1` cannot be a key"),
        (b"true: x", "FH106", "1:1", "`true` cannot be a key"),
        (b"~: x", "FH106", "1:1", "`~` cannot be a key"),
        (b"[a]: x", "FH106", "1:1", "a collection cannot be a key"),
        (b"a: {{ x }}", "FH106", "1:5", "a collection cannot be a key"),
        (b"a: &k x\n*k : y", "FH106", "2:1", "an alias cannot be a key"),
        (b'"": x', "FH106", "1:1", "printable"),
        (b'"a\\0b": x', "FH106", "1:1", "printable"),
        (b"a:\nb: 1", "FH112", "1:1", "`a` has no value"),
        (b"a: null", "FH112", "1:1", "`a` has no value"),
        (b"x" * (MAX_BYTES + 1), "FH104", "", "larger than 4 MiB"),
    ],
)
def test_unsound_files_get_one_clear_finding(text, code, at, part):
    found = only(text)
    assert found[:2] == (code, at)
    assert part in found[2]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_and_byte_order_mark_change_nothing(end, start, last):
    plain = "a: 1\nb:\n  - {c: x, d: µ, e: 2}\nf: |\n  two\n  lines\n"
    bare, root, findings = parse_bytes(
        (start + (plain if last else plain[:-1])).replace("\n", end).encode(), "f.yaml"
    )
    assert findings == ()
    assert root["b"] == ({"c": "x", "d": "µ", "e": 2},)
    assert root["f"].rstrip("\n") == "two\nlines"
    assert locate(root, ("b", 0, "e")) == Location("f.yaml", 3, 21)
    assert bare.rstrip("\n") == plain.rstrip("\n")


def test_positions_count_characters_from_one():
    root, _ = parse("ä: {'é': \"ü\", k: [µ, 10]}\nz:\n  y: 3", "f.yaml")
    assert locate(root, ()) == Location("f.yaml", 1, 1)
    assert locate(root, ("ä",)) == Location("f.yaml", 1, 4)
    assert locate(root, ("ä", "é")) == Location("f.yaml", 1, 11), "the text inside its quotes"
    assert locate(root, ("ä", "é"), key=True) == Location("f.yaml", 1, 6)
    assert locate(root, ("ä", "k", 1)) == Location("f.yaml", 1, 22)
    assert locate(root, ("z", "y")) == Location("f.yaml", 3, 6)
    assert locate(root, ("z", "nothing", "here")) == Location("f.yaml", 3, 3)


def test_the_parser_in_pure_python_reads_the_same(monkeypatch):
    text = "a: [1, 'x', {b: &k 1e-3, c: *k}]\nd: |\n  text\n"
    fast = parse(text, "f.yaml")
    monkeypatch.delattr(pyyaml, "CSafeLoader")
    assert parse(text, "f.yaml") == fast
    assert parse("[" * 3000, "f.yaml")[1][0].code == "FH104"


def test_what_was_read_cannot_be_changed():
    root, _ = parse("a: {b: [1]}", "f.yaml")
    for change in (
        lambda: root.update(a=1),
        lambda: root["a"].__setitem__("b", 2),
        lambda: root.pop("a"),
        lambda: root["a"]["b"].append(2),
    ):
        with pytest.raises((TypeError, AttributeError)):
            change()

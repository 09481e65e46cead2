"""The lock file: round trip, damage, and what has changed since."""

import pytest
from ir_builders import build

from foxhunt.contract.fingerprint import fingerprint
from foxhunt.contract.lock import check_allowed, compare, parse_lock, render_lock
from foxhunt.diagnostics import DriftError, SpecError

BASE = """
program: p
dims: {K: 3, N: 2}
isv:
  - {name: OLD, index: 7, retired: "always 1 # really"}
  - {name: LR, source: host, init: 3.0e-4, reset: never}
  - {name: UTIL, count: K, reset: fold}
params:
  - {name: w, shape: [K, N], group: g, reset: never}
  - {name: v, shape: [N], group: f, reset: never}
buffers:
  - {name: x, shape: [N, K], lifetime: input}
  - {name: kept, shape: [N], lifetime: persistent, reset: fold}
producers: [{name: util, kernel: util, args: {x: x}, out: {y: UTIL}}]
steps: [{name: train, items: [{producers: [util]}]}]
"""


def lock_text(text=BASE):
    laid_out = build(text).laid_out
    return render_lock(laid_out, fingerprint(laid_out, {}))


def changes(old, new):
    lock = parse_lock(lock_text(old))
    return [(c.kind, str(c)) for c in compare(lock, build(new, lock=lock).laid_out)]


def test_the_lock_comes_back_as_it_was_written():
    laid_out = build(BASE).laid_out
    lock = parse_lock(lock_text())
    assert lock.entries == laid_out.entries
    assert compare(lock, laid_out) == ()
    stated = fingerprint(laid_out, {})
    assert (lock.layout, lock.semantics) == (stated.layout, stated.semantics)


def test_line_endings_and_a_byte_order_mark_do_not_matter():
    text = lock_text()
    assert parse_lock("\ufeff" + text.replace("\n", "\r\n")) == parse_lock(text)


def test_the_lock_can_be_read_by_a_person():
    assert lock_text().splitlines()[5:] == [
        "counter 0 foxhunt.step i64 [1]",
        "isv 7 OLD f32 [1] # retired: always 1 # really",
        "isv 8 LR f32 [1]",
        "isv 9 UTIL f32 [3]",
        "moment 0 w.m f32 [3,2]",
        "moment 0 w.v f32 [3,2]",
        "moment 64 v.m f32 [2]",
        "moment 64 v.v f32 [2]",
        "param 0 w f32 [3,2]",
        "param 64 v f32 [2]",
        "state 0 kept f32 [2]",
        "wiener 0 UTIL f32 [3,3]",
    ]


NEW_SLOT = BASE.replace("params:", "  - {name: NEW, source: host, init: 0.0, reset: never}\nparams:")
RETIRED = (
    BASE.replace("{name: UTIL, count: K, reset: fold}", "{name: UTIL, count: K, retired: gone}")
    .replace("producers: [{name: util", "producers: [{name: util, retired: gone")
    .replace("items: [{producers: [util]}]", "items: []")
)
CASES = [
    ("append", NEW_SLOT, [("append", "append isv 12 NEW f32 [1]")]),
    ("retire", RETIRED,
     [("retire", "retire isv 9 UTIL f32 [3]"), ("retire", "retire wiener 0 UTIL f32 [3,3]")]),
    ("move", BASE.replace("name: LR,", "name: LR, index: 3,"),
     [("move", "move isv 8 LR f32 [1] → isv 3 LR f32 [1]")]),
    ("reshape", BASE.replace("kept, shape: [N]", "kept, shape: [K]"),
     [("reshape", "reshape state 0 kept f32 [2] → state 0 kept f32 [3]")]),
    ("retype", BASE.replace("kept, shape", "kept, dtype: i64, shape"),
     [("retype", "retype state 0 kept f32 [2] → state 0 kept i64 [2]")]),
    ("rename", BASE.replace("name: LR,", "name: RATE, was: LR,"),
     [("rename", "rename isv 8 LR f32 [1] → isv 8 RATE f32 [1]")]),
    ("rename a param", BASE.replace("name: v,", "name: bias, was: v,"),
     [("rename", "rename moment 64 v.m f32 [2] → moment 64 bias.m f32 [2]"),
      ("rename", "rename moment 64 v.v f32 [2] → moment 64 bias.v f32 [2]"),
      ("rename", "rename param 64 v f32 [2] → param 64 bias f32 [2]")]),
    ("delete", BASE.replace("  - {name: kept, shape: [N], lifetime: persistent, reset: fold}\n", ""),
     [("delete", "delete state 0 kept f32 [2]")]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "expected"), CASES, ids=[c[0] for c in CASES])
def test_each_change_is_classified(what, text, expected):
    assert changes(BASE, text) == expected


@pytest.mark.parametrize(("what", "text", "expected"), CASES, ids=[c[0] for c in CASES])
def test_only_appends_and_retirements_pass_without_a_break(what, text, expected):
    lock = parse_lock(lock_text())
    found = compare(lock, build(text, lock=lock).laid_out)
    if what in ("append", "retire"):
        check_allowed(found)
        return
    with pytest.raises(DriftError) as caught:
        check_allowed(found)
    assert caught.value.exit_code == 1
    assert [d.code for d in caught.value.diagnostics] == ["FH603"] * len(expected)
    name = caught.value.diagnostics[0].help.partition("--break ")[2].rstrip("`")
    check_allowed(found, {name})


def refused(text):
    lock = parse_lock(lock_text(), "generated/p/layout.lock")
    with pytest.raises(DriftError) as caught:
        check_allowed(compare(lock, build(text, lock=lock).laid_out))
    return caught.value.diagnostics


def test_what_is_gone_is_shown_in_the_lock():
    (found,) = refused(BASE.replace("  - {name: kept, shape: [N], lifetime: persistent, reset: fold}\n", ""))
    assert (
        str(found.location)
        == f"generated/p/layout.lock:{lock_text().splitlines().index('state 0 kept f32 [2]') + 1}"
    )
    assert "was:" not in found.help


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("name: LR,", "name: RATE,", "or is RATE its new name? then write `was: LR`"),
        ("name: v,", "name: bias,", "or is bias its new name? then write `was: v`"),
        ("name: kept,", "name: held,", "or is held its new name? then write `was: kept`"),
        ("name: kept, shape: [N]", "name: held, shape: [K]", ""),
        (
            "  - {name: kept, shape: [N],",
            "  - {name: a, shape: [N], lifetime: persistent, reset: fold}\n  - {name: b, shape: [N],",
            "",
        ),
    ],
)
def test_a_new_name_is_offered_where_one_entry_alone_is_alike(old, new, hint):
    (found,) = refused(BASE.replace(old, new))
    assert found.help.endswith(hint or "`")
    assert found.location.line


def test_a_retired_slot_that_lives_again_is_no_break():
    assert [kind for kind, _ in changes(RETIRED, BASE)] == ["append", "append"]


def test_a_second_compile_after_an_append_changes_nothing():
    lock = parse_lock(lock_text(NEW_SLOT))
    assert compare(lock, build(NEW_SLOT, lock=lock).laid_out) == ()


DAMAGE = [
    ("empty", "", "hash"),
    ("binary", "\0\1\2", "no line of a lock"),
    ("conflict", "<<<<<<< HEAD\n", "no line of a lock"),
    ("unknown kind", "slot 3 A f32 [1]\n", "unknown kind slot"),
    ("unknown dtype", "isv 3 A f16 [1]\n", "unknown dtype f16"),
    ("a huge position", "isv 99999999999999999999999 A f32 [1]\n", "no line of a lock"),
    ("a negative position", "isv -3 A f32 [1]\n", "no line of a lock"),
    ("a long name", f"isv 3 {'A' * 5000} f32 [1]\n", "no line of a lock"),
    ("a name twice", "isv 3 A f32 [1]\nisv 4 A f32 [1]\n", "stands twice, first in line 1"),
    ("a triple of two", "wiener 0 A f32 [1,2]\n", "multiple of 3"),
    ("a triple between triples", "wiener 4 A f32 [1,3]\n", "multiple of 3"),
    ("no hashes", "isv 3 A f32 [1]\n", "hash"),
]


@pytest.mark.parametrize(("what", "text", "message"), DAMAGE, ids=[d[0] for d in DAMAGE])
def test_a_damaged_lock_is_refused_by_line(what, text, message):
    with pytest.raises(SpecError) as caught:
        parse_lock(text, "generated/p/layout.lock")
    (found,) = caught.value.diagnostics
    assert found.code == "FH601"
    assert message in found.message
    assert found.location.path == "generated/p/layout.lock"


def test_a_lock_cut_anywhere_is_refused_or_whole():
    text = lock_text()
    for cut in range(len(text) - 1):
        with pytest.raises((SpecError, DriftError)):
            parse_lock(text[:cut])


def test_a_line_changed_by_hand_is_drift():
    with pytest.raises(DriftError) as caught:
        parse_lock(lock_text().replace("isv 8 LR", "isv 9 LR"))
    assert caught.value.diagnostics[0].code == "FH602"

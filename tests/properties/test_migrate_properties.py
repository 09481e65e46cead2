"""Migrations between arbitrary layouts: nothing moves to another's place, nothing is lost in silence."""

from hypothesis import given
from hypothesis import strategies as st

from foxhunt.contract.diff import Contract, diff_programs
from foxhunt.contract.lock import compare_entries
from foxhunt.contract.migrate import CARRIED, plan_migration, refusals
from foxhunt.diagnostics import Location
from foxhunt.ir.layout import Lock
from foxhunt.ir.types import LayoutEntry

NAMES = ("A", "B", "C", "D", "E")
KINDS = ("isv", "wiener", "param", "state", "counter")


@st.composite
def layouts(draw):
    """Entries of one layout: each (kind, name) at most once, a name either a slot, a tensor or a counter."""
    entries = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        kind = draw(st.sampled_from(KINDS))
        count, position = draw(st.integers(1, 3)), draw(st.integers(0, 9))
        was = draw(st.sampled_from(("", *(f"was: {n}" for n in NAMES if n != name))))
        dtype = (
            draw(st.sampled_from(("f32", "i32")))
            if kind == "state"
            else "i64"
            if kind == "counter"
            else "f32"
        )
        if kind in ("isv", "wiener"):
            entries.append(LayoutEntry("isv", position, name, "f32", (count,), was))
            if kind == "wiener":
                entries.append(LayoutEntry("wiener", 3 * position, name, "f32", (count, 3), was))
        else:
            entries.append(LayoutEntry(kind, position, name, dtype, (count,), was))
    return tuple(entries)


@given(layouts(), layouts())
def test_every_entry_of_both_layouts_has_one_fate(old, new):
    carries = plan_migration(old, new)
    assert sorted(map(str, (c.before for c in carries if c.before))) == sorted(map(str, old))
    assert sorted(map(str, (c.after for c in carries if c.after))) == sorted(map(str, new))


@given(layouts(), layouts())
def test_only_what_is_the_same_thing_is_carried(old, new):
    for c in plan_migration(old, new):
        if c.action in CARRIED:
            assert c.before.dtype == c.after.dtype
            assert c.before.name == c.after.name or c.after.note == f"was: {c.before.name}"
            assert [n for n in c.before.shape if n > 1] == [n for n in c.after.shape if n > 1]
        elif c.action in ("new", "restart"):
            assert c.after is not None


@given(layouts(), layouts())
def test_values_are_lost_only_where_it_is_said(old, new):
    refused = {
        d.message.partition(":")[0].split(" ")[1] for d in refusals(plan_migration(old, new), Location("x"))
    }
    dropped = plan_migration(old, new, refused)
    assert not list(refusals(dropped, Location("x")))
    for c in plan_migration(old, new):
        if c.before is not None and c.action in ("drop", "restart"):
            assert c.reason


@given(layouts())
def test_a_layout_carries_over_to_itself_and_differs_in_nothing(layout):
    assert {c.action for c in plan_migration(layout, layout)} <= {"keep"}
    assert compare_entries(layout, layout) == ()


@given(layouts(), layouts())
def test_what_migrates_by_moving_is_what_diff_calls_a_break_or_an_append(old, new):
    one, other = (Contract("p", Lock(entries, "a", "b"), {}, {}) for entries in (old, new))
    (found,) = diff_programs({"p": one}, {"p": other})
    changed = {name for d in found.differences for name in d.names}
    for c in plan_migration(old, new):
        if c.action not in ("keep", "restart"):
            assert c.entry.name in changed

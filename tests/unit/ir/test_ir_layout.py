"""Positions: the golden numbers of the hand-written trainer, its growth, and what the lock keeps."""

import pytest
from dqn import KERNELS, LAST, RETROFITS, SP4, dqn
from ir_builders import build, specs

from foxhunt.diagnostics import SpecError
from foxhunt.ir.layout import Lock, lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.ir.system import apply_table, ingest_table, publish_table, reset_policies, reset_table

SCRATCH = {
    "target_q_p99": [range(0, 1)],
    "atom_pos_p99": [range(1, 5)],
    "param_group_oracle": [range(5, 13), range(13, 21), range(21, 29), range(29, 37)],
    "l1_lambda": [range(37, 38)],
    "grad_norm_p99": [range(38, 39)],
    "h_s2_p99": [range(39, 40)],
    "h_s2_rms": [range(40, 41)],
    "aux_losses": [range(41, 42), range(42, 43)],
    "aux_label_scale": [range(43, 44)],
    "moe_util": [range(44, 52), range(52, 53)],
    "vsn_mask": [range(53, 59)],
    "iqn_quantile": [range(59, 63)],
    "reward_component": [range(63, 69)],
    "bw_d_h_s2_p99": [range(69, 70)],
    "q_dir_grad_p99": [range(70, 71)],
}


def layout(text, lock=None, more=KERNELS):
    found = specs(text, more)
    return lay_out(resolve(found, next(iter(found.programs))), lock)


def places(laid_out, kind="isv"):
    return {e.name: e.position for e in laid_out.entries if e.kind == kind}


def allocation(laid_out, name):
    return next(a for a in laid_out.allocations if a.name == name)


def test_scratch_is_output_major_in_the_order_of_the_hand_written_trainer():
    laid_out = layout(dqn(SP4 + RETROFITS + LAST))
    for producer, outputs in SCRATCH.items():
        for order, positions in enumerate(outputs):
            found = [
                o.position
                for o in laid_out.program.observations
                if o.producer == producer and o.output_order == order
            ]
            assert found == list(positions), (producer, order)


def test_the_bus_has_173_slots_and_71_producers_have_213_wiener_floats():
    laid_out = layout(dqn(SP4 + RETROFITS + LAST))
    assert laid_out.isv_total == 173
    assert laid_out.scratch_total == 71
    assert allocation(laid_out, "wiener").count == 213


def test_growth_keeps_every_position_of_the_generation_before():
    first = layout(dqn(SP4, retire=False))
    assert first.scratch_total == 40
    second = layout(dqn(SP4 + RETROFITS, 18, retire=False), Lock(first.entries))
    assert (second.isv_total, second.scratch_total, allocation(second, "wiener").count) == (171, 69, 207)
    third = layout(dqn(SP4 + RETROFITS + LAST, retire=False), Lock(second.entries))
    assert (third.isv_total, third.scratch_total, allocation(third, "wiener").count) == (173, 71, 213)
    assert set(second.entries) <= set(third.entries)
    assert places(first, "wiener").items() <= places(third, "wiener").items()


def test_the_lock_keeps_positions_when_producers_are_declared_in_another_order():
    before = layout(dqn(SP4 + RETROFITS + LAST))
    shuffled = dqn(LAST + RETROFITS + SP4)
    assert layout(shuffled, Lock(before.entries)).entries == before.entries
    assert places(layout(shuffled), "wiener") != places(before, "wiener")


def test_a_retired_slot_keeps_its_place_even_when_its_producer_is_no_longer_declared():
    before = layout(dqn(SP4 + RETROFITS + LAST, retire=False))
    gone = [p for p in RETROFITS if "aux_label" not in p]
    after = layout(dqn(SP4 + gone + LAST), Lock(before.entries))
    assert places(after) == places(before)
    assert places(after, "wiener") == places(before, "wiener")
    assert after.scratch_total == 71
    assert all(o.producer != "aux_label_scale" for o in after.program.observations)


SLOTS = """
program: p
dims: {COUNT: 4}
isv:
  - {name: OLD, index: 117, retired: "was always 1"}
  - {name: A, index: 131, source: host, init: 0.0, reset: never}
  - {name: B, count: COUNT, source: host, init: 0.0, reset: never}
  - {name: C, source: host, init: 0.0, reset: never}
"""


def test_a_slot_without_an_index_stands_behind_the_written_ones():
    laid_out = layout(SLOTS)
    assert places(laid_out) == {"OLD": 117, "A": 131, "B": 132, "C": 136}
    assert laid_out.isv_total == 137


def test_a_locked_place_wins_and_holes_are_filled_with_what_fits():
    laid_out = layout(SLOTS)
    lock = Lock(tuple(e for e in laid_out.entries if e.name != "B"))
    grown = SLOTS + "  - {name: D, source: host, init: 0.0, reset: never}\n"
    assert places(layout(grown, lock)) == {"OLD": 117, "A": 131, "B": 132, "C": 136, "D": 137}
    smaller = grown.replace("{name: B, count: COUNT, s", "{name: B, s")
    assert places(layout(smaller, lock))["D"] == 133


def test_written_indices_that_overlap_are_refused_by_name():
    text = SLOTS.replace("name: C,", "name: C, index: 131,")
    with pytest.raises(SpecError) as caught:
        layout(text)
    assert [(d.code, d.message) for d in caught.value.diagnostics] == [("FH230", "index 131 of C overlaps A")]


@pytest.mark.parametrize(
    ("old", "new", "name", "help"),
    [
        ("index: 131", "index: 99999999999", "A", "leave `index:` out"),
        ("index: 117", "index: 16777216", "OLD", "leave `index:` out"),
        ("COUNT: 4", "COUNT: 99999999999", "B", "lower a dim"),
    ],
)
def test_a_slot_past_the_end_of_the_bus_is_one_finding(old, new, name, help):
    with pytest.raises(SpecError) as caught:
        layout(SLOTS.replace(old, new))
    (found,) = caught.value.diagnostics
    assert found.code == "FH216"
    assert found.message.startswith(f"slot {name} would end at ")
    assert found.help.startswith(help)
    assert layout(SLOTS.replace("index: 131", f"index: {2**24 - 6}")).isv_total == 2**24


PARAMS = """
program: p
dims: {K: 10, N: 3}
params:
  - {name: w1, shape: [K, N], group: first, reset: fold}
  - {name: v1, shape: [K], group: second, reset: never}
  - {name: b1, shape: [N], group: first, reset: fold}
  - {name: own, shape: [K], group: second, separate: true, reset: never}
"""


def test_groups_are_contiguous_and_start_on_64_elements():
    laid_out = layout(PARAMS)
    assert places(laid_out, "param") == {"w1": 0, "b1": 30, "v1": 64}
    assert places(laid_out, "moment") == {
        f"{p}.{m}": o for p, o in places(laid_out, "param").items() for m in "mv"
    }
    assert places(laid_out, "state") == {"own": 0, "own.m": 1, "own.v": 2}
    assert allocation(laid_out, "params.g").lifetime == "step"
    assert (laid_out.places["first"].offset, laid_out.places["first.g"].allocation) == (0, "params.g")
    assert "second" not in laid_out.places, "it is no one range"


def test_a_group_that_no_longer_fits_its_place_moves_as_a_whole():
    before = layout(PARAMS)
    grown = PARAMS + "  - {name: big, shape: [K, K], group: first, reset: never}\n"
    assert places(layout(grown, Lock(before.entries)), "param") == {
        "w1": 128,
        "b1": 158,
        "big": 161,
        "v1": 64,
    }


def test_an_index_belongs_to_the_first_param_of_a_group():
    moved = PARAMS.replace("name: v1,", "name: v1, index: 640,")
    assert places(layout(moved), "param")["v1"] == 640
    for wrong in (
        PARAMS.replace("name: v1,", "name: v1, index: 65,"),
        PARAMS.replace("name: b1,", "name: b1, index: 2,"),
    ):
        with pytest.raises(SpecError) as caught:
            layout(wrong)
        assert [d.code for d in caught.value.diagnostics] == ["FH231"]


STATE = """
program: p
dims: {N: 3}
isv:
  - {name: LR, source: host, init: 0.5, reset: fold}
  - {name: MEAN, count: N, sentinel: -1.0, reset: fold}
  - {name: WD, source: host, count: N, init: 0.0, reset: never}
params: [{name: w, shape: [N], group: g, reset: fold}, {name: u, shape: [N], group: g, reset: fold}]
buffers:
  - {name: seen, shape: [N], dtype: i32, lifetime: persistent, init: ones, reset: fold}
  - {name: aside, shape: [N], lifetime: persistent, checkpoint: false, reset: never}
  - {name: fed, shape: [N], lifetime: input}
counters: [{name: t, advance: train, reset: fold}, {name: u_t, advance: other, reset: never}]
producers: [{name: mean, kernel: util, args: {x: x}, out: {y: MEAN}}]
steps:
  - {name: train, items: [{kernel: fill, args: {y: aside}}, {producers: [mean]}]}
  - {name: other, items: [{kernel: fill, args: {y: aside}}]}
diagnostics: [{name: LR}, {name: t}, {name: MEAN}]
"""
STATE = STATE.replace("  - {name: fed,", "  - {name: x, shape: [N, N], lifetime: input}\n  - {name: fed,")


def test_only_what_a_checkpoint_holds_has_a_line():
    laid_out = layout(STATE)
    assert places(laid_out, "state") == {"seen": 0}
    assert places(laid_out, "counter") == {"foxhunt.step": 0, "t": 1, "u_t": 2}
    assert {e.kind for e in laid_out.entries} == {"isv", "wiener", "param", "moment", "state", "counter"}


def test_diagnostics_words_are_packed_one_a_slot_and_two_a_counter():
    assert layout(STATE).diagnostics_words == (("LR", 0, 1), ("t", 1, 2), ("MEAN", 3, 3))


def test_a_reset_clears_slot_and_triple_together():
    laid_out = layout(STATE)
    assert reset_policies(laid_out) == ("fold",)
    table = reset_table(laid_out, "fold")
    assert table["slots"] == (
        {"index": 0, "count": 1, "value": 0.5, "triples": ()},
        {"index": 1, "count": 3, "value": -1.0, "triples": (0, 1, 2)},
    )
    assert table["counters"] == (1,)
    assert [(f["value"], f["count"]) for f in table["fills"]] == [(0.0, 6), (0.0, 6), (1.0, 3)]


def test_the_tables_of_a_step_say_what_goes_where():
    laid_out = layout(STATE)
    ingest = ingest_table(laid_out, "train")
    assert [(h["slot"], h["index"], h["column"]) for h in ingest["hosts"]] == [
        ("LR", 0, 0),
        ("WD", 4, 1),
        ("WD", 5, 2),
        ("WD", 6, 3),
    ]
    assert [c["name"] for c in ingest["counters"]] == ["foxhunt.step", "t"]
    rows = apply_table(laid_out, "train")["rows"]
    assert [(r["scratch"], r["slot"], r["triple"], r["name"]) for r in rows] == [
        (0, 1, 0, "MEAN[0]"),
        (1, 2, 3, "MEAN[1]"),
        (2, 3, 6, "MEAN[2]"),
    ]
    assert apply_table(laid_out, "other")["rows"] == ()
    publish = publish_table(laid_out, "train")
    assert (publish["found"], allocation(laid_out, "sentinel.rows").count) == (
        3,
        3 * (1 + len(laid_out.watched)),
    )
    found = 2 * publish["found"]
    start = 2 + 7 + 2 * 3 + 2 * 3 + found
    assert [(f["name"], f["word"], f["words"]) for f in publish["fields"]] == [
        ("LR", start, 1),
        ("t", start + 1, 2),
        ("MEAN", start + 3, 3),
    ]
    assert publish["words"] == start + 6
    assert allocation(laid_out, "ring.publish").count == 16 * publish["words"] + 2


def test_a_bound_knows_its_triple():
    text = """
program: p
dims: {N: 4}
isv: [{name: FIRST, reset: fold}, {name: LIMIT, floor: 0.25, reset: fold}]
params: [{name: w, shape: [N], group: g, reset: never}]
producers:
  - {name: a, kernel: p99, args: {x: w}, out: {y: FIRST}}
  - {name: b, kernel: p99, args: {x: w}, out: {y: LIMIT}}
steps:
  - {name: train, items: [{producers: [a, b]}, {kernel: limit, args: {w: w, limit: LIMIT}}]}
"""
    limit = build(text).launch("train.limit").arguments[0]
    assert (limit.ranges[0].base, limit.ranges[0].offset, limit.floor) == ("isv", 1, 0.25)
    assert (limit.triple.base, limit.triple.offset, limit.triple.shape) == ("wiener", 3, (1, 3))

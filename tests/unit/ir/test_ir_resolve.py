"""Names, dims, references, shapes, blocks and producers of a program."""

import pytest
from ir_builders import build, check, findings, hints, kernels, specs

from foxhunt.diagnostics import SpecError
from foxhunt.ir.resolve import resolve
from foxhunt.ir.shapes import signature
from foxhunt.spec.load import load_specs

SMALL = """
program: p
dims: {B: 4, K: 3, N: 2, FLAT: B * K}
variants: {big: {B: 8}}
params:
  - {name: w, shape: [K, N], group: g, reset: never}
buffers:
  - {name: x, shape: [B, K], lifetime: input}
  - {name: y, shape: [B, N], lifetime: step}
steps:
  - name: train
    items:
      - {kernel: linear, args: {x: x, w: w, y: y}}
"""


def items(*lines: str, extra: str = "") -> str:
    """SMALL with other items and more sections."""
    return (
        SMALL.split("    items:")[0] + "    items:\n" + "".join(f"      - {line}\n" for line in lines) + extra
    )


def codes(text: str, more: str = "") -> list[str]:
    return [code for code, _ in findings(text, more)]


def test_shapes_bind_the_symbols_of_a_kernel():
    assert check(SMALL).launch("train.linear").dims == (("B", 4), ("K", 3), ("N", 2))


def test_variants_and_overrides_change_dims_and_what_is_computed_from_them():
    found = specs(SMALL)
    assert dict(resolve(found, "p").dims) == {"B": 4, "K": 3, "N": 2, "FLAT": 12}
    assert dict(resolve(found, "p", "big").dims)["FLAT"] == 24
    assert dict(resolve(found, "p", "big", {"B": 5}).dims)["FLAT"] == 15


def test_unknown_programs_variants_and_dims_are_named_with_the_nearest():
    found = specs(SMALL)
    for arguments in (("q",), ("p", "bog"), ("p", "default", {"FLATT": 1})):
        with pytest.raises(SpecError) as caught:
            resolve(found, *arguments)
        assert [d.code for d in caught.value.diagnostics] == ["FH201"]
    assert "FLAT" in caught.value.diagnostics[0].help


def test_dims_in_a_circle_are_named_once():
    text = SMALL.replace("FLAT: B * K", "FLAT: 'P + 1', P: 'Q * 2', Q: FLAT")
    assert findings(text) == [("FH208", "dims in a circle: FLAT → P → Q → FLAT")]


def test_a_chain_of_thousands_of_dims_is_no_recursion():
    chain = ", ".join(f"D{i}: 'D{i - 1} + 1'" for i in range(5000, 0, -1))
    text = SMALL.replace("FLAT: B * K", f"{chain}, D0: 1")
    assert dict(resolve(specs(text), "p").dims)["D5000"] == 5001


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("shape", SMALL.replace("shape: [B, K]", "shape: [B, 3]")),
        ("count", SMALL + "isv: [{name: S, count: 6, source: host, init: 0.0, reset: never}]\n"),
        ("repeat", SMALL.replace("name: train", "name: train\n    repeat: 100")),
    ],
)
def test_a_number_without_a_name_is_refused(what, changed):
    assert "FH207" in codes(changed), what


def test_integer_coefficients_are_no_unnamed_numbers():
    text = items("{kernel: twice, args: {x: v, y: vv}}")
    text = text.replace("  - {name: y,", "  - {name: v, shape: [N], lifetime: input}\n  - {name: y,")
    text = text.replace("  - {name: y,", "  - {name: vv, shape: ['2 * N'], lifetime: step}\n  - {name: y,")
    assert build(text).launch("train.twice").dims == (("n", 2),)


def test_every_mistake_of_a_run_is_reported_together():
    text = items(
        "{kernel: linera, args: {x: x, w: w, y: y}}",
        "{kernel: linear, args: {x: xx, w: w, y: y}, as: a}",
        "{kernel: linear, args: {x: x, w: w}, as: b}",
        "{kernel: linear, args: {x: x, w: w, y: y, z: y}, as: c}",
        "{kernel: linear, args: {x: 'x[9]', w: w, y: y}, as: d}",
        "{use: nothing}",
        "{producers: [nobody]}",
    )
    assert sorted(codes(text)) == ["FH201", "FH201", "FH201", "FH201", "FH209", "FH213", "FH213"]


def test_names_are_unique_ignoring_case_and_across_sections():
    text = SMALL.replace("{name: y, shape", "{name: W, shape")
    assert ("FH202", "the name W is taken by w") in findings(text)
    assert ("FH202", "the name g is taken") in findings(SMALL.replace("name: y,", "name: g,"))


@pytest.mark.parametrize("slot", ["y", "Y"])
def test_two_things_of_one_name_are_one_finding_whatever_uses_the_name(slot):
    text = SMALL + f"isv:\n  - {{name: {slot}, source: host, init: 0.0, reset: never}}\n"
    taken = "the name y is taken" + (" by Y" if slot == "Y" else "")
    assert findings(text) == [("FH202", taken)]


def test_a_group_that_is_called_as_a_param_is_one_finding():
    assert findings(SMALL.replace("group: g", "group: w")) == [("FH202", "the name w is taken")]


def test_reset_policies_that_differ_in_case_alone_are_refused_where_both_are_named(tmp_path):
    (tmp_path / "p").mkdir()
    slots = ["a, source: host, init: 0.0, reset: fold", "b, reset: Fold", "c, reset: FOLD", "d, reset: Fold"]
    lines = "".join(f"  - {{name: {slot}}}\n" for slot in slots)
    (tmp_path / "p" / "program.yaml").write_text(f"program: p\nisv:\n{lines}")
    with pytest.raises(SpecError) as caught:
        resolve(load_specs(tmp_path), "p")
    one, other = caught.value.diagnostics
    assert (one.code, one.message) == ("FH202", "the reset policies fold and Fold differ in case alone")
    assert (one.location.line, one.related[0][0].line) == (4, 3)
    assert one.location.column == lines.splitlines()[1].index("Fold") + 1
    assert "fold and FOLD" in other.message


def test_names_of_foxhunt_are_reserved():
    assert ("FH205", "the name isv is foxhunt's own") in findings(SMALL.replace("name: y,", "name: isv,"))


def test_a_typo_is_answered_with_the_nearest_name():
    assert "did you mean `w`?" in hints(SMALL.replace("w: w, y", "w: ww, y"))


def test_references_index_and_slice_the_first_axis():
    text = items(
        "{kernel: look, args: {x: 'x[1]'}, as: row}",
        "{kernel: look, args: {x: 'x[1:B - 1]'}, as: rows}",
        "{kernel: look, args: {x: 'v[2]'}, as: element}",
        "{kernel: look, args: {x: w.m}, as: moment}",
    ).replace("  - {name: y,", "  - {name: v, shape: [K], lifetime: input}\n  - {name: y,")
    built = build(text)

    def place(name):
        found = built.launch(f"train.{name}").arguments[0].ranges[0]
        return found.base, found.offset, found.shape, found.text

    assert place("row") == ("x", 3, (3,), "x[1]")
    assert place("rows") == ("x", 3, (2, 3), "x[1:3]")
    assert place("element") == ("v", 2, (1,), "v[2]")
    assert place("moment") == ("params.m", 0, (3, 2), "w.m")


@pytest.mark.parametrize("reference", ["x[4]", "x[3:5]", "x[3:2]"])
def test_a_reference_outside_its_tensor_is_refused(reference):
    assert codes(items(f"{{kernel: look, args: {{x: '{reference}'}}}}")) == ["FH209"]


@pytest.mark.parametrize("reference", ["x[", "x[0][1]", "a b", "", "x[0:1:2]", "µ"])
def test_text_that_is_no_reference_is_refused(reference):
    assert codes(items(f"{{kernel: look, args: {{x: '{reference}'}}}}")) == ["FH205"]


def test_shapes_that_do_not_unify_name_both_sides():
    text = SMALL.replace("shape: [K, N], group", "shape: [N, N], group")
    message = "train.linear: x = x [4, 3] makes K = 3, but w makes it 2"
    assert findings(text) == [("FH210", message)]


def test_rank_must_match():
    text = items("{kernel: linear, args: {x: 'x[0]', w: w, y: y}}")
    assert findings(text) == [("FH210", "train.linear: x = x[0] has shape [3], but the kernel wants [B, K]")]


def test_a_symbol_that_no_shape_binds_comes_from_bind():
    text = items(
        "{kernel: work, args: {x: 'x[0]'}, bind: {SPLITS: N}}", "{kernel: work, args: {x: 'x[0]'}, as: b}"
    )
    assert codes(text) == ["FH211"]
    built = build(items("{kernel: work, args: {x: 'x[0]'}, bind: {SPLITS: N}}"))
    assert built.launch("train.work").dims == (("SPLITS", 2), ("n", 3))
    workspace = next(t for t in built.laid_out.program.tensors if t.role == "workspace")
    assert (workspace.name, workspace.shape, workspace.dtype.name) == ("train.work.part", (3, 2), "i32")
    assert codes(items("{kernel: look, args: {x: x}, bind: {Z: N}}")) == ["FH211"]


def test_element_types_must_agree():
    text = items("{kernel: count, args: {x: x, y: 'y[0]'}}")
    assert findings(text) == [("FH212", "train.count: y takes i64, but y[0] is f32")]


def test_many_takes_lists_groups_and_single_names():
    text = items(
        "{kernel: limit, args: {w: [w, v], limit: S}, as: a}",
        "{kernel: limit, args: {w: g, limit: S}, as: b}",
        "{kernel: look, args: {x: [w, v]}, as: c}",
        extra="isv: [{name: S, floor: 0.0, reset: fold}]\n",
    ).replace(
        "  - {name: w,", "  - {name: v, shape: [N], group: g, separate: true, reset: never}\n  - {name: w,"
    )
    assert findings(text) == [("FH214", "train.c: x takes one range, not 2")]
    built = build(text.replace("- {kernel: look, args: {x: [w, v]}, as: c}", ""))
    assert [r.base for r in built.launch("train.a").arguments[1].ranges] == ["params", "v"]
    assert [r.base for r in built.launch("train.b").arguments[1].ranges] == ["v", "params"]
    assert built.launch("train.b").dims == (("n", 8),)


def test_a_bound_takes_only_an_observed_slot_with_a_floor():
    slots = """
isv:
  - {name: NO_FLOOR, reset: fold}
  - {name: HOSTED, source: host, init: 1.0, floor: 0.0, reset: never}
"""
    text = items(
        "{kernel: limit, args: {w: w, limit: '0.5'}, as: a}",
        "{kernel: limit, args: {w: w, limit: y}, as: b}",
        "{kernel: limit, args: {w: w, limit: NO_FLOOR}, as: c}",
        "{kernel: limit, args: {w: w, limit: HOSTED}, as: d}",
        extra=slots,
    )
    assert codes(text) == ["FH215"] * 4


def test_kinds_do_not_mix():
    text = items(
        "{kernel: scale, args: {x: y, s: y}, as: a}",
        "{kernel: look, args: {x: S}, as: b}",
        "{kernel: tick, args: {t: S, y: y}, as: c}",
        "{kernel: noise, args: {r: y, y: y}, as: d}",
        extra="isv: [{name: S, source: host, init: 0.0, reset: never}]\n",
    )
    assert codes(text) == ["FH213", "FH214", "FH214", "FH214"]


def test_a_kernel_may_not_write_what_the_host_or_the_applicator_writes():
    text = items(
        "{kernel: set_slot, args: {s: HOSTED}, as: a}",
        "{kernel: set_slot, args: {s: FED}, as: b}",
        extra="isv: [{name: HOSTED, source: host, init: 0.0, reset: never}, {name: FED, reset: fold}]\n",
    )
    assert codes(text) == ["FH254", "FH254"]


def test_a_tensor_past_64_bits_is_refused_with_the_limit():
    text = SMALL.replace("B: 4", "B: 3000000000").replace("K: 3", "K: 1000000000")
    found = dict(findings(text))
    assert "2^63 - 1 bytes" in found["FH216"]


def test_more_blocks_than_a_grid_holds_are_refused():
    text = items("{kernel: copy, args: {x: a, y: b}}").replace("B: 4", "B: 1000000000000")
    text = text.replace("shape: [B, N], lifetime: step", "shape: [B], lifetime: step")
    text = text.replace("name: y", "name: b").replace("name: x, shape: [B, K]", "name: a, shape: [B]")
    assert codes(text) == ["FH216"]


def test_a_launch_over_nothing_is_refused_by_name():
    assert findings(items("{kernel: look, args: {x: 'x[1:1]'}}")) == [
        ("FH217", "train.look: x has 0 elements")
    ]


@pytest.mark.parametrize(
    ("dims", "overrides"), [("B: 0", {}), ("B: 4", {"B": 0}), ("B: 4, C: 'ceil_div(N, B)'", {"B": 0})]
)
def test_a_dim_of_0_is_one_finding(dims, overrides):
    with pytest.raises(SpecError) as caught:
        build(SMALL.replace("B: 4", dims), **overrides)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("FH217", "dim B is 0")


def test_a_dim_that_no_shape_uses_may_be_0():
    assert dict(build(SMALL.replace("B: 4", "B: 4, LAG: 0")).laid_out.program.dims)["LAG"] == 0


def test_an_item_that_appears_twice_needs_a_name():
    text = items("{kernel: look, args: {x: x}}", "{kernel: look, args: {x: x}}")
    assert findings(text) == [("FH218", "two items here are called look")]


BLOCKS = """
blocks:
  - name: layer
    formals: [x, y]
    locals: [{name: h, shape: [B, K], lifetime: step}]
    items:
      - {kernel: copy, args: {x: x, y: h}, as: first}
      - {kernel: copy, args: {x: h, y: y}, as: second, after: [first]}
  - name: two
    formals: [x, y]
    locals: [{name: mid, shape: [B, K], lifetime: step}]
    items:
      - {use: layer, with: {x: x, y: mid}, as: one}
      - {use: layer, with: {x: mid, y: y}, as: two}
"""


def test_blocks_unfold_with_formals_locals_and_qualified_names():
    text = items(
        "{use: two, with: {x: x, y: z}, as: net}", "{kernel: look, args: {x: net.one.h}}", extra=BLOCKS
    )
    text = text.replace("name: y, shape: [B, N]", "name: z, shape: [B, K]")
    built = check(
        text.replace("  - {name: w, shape: [K, N], group: g, reset: never}\n", "").replace("params:\n", "")
    )
    names = [launch.name for launch in built.graphs[0].launches]
    assert names == [
        "train.ingest",
        "train.net.one.first",
        "train.net.one.second",
        "train.net.two.first",
        "train.net.two.second",
        "train.look",
        "train.sentinel",
        "train.publish",
    ]
    last = built.launch("train.net.two.second")
    assert last.blocks == ("net", "two")
    assert last.after == ("train.net.two.first",)
    assert [a.ranges[0].base for a in last.arguments] == ["net.two.h", "z"]
    assert built.launch("train.look").arguments[0].ranges[0].base == "net.one.h"


def test_a_block_that_uses_itself_is_named_with_its_chain():
    circle = """
blocks:
  - {name: a, items: [{use: b}]}
  - {name: b, items: [{use: a}]}
"""
    assert ("FH219", "block a uses itself: a → b → a") in findings(items("{use: a}", extra=circle))


def test_blocks_that_double_at_each_level_stop_at_the_limit(monkeypatch):
    monkeypatch.setattr("foxhunt.ir.expand.MAX_LAUNCHES", 1000)
    levels = [
        f"  - {{name: b{i}, items: [{{use: b{i + 1}, as: l}}, {{use: b{i + 1}, as: r}}]}}" for i in range(40)
    ]
    text = items("{use: b0}", extra="blocks:\n" + "\n".join(levels) + "\n  - {name: b40, items: []}\n")
    assert codes(text) == ["FH216"]


def test_a_block_is_given_exactly_its_formals():
    text = items("{use: layer, with: {x: x, z: y}}", extra=BLOCKS)
    assert [m for c, m in findings(text) if c == "FH213"] == [
        "block layer also needs y",
        "block layer has no formal z",
    ]


def test_blocks_come_from_the_programs_in_uses():
    other = "program: q\n" + BLOCKS
    text = items("{use: layer, with: {x: x, y: z}}").replace("program: p", "program: p\nuses: [q]")
    text = text.replace("name: y, shape: [B, N]", "name: z, shape: [B, K]")
    built = build(text, "", other)
    assert built.launch("train.layer.first").blocks == ("layer",)


def test_after_names_an_item_of_the_same_list():
    text = items("{kernel: look, args: {x: x}, as: a}", "{kernel: look, args: {x: x}, as: b, after: [aa]}")
    assert findings(text) == [("FH201", "`after` names aa, which is no item here")]
    assert "did you mean `a`?" in hints(text)


PRODUCERS = """
isv:
  - {name: FIRST, reset: fold}
  - {name: SECOND, count: B, reset: fold}
  - {name: UTIL, count: K, reset: fold}
producers:
  - {name: many, kernel: p99, foreach: {b: B}, args: {x: 'x[b]'}, out: {y: 'SECOND[b]'}}
  - {name: column, kernel: util, args: {x: x}, out: {y: UTIL}}
  - {name: one, kernel: p99, args: {x: x}, out: {y: FIRST}}
"""


def test_foreach_repeats_a_producer_over_its_indices():
    built = build(items("{producers: [many, column, one]}", extra=PRODUCERS))
    names = [launch.name for launch in built.graphs[0].launches]
    assert names[1:5] == [f"train.many.{b}" for b in range(4)]
    third = built.launch("train.many.2")
    assert [(a.ranges[0].base, a.ranges[0].offset) for a in third.arguments] == [("x", 6), ("scratch", 2)]
    assert third.producer == "many"
    assert built.launch("train.column").arguments[1].ranges[0].shape == (3,)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (("'SECOND[b]'", "'SECOND[0]'"), "FH257"),
        (("'SECOND[b]'", "'SECOND[B - 1 - b]'"), "FH257"),
        (("out: {y: UTIL}", "out: {y: FIRST}"), "FH210"),
        (("out: {y: UTIL}", "out: {z: UTIL}"), "FH257"),
        (("{b: B}", "{b: 4}"), "FH207"),
        (("{b: B}", "{B: K}"), "FH202"),
        (("out: {y: UTIL}", "out: {y: x}"), "FH257"),
    ],
)
def test_a_producer_writes_whole_slots_in_order_and_nothing_else(changed, code):
    text = items("{producers: [many, column, one]}", extra=PRODUCERS).replace(*changed)
    assert code in codes(text)


def test_a_foreach_index_picks_one_of_several_names():
    picked = PRODUCERS.replace("args: {x: 'x[b]'}", "args: {x: {each: [w, 'x[1]', [x, w], x]}}")
    built = build(items("{producers: [many, column, one]}", extra=picked))
    read = [built.launch(f"train.many.{b}").arguments[0].ranges for b in range(4)]
    assert [[(r.base, r.offset, r.count) for r in ranges] for ranges in read] == [
        [("params", 0, 6)],
        [("x", 3, 3)],
        [("x", 0, 12), ("params", 0, 6)],
        [("x", 0, 12)],
    ]


@pytest.mark.parametrize("each", ["[w, x]", "[w, x, x, x, x]", "[]"])
def test_there_is_one_name_for_every_foreach_index(each):
    picked = PRODUCERS.replace("args: {x: 'x[b]'}", f"args: {{x: {{each: {each}}}}}")
    assert "FH213" in codes(items("{producers: [many, column, one]}", extra=picked))


@pytest.mark.parametrize("lines", [["[one]", "[column, one]"], ["[one, column, one]"]])
def test_a_producer_that_is_listed_twice_is_one_finding(lines):
    text = items(*(f"{{producers: {names}}}" for names in lines), extra=PRODUCERS)
    assert [f for f in findings(text) if f[0] == "FH218"] == [("FH218", "step train lists one twice")]


def test_a_producer_is_listed_once_a_step():
    assert "FH218" in codes(items("{producers: [one]}", "{producers: [column, one]}", extra=PRODUCERS))


def test_retired_names_cannot_be_used():
    slots = 'isv: [{name: OLD, retired: "always 1"}]\n'
    text = items("{kernel: scale, args: {x: y, s: OLD}}", extra=slots)
    assert findings(text) == [("FH204", "OLD is retired: always 1")]


def test_a_host_slot_has_a_first_value_and_a_producer_slot_a_sentinel():
    text = SMALL + "isv: [{name: A, source: host, reset: never}, {name: B_, init: 2.0, reset: fold}]\n"
    assert codes(text) == ["FH222", "FH222"]


def test_a_counter_advances_with_a_real_step():
    text = SMALL + "counters: [{name: t, advance: trian, reset: never}]\n"
    assert findings(text) == [("FH258", "counter t advances with trian, which is no step")]


def test_a_kernel_that_contradicts_itself_is_refused_where_it_is_used():
    more = "- {kernel: odd, outputs: [x], params: {x: {shape: [n]}, y: {access: write, shape: [n]}}}"
    assert codes(items("{kernel: odd, args: {x: 'x[0]', y: 'x[1]'}}"), more) == ["FH223"]


def test_every_kernel_of_the_library_has_a_sound_declaration(pytestconfig):
    from foxhunt.ir.findings import Findings
    from foxhunt.spec.load import load_specs

    found = Findings()
    for kernel in load_specs(pytestconfig.rootpath / "specs").kernels.values():
        signature(kernel, found)
    assert found.found == []


def test_symbols_of_a_kernel_are_not_its_consts():
    found = kernels(
        "- {kernel: k, consts: {BINS: 256}, params: {x: {shape: [n, BINS]}}, grid: 'ceil_div(n, BLOCK)'}"
    )
    from foxhunt.ir.findings import Findings

    assert signature(found["k"], Findings()).symbols == ("n",)

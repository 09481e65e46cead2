"""Which edits change which hash."""

import pytest
from dqn import KERNELS, LAST, RETROFITS, SP4, dqn
from ir_builders import build

from foxhunt.contract.fingerprint import fingerprint, layout_line
from foxhunt.ir.layout import Lock

BASE = """
program: p
dims: {B: 8, K: 3, N: 2, DEAD: 5}
variants: {demo: {B: 4}}
isv:
  - {name: LR, source: host, init: 3.0e-4, reset: never}
  - {name: MEAN, floor: 0.0, reset: fold}
  - {name: UTIL, count: K, reset: fold}
params:
  - {name: w, shape: [K, N], group: g, init: normal, reset: never}
  - {name: b, shape: [N], group: g, reset: never}
buffers:
  - {name: x, shape: [B, K], lifetime: input}
  - {name: h, shape: [B, K], lifetime: step}
  - {name: kept, shape: [N], lifetime: persistent, reset: fold}
  - {name: aside, shape: [N], lifetime: persistent, checkpoint: false, reset: fold}
counters:
  - {name: t, advance: train, reset: never}
producers:
  - {name: mean, kernel: p99, args: {x: w}, out: {y: MEAN}}
  - {name: util, kernel: util, args: {x: x}, out: {y: UTIL}}
steps:
  - name: train
    items:
      - {kernel: copy, args: {x: x, y: h}}
      - {producers: [mean, util]}
diagnostics: [{name: MEAN}]
"""
SOURCE = {"copy": "void copy() {\ny = x;\n}"}

SAME, CHANGED = "same", "changed"
EDITS = [
    # what, old, new, layout, semantics
    ("nothing", "", "", SAME, SAME),
    ("batch size", "B: 8", "B: 16", SAME, SAME),
    ("an unused dim", "DEAD: 5", "DEAD: 6", SAME, SAME),
    ("diagnostics", "[{name: MEAN}]", "[{name: MEAN}, {name: t}]", SAME, SAME),
    ("doc", "name: kept,", "name: kept, doc: words,", SAME, SAME),
    ("a step buffer more", "buffers:", "buffers:\n  - {name: more, shape: [B], lifetime: step}", SAME, SAME),
    ("retire a slot's producer and slot", "{name: UTIL, count: K, reset: fold}", None, SAME, CHANGED),
    ("learning rate", "3.0e-4", "1.0e-4", SAME, CHANGED),
    ("floor", "floor: 0.0", "floor: 0.5", SAME, CHANGED),
    ("sentinel", "floor: 0.0,", "floor: 0.0, sentinel: -1.0,", SAME, CHANGED),
    ("reset policy", "floor: 0.0, reset: fold", "floor: 0.0, reset: never", SAME, CHANGED),
    ("init of a param", "init: normal", "init: zeros", SAME, CHANGED),
    ("advance of a counter", "name: t, advance: train", "name: t", SAME, CHANGED),
    ("append a slot", "params:",
     "  - {name: NEW, source: host, init: 0.0, reset: never}\nparams:", CHANGED, CHANGED),
    ("append a param", "buffers:",
     "  - {name: c, shape: [N], group: g, reset: never}\nbuffers:", CHANGED, CHANGED),
    ("append a counter", "producers:", "  - {name: u, reset: never}\nproducers:", CHANGED, CHANGED),
    ("move a slot", "name: MEAN,", "name: MEAN, index: 20,", CHANGED, SAME),
    ("reshape a param", "shape: [K, N], group", "shape: [N, K], group", CHANGED, SAME),
    ("resize a slot", "K: 3", "K: 4", CHANGED, SAME),
    ("retype a buffer", "{name: kept,", "{name: kept, dtype: i32,", CHANGED, SAME),
    ("rename a param", "name: b,", "name: bias,", CHANGED, CHANGED),
    ("checkpoint one buffer more", "checkpoint: false, ", "", CHANGED, SAME),
    ("delete a param", "  - {name: b, shape: [N], group: g, reset: never}\n", "", CHANGED, CHANGED),
]  # fmt: skip


def effect(old, new):
    return SAME if old == new else CHANGED


@pytest.mark.parametrize(("what", "old", "new", "layout", "semantics"), EDITS, ids=[e[0] for e in EDITS])
def test_the_effect_of_an_edit(what, old, new, layout, semantics):
    assert old in BASE
    text = BASE.replace(old, new, 1) if new is not None else retired(BASE)
    before, after = (fingerprint(build(t).laid_out, SOURCE) for t in (BASE, text))
    assert (effect(before.layout, after.layout), effect(before.semantics, after.semantics)) == (
        layout,
        semantics,
    )


def retired(text):
    text = text.replace("{name: UTIL, count: K, reset: fold}", "{name: UTIL, count: K, retired: gone}")
    text = text.replace("{name: util, kernel: util,", "{name: util, retired: gone, kernel: util,")
    return text.replace("producers: [mean, util]", "producers: [mean]")


def test_a_variant_has_the_layout_of_the_default():
    from ir_builders import specs

    from foxhunt.ir.layout import lay_out
    from foxhunt.ir.resolve import resolve

    found = specs(BASE)
    default, demo = (fingerprint(lay_out(resolve(found, "p", v)), SOURCE) for v in ("default", "demo"))
    assert default == demo


def test_the_text_of_a_kernel_is_in_the_semantics_only():
    laid_out = build(BASE).laid_out
    base = fingerprint(laid_out, SOURCE)
    other = fingerprint(laid_out, {"copy": SOURCE["copy"].replace("y = x", "y = -x")})
    assert (other.layout == base.layout, other.semantics == base.semantics) == (True, False)
    renamed = fingerprint(laid_out, {"other": SOURCE["copy"]})
    assert renamed.semantics != base.semantics


def test_retiring_the_label_scale_keeps_the_fingerprint_of_the_layout():
    live, gone = (
        build(dqn(SP4 + RETROFITS + LAST, retire=retire), KERNELS).laid_out for retire in (False, True)
    )
    assert fingerprint(live, {}).layout == fingerprint(gone, {}).layout


def test_lines_are_sorted_by_kind_and_position_whatever_the_order_of_declaration():
    laid_out = build(dqn(SP4 + RETROFITS + LAST), KERNELS).laid_out
    shuffled = build(dqn(LAST + RETROFITS + SP4), KERNELS, lock=Lock(laid_out.entries)).laid_out
    print_ = fingerprint(laid_out, {})
    assert fingerprint(shuffled, {}).lines == print_.lines
    positions = [(line.split()[0], int(line.split()[1])) for line in print_.lines]
    assert positions == sorted(positions)
    assert "wiener 129 AUX_LABEL_SCALE_EMA f32 [1,3]" in print_.lines
    assert layout_line(laid_out.entries[0]) == "counter 0 foxhunt.step i64 [1]"

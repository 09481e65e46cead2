"""What a sentinel looks at, and what is kept so that an update can be undone."""

import pytest
from ir_builders import check, findings
from kernel_harness import ROOT

from foxhunt.ir.access import traffic
from foxhunt.ir.layout import lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.ir.types import Access
from foxhunt.ir.watch import MOST, SHARE, kept, unseen
from foxhunt.spec.load import load_specs
from foxhunt.spec.models import Health

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


@pytest.fixture(scope="module")
def library():
    return load_specs(ROOT / "specs")


def watched(laid_out, step):
    return [(w.launch.removeprefix(f"{step}."), w.range.text) for w in laid_out.watched if w.step == step]


@pytest.mark.parametrize("variant", ["default", "demo", "tiny"])
def test_aux_watches_losses_norms_and_all_gradients_within_the_budget(library, variant):
    laid_out = lay_out(resolve(library, "aux", variant))
    found = watched(laid_out, "train")
    buffers = {text for _, text in found}
    assert {"dir_loss", "reg_loss", "grad_norm", "heads", "aux_b1.g", "aux_w3.g", "dir_w.g"} <= buffers
    assert ("optimise.clamp_heads", "heads") in found  # not adamw, over whose result the clamp writes
    assert not buffers & {"trunk.m", "heads.v"}
    step = next(s for s in laid_out.program.steps if s.name == "train")
    budget = sum(map(traffic, step.launches)) / SHARE
    assert sum(w.range.count * 4 for w in laid_out.watched if w.step == "train") <= max(budget, 1 << 16)


def test_rows_follow_program_order_and_stay_below_what_a_launch_takes(library):
    laid_out = lay_out(resolve(library, "dqn", "small"))
    assert [w.row for w in laid_out.watched] == list(range(1, len(laid_out.watched) + 1))
    for step in laid_out.program.steps:
        order = [n.name for n in step.launches]
        places = [order.index(w.launch) for w in laid_out.watched if w.step == step.name]
        assert places == sorted(places)
        assert len(places) <= MOST
    assert "reg_loss" not in {text for _, text in watched(laid_out, "train")}  # which dqn ignores


def health(library, program, policy, ignore=()):
    source = library.programs[program].model_copy(update={"health": Health(policy=policy, ignore=ignore)})
    return library.model_copy(update={"programs": {**library.programs, program: source}})


def bytes_of(ranges):
    return {(r.base, k) for r in ranges for k in range(r.offset, r.offset + r.count)}


@pytest.mark.parametrize("policy", ["skip-update", "stop"])
@pytest.mark.parametrize(("program", "variant"), [("aux", "default"), ("dqn", "small")])
def test_what_may_be_put_back_is_watched_whatever_its_size(library, program, variant, policy):
    laid_out = lay_out(resolve(health(library, program, policy), program, variant))
    for step in laid_out.program.steps:
        spans = kept(laid_out.program, step)
        bases = {r.base for r in spans}
        written = [
            r
            for n in step.launches
            for a in n.arguments
            for r in (a.ranges if a.access is not Access.READ else ())
        ]
        seen = [w.range for w in laid_out.watched if w.step == step.name]
        assert bytes_of(r for r in written if r.base in bases) <= bytes_of(r for r in seen if r.base in bases)
        assert len(seen) <= MOST
    assert unseen(laid_out.program) == ()


def test_many_params_share_rows():
    count, header = 3 * MOST // 2, "program: p\ndims: {N: 2}\n"
    params = "".join(f"  - {{name: w{k}, shape: [N], group: g, reset: never}}\n" for k in range(count))
    items = "".join(f"      - {{kernel: ema, args: {{x: x, s: w{k}}}, as: e{k}}}\n" for k in range(count))
    text = (
        f"{header}params:\n{params}buffers:\n  - {{name: x, shape: [N], lifetime: input}}\n"
        f"steps:\n  - name: train\n    items:\n{items}"
    )
    laid_out = check(text + "health: {policy: stop}\n", EMA).laid_out
    (row,) = laid_out.watched
    assert (row.launch, row.range.offset, row.range.count) == (f"train.e{count - 1}", 0, 2 * count)
    assert row.before == tuple(f"train.e{k}" for k in range(count - 1))


EMA = "- {kernel: ema, params: {x: {shape: [...n]}, s: {access: update, shape: [...n]}}}"
IN_PLACE = """
program: p
dims: {B: 4, K: 3, N: 2}
params:
  - {name: w, shape: [K, N], group: g, reset: never}
  - {name: b, shape: [N], group: g, reset: never}
buffers:
  - {name: x, shape: [B, K], lifetime: input}
  - {name: more, shape: [K, N], lifetime: input}
  - {name: y, shape: [B, N], lifetime: step}
steps:
  - name: train
    items:
      - {kernel: linear, args: {x: x, w: w, y: y}}
      - {kernel: copy, args: {x: more, y: w.g}, as: first}
      - {kernel: ema, args: {x: more, s: w.g}, as: second}
      - {kernel: ema, args: {x: w.g, s: w}, as: third}
      - {kernel: ema, args: {x: g, s: g.m}, as: all}
      - {kernel: ema, args: {x: b, s: b.m}, as: last}
"""


def named(text):
    return [(w.launch.removeprefix("train."), w.range.text) for w in check(text, EMA).laid_out.watched]


def test_what_is_changed_in_place_names_all_its_writers():
    rows = {w.range.text: w for w in check(IN_PLACE, EMA).laid_out.watched}
    assert (rows["y"].updates, rows["y"].before) == (False, ())
    assert (rows["w.g"].launch, rows["w.g"].before) == ("train.second", ("train.first",))
    assert (rows["w"].updates, rows["w"].before) == (True, ())


def test_a_part_that_a_later_launch_leaves_alone_still_stands():
    assert named(IN_PLACE + "health: {policy: stop}\n") == [
        ("linear", "y"),
        ("second", "w.g"),
        ("third", "w"),
        ("all", "g.m [0:6)"),
        ("last", "b.m"),
    ]


def test_a_part_of_what_is_watched_may_be_ignored():
    text = IN_PLACE + 'health: {policy: stop, ignore: [w.m, "y[1:3]"]}\n'
    assert named(text) == [
        ("linear", "y [0:2)"),
        ("linear", "y [6:8)"),
        ("second", "w.g"),
        ("third", "w"),
        ("last", "b.m"),
    ]
    assert unseen(check(text, EMA).laid_out.program) == ("w.m",)


def test_what_an_update_writes_from_params_is_kept(library):
    program = resolve(health(library, "dqn", "skip-update"), "dqn", "small")
    laid_out = lay_out(program)
    train = next(s for s in laid_out.program.steps if s.name == "train")
    bases = {r.base for r in kept(laid_out.program, train)}
    assert {"params", "params.m", "params.v", "t_w1", "t_iqn_b", "adam_correction"} <= bases
    assert not [b for b in bases if b.startswith("ring")]
    collect = next(s for s in laid_out.program.steps if s.name == "collect")
    assert kept(laid_out.program, collect) == ()
    assert not [
        a for a in lay_out(resolve(library, "dqn", "small")).allocations if "sentinel.train" in a.name
    ]


def test_a_policy_changes_no_place(library):
    entries = {
        policy: lay_out(resolve(health(library, "aux", policy), "aux", "tiny")).entries
        for policy in ("report", "skip-update", "stop", "off")
    }
    assert len(set(entries.values())) == 1


def test_what_is_ignored_is_no_typing_mistake():
    assert check(SMALL + "health: {ignore: [y]}\n").laid_out.watched == ()
    assert findings(SMALL + "health: {ignore: [why]}\n") == [("FH201", "unknown name why")]


@pytest.mark.parametrize(
    ("health", "idle"),
    [
        ("ignore: [x]", ["x"]),  # an input
        ("ignore: [y, y]", ["y"]),
        ("ignore: [y, 'y[0]']", ["y[0]"]),
        ("ignore: [w.g, w]", []),
        ("ignore: [w.g, g.m]", []),  # a report looks at no moments, but the policy may change
        ("policy: stop, ignore: [g.m]", []),
        ("policy: stop, ignore: [g.v]", ["g.v"]),
        ("policy: 'off', ignore: [y]", []),
        ("policy: 'off', ignore: [x]", ["x"]),
    ],
)
def test_a_name_that_leaves_nothing_out_is_a_finding(health, idle):
    text = f"{IN_PLACE}health: {{{health}}}\n"
    if idle:
        start = "to ignore {} leaves nothing out that a sentinel would look at"
        assert findings(text, EMA) == [("FH261", start.format(name)) for name in idle]
    else:
        check(text, EMA)

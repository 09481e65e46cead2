"""What a sentinel looks at, and what is kept so that an update can be undone."""

import pytest
from ir_builders import check, findings
from kernel_harness import ROOT

from foxhunt.ir.access import traffic
from foxhunt.ir.layout import lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.ir.watch import MOST, SHARE, kept
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


def health(library, program, policy):
    source = library.programs[program].model_copy(update={"health": Health(policy=policy)})
    return library.model_copy(update={"programs": {**library.programs, program: source}})


def test_what_an_update_writes_from_params_is_kept(library):
    program = resolve(health(library, "dqn", "skip-update"), "dqn", "small")
    laid_out = lay_out(program)
    train = next(s for s in laid_out.program.steps if s.name == "train")
    bases = {r.base for r in kept(laid_out.program, train)}
    assert {"params", "params.m", "params.v", "t_w1", "t_iqn_b"} <= bases
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

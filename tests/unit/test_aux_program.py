"""Program `aux` as declared: the facts of facts §6 and §7 that the compiler derives from its specs."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from foxhunt.ir.graph import build_graph
from foxhunt.ir.layout import lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.ir.types import Access
from foxhunt.reference import REFERENCES
from foxhunt.spec.load import load_specs

SPECS = load_specs(Path(__file__).parents[2] / "specs")


@pytest.fixture(scope="module", params=["default", "demo"])
def laid_out(request):
    return lay_out(resolve(SPECS, "aux", request.param), None)


def launches(laid_out, step="train"):
    return next(s for s in laid_out.program.steps if s.name == step).launches


def test_the_trunk_has_exactly_163072_parameters(laid_out):
    trunk = [t for t in laid_out.program.tensors if t.group == "trunk"]
    assert len(trunk) == 6
    assert sum(t.count for t in trunk) == 163_072


def test_the_backward_of_the_trunk_is_seven_launches(laid_out):
    found = [q.kernel.kernel for q in launches(laid_out) if q.kernel.kernel.startswith("bwd_")]
    assert found == ["bwd_dh_pre"] + 3 * ["bwd_dW_reduce"] + 3 * ["bwd_db_reduce"]


def test_nothing_writes_a_gradient_for_the_samples(laid_out):
    place = laid_out.places["enc"].allocation
    writers = [
        q.kernel.kernel
        for q in launches(laid_out)
        for a in q.arguments
        if a.access is not Access.READ and any(r.base == place for r in a.ranges)
    ]
    assert writers == ["gather_windows"]
    assert not any("enc" in name and name != "enc" for name in laid_out.places)


def test_weights_are_updated_then_observed_then_clamped(laid_out):
    graph = build_graph(laid_out, "train")
    order = nx.DiGraph((e.before, e.after) for e in graph.edges)
    names = {q.name.rsplit(".", 1)[-1]: q.name for q in graph.launches}
    for oracle, clamp in (("trunk_weight_p99", "clamp_trunk"), ("heads_weight_p99", "clamp_heads")):
        assert nx.has_path(order, names["adamw"], names[oracle])
        assert nx.has_path(order, names[oracle], names[clamp])


def test_a_fold_reset_clears_every_observed_slot_and_keeps_what_is_learned(laid_out):
    assert {s.reset for s in laid_out.program.slots if s.source == "producer"} == {"fold"}
    kept = (*laid_out.program.tensors, *laid_out.program.counters)
    assert {e.reset for e in kept if getattr(e, "lifetime", "persistent") == "persistent"} == {"never"}


def test_an_update_and_its_corrections_have_the_same_decay():
    update, correction = SPECS.kernels["adamw"].consts, SPECS.kernels["beta_correction"].consts
    for beta in ("BETA1", "BETA2"):
        assert correction[f"ONE_MINUS_{beta}"] == update[f"ONE_MINUS_{beta}"]
        assert update[beta] + update[f"ONE_MINUS_{beta}"] == 1.0


@pytest.mark.parametrize("batch", [4, 256, 1147, 4096])
@pytest.mark.parametrize("start", [1, 3, 1000])
def test_any_run_of_evaluate_steps_sees_each_held_out_window_once(batch, start):
    dims = {"B": batch, "N": 1147}
    steps = -(-1147 // batch)
    positions = []
    for t in range(start, start + steps):
        found = REFERENCES["eval_windows"]({"t": t, "ends": np.arange(1147)}, dims, {})
        assert (found["window"][found["position"] >= 0] == found["position"][found["position"] >= 0]).all()
        positions += found["position"].tolist()
    assert sorted(p for p in positions if p >= 0) == list(range(1147))

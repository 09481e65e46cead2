"""Program `aux` as it is shipped: what the compiler derives from it."""

import pytest

from foxhunt.contract.fingerprint import fingerprint
from foxhunt.ir.graph import build_graph
from foxhunt.ir.layout import lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.ir.verify import verify
from foxhunt.spec.load import load_specs


@pytest.fixture(scope="module")
def specs(pytestconfig):
    return load_specs(pytestconfig.rootpath / "specs")


@pytest.mark.parametrize("variant", ["default", "demo", "tiny"])
def test_every_variant_keeps_every_rule(specs, variant):
    laid_out = lay_out(resolve(specs, "aux", variant))
    verify(laid_out, tuple(build_graph(laid_out, s.name) for s in laid_out.program.steps))


def test_the_trunk_has_163072_parameters_in_one_run(specs):
    laid_out = lay_out(resolve(specs, "aux"))
    trunk = [t for t in laid_out.program.tensors if t.group == "trunk"]
    assert sum(t.count for t in trunk) == 163_072
    assert laid_out.places["trunk"].allocation == "params"


def test_the_demo_exchanges_checkpoints_with_the_full_size(specs):
    default, demo = (fingerprint(lay_out(resolve(specs, "aux", v)), {}) for v in ("default", "demo"))
    assert default.layout == demo.layout


def test_the_backward_is_seven_launches_after_the_heads_and_writes_nothing_of_the_encoder(specs):
    laid_out = lay_out(resolve(specs, "aux"))
    train = next(s for s in laid_out.program.steps if s.name == "train")
    backward = [
        launch
        for launch in train.launches
        if launch.blocks == ("backward",) and launch.kernel.kernel.startswith("bwd_")
    ]
    assert [launch.kernel.kernel for launch in backward] == [
        "bwd_dh_pre",
        "bwd_dW_reduce",
        "bwd_dW_reduce",
        "bwd_dW_reduce",
        "bwd_db_reduce",
        "bwd_db_reduce",
        "bwd_db_reduce",
    ]
    written = {
        found.text
        for launch in backward
        for argument in launch.arguments
        if argument.access != "read"
        for found in argument.ranges
    }
    assert not any("enc" in text for text in written)


def test_the_weight_oracle_stands_between_adamw_and_the_clamp(specs):
    laid_out = lay_out(resolve(specs, "aux"))
    graph = build_graph(laid_out, "train")
    edges = {(e.before, e.after) for e in graph.edges}
    assert ("train.optimise.adamw", "train.optimise.trunk_weight_p99") in edges
    assert ("train.optimise.trunk_weight_p99", "train.optimise.clamp_trunk") in edges

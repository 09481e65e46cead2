"""Backward oracles against central differences of the forward ones; shares and sums with known answers."""

import numpy as np
import pytest

from foxhunt.reference import REFERENCES
from foxhunt.reference.registry import SKIP

B, GROUPS, GF, EMB = 3, 4, 2, 5
DIMS = {"B": B, "GROUPS": GROUPS, "GF": GF, "EMB": EMB, "N": GROUPS}
RNG = np.random.default_rng(23)


def normal(*shape):
    return RNG.standard_normal(shape)


def numeric(f, inputs, name, slope):
    """The gradient of Σ slope·f(inputs) with respect to one input, by central differences."""
    gradient, step = np.zeros(inputs[name].shape), 1e-5
    for at in np.ndindex(gradient.shape):
        sides = []
        for sign in (1, -1):
            moved = inputs[name].copy()
            moved[at] += sign * step
            sides.append(float((f({**inputs, name: moved}) * slope).sum()))
        gradient[at] = (sides[0] - sides[1]) / (2 * step)
    return gradient


def run(name, inputs):
    return REFERENCES[name](inputs, DIMS, {})


def close(found, want):
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-8)


def test_softmax():
    x, dy = normal(B, GROUPS), normal(B, GROUPS)
    want = numeric(lambda p: run("softmax_rows", p)["y"], {"x": x}, "x", dy)
    close(run("softmax_rows_grad", {"y": run("softmax_rows", {"x": x})["y"], "dy": dy})["dx"], want)


def test_group_embeddings():
    p = {"x": normal(B, GROUPS * GF), "w": normal(GROUPS, GF, EMB), "b": normal(GROUPS, EMB)}
    d_e, e = normal(B * GROUPS, EMB), run("group_embed", p)["e"]
    before = d_e * np.where(e > 0, 1, 1 + e)
    found = run("group_embed_grad", {"x": p["x"], "d": before})
    for name in "wb":
        close(found[f"d{name}"], numeric(lambda p: run("group_embed", p)["e"], p, name, d_e))


def test_variable_selection_down_to_what_enters_the_elu_and_the_softmax():
    def forward(p):
        mask = run("softmax_rows", {"x": p["logits"]})["y"]
        e = np.where(p["before"] > 0, p["before"], np.expm1(p["before"]))
        return mask, e, run("vsn_mix", {"mask": mask, "e": e})["emb"]

    p, d_emb = {"logits": normal(B, GROUPS), "before": normal(B * GROUPS, EMB)}, normal(B * GROUPS, EMB)
    mask, e, _ = forward(p)
    found = run("vsn_mix_grad", {"d_emb": d_emb, "mask": mask, "e": e})
    close(found["d_logits"], numeric(lambda p: forward(p)[2], p, "logits", d_emb))
    close(found["d_e"], numeric(lambda p: forward(p)[2], p, "before", d_emb))


def test_attention():
    p, d = {"qkv": normal(B * GROUPS, 3 * EMB), "emb": normal(B * GROUPS, EMB)}, normal(B, GROUPS * EMB)
    att = run("attention", p)["att"]
    close(att.reshape(B, GROUPS, GROUPS).sum(axis=2), 1)
    found = run("attention_grad", {"d_flat": d, "qkv": p["qkv"], "att": att})
    for name in ("qkv", "emb"):
        close(found[f"d_{name}"], numeric(lambda p: run("attention", p)["flat"], p, name, d))


@pytest.mark.parametrize("kind", ["linear", "linear_elu"])
def test_the_input_of_a_layer(kind):
    p, dy = {"x": normal(B, GF), "w": normal(GF, EMB), "b": normal(EMB)}, normal(B, EMB)
    if kind == "linear":
        found = run("linear_dx", {"dy": dy, "w": p["w"]})["dx"]
        close(found, numeric(lambda p: run("linear", p)["y"], p, "x", dy))
    else:  # down to what enters the ELU that gave x, which is used elsewhere too
        first = {"x": normal(B, EMB), "w": normal(EMB, GF), "b": normal(GF)}
        other, x = normal(B, GF), run("linear_elu", first)["y"]

        def both(q):
            x = run("linear_elu", q)["y"]
            return np.concatenate([run("linear", {**p, "x": x})["y"], x], axis=1)

        found = run("linear_dx", {"dy": dy, "w": p["w"], "add": other, "y": x})["dx"]
        close(found.sum(axis=0), numeric(both, first, "b", np.concatenate([dy, other], axis=1)))


def test_a_softmax_row_without_a_finite_maximum_is_nan_and_leaves_the_others_alone():
    y = run("softmax_rows", {"x": np.array([[np.nan, 1], [np.inf, 0], [-np.inf, -np.inf], [-np.inf, 3]])})[
        "y"
    ]
    assert np.isnan(y[:3]).all()
    assert y[3].tolist() == [0, 1]


def test_a_column_without_a_finite_element_has_no_observation():
    y = run("column_mean", {"x": np.array([[np.nan, 1.0], [np.inf, 3.0]])})["y"]
    assert y[0].astype(np.float32).view(np.uint32) == SKIP.view(np.uint32)
    assert y[1] == 2


def test_the_entropy_of_a_uniform_gate_is_the_logarithm_of_its_width():
    assert run("gate_entropy", {"p": np.full(8, 0.125)})["y"][0] == pytest.approx(np.log(8), rel=1e-15)
    assert run("gate_entropy", {"p": np.array([0.0, 1.0])})["y"][0] == 0

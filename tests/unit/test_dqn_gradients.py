"""The gradients of the whole loss of `dqn`, in float64, by central differences; what stops is stopped."""

from pathlib import Path

import numpy as np
import pytest
from step_oracle import StepOracle

from foxhunt.ir.layout import lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.spec.load import load_specs

SPECS = load_specs(Path(__file__).parents[2] / "specs")
BRANCHES = ("dir", "mag", "ord", "urg")
WEIGHTS = {
    **{"LAMBDA_C51": 0.7, "LAMBDA_IQN": 0.6, "LAMBDA_ATOM": 0.4, "LAMBDA_IQL": 1.3, "LAMBDA_CURIOSITY": 0.8},
    **{"MOE_LAMBDA_EFF": 0.5, "AUX_DIR_WEIGHT": 0.9, "AUX_REGIME_WEIGHT": 1.1},
}
LIVE = ("online", "now", "tail", "ahead", "learn")
NAMES = [p.name for p in SPECS.programs["dqn"].params]


class Batch:
    """One batch of `train` at `tiny` dims before any bound was observed."""

    def __init__(self) -> None:
        laid_out = lay_out(resolve(SPECS, "dqn", "tiny"), None)
        self.oracle = StepOracle(laid_out, seed=11)
        self.dims = dict(laid_out.program.dims)
        steps = {s.name: s for s in laid_out.program.steps}
        train = [la for la in steps["train"].launches if la.producer is None and "update" not in la.blocks]
        self.launches = train[1:]  # all but the draw from the replay
        rng = np.random.default_rng(3)
        for tensor in laid_out.program.tensors:
            if tensor.role == "param":
                scale = 0.5 if len(tensor.shape) > 1 else 0.2
                self.oracle.tensor(tensor.name)[...] = scale * rng.standard_normal(tensor.shape)
            if tensor.name.startswith("t_"):
                self.oracle.tensor(tensor.name)[...] = 0.4 * rng.standard_normal(tensor.shape)
        # the magnitude's view of the direction's Q gets no gradient: without weights there is nothing to get
        self.oracle.tensor("mag_adv_w")[self.dims["MOE"] :] = 0.0
        for name, value in WEIGHTS.items():
            slot = next(s for s in laid_out.program.slots if s.name == name)
            self.oracle.memory["isv"][slot.index] = value
        self.oracle.run("plant")
        for _ in range(self.dims["CAP"] // self.dims["B"]):
            self.oracle.run("collect")
        self.oracle._launch(train[0])
        self.run()
        self.gradients = {name: self.oracle.tensor(f"{name}.g").copy() for name in NAMES}

    def run(self) -> None:
        for launch in self.launches:
            self.oracle._launch(launch)

    def losses(self) -> dict[str, float]:
        """The loss that each network learns from, weighted."""
        value = self.oracle.tensor
        util = value("learn.trunk.util")
        q = sum(WEIGHTS["LAMBDA_C51"] * value(f"learn.heads.{b}_loss").mean() for b in BRANCHES)
        q += WEIGHTS["LAMBDA_IQN"] * value("learn.heads.iqn_losses").mean()
        q += WEIGHTS["MOE_LAMBDA_EFF"] * self.dims["EXPERTS"] * (util**2).sum()
        labelled = max(int(value("dir_valid")[0]), 1)
        regimes = value("reg_loss")
        return {
            "q": q,
            "hi": WEIGHTS["LAMBDA_IQL"] * value("learn.hi.loss").mean(),
            "lo": WEIGHTS["LAMBDA_IQL"] * value("learn.lo.loss").mean(),
            "cur": WEIGHTS["LAMBDA_CURIOSITY"] * value("learn.curious.loss").mean(),
            "aux": WEIGHTS["AUX_DIR_WEIGHT"] * value("dir_loss").sum() / labelled
            + WEIGHTS["AUX_REGIME_WEIGHT"] * np.where(np.isfinite(regimes), regimes, 0).sum() / len(regimes),
        }


@pytest.fixture(scope="module")
def batch():
    return Batch()


def owner(name: str) -> str:
    """Which loss a parameter learns from."""
    if name in ("dir_w", "dir_b", "reg_w", "reg_b"):
        return "aux"
    head = name.partition("_")[0]
    return head if head in ("hi", "lo", "cur", "aux") else "q"


@pytest.mark.parametrize("name", [n for n in NAMES if n != "theta"])
def test_a_gradient_of_the_loss_is_its_central_difference(batch, name):
    tensor, gradient = batch.oracle.tensor(name), batch.gradients[name]
    scale = np.abs(gradient).max()
    assert scale > 0
    for at in np.random.default_rng(5).choice(tensor.size, min(tensor.size, 4), replace=False):
        place, sides = np.unravel_index(at, tensor.shape), []
        kept = tensor[place]
        for moved in (kept + 1e-6, kept - 1e-6):
            tensor[place] = moved
            batch.run()
            sides.append(batch.losses()[owner(name)])
        tensor[place] = kept
        slope = (sides[0] - sides[1]) / 2e-6
        assert slope == pytest.approx(gradient[place], rel=1e-5, abs=1e-6 * scale + 1e-9), (name, place)


def test_atom_positions_learn_from_value_matching_alone(batch):
    batch.run()
    value, theta = batch.oracle.tensor, batch.oracle.tensor("theta")
    action, target = value("action"), value("target_q_in").copy()
    rows = np.arange(len(action))

    def loss(theta, k, b):
        gaps = np.exp(theta[k] - theta[k].max())
        z = -1.0 + 2.0 * np.concatenate([[0.0], np.cumsum(gaps / gaps.sum())])
        p = np.exp(value(f"now.heads.{b}_logp")).reshape(len(action), -1, len(z))[rows, action[:, k]]
        return WEIGHTS["LAMBDA_ATOM"] * ((p @ z - target[:, k]) ** 2).mean()

    for k, b in enumerate(BRANCHES):
        for i in (0, 7, 49):
            sides = []
            for step in (1e-6, -1e-6):
                moved = theta.copy()
                moved[k, i] += step
                sides.append(loss(moved, k, b))
            assert (sides[0] - sides[1]) / 2e-6 == pytest.approx(
                batch.gradients["theta"][k, i], rel=1e-5, abs=1e-9
            )


def test_what_the_magnitude_sees_of_the_direction_gets_no_gradient(batch):
    """With weights on the direction's Q the direction's gradients stay what they are without."""
    seen = batch.oracle.tensor("mag_adv_w")
    before = {n: batch.gradients[n] for n in ("dir_adv_w", "dir_adv_b")}
    seen[batch.dims["MOE"] :] = 0.5
    batch.run()
    for name, gradient in before.items():
        np.testing.assert_allclose(batch.oracle.tensor(f"{name}.g"), gradient, rtol=1e-12, atol=1e-15)
    seen[batch.dims["MOE"] :] = 0.0
    batch.run()

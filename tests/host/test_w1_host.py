"""The benchmark program W1 on the host computes what its NumPy float64 reference, and its peers, compute."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))


@pytest.mark.parametrize("batch", [33])
def test_w1_agrees_with_its_reference(batch):
    import w1_problem
    from w1_foxhunt import FoxhuntArm

    problem = w1_problem.problem(batch)
    arm = FoxhuntArm(problem, "fp32", per_graph=1, backend="host")
    arm.run(6)
    weights, statistics = arm.outputs()
    expected, expected_statistics = w1_problem.reference(problem, 6)
    for name, value in expected.items():
        gone = np.linalg.norm(value - problem.weights[name])
        assert np.linalg.norm(weights[name] - value) < 1e-4 * gone, name
    np.testing.assert_allclose(statistics, expected_statistics, rtol=1e-5)
    arm.restart()
    arm.run(6)
    again, _ = arm.outputs()
    assert all((again[name] == weights[name]).all() for name in weights)

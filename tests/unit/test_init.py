import hashlib

import numpy as np
import pytest

from foxhunt.runtime.init import POLICIES, initial


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (4, 3), (2, 3, 4), (0, 4), (0,)])
def test_every_policy_gives_finite_float32_of_the_shape(policy, shape):
    values = initial(policy, shape, 0, "w")
    assert values.shape == shape
    assert values.dtype == np.float32
    assert np.isfinite(values).all()


def test_bits_depend_on_seed_and_name_alone():
    w = initial("he", (64, 32), 1, "w")
    assert np.array_equal(w, initial("he", (64, 32), 1, "w"))
    assert not np.array_equal(w, initial("he", (64, 32), 2, "w"))
    assert not np.array_equal(w, initial("he", (64, 32), 1, "v"))


@pytest.mark.parametrize(
    ("policy", "digest"),
    [
        ("normal", "c53f18c3dacb1c97"),
        ("he", "209a044c0e7af05f"),
        ("glorot", "c7e0796d9e86abf3"),
        ("orthogonal", "3c8486540dbd6e6c"),
    ],
)
def test_the_bits_are_the_same_on_every_machine(policy, digest):
    bits = initial(policy, (63, 17), 7, "aux_w1").astype("<f4").tobytes()
    assert hashlib.sha256(bits).hexdigest()[:16] == digest


@pytest.mark.parametrize(
    ("policy", "deviation"), [("normal", 0.02), ("he", (2 / 400) ** 0.5), ("glorot", 0.06324555)]
)
def test_deviations(policy, deviation):
    w = initial(policy, (400, 100), 0, "w").astype(np.float64) / deviation
    assert abs(w.mean()) < 0.02
    assert abs(w.std() - 1) < 0.02
    assert abs((w**4).mean() - 2.9) < 0.1  # a sum of 12 uniforms has a kurtosis of 2.9
    assert abs(np.corrcoef(w[:-1].ravel(), w[1:].ravel())[0, 1]) < 0.02


@pytest.mark.parametrize("shape", [(443, 256), (128, 128), (5, 128), (3, 3, 8), (1, 1)])
def test_orthogonal_has_orthonormal_columns_or_rows(shape):
    w = initial("orthogonal", shape, 0, "w").astype(np.float64).reshape(-1, shape[-1])
    gram = w.T @ w if w.shape[0] >= w.shape[1] else w @ w.T
    assert np.abs(gram - np.eye(len(gram))).max() < 1e-6

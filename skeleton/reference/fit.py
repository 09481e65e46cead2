"""What this project's own kernels should compute, in float64: `(inputs, dims, consts)` → outputs."""

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.registry import Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]


@reference("draw_plane")
def draw_plane(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Samples of the plane that the program fits, from the same random bits."""
    rng, B, K, N = inputs["rng"], dims["B"], dims["K"], dims["N"]
    x = _uniform(rng, B * K, 0).reshape(B, K)
    noise = inputs["noise"] * _uniform(rng, B * N, 1).reshape(B, N)
    n = np.arange(1, N + 1)
    slopes = np.arange(1, K + 1)[:, None] / n
    return {"x": x, "y": n + x @ slopes + noise}


def _uniform(rng, count, draw):
    """`count` numbers in [-1, 1): 24 bits of each word."""
    words = rng.bits(np.arange(count, dtype=np.int64), draw)[0]
    return 2.0 * (words >> np.uint64(8)).astype(np.float64) / 2**24 - 1.0


@reference("squared_error")
def squared_error(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Losses, and the gradient of their mean."""
    error = np.asarray(inputs["fitted"], np.float64) - inputs["y"]
    return {"loss": (error**2).sum(axis=1), "d": 2.0 * error / dims["B"]}

"""Oracles of the replay ring."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foxhunt.reference.registry import Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]

COLUMNS = {
    "ring_x": "x",
    "ring_xn": "xn",
    "ring_action": "action",
    "ring_reward": "reward",
    "ring_terminated": "terminated",
    "ring_rewards6": "rewards6",
    "ring_dir": "dir_label",
    "ring_reg": "reg_label",
}
"""Each tensor of the ring, and that of a batch."""


@reference("ring_write")
def ring_write(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Transition b at row (position + b) mod C, one after another."""
    start = int(inputs["position"][0])
    result: Outputs = {"position": inputs["position"] + dims["B"]}
    for ring, batch in COLUMNS.items():
        result[ring] = inputs[ring].copy()
        for b in range(dims["B"]):
            result[ring][(start + b) % dims["C"]] = inputs[batch][b]
    return result


@reference("replay_sample")
def replay_sample(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Uniform rows of the filled part."""
    filled = min(int(inputs["position"][0]), dims["C"])
    row = inputs["rng"].below(np.arange(dims["B"]), 0, filled)
    return {batch: inputs[ring][row] for ring, batch in COLUMNS.items()}

"""Rough costs in microseconds, and the grid of a statistic: the only numbers that fusion, lanes and grids
go by.
"""

from __future__ import annotations

from foxhunt.expr import evaluate
from foxhunt.ir.access import traffic
from foxhunt.ir.types import Launch

BYTES_PER_US = 3.0e6  # 3 TB/s of device memory
FLOPS_PER_US = 30.0e6  # 30 TFLOP/s of fp32
FLOOR_US = 0.8  # an empty kernel with a dependent chain in a captured graph
SMALL_US = 10.0
"""A launch below this is small: it may share a device launch with others."""
LANE_US = 20.0
"""Two independent launches that are both above this may run on two lanes."""
STATISTIC_ELEMENTS_PER_BLOCK = 4 * 1024
STATISTIC_MAX_BLOCKS = 4 * 132
CARRY_WORDS = 16
"""What a pass of a statistic leaves for the next, in 32-bit words."""
PARTIAL_BYTES = 1088
"""What a statistic may keep per block: 64 bytes of state and 256 32-bit bins (FH_STATISTIC_PARTIAL_BYTES)."""


def size(launch: Launch, text: int | str) -> int:
    """A size of a launch's kernel (workspace, tickets, flops): its symbols, integer consts and BLOCK are
    known there.
    """
    if isinstance(text, int):
        return text
    consts = {k: v for k, v in launch.kernel.consts.items() if isinstance(v, int)}
    return evaluate(text, {**consts, **dict(launch.dims), "BLOCK": launch.kernel.block})


def microseconds(launch: Launch) -> float:
    """The estimated time of one launch: the larger of memory and arithmetic, plus what a launch costs."""
    flops = size(launch, launch.kernel.flops)
    return FLOOR_US + max(launch.kernel.passes * traffic(launch) / BYTES_PER_US, flops / FLOPS_PER_US)


def statistic_grid(elements: int) -> int:
    """Blocks of one pass over a domain of `elements`.

    The result's bits depend on it, so it is a function of the domain only: never of the device, the backend
    or the other statistics that share the sweep, with their further inputs.
    """
    return max(1, min(STATISTIC_MAX_BLOCKS, -(-elements // STATISTIC_ELEMENTS_PER_BLOCK)))

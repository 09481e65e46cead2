"""NumPy float64 oracles of the kernel library: `REFERENCES[name](inputs, dims, consts)`, one a kernel."""

from foxhunt.reference import (
    distributional,
    environment,
    heads,
    linear,
    moe,
    optimiser,
    paths,
    quantiles,
    replay,
    selection,
    statistics,
    values,
    windows,
)
from foxhunt.reference.registry import REFERENCES

__all__ = [
    "REFERENCES",
    "distributional",
    "environment",
    "heads",
    "linear",
    "moe",
    "optimiser",
    "paths",
    "quantiles",
    "replay",
    "selection",
    "statistics",
    "values",
    "windows",
]

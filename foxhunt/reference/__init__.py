"""NumPy float64 oracles of the kernel library: `REFERENCES[name](inputs, dims, consts)`, one a kernel."""

from foxhunt.reference import heads, linear, optimiser, quantiles, statistics, values, windows
from foxhunt.reference.registry import REFERENCES

__all__ = [
    "REFERENCES",
    "heads",
    "linear",
    "optimiser",
    "quantiles",
    "statistics",
    "values",
    "windows",
]

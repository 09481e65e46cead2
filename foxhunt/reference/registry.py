"""The table of float64 oracles: one function a kernel of the library, found by its `reference:` name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Inputs = Mapping[str, Any]
"""Parameter name → its contents before the launch: an array, a list of arrays where it is `many`.

A `bound` is its limit as a float (+inf while unobserved), an `rng` a `Stream`, a `counter` an int, a `slot` a
float.
"""
Outputs = dict[str, Any]
"""Written parameter name → its contents after the launch, float64 or integers; a list where it is `many`."""
Reference = Callable[[Inputs, Mapping[str, int], Mapping[str, float | int]], Outputs]
"""`(inputs, dims, consts)` → outputs; dims are the kernel's symbols, consts its `consts`."""

REFERENCES: dict[str, Reference] = {}

SKIP = np.array([0x7FC0F0F0], np.uint32).view(np.float32)[0]
"""What a producer writes when it has no observation this step: one NaN among many."""


def reference(name: str) -> Callable[[Reference], Reference]:
    """Puts the decorated function into `REFERENCES`; a project's own goes before the library's."""

    def register(function: Reference) -> Reference:
        own = not function.__module__.startswith("foxhunt.")
        assert own or name not in REFERENCES, f"two references are called {name}"
        REFERENCES[name] = function
        return function

    return register


def rows(value: Any) -> list[Array]:
    """The rows of a parameter as flat float64 arrays, whether it is `many` or a single array."""
    parts = value if isinstance(value, list) else [value]
    return [np.asarray(p, np.float64).ravel() for p in parts]

"""The static_assert that stopped a compiler: a kernel refusing dims, told apart from a mistake in it."""

from __future__ import annotations

import re

HELP = "Either a dim is outside of what the kernel can do, or its template is wrong."
_FAILED = re.compile(r"^(.*)error: static(?: assertion|_assert) failed(.*)$", re.MULTILINE)
_FILE = re.compile(r"([\w.]+\.cuh?)[:(](\d+)")
_SOURCE = re.compile(r"static_assert\((.*)\);")
_VALUES = re.compile(r"note.*(?:reduces to|comparison was) \W*(\d+ [=!<>]+ \d+)")


def failed_assertion(log: str) -> str | None:
    """The first static_assert that g++, clang++, nvcc or NVRTC says has failed; None where none has.

    >>> failed_assertion('k.cuh:3: error: static assertion failed:\\n static_assert(N % 2 == 0, "even");')
    'static_assert(N % 2 == 0, "even") does not hold (k.cuh:3)'
    """
    found = _FAILED.search(log)
    if found is None:
        return None
    rest = log[found.end() :].partition("error:")[0]
    source, values, file = _SOURCE.search(rest), _VALUES.search(rest), _FILE.search(found[1])
    said = f"static_assert({source[1]})" if source else f"static_assert{found[2]}"
    where = [values[1]] if values else []
    where += [f"{file[1]}:{file[2]}"] if file else []
    return f"{said} does not hold" + (f" ({', '.join(where)})" if where else "")

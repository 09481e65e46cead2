"""Every library kernel on CUDA at its examples and odd sizes: its reference's numbers and the host's bits."""

import numpy as np
import pytest
from kernel_harness import kernel_program, library

from foxhunt.backend.base import make_backend
from foxhunt.verify.cases import cases, differences

KERNELS = library()


def same_bits(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(same_bits(x, y) for x, y in zip(a, b, strict=True))
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind != "f":
        return bool((a == b).all())
    # Of a NaN that arithmetic made, only that it is one: x86 and CUDA write different ones.
    computed = np.isnan(a) & np.isnan(b)
    return bool(((a.view(np.uint32) == b.view(np.uint32)) | computed).all())


def results(tried, backend, folder):
    """What each case leaves behind, and what its reference says."""
    with kernel_program(tried, backend, folder) as program:
        program.run()
        numbers = range(len(tried))
        return [program.found(n) for n in numbers], [
            tried[n].expected(program.launch_hash(n)) for n in numbers
        ]


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_kernel_agrees_with_its_reference_and_has_the_host_bits(name, backend, tmp_path):
    tried = list(cases(KERNELS[name]))
    found, expected = results(tried, backend, tmp_path / "cuda")
    on_host, _ = results(tried, make_backend("host"), tmp_path / "host")
    findings = []
    for case, values, truth, host_values in zip(tried, found, expected, on_host, strict=True):
        findings += [f"{case.name}: {line}" for line in differences(case, values, truth)]
        findings += [
            f"{case.name}: {key} differs from the host's bits"
            for key in values
            if not same_bits(values[key], host_values[key])
        ]
    assert not findings

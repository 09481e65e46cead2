"""Every kernel of the library on the host backend, release and debug, against its float64 reference."""

import pytest
from kernel_harness import kernel_program, library

from foxhunt.backend.base import make_backend
from foxhunt.verify.cases import cases, differences

KERNELS = library()


@pytest.mark.parametrize("debug", [False, True], ids=["release", "debug"])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_kernel_agrees_with_its_reference(name, debug, tmp_path):
    tried = list(cases(KERNELS[name]))
    findings = []
    with kernel_program(tried, make_backend("host"), tmp_path, debug) as program:
        program.run()
        for number, case in enumerate(tried):
            wrong = differences(case, program.found(number), case.expected(program.launch_hash(number)))
            findings += [f"{case.name}: {line}" for line in wrong]
    assert not findings

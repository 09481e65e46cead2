"""Captured steps with 1, 2 and 3 executions a graph leave what the host leaves launch by launch, unfused."""

import pytest
from kernel_harness import ROOT

from foxhunt.backend.cuda import CudaBackend
from foxhunt.emit.templates import load_templates
from foxhunt.spec.load import load_specs
from foxhunt.verify.program import Options, Subject, jobs
from foxhunt.verify.runs import Script


@pytest.mark.parametrize("program", ["aux", "dqn"])
def test_captured_steps_agree_with_the_host_launch_by_launch(program, tmp_path):
    templates = load_templates([ROOT / "templates"])
    subject = Subject(load_specs(ROOT / "specs"), program, "tiny", {}, templates, None)
    options = Options(Script(executions=3), backend="cuda", make_backend=CudaBackend, only=("replay",))
    ((_, check),) = jobs(subject, tmp_path, options)
    found = check()
    assert found.extent == "cuda, K = 1, 2, 3"
    assert [d.message for d in found.findings] == []

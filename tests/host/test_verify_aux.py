"""Program aux does in every legal order, fused or not, what it does launch by launch in declared order."""

from kernel_harness import ROOT

from foxhunt.emit.templates import load_templates
from foxhunt.spec.load import load_specs
from foxhunt.verify.program import RUNS, Options, Subject, jobs
from foxhunt.verify.runs import Script


def test_aux_agrees_with_itself(tmp_path):
    templates = load_templates([ROOT / "templates"])
    subject = Subject(load_specs(ROOT / "specs"), "aux", "tiny", {}, templates, None)
    options = Options(Script(executions=2), orders=2, only=RUNS)
    found = [check() for _, check in jobs(subject, tmp_path, options)]
    assert [c.name for c in found if c.findings] == []
    assert len(found) == len(RUNS)

"""Program aux does in every legal order, fused or not, what it does launch by launch in declared order."""

import pytest
from kernel_harness import ROOT

from foxhunt.emit.templates import load_templates
from foxhunt.pipeline import compile_program
from foxhunt.spec.load import load_specs
from foxhunt.verify.program import RUNS, Options, Subject, jobs
from foxhunt.verify.runs import Script, outputs


def test_aux_agrees_with_itself(tmp_path):
    templates = load_templates([ROOT / "templates"])
    subject = Subject(load_specs(ROOT / "specs"), "aux", "tiny", {}, templates, None)
    options = Options(Script(executions=2), orders=2, only=RUNS)
    found = [check() for _, check in jobs(subject, tmp_path, options)]
    assert [c.name for c in found if c.findings] == []
    assert len(found) == len(RUNS)


@pytest.mark.parametrize("program", ["aux", "dqn"])
@pytest.mark.parametrize("fused", [True, False])
def test_every_written_range_is_watched_once_in_every_form(program, fused):
    compiled = compile_program(load_specs(ROOT / "specs"), program, "tiny", fused=fused)
    watched = [o.key for found in outputs(compiled.schedule).values() for o in found]
    written = {
        (n.name, a.name, row)
        for g in compiled.graphs
        for n in g.launches
        for a in n.arguments
        for row, r in enumerate(a.ranges)
        if a.access != "read" and r.base != "ring.publish"
    }
    assert len(watched) == len(set(watched))
    assert set(watched) == written

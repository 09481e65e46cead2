"""`foxhunt verify` finds a seeded fault of each kind, at its place, and nothing in a right program."""

import json
from dataclasses import replace

import numpy as np
import pytest
from cli_toy import BODY, KERNEL

from foxhunt import load
from foxhunt.backend.host import HostBackend
from foxhunt.cli import verify as cli_verify
from foxhunt.diagnostics import BackendError, fail
from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program, project_templates
from foxhunt.reference import REFERENCES
from foxhunt.spec.load import load_specs
from foxhunt.verify import program
from foxhunt.verify.checks import check_orders, check_replay
from foxhunt.verify.orders import declared_order, reordered
from foxhunt.verify.runs import Baseline, Form, Script

EXAMPLES = (
    "reference: scaled\nexamples:\n  - {n: 40, a: 2.0, x: normal}\n  - {n: 3, a: -0.5, x: [1.0, 0.0, -2.0]}\n"
)
REFERENCE = """\
import numpy as np
from foxhunt.reference.registry import reference

@reference("scaled")
def scaled(inputs, dims, consts):
    return {"y": inputs["a"] * np.asarray(inputs["x"], np.float64)}
"""
TEMPLATE = "templates/kernels/scaled.cu.j2"


@pytest.fixture
def proved(project, monkeypatch):
    """The toy project, whose kernel has examples and a reference."""
    monkeypatch.setattr("foxhunt.reference.registry.REFERENCES", REFERENCES)
    (project / "specs/kernels/scaled.yaml").write_text(KERNEL.replace("reference: scaled\n", EXAMPLES))
    (project / "reference").mkdir()
    (project / "reference/toy.py").write_text(REFERENCE)
    yield project
    REFERENCES.pop("scaled", None)


def kernel(project, body):
    (project / TEMPLATE).write_text("{{ signature }} {\n" + body + "\n}\n")


def test_a_right_program_passes(proved, foxhunt):
    done = foxhunt("verify", "toy", "--backend", "host", "--orders", "1", "--steps", "2")
    assert (done.code, done.err) == (0, "")
    for check in ("kernels against float64", "other legal orders", "fused against unfused", "nothing frozen"):
        assert check in done.out
    assert done.out.count("ok") == 8


def test_a_wrong_formula_is_found_in_the_kernel(proved, foxhunt):
    kernel(proved, "for (i64 i : block.elements(n)) y[i] = (n < 30 ? 1.0f : 1.5f) * a[0] * x[i];")
    done = foxhunt("verify", "toy", "--only", "kernels", "--backend", "host")
    assert done.code == 1
    assert "specs/kernels/scaled.yaml:1:1: error[FH705] kernel scaled: example0: y[0] at 0: " in done.out


def test_an_access_outside_what_is_declared_is_found_in_the_launch(proved, foxhunt):
    kernel(proved, "for (i64 i : block.elements(n + (n == 5))) y[i] = a[0] * x[0];")
    done = foxhunt("verify", "toy", "--only", "access", "--format", "json")
    (found,) = json.loads(done.out)["diagnostics"]
    assert (done.code, found["code"], found["line"]) == (1, "FH562", 22)
    assert "launch train.note accessed element 5 of trace" in found["message"]


def test_an_element_that_is_not_written_is_found_at_odd_sizes_too(proved, foxhunt):
    kernel(proved, "for (i64 i : block.elements(n == 33 ? 32 : n)) y[i] = a[0] * x[i];")
    assert foxhunt("verify", "toy", "--only", "access").code == 0
    done = foxhunt("verify", "toy", "--only", "kernels", "--backend", "host")
    assert "error[FH564] launch scaled (n33) left element 32" in done.out


@pytest.mark.parametrize(
    "value", ["static const f32 frozen = a[0];", "const f32 frozen = 2.0f;"], ids=["cached", "written in"]
)
def test_a_frozen_value_is_found_with_the_slot(proved, foxhunt, value):
    kernel(proved, value + " for (i64 i : block.elements(n)) y[i] = frozen * x[i];")
    done = foxhunt("verify", "toy", "--only", "frozen")
    assert done.code == 1
    assert "toy/program.yaml:22:9: error[FH704] train.note leaves the same bits whatever GAIN is" in done.out
    assert "train.grow leaves the same bits whatever GAIN is" in done.out


def test_a_value_that_makes_no_difference_in_this_program_is_not_frozen(proved, foxhunt):
    kernel(proved, "for (i64 i : block.elements(n)) y[i] = a[0] < -1e6f ? 0.0f : x[i];")
    spec = proved / "specs/kernels/scaled.yaml"
    assert foxhunt("verify", "toy", "--only", "frozen").code == 1
    spec.write_text(spec.read_text().replace("a: -0.5", "a: -1.0e+7"))
    assert foxhunt("verify", "toy", "--only", "frozen").code == 0


def test_a_kernel_without_examples_or_reference_is_found(project, foxhunt):
    done = foxhunt("verify", "toy", "--only", "kernels", "--backend", "host")
    assert (done.code, done.out.count("FH706")) == (1, 1)
    assert "specs/kernels/scaled.yaml:1:1: error[FH706] kernel scaled: cannot be tried" in done.out


def test_state_of_a_kernels_own_is_found(proved, foxhunt):
    (proved / TEMPLATE).write_text(
        BODY.replace(
            "{{ signature }} {",
            "inline int& calls() { static int count = 0; return count; }\n{{ signature }} {\n"
            "  if (block.first() == 0) calls() += 1;",
        ).replace("ONE *", "(ONE + 0.001f * (calls() % 2)) *")
    )
    done = foxhunt("verify", "toy", "--only", "orders")
    assert done.code == 1
    assert "each time, in one same order" in done.out


def test_the_command_offers_every_check():
    assert cli_verify.CHECKS == program.CHECKS


def test_a_missing_edge_is_found_with_launch_tensor_and_element(proved):
    (proved / "specs/toy/program.yaml").write_text(
        "program: toy\ndims: {N: 12}\n"
        "isv: [{name: GAIN, source: host, init: 2.0, reset: never}]\n"
        "buffers:\n  - {name: x, shape: [N], lifetime: input}\n"
        "  - {name: h, shape: [N], lifetime: persistent, reset: never}\n"
        "  - {name: y, shape: [N], lifetime: persistent, reset: never}\n"
        "steps:\n  - name: train\n    items:\n"
        "      - {kernel: scaled, args: {a: GAIN, x: x, y: h}, as: first}\n"
        "      - {kernel: scaled, args: {a: GAIN, x: h, y: y}, as: then}\n"
    )
    specs = load_specs(proved / "specs")
    compiled = compile_program(specs, "toy", templates=project_templates(proved / "specs"), fused=False)
    store(compiled.files, proved / "single")
    baseline = Baseline(Form(compiled.schedule, declared_order(compiled), proved / "single"), Script())
    baseline.record()
    assert not check_orders(baseline, compiled, seed=0, count=3).findings
    (step,) = compiled.schedule.steps
    fewer = tuple(e for e in step.edges if (e.before, e.after) != ("train.first", "train.then"))
    assert len(fewer) == len(step.edges) - 1
    broken_step = replace(step, edges=(*fewer, *_anchors(step)))
    broken = replace(compiled, schedule=replace(compiled.schedule, steps=(broken_step,)))
    (found,) = check_orders(baseline, broken, seed=0, count=3).findings
    assert found.code == "FH701"
    assert (
        "train.then leaves 0 in element 0 of y (y) with nothing fused, in the reverse order" in found.message
    )
    assert (found.location.line, found.location.column) == (12, 9)
    names = [n.name for n in reordered(broken, lambda position: -position).steps[0].launches]
    assert names.index("train.then") < names.index("train.first")


def test_a_host_slot_that_is_frozen_in_a_graph_is_found(proved):
    class Captured(HostBackend):
        """As if a graph of three executions had kept the host slots of its capture."""

        def run(self, step, count, per_graph=1):
            for row in range(64) if per_graph == 3 else ():
                self.ingest_row(row)[:] = 2.0
            super().run(step, count)

    specs, templates = load_specs(proved / "specs"), project_templates(proved / "specs")
    compiled = compile_program(specs, "toy", templates=templates, fused=False)
    store(compiled.files, proved / "single")
    form = Form(compiled.schedule, declared_order(compiled), proved / "single")
    baseline = Baseline(form, Script())
    baseline.record()
    assert not check_replay(baseline, form, "cuda", HostBackend).findings
    (found,) = check_replay(baseline, form, "cuda", Captured).findings
    assert found.code == "FH703"
    assert found.message == (
        "GAIN[0], written by train.ingest, is 2 replayed on cuda, K = 3, 1.5 alone in declared order"
    )


def test_the_first_launch_that_leaves_what_is_not_finite_is_a_warning(proved, foxhunt):
    kernel(proved, "for (i64 i : block.elements(n)) y[i] = n == 5 && i == 3 ? 1.0f / (x[i] - x[i]) : x[i];")
    done = foxhunt("verify", "toy", "--only", "finite")
    assert done.code == 0
    assert (
        "warning[FH709] train.note is the first to leave inf: element 3 of trace (y), execution 1" in done.out
    )


def test_what_the_health_of_a_program_ignores_is_not_looked_at(proved, foxhunt):
    kernel(proved, "for (i64 i : block.elements(n)) y[i] = n == 5 && i == 3 ? 1.0f / (x[i] - x[i]) : x[i];")
    spec = proved / "specs/toy/program.yaml"
    text = spec.read_text()
    spec.write_text(f"{text}\nhealth: {{ignore: ['trace[3]']}}\n")
    assert "train.note" not in foxhunt("verify", "toy", "--only", "finite").out
    spec.write_text(f"{text}\nhealth: {{ignore: ['trace[2]']}}\n")
    assert "element 3 of trace" in foxhunt("verify", "toy", "--only", "finite").out


def test_a_run_may_start_from_a_checkpoint(proved, foxhunt):
    assert foxhunt("compile", "specs").code == 0
    with load("generated/toy", backend="host") as trainer:
        trainer.write_tensor("w", np.full(12, np.inf))
        trainer.save("inf.safetensors")
    assert "FH709" not in foxhunt("verify", "toy", "--only", "finite").out
    done = foxhunt("verify", "toy", "--only", "finite", "--resume", "inf.safetensors")
    assert (done.code, "train.grow is the first to leave inf" in done.out) == (0, True)
    assert foxhunt("verify", "toy", "--only", "finite", "--resume", "none.safetensors").code == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("toi",), "did you mean `toy`?"),
        (("toy", "--variant", "huge"), "huge"),
        (("toy", "--dim", "N=x"), "NAME=NUMBER"),
        (("toy", "--steps", "0"), "--steps"),
        (("toy", "--only", "speed"), "--only"),
        (("toy", "--specs", "nowhere"), "nowhere"),
    ],
)
def test_input_that_cannot_be_used_is_no_finding(project, foxhunt, args, said):
    done = foxhunt("verify", *args)
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize("only", ["kernels", "replay"])
def test_a_missing_gpu_is_no_finding(proved, foxhunt, monkeypatch, only):
    def none():
        raise fail(BackendError, "FH580", "no NVIDIA GPU is visible.")

    monkeypatch.setattr("foxhunt.backend.cuda.load_cupy", none)
    done = foxhunt("verify", "toy", "--backend", "cuda", "--only", only)
    assert (done.code, "FH580" in done.err) == (2, True)


def test_a_reference_that_does_not_run_is_named_with_its_line(proved, foxhunt):
    (proved / "reference/toy.py").write_text("import numpy\n1 / 0\n")
    done = foxhunt("verify", "toy")
    assert done.code == 2
    assert "reference/toy.py:2: error[FH567]" in done.err


def _anchors(step):
    """Edges that keep every launch between ingest and publish."""
    edge = step.edges[0]
    names = [n.name for n in step.launches]
    return [replace(edge, before=names[0], after=n) for n in names[1:]] + [
        replace(edge, before=n, after=names[-1]) for n in names[:-1]
    ]

"""Findings of the commands have a place, and stale files are named together with what they are made of."""

import shutil
from pathlib import Path


def test_a_changed_template_is_named(project, edit, foxhunt):
    assert foxhunt("compile", "specs").code == 0
    assert foxhunt("check", "specs").code == 0
    edit("ONE * a[0] * x[i]", "x[i] * a[0] * ONE", "templates/kernels/scaled.cu.j2")
    done = foxhunt("check", "specs")
    assert done.code == 1
    assert "from specs/kernels/scaled.yaml and templates/kernels/scaled.cu.j2" in done.err
    assert "generated/toy/kernels/scaled.cuh:" in done.err


def test_a_foreign_source_in_an_include_path_is_named(project, foxhunt):
    foxhunt("compile", "specs")
    (project / "generated/toy/kernels/mine.cuh").write_text("")
    (project / "generated/toy/README.md").write_text("")
    done = foxhunt("check", "specs")
    assert (done.code, done.err.count("FH605")) == (1, 1)
    assert "kernels/mine.cuh was not generated" in done.err


def test_a_dim_of_0_is_said_once(project, foxhunt):
    done = foxhunt("compile", "specs", "--dim", "N=0", "--out", "elsewhere")
    assert (done.code, done.err.count("error[")) == (2, 1)
    assert "program.yaml:2:11: error[FH217] dim N is 0" in done.err


def test_an_arena_past_the_limit_is_placed_at_its_largest_buffer(project, edit, foxhunt):
    edit("{N: 12, M: 5}", "{N: 12, M: 5, HUGE: 200000000000}")
    edit("counters:", "  - {name: big, shape: [HUGE], lifetime: step}\ncounters:")
    edit(
        "y: trace}, as: note",
        "y: trace}, as: note}\n      - {kernel: scaled, args: {a: GAIN, x: big, y: big2}, as: two",
    )
    edit("counters:", "  - {name: big2, shape: [HUGE], lifetime: step}\ncounters:")
    edit("x: x}, out: {y: SIZE}", "x: big2}, out: {y: SIZE}")
    edit("items:", "items:\n      - {kernel: filled, args: {y: big}}")
    kernel = (
        "kernel: filled\nkind: body\ndoc: y = 0\nparams: {y: {access: write, shape: [n]}}\nreference: f\n"
    )
    (project / "specs/kernels/filled.yaml").write_text(kernel)
    done = foxhunt("compile", "specs")
    assert done.code == 2
    assert "specs/toy/program.yaml:13:5: error[FH304]" in done.err


def test_a_break_that_breaks_nothing_is_an_error(project, edit, foxhunt):
    done = foxhunt("compile", "specs", "--break", "GIAN")
    assert (done.code, "error[FH609] --break GIAN: nothing of that name breaks the layout" in done.err) == (
        2,
        True,
    )
    assert "breaks the layout: nothing" in done.err


def test_an_unknown_program_is_placed_at_the_specs(project, foxhunt):
    done = foxhunt("train", "toi")
    assert (done.code, done.err) == (
        2,
        "specs: error[FH201] unknown program toi\n  help: did you mean `toy`? known: toy\n",
    )
    assert foxhunt("train", "else").err.endswith("help: known: toy\n")


def test_data_that_does_not_fit_is_placed_at_its_buffer(project, edit, foxhunt):
    shutil.copy(Path(__file__).parents[2] / "examples/data/eurusd_1h_2017.csv", project / "bars.csv")
    edit("isv:", "data: [{name: bars, reader: ohlcv, path: bars.csv}]\nisv:")
    edit("counters:", "  - {name: close, shape: [N], lifetime: resident, fill: bars.close}\ncounters:")
    edit("x: x}, out: {y: SIZE}", "x: close}, out: {y: SIZE}")
    done = foxhunt("train", "toy", "--steps", 1)
    assert done.code == 2
    assert "specs/toy/program.yaml:14:5: error[FH526] close is float32 [12], bars.close gives" in done.err
    assert not list(project.glob("runs/*"))

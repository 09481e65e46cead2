"""`foxhunt check`: what is stale is named together with what it is made of."""


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

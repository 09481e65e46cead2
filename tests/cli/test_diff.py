"""`foxhunt diff`: each class of change with its effects, revisions, formats, and what cannot be read."""

import json
import subprocess

import pytest
from cli_toy import BODY

SLOT = "  - {name: PEAK, reset: fold}\n"
NEW = SLOT + "  - {name: NEW, source: host, init: 1.0, reset: never}\n"
DIAGNOSTICS = "{name: t}]"

# what, old text, new text, [(kind, what, name)], layout hash changes, exit code
CHANGES = [
    (
        "append a slot",
        [(SLOT, NEW), (DIAGNOSTICS, "{name: t}, {name: NEW}]")],
        [("append", "slot", "NEW")],
        True,
        0,
    ),
    (
        "append a param",
        [
            ("buffers:", "  - {name: c, shape: [M], group: more, reset: never}\nbuffers:"),
            ("args: {x: w}", "args: {x: c}"),
        ],
        [("append", "param", "c"), ("producer", "slot", "PEAK")],
        True,
        0,
    ),
    ("move a slot", [("name: GAIN,", "name: GAIN, index: 7,")], [("move", "slot", "GAIN")], True, 1),
    (
        "rename a slot",
        [
            ("name: PEAK, reset", "name: TOP, was: PEAK, reset"),
            ("y: PEAK", "y: TOP"),
            ("{name: PEAK}, {name: t}", "{name: TOP}, {name: t}"),
        ],
        [("rename", "slot", "TOP")],
        True,
        1,
    ),
    (
        "rename without was",
        [
            ("name: PEAK, reset", "name: TOP, reset"),
            ("y: PEAK", "y: TOP"),
            ("{name: PEAK}, {name: t}", "{name: TOP}, {name: t}"),
        ],
        [("append", "slot", "TOP"), ("delete", "slot", "PEAK")],
        True,
        1,
    ),
    (
        "rename a param",
        [
            ("name: w,", "name: weight, was: w,"),
            ("args: {x: w}", "args: {x: weight}"),
            ("x: w, y: x", "x: weight, y: x"),
        ],
        [("rename", "param", "weight"), ("producer", "slot", "PEAK"), ("launch", "launch", "train.grow")],
        True,
        1,
    ),
    (
        "reshape a param",
        [("M: 5", "M: 6")],
        [("reshape", "param", "b"), ("reshape", "buffer", "trace")],
        True,
        1,
    ),
    (
        "append a buffer",
        [
            (
                "counters:",
                "  - {name: spare, dtype: i32, shape: [M], lifetime: persistent, reset: fold}\ncounters:",
            ),
            ("diagnostics:", "suppress: [{rule: FH250, name: spare, reason: a test}]\ndiagnostics:"),
        ],
        [("append", "buffer", "spare")],
        True,
        0,
    ),
    (
        "retire a slot",
        [
            ("name: PEAK, reset: fold", "name: PEAK, retired: unused"),
            ("{name: peak, ", "{name: peak, retired: unused, "),
            ("producers: [size, peak]", "producers: [size]"),
            ("{name: PEAK}, {name: t}", "{name: t}"),
        ],
        [("retire", "slot", "PEAK")],
        False,
        0,
    ),
    (
        "delete a counter",
        [("counters:\n  - {name: t, advance: train, reset: never}\n", ""), (", {name: t}]", "]")],
        [("delete", "counter", "t")],
        True,
        1,
    ),
    (
        "an own allocation",
        [("name: w, shape: [N], group: net", "name: w, shape: [N], separate: true, group: own")],
        [("move", "param", "b"), ("move", "param", "w")],
        True,
        1,
    ),
    (
        "another producer",
        [("kernel: p99_abs, args: {x: w}", "kernel: rms, args: {x: b}")],
        [("producer", "slot", "PEAK")],
        False,
        0,
    ),
    (
        "a mean in its place",
        [("kernel: p99_abs, args: {x: w}", "kernel: mean, args: {x: b}")],
        [("producer", "slot", "PEAK"), ("smoothing", "slot", "PEAK")],
        False,
        0,
    ),
    (
        "another source",
        [
            ("name: PEAK, reset: fold", "name: PEAK, source: host, init: 1.0, reset: fold"),
            ("  - {name: peak, kernel: p99_abs, args: {x: w}, out: {y: PEAK}}\n", ""),
            ("producers: [size, peak]", "producers: [size]"),
        ],
        [("delete", "triple", "PEAK"), ("producer", "slot", "PEAK"), ("values", "slot", "PEAK")],
        True,
        1,
    ),
    (
        "a reset policy",
        [("name: PEAK, reset: fold", "name: PEAK, reset: never")],
        [("reset", "slot", "PEAK")],
        False,
        0,
    ),
    (
        "a sentinel",
        [("name: PEAK, reset: fold", "name: PEAK, sentinel: -1.0, reset: fold")],
        [("values", "slot", "PEAK"), ("values", "slot", "PEAK")],
        False,
        0,
    ),
    ("an init of a param", [("init: normal", "init: zeros")], [("values", "tensor", "b")], False, 0),
    ("a counter's step", [("name: t, advance: train", "name: t")], [("values", "counter", "t")], False, 0),
    (
        "the launches",
        [("x: b, y: trace}", "x: b, y: trace}, after: [grow]")],
        [("launch", "launch", "train.note")],
        False,
        0,
    ),
    (
        "what a report ignores",
        [("diagnostics:", "health: {ignore: [trace]}\ndiagnostics:")],
        [("values", "program", "health")],
        False,
        0,
    ),
]


@pytest.fixture
def compiled(project, foxhunt):
    """The project, compiled."""
    assert foxhunt("compile", "specs").code == 0
    return project


@pytest.mark.parametrize(
    ("what", "edits", "expected", "layout", "code"), CHANGES, ids=[c[0] for c in CHANGES]
)
def test_each_change_has_its_class_and_effects(compiled, edit, foxhunt, what, edits, expected, layout, code):
    for old, new in edits:
        edit(old, new)
    done = foxhunt("diff", "--format", "json")
    assert "programs" in done.out, done.out
    (program,) = json.loads(done.out)["programs"]
    changes = program["changes"]
    assert sorted((c["kind"], c["what"], c["name"]) for c in changes) == sorted(expected)
    assert (program["layout"]["old"] != program["layout"]["new"]) is layout
    assert any("layout" in c["hashes"] for c in changes) is layout
    semantics = program["semantics"]["old"] != program["semantics"]["new"]
    assert any("semantics" in c["hashes"] for c in changes) is semantics
    assert all(c["checkpoints"] and c["signals"] for c in changes)
    assert all(c["path"] == "specs/toy/program.yaml" and c["line"] for c in changes)
    assert done.code == code
    if code:
        names = json.loads(done.out)["breaks"]
        allowed = [a for name in names for a in ("--allow", name)]
        assert foxhunt("diff", *allowed).code == 0
        assert "layout breaks:" in foxhunt("diff").out


def test_what_is_ignored_counts_in_the_semantics_where_updates_are_put_back(project, edit, foxhunt):
    edit("diagnostics:", "health: {policy: stop}\ndiagnostics:")
    assert foxhunt("compile", "specs").code == 0
    edit("{policy: stop}", "{policy: stop, ignore: [trace]}")
    (program,) = json.loads(foxhunt("diff", "--format", "json").out)["programs"]
    assert program["semantics"]["old"] != program["semantics"]["new"]
    assert [(c["before"], c["after"]) for c in program["changes"]] == [("stop", "stop ignoring trace")]


def test_a_running_average_that_restarts_is_said_to(compiled, edit, foxhunt):
    edit("N: 12", "N: 13")
    edit("  - {name: SIZE, reset: fold}", "  - {name: SIZE, sentinel: -1.0, reset: fold}")
    text = foxhunt("diff").out
    assert "restarts as in a new run" in text
    assert "counts as observed" in text


def test_a_template_names_the_signals_that_it_feeds(compiled, edit, foxhunt):
    (compiled / "templates/kernels/rms.cu.j2").write_text(
        "{{ arguments }}\n\n"
        "// y = |x|\n"
        "struct Pass0 {\n  static constexpr int BINS = 0;\n  using Value = f32;\n"
        "  struct State { f64 sum; };\n"
        "  template <class A> FH_DEVICE static State init(const A&) { return {0.0}; }\n"
        "  template <class A> FH_DEVICE static Value load(const A& a, int, i64 i) {\n"
        "    return a.x[i];\n  }\n"
        "  FH_DEVICE static void observe(State& s, Bins, Value v) { s.sum += v; }\n"
        "  FH_DEVICE static void combine(State& s, const State& later) { s.sum += later.sum; }\n"
        "  template <class A> FH_DEVICE static void finish(const State& s, const u64*, const A& a) {\n"
        "    a.y[0] = static_cast<f32>(s.sum);\n  }\n"
        "};\n"
    )
    done = foxhunt("diff")
    assert done.code == 0
    assert "template  kernel rms" in done.out
    assert "EMA of SIZE goes on" in done.out
    (compiled / "templates/kernels/rms.cu.j2").unlink()
    (compiled / "templates/kernels/scaled.cu.j2").write_text(BODY.replace("y = a x", "y = x a, of course"))
    assert "no change" in foxhunt("diff").out


def test_the_smoothing_of_all_signals_is_a_template_too(compiled, foxhunt):
    from foxhunt.spec.library import library_root

    own = compiled / "templates/base/apply.cu.j2"
    own.parent.mkdir()
    text = (library_root() / "templates/base/apply.cu.j2").read_text()
    own.write_text(text.replace("{{ signature }}", "FH_DEVICE f32 spare() { return 0.5f; }\n{{ signature }}"))
    assert "every EMA goes on, under another rule" in foxhunt("diff").out


# --- revisions


def git(project, *args):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *args]
    subprocess.run(command, cwd=project, check=True, capture_output=True)


@pytest.fixture
def committed(compiled):
    """The compiled project in a repository of its own."""
    git(compiled, "init", "-q", "-b", "main")
    git(compiled, "add", ".")
    git(compiled, "commit", "-q", "-m", "first")
    return compiled


def test_a_revision_takes_the_place_of_the_old_side(committed, edit, foxhunt):
    assert "no change" in foxhunt("diff", "--against", "main").out
    edit("name: GAIN,", "name: GAIN, index: 7,")
    assert foxhunt("compile", "specs", "--break", "GAIN").code == 0
    assert "no change" in foxhunt("diff").out
    done = foxhunt("diff", "--against", "HEAD")
    assert (done.code, "move      slot GAIN" in done.out) == (1, True)
    assert foxhunt("diff", "--against", "HEAD", "generated").code == 1
    assert foxhunt("diff", "--against", "HEAD", "--allow", "GAIN").code == 0


def test_allowing_what_breaks_nothing_is_an_error(compiled, edit, foxhunt):
    done = foxhunt("diff", "--allow", "NOPE")
    assert (done.code, "error[FH609] --allow NOPE: nothing of that name breaks the layout" in done.err) == (
        2,
        True,
    )
    assert "breaks the layout: nothing" in done.err
    edit("name: GAIN,", "name: GAIN, index: 7,")
    done = foxhunt("diff", "--allow", "GAIN", "--allow", "GIAN")
    assert (done.code, "what breaks the layout: GAIN" in done.err) == (2, True)


def test_before_the_first_commit_of_generated_files_everything_is_new(project, foxhunt):
    git(project, "init", "-q")
    git(project, "add", "specs")
    git(project, "commit", "-q", "-m", "specs")
    done = foxhunt("diff", "--against", "HEAD")
    assert done.code == 0
    assert "append    program toy" in done.out
    assert "HEAD has no generated/ folder" in done.err


def test_a_project_below_the_repositorys_root_is_found(compiled, edit, foxhunt, monkeypatch):
    (compiled / "lib").mkdir()
    for name in ("specs", "templates", "generated"):
        (compiled / name).rename(compiled / "lib" / name)
    git(compiled, "init", "-q")
    git(compiled, "add", ".")
    git(compiled, "commit", "-q", "-m", "first")
    spec = compiled / "lib/specs/toy/program.yaml"
    spec.write_text(spec.read_text().replace("name: GAIN,", "name: GAIN, index: 7,"))
    for folder, specs in (
        (compiled, "lib/specs"),
        (compiled / "lib", "specs"),
        (compiled / "lib/specs", "."),
    ):
        monkeypatch.chdir(folder)
        done = foxhunt("diff", specs, "--against", "HEAD")
        assert (done.code, "move      slot GAIN" in done.out) == (1, True), done


def test_a_program_that_goes_away_is_a_break(committed, foxhunt):
    (committed / "specs/other").mkdir()
    text = (committed / "specs/toy/program.yaml").read_text().replace("program: toy", "program: other")
    (committed / "specs/other/program.yaml").write_text(text)
    (committed / "specs/toy/program.yaml").unlink()
    (committed / "specs/toy").rmdir()
    done = foxhunt("diff", "--against", "HEAD")
    assert done.code == 1
    assert "delete    program toy" in done.out
    assert "append    program other" in done.out
    assert foxhunt("diff", "--against", "HEAD", "--allow", "toy").code == 0


@pytest.mark.parametrize("revision", ["no-such-branch", "--help", "", "a b", "HEAD~100", "main:specs"])
def test_an_unknown_revision_is_refused(committed, foxhunt, revision):
    done = foxhunt("diff", f"--against={revision}")
    assert (done.code, "error[FH610]" in done.err) == (2, True)


def test_without_a_repository_or_git_there_is_no_revision(compiled, foxhunt, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(compiled.parent))
    done = foxhunt("diff", "--against", "main")
    assert (done.code, "error[FH610]" in done.err) == (2, True)
    monkeypatch.setenv("PATH", "")
    done = foxhunt("diff", "--against", "main")
    assert (done.code, "git is not installed" in done.err) == (2, True)


# --- formats and bad input


def test_annotations_markdown_and_sarif(compiled, edit, foxhunt):
    edit("name: GAIN,", "name: GAIN, index: 7,")
    edit("name: PEAK, reset: fold", "name: PEAK, reset: never")
    rows = foxhunt("diff", "--format", "github").out.splitlines()
    assert [row.split(" ")[0] for row in rows] == ["::error", "::warning"]
    assert "file=specs/toy/program.yaml,line=4" in rows[0]
    table = foxhunt("diff", "--format", "markdown").out
    assert "| **move (breaks)** | slot `GAIN` |" in table
    assert "| reset | slot `PEAK` | `reset fold` | `reset never` |" in table
    results = json.loads(foxhunt("diff", "--format", "sarif").out)["runs"][0]["results"]
    assert [(r["ruleId"], r["level"]) for r in results] == [("FH603", "error"), ("FH607", "warning")]
    results = json.loads(foxhunt("diff", "--format", "sarif", "--allow", "GAIN").out)["runs"][0]["results"]
    assert [(r["ruleId"], r["level"]) for r in results] == [("FH608", "note"), ("FH607", "warning")]


def test_two_folders_of_either_kind_compare(compiled, edit, foxhunt, tmp_path_factory):
    import shutil

    other = tmp_path_factory.mktemp("other")
    shutil.copytree(compiled, other, dirs_exist_ok=True)
    edit("name: PEAK, reset: fold", "name: PEAK, reset: never")
    for old in (
        other / "specs",
        other / "generated",
        other / "generated/toy",
        other / "generated/toy/layout.lock",
    ):
        done = foxhunt("diff", old, "specs")
        assert (done.code, "reset     slot PEAK" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("path", "text", "code", "exit_code"),
    [
        ("generated/toy/manifest.json", "{", "FH612", 2),
        ("generated/toy/manifest.json", '{"meaning": {"slot GAIN": "host"}}', "FH612", 2),
        ("generated/toy/manifest.json", '{"meaning": [1]}', "FH612", 2),
        ("generated/toy/manifest.json", "[]", "FH612", 2),
        ("generated/toy/layout.lock", "isv 3 A f32 [1]\n", "FH601", 2),
        ("specs/toy/program.yaml", "program: [", "FH102", 2),
    ],
)  # fmt: skip
def test_a_damaged_side_is_named(compiled, foxhunt, path, text, code, exit_code):
    (compiled / path).write_text(text)
    done = foxhunt("diff")
    assert (done.code, f"error[{code}]" in done.err) == (exit_code, True)


def test_a_manifest_without_meanings_compares_layouts_only(compiled, edit, foxhunt):
    path = compiled / "generated/toy/manifest.json"
    data = json.loads(path.read_text())
    del data["meaning"]
    path.write_text(json.dumps(data))
    edit("name: PEAK, reset: fold", "name: PEAK, reset: never")
    assert "semantics" not in foxhunt("diff").out.replace("no change", "")
    edit("name: GAIN,", "name: GAIN, index: 7,")
    assert "move      slot GAIN" in foxhunt("diff").out


def test_one_program_of_several_can_be_named(compiled, edit, foxhunt):
    (compiled / "specs/other").mkdir()
    text = (compiled / "specs/toy/program.yaml").read_text().replace("program: toy", "program: other")
    (compiled / "specs/other/program.yaml").write_text(text)
    assert "append    program other" in foxhunt("diff").out
    assert foxhunt("diff", "--program", "toy").out.startswith("toy: no change")
    assert foxhunt("diff", "--program", "nobody").code == 2


def test_what_is_not_there_is_refused(project, foxhunt):
    assert foxhunt("diff", "nowhere", "specs").code == 2
    assert foxhunt("diff", "specs", "specs", "--against", "main").code == 2
    assert "append    program toy" in foxhunt("diff").out

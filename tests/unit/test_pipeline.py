from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import foxhunt
from foxhunt.backend.null import NullBackend
from foxhunt.diagnostics import DriftError, EmissionError
from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program, compile_specs
from foxhunt.pipeline.plan import plan_of
from foxhunt.runtime.load import edited, load_plan
from foxhunt.spec.load import load_specs

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "cases" / "design_example" / "specs"

SPEC = """\
program: toy
dims: {N: 100, M: 33}
isv:
  - {name: GAIN, source: host, init: 2.0, reset: never}
  - {name: SIZE, floor: 1.0e-8, reset: fold}
buffers:
  - {name: x, shape: [N], lifetime: input}
  - {name: y, shape: [N], lifetime: step}
  - {name: z, shape: [N], lifetime: persistent, reset: fold}
producers:
  - {name: size, kernel: rms, args: {x: z}, out: {y: SIZE}}
steps:
  - name: train
    items:
      - {kernel: scale, args: {a: GAIN, x: x, y: y}, as: one}
      - {kernel: scale, args: {a: GAIN, x: y, y: z}, as: two}
      - {producers: [size]}
diagnostics:
  - {name: SIZE}
"""
KERNEL = """\
kernel: scale
kind: body
doc: y = a x, with */ in its text
params:
  a: {kind: slot}
  x: {access: read, shape: [n]}
  y: {access: write, shape: [n]}
consts: {ONE: 1.0, THIRD: 0.3333333333333333}
grid: ceil_div(n, BLOCK)
reference: scale
"""
BODY = """\
// y = a x
{{ signature }} {
  for (i64 i : block.elements(n)) y[i] = ONE * a[0] * x[i];
}
"""


@pytest.fixture
def project(tmp_path):
    """A project folder with one program and one kernel of its own."""
    for path, text in (
        ("specs/toy/program.yaml", SPEC),
        ("specs/kernels/scale.yaml", KERNEL),
        ("templates/kernels/scale.cu.j2", BODY),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FOXHUNT_CACHE", str(tmp_path / "cache"))


def compiled(project):
    return compile_program(load_specs(project / "specs"), "toy")


def digest(files):
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()


def test_the_generated_trainer_spells_out_the_plan(project):
    done = compiled(project)
    store(done.files, project / "generated" / "toy")
    plan = load_plan(project / "generated" / "toy")
    assert plan == done.plan == plan_of(done.schedule, done.fingerprint)


def test_loading_warns_of_generated_files_that_were_edited(project, caplog):
    folder = project / "generated" / "toy"
    store(compiled(project).files, folder)
    foxhunt.load(folder, backend=NullBackend()).close()
    assert not caplog.messages
    with (folder / "layout.cuh").open("a") as file:
        file.write("// by hand\n")
    (folder / "launches" / "train_ingest.cu").unlink()
    foxhunt.load(folder, backend=NullBackend()).close()
    (found,) = edited(folder)
    assert (found.code, found.severity) == ("FH553", "warning")
    assert found.message.endswith("was changed after it was compiled: launches/train_ingest.cu, layout.cuh.")
    assert caplog.messages == [f"{found.message} {found.help}"]


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", '{"files": 3}', '{"files": {}}', '{"files": ["a.cuh"]}']
)
def test_loading_says_when_nothing_tells_whether_generated_files_were_edited(project, text, caplog):
    folder = project / "generated" / "toy"
    store(compiled(project).files, folder)
    (folder / "manifest.json").unlink()
    if text is not None:
        (folder / "manifest.json").write_text(text)
    foxhunt.load(folder, backend=NullBackend()).close()
    (message,) = caplog.messages
    assert f"manifest.json is {'missing' if text is None else 'damaged'}" in message
    assert message.endswith("nothing says whether generated files were changed. Compile again.")


def test_every_argument_of_the_plan_lies_inside_its_buffer():
    plan = compile_program(load_specs(EXAMPLE), "example").plan
    sizes = {"f32": 4, "i32": 4, "u32": 4, "i64": 8, "u8": 1}
    bytes_of = {b.name: b.count * sizes[b.dtype] for b in plan.buffers}
    for step in (*plan.steps, *plan.resets):
        for launch in step.launches:
            for arg in launch.args:
                if hasattr(arg, "buffer"):
                    assert (
                        0 <= arg.offset <= arg.offset + arg.count * sizes[arg.dtype] <= bytes_of[arg.buffer]
                    )
                    assert arg.offset % sizes[arg.dtype] == 0


def test_a_kernel_without_a_template_is_named_with_its_place(project):
    (project / "templates/kernels/scale.cu.j2").unlink()
    with pytest.raises(EmissionError, match=r"scale.yaml:1:1: error\[FH401\].*kernels/scale.cu.j2"):
        compiled(project)


def test_a_kernel_that_breaks_a_rule_is_named_with_its_template_line(project):
    (project / "templates/kernels/scale.cu.j2").write_text(BODY.replace("x[i];", "expf(x[i]);"))
    with pytest.raises(EmissionError, match=r"scale.cu.j2:3: error\[FH411\] `expf\(`"):
        compiled(project)


def test_two_things_of_one_name_in_a_signature_are_refused(project):
    (project / "specs/kernels/scale.yaml").write_text(KERNEL.replace("ONE: 1.0", "n: 1.0"))
    (project / "templates/kernels/scale.cu.j2").write_text(BODY.replace("ONE * ", ""))
    with pytest.raises(EmissionError, match="FH406"):
        compiled(project)


def test_comments_in_a_template_leave_the_semantics_hash_alone_and_code_does_not(project):
    first = compiled(project).fingerprint
    template = project / "templates/kernels/scale.cu.j2"
    template.write_text(BODY.replace("// y = a x", "// something else\n\n  /* more */"))
    assert compiled(project).fingerprint == first
    template.write_text(BODY.replace("ONE * a", "THIRD * a"))
    assert compiled(project).fingerprint.semantics != first.semantics
    assert compiled(project).fingerprint.layout == first.layout


def write_permuted(folder, end, bom):
    """The same specs with keys of each mapping in another order and other line ends."""
    lines = SPEC.splitlines()
    lines[lines.index("  - {name: x, shape: [N], lifetime: input}")] = (
        "  - {lifetime: input, shape: [N], name: x}"
    )
    at = lines.index("isv:")
    text = "\n".join(lines[2:at] + lines[at:] + [lines[1], lines[0]])
    data = text.replace("\n", end).encode()
    (folder / "specs/toy/program.yaml").write_bytes((b"\xef\xbb\xbf" if bom else b"") + data)


@pytest.mark.parametrize(("end", "bom"), [("\n", False), ("\r\n", False), ("\r\n", True)])
def test_key_order_line_ends_and_a_byte_order_mark_change_nothing(project, end, bom):
    expected = compiled(project)
    write_permuted(project, end, bom)
    found = compiled(project)
    assert found.files == expected.files
    assert found.fingerprint == expected.fingerprint


@pytest.mark.parametrize(("seed", "locale"), [("0", "C"), ("1", "de_DE.UTF-8"), ("5", "tr_TR.UTF-8")])
def test_hash_seed_locale_zone_and_folder_change_nothing(project, seed, locale, tmp_path):
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from test_pipeline import digest\n"
        "from foxhunt.pipeline import compile_program; from foxhunt.spec.load import load_specs\n"
        "print(digest(compile_program(load_specs(Path(sys.argv[1])), 'toy').files))"
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, str(project / "specs"), str(Path(__file__).parent)],
        cwd=elsewhere,
        env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": "Asia/Kathmandu"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == digest(compiled(project).files)


def test_an_unchanged_compile_is_remembered_by_content(project):
    first = compile_specs(project / "specs", project / "generated")
    program = (
        "import sys; from pathlib import Path; from foxhunt.pipeline import compile_specs\n"
        "(r,) = compile_specs(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "heavy = {'pydantic', 'jinja2', 'networkx', 'yaml', 'numpy'} & set(sys.modules)\n"
        "print(r.summary.layout, len(r.files), sorted(heavy))"
    )
    again = subprocess.run(
        [sys.executable, "-c", program, str(project / "specs"), str(project / "generated")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout.strip() == f"{first[0].summary.layout} {len(first[0].files)} []"


@pytest.mark.parametrize(
    "changed", ["specs/toy/program.yaml", "specs/kernels/scale.yaml", "templates/kernels/scale.cu.j2"]
)
def test_any_changed_input_is_compiled_anew(project, changed):
    before = compile_specs(project / "specs", project / "generated")[0].files
    text = (project / changed).read_text()
    for old, new in (("N: 100", "N: 101"), ("0.3333", "0.4444"), ("ONE *", "THIRD *")):
        text = text.replace(old, new)
    (project / changed).write_text(text)
    assert compile_specs(project / "specs", project / "generated")[0].files != before


def test_a_damaged_cache_entry_is_ignored(project, tmp_path):
    before = compile_specs(project / "specs", project / "generated")
    for entry in (tmp_path / "cache" / "compile").iterdir():
        entry.write_text("[{]")
    assert compile_specs(project / "specs", project / "generated") == before


def test_a_moved_slot_is_refused_unless_it_is_named(project):
    (first,) = compile_specs(project / "specs", project / "generated")
    store(first.files, project / "generated" / "toy")
    program = project / "specs/toy/program.yaml"
    program.write_text(SPEC.replace("{name: GAIN,", "{name: GAIN, index: 7,"))
    with pytest.raises(DriftError, match="FH603"):
        compile_specs(project / "specs", project / "generated")
    (second,) = compile_specs(project / "specs", project / "generated", breaks=("GAIN",))
    assert second.summary.layout != first.summary.layout
    assert any("move" in change for change in second.changes)


def test_an_added_slot_keeps_what_the_lock_says(project):
    (first,) = compile_specs(project / "specs", project / "generated")
    store(first.files, project / "generated" / "toy")
    added = "isv:\n  - {name: A, source: host, init: 1.0, reset: never}"
    (project / "specs/toy/program.yaml").write_text(
        SPEC.replace("isv:", added).replace("{name: SIZE}\n", "{name: SIZE}\n  - {name: A}\n")
    )
    (second,) = compile_specs(project / "specs", project / "generated")
    assert "isv 0 GAIN f32 [1]" in second.files["layout.lock"]
    assert "isv 2 A f32 [1]" in second.files["layout.lock"]

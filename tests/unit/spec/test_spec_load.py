"""A folder of specs: which files count, how sections come together, and what programs may import."""

import os
import random
import shutil
import time

import pytest
from conftest import KERNEL

from foxhunt.diagnostics import Location, SpecError
from foxhunt.spec.library import library_root
from foxhunt.spec.load import load_specs
from foxhunt.spec.uses import visible_blocks

AUX = """\
program: aux
dims: {B: 4096, BARS: 63, FEATURES: 7, ENC: "BARS * FEATURES + 2", H1: 256, H2: 128, AUX: 128, BRANCHES: 4}
variants: {demo: {B: 256}, tiny: {B: 4, ENC: 32, H1: 32, H2: 32, AUX: 32}}
isv:
  - {name: AUX_LABEL_SCALE_EMA, index: 117, retired: "labels are z-normalised; the divisor was always 1"}
  - {name: TARGET_Q_BOUND, index: 131, floor: 1.0e-8, reset: fold}
  - {name: ATOM_POS_BOUND, count: BRANCHES, reset: fold}
  - {name: LR, source: host, init: 3.0e-4, reset: never}
params:
  - {name: aux_w1, shape: [ENC, H1], group: trunk, init: orthogonal, reset: never}
buffers:
  - {name: h1, shape: [B, H1], lifetime: step}
counters:
  - {name: adam_t, advance: train, reset: never}
producers:
  - {name: h_rms, kernel: rms, args: {x: h_s2_aux}, out: {y: H_S2_RMS_EMA}}
  - {name: atoms, foreach: {b: BRANCHES}, kernel: p99_abs, args: {x: "pos[b]"}, out: {y: "ATOM_POS_BOUND[b]"}}
blocks:
  - name: mlp_layer
    formals: [x, w, b, y]
    items:
      - {kernel: linear_elu, args: {x: x, w: w, b: b, y: y}}
steps:
  - name: train
    items:
      - {use: mlp_layer, with: {x: enc, w: aux_w1, b: aux_b1, y: h1}, as: l1}
      - {kernel: adamw, args: {lr: LR, w: [aux_w1, aux_b1]}, as: update, after: [l1]}
      - {producers: [h_rms, atoms]}
diagnostics:
  - {name: H_S2_RMS_EMA}
"""


def sections(text: str) -> list[str]:
    """The top-level sections of a program's text."""
    parts: list[str] = []
    for line in text.splitlines(keepends=True):
        if line[0] == " ":
            parts[-1] += line
        else:
            parts.append(line)
    return parts


def test_the_example_of_the_design_is_read_whole(write):
    specs = load_specs(write({"aux/program.yaml": AUX, "kernels/rms.yaml": KERNEL}))
    program = specs.programs["aux"]
    assert program.dims["ENC"] == "BARS * FEATURES + 2"
    assert program.variants["tiny"] == {"B": 4, "ENC": 32, "H1": 32, "H2": 32, "AUX": 32}
    assert [s.name for s in program.isv] == ["AUX_LABEL_SCALE_EMA", "TARGET_Q_BOUND", "ATOM_POS_BOUND", "LR"]
    assert program.isv[3].init == 3e-4
    assert program.steps[0].items[0].with_ == {"x": "enc", "w": "aux_w1", "b": "aux_b1", "y": "h1"}
    assert program.steps[0].items[1].args["w"] == ("aux_w1", "aux_b1")
    assert program.steps[0].items[2].producers == ("h_rms", "atoms")
    assert specs.kernels["rms"].params["x"].shape == ("...n",)
    assert specs.kernels["rms"].examples[1]["x"] == (3.5,)
    assert specs.sources["specs/aux/program.yaml"] == AUX


def test_every_part_knows_where_it_stands(write):
    specs = load_specs(write({"aux/program.yaml": AUX, "kernels/rms.yaml": KERNEL}))
    program, path = specs.programs["aux"], "specs/aux/program.yaml"
    assert program.at == Location(path, 1, 1)
    assert program.isv[1].at == Location(path, 6, 5)
    assert program.isv[1].spot("floor") == Location(path, 6, 47)
    assert program.spot("dims", "ENC") == Location(path, 2, 46), "inside the quotes"
    assert program.steps[0].items[1].spot("args", "w", 1) == Location(path, 27, 52)
    assert program.steps[0].items[1].spot("args", "missing") == program.steps[0].items[1].spot("args")
    assert program.blocks[0].spot("never", "written") == program.blocks[0].at
    assert specs.kernels["rms"].params["x"].at == Location("specs/kernels/rms.yaml", 5, 6)


def test_entries_are_frozen_hashable_and_copied_whole(write):
    import copy
    import pickle

    program = load_specs(write({"aux/program.yaml": AUX})).programs["aux"]
    assert hash(program) == hash(copy.deepcopy(program))
    assert pickle.loads(pickle.dumps(program)) == program
    for change in (
        lambda: setattr(program, "doc", "x"),
        lambda: program.dims.__setitem__("B", 1),
        lambda: program.steps[0].items[0].with_.pop("x"),
    ):
        with pytest.raises((TypeError, ValueError)):
            change()


def test_how_sections_are_spread_and_ordered_means_nothing(write):
    whole = load_specs(write({"aux/program.yaml": AUX})).programs["aux"]
    for seed in range(6):
        shutil.rmtree("specs")
        shuffler, parts = random.Random(seed), sections(AUX)
        shuffler.shuffle(parts)
        files: dict[str, str] = {}
        for part in parts:
            name = f"aux/{shuffler.choice('abcde')}.{shuffler.choice(('yaml', 'yml'))}"
            files[name] = files.get(name, "") + part
        spread = load_specs(write(files))
        assert spread.programs["aux"].model_dump() == whole.model_dump()
        assert list(spread.programs["aux"].model_dump()) == list(whole.model_dump())


def test_the_order_in_which_the_folder_lists_files_means_nothing(write, monkeypatch):
    broken = {
        "aux/a.yaml": "program: aux\nisv: [{nam: X}]",
        "aux/b.yaml": "bufers: []",
        "kernels/x.yaml": "kernel: y",
    }
    root = write(broken)
    with pytest.raises(SpecError) as first:
        load_specs(root)
    listed = os.scandir

    class Reversed:
        def __init__(self, folder):
            self.entries = sorted(listed(folder), key=lambda e: e.name, reverse=True)

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(os, "scandir", Reversed)
    with pytest.raises(SpecError) as second:
        load_specs(root)
    assert first.value.diagnostics == second.value.diagnostics


def test_other_files_are_passed_over(write):
    root = write(
        {
            "aux/program.yaml": "program: aux",
            "aux/.program.yaml.swp": b"\xff",
            "aux/.#program.yaml": "]",
            "aux/#program.yaml#": "]",
            "aux/program.yaml~": "]",
            "aux/program.yaml.orig": "]",
            "aux/~lock.yaml": "]",
            "aux/notes.md": "]",
            "aux/.hidden/x.yaml": "]",
            ".git/config.yaml": "]",
            "data/bars.csv": "1,2",
            "README.md": "]",
            "__pycache__/x.yaml": "]",
        }
    )
    assert list(load_specs(root).programs) == ["aux"]


def codes(found) -> list[tuple[str, str]]:
    return [(d.code, str(d.location)) for d in found]


def test_a_missing_or_empty_folder_is_named(write, findings, tmp_path):
    root = write({"x.txt": ""})
    assert codes(findings({})) == [("FH101", "specs")]
    for path, part in ((root / "nowhere", "there is no such folder"), (root / "x.txt", "it is a file")):
        with pytest.raises(SpecError, match=part) as caught:
            load_specs(path)
        assert caught.value.exit_code == 2


def test_what_is_no_file_is_reported_and_does_not_hang(write, findings):
    root = write({"aux/program.yaml": "program: aux"})
    (root / "aux" / "folder.yaml").mkdir()
    os.mkfifo(root / "aux" / "pipe.yaml")
    (root / "aux" / "dangling.yaml").symlink_to("nothing")
    (root / "aux" / "loop.yaml").symlink_to("loop.yaml")
    found = findings({})
    names = ("dangling", "folder", "loop", "pipe")
    assert codes(found) == [("FH101", f"specs/aux/{name}.yaml") for name in names]


def test_a_file_that_cannot_be_opened_is_reported(write, findings, monkeypatch):
    from pathlib import Path

    write({"aux/program.yaml": "program: aux", "aux/isv.yaml": "isv: []"})
    opened = Path.open

    def refuse(self, *args, **kwargs):
        if self.name == "isv.yaml":
            raise PermissionError(13, "Permission denied")
        return opened(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    (found,) = findings({})
    assert (found.code, found.message) == ("FH101", "cannot be read: Permission denied")


def test_links_out_of_the_root_are_refused_and_links_inside_are_not(write, findings, tmp_path):
    (tmp_path / "outside.yaml").write_text("isv: []")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "program.yaml").write_text("program: linked")
    root = write({"aux/program.yaml": "program: aux", "aux/real.yaml": "isv: []"})
    (root / "aux" / "buffers.yaml").symlink_to(tmp_path / "outside.yaml")
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    assert codes(findings({})) == [
        ("FH119", "specs/aux/buffers.yaml"),
        ("FH119", "specs/linked/program.yaml"),
    ]
    (root / "aux" / "buffers.yaml").unlink()
    (root / "linked").unlink()
    (root / "aux" / "real.yaml").rename(root / "aux" / "shared.txt")
    (root / "aux" / "isv.yaml").symlink_to("shared.txt")
    assert findings({}) == ()


def test_misplaced_files_are_named(findings):
    found = findings(
        {
            "stray.yaml": "isv: []",
            "aux/program.yaml": "program: aux",
            "aux/deep/isv.yaml": "isv: []",
            "aux/rms.yaml": KERNEL,
        }
    )
    assert codes(found) == [
        ("FH120", "specs/aux/deep"),
        ("FH117", "specs/aux/rms.yaml:1:1"),
        ("FH120", "specs/stray.yaml"),
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"p/a.yaml": "isv: []"}, [("FH115", "specs/p")]),
        ({"p/a.yaml": "program: q"}, [("FH115", "specs/p/a.yaml:1:10")]),
        ({"p/a.yaml": "program: p", "p/b.yaml": "program: p"}, [("FH115", "specs/p/b.yaml:1:1")]),
        ({"p/a.yaml": "program: p\nisv: []", "p/b.yaml": "isv: []"}, [("FH116", "specs/p/b.yaml:1:1")]),
        (
            {"p/a.yaml": "program: p\ndims: {A: 1}", "p/b.yaml": "dims: {B: 1}"},
            [("FH116", "specs/p/b.yaml:1:1")],
        ),
        ({"P/a.yaml": "program: P", "p/a.yaml": "program: p"}, [("FH115", "specs/p")]),
        ({"Kernels/a.yaml": "program: Kernels"}, [("FH115", "specs/Kernels")]),
        ({"a-b/a.yaml": "program: p"}, [("FH113", "specs/a-b"), ("FH115", "specs/a-b/a.yaml:1:10")]),
        (
            {"kernels/rms.yaml": KERNEL.replace("kernel: rms", "kernel: mean")},
            [("FH117", "specs/kernels/rms.yaml:1:9")],
        ),
        (
            {"kernels/rms.yaml": KERNEL, "kernels/RMS.yaml": KERNEL.replace("kernel: rms", "kernel: RMS")},
            [("FH117", "specs/kernels/rms.yaml:1:9")],
        ),
        ({"kernels/rms.yaml": KERNEL, "kernels/rms.yml": KERNEL}, [("FH117", "specs/kernels/rms.yml:1:9")]),
        (
            {"kernels/apply.yaml": KERNEL.replace("kernel: rms", "kernel: apply")},
            [("FH113", "specs/kernels/apply.yaml:1:9")],
        ),
    ],
)
def test_folders_files_and_sections_belong_together(findings, files, expected):
    assert codes(findings(files)) == expected


def test_a_broken_file_hides_no_mistake_of_another_and_makes_none_up(findings):
    found = findings(
        {
            "p/program.yaml": "program: p\ndims: [",
            "p/isv.yaml": "isv: [{name: X, flor: 1}]",
            "q/program.yaml": "program: q\nuses: [p]\nbuffers: [{name: x, shape: [1 +], lifetime: step}]",
            "kernels/rms.yaml": KERNEL.replace("degenerate", "degenerated"),
        }
    )
    assert codes(found) == [
        ("FH110", "specs/kernels/rms.yaml:7:1"),
        ("FH102", "specs/p/program.yaml:2:8"),
        ("FH112", "specs/q/program.yaml:3:32"),
    ]


def _uses(**programs: list[str]) -> dict[str, str]:
    return {
        f"{name}/program.yaml": f"program: {name}\nuses: [{', '.join(uses)}]"
        for name, uses in programs.items()
    }


def _block(name: str) -> str:
    return f"\nblocks:\n  - {{name: {name}, items: [{{kernel: rms}}]}}"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (_uses(a=["b"], b=["a"]), "`uses` goes in a circle: a → b → a"),
        (_uses(a=["a"]), "`a` uses itself"),
        (_uses(a=["b"], b=["c"], c=["d"], d=["b"]), "`uses` goes in a circle: b → c → d → b"),
        (_uses(a=["nope"], nose=[]), "`a` uses `nope`, but there is no such program folder"),
        (_uses(a=["../../etc/hostname"]), "the name '../../etc/hostname' is not a letter followed by"),
        (_uses(a=["/etc/passwd"]), "the name '/etc/passwd' is not a letter followed by"),
        (
            _uses(**{f"p{n}": [f"p{n + 1}"] for n in range(99)}, p99=[]),
            "`uses` is a chain of 100, at most 16: p0 → p1 → ",
        ),
    ],
)
def test_imports_that_lead_nowhere_or_back_are_named(findings, files, message):
    (found,) = findings(files)
    assert found.code in ("FH118", "FH113")
    assert found.message.startswith(message)
    assert len(found.message) < 200


def test_a_thousand_programs_in_a_circle_are_one_finding(findings):
    start = time.perf_counter()
    (found,) = findings(_uses(**{f"p{n}": [f"p{(n + 1) % 1000}"] for n in range(1000)}))
    assert "circle" in found.message
    assert time.perf_counter() - start < 60


def test_blocks_are_seen_through_imports_nearest_first(write):
    files = _uses(a=["c", "b"], b=["d"], c=["d"], d=[])
    specs = load_specs(write({path: text + _block(f"of_{path[0]}") for path, text in files.items()}))
    assert list(visible_blocks(specs, "a")) == ["of_a", "of_c", "of_d", "of_b"]
    assert list(visible_blocks(specs, "b")) == ["of_b", "of_d"]
    assert visible_blocks(specs, "a")["of_d"] is specs.programs["d"].blocks[0]
    with pytest.raises(SpecError, match="there is no program `e`"):
        visible_blocks(specs, "e")


def test_two_blocks_of_one_name_in_sight_are_refused(findings):
    files = _uses(a=["b", "c"], b=[], c=[])
    (found,) = findings({p: text + _block("layer" if p[0] in "bc" else "other") for p, text in files.items()})
    assert (found.code, found.message) == ("FH118", "two blocks are named `layer` in `b` and in `c`")
    assert [str(at) for at, _ in found.related] == ["specs/b/program.yaml:4:12"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../secret.csv", "has `..`"),
        ("data/../../x.csv", "has `..`"),
        ("..\\\\x.csv", "has `..`"),
        ("/etc/hostname", "is absolute"),
        ("C:\\\\x.csv", "is absolute"),
        ("~/x.csv", "is absolute"),
        ("", "is empty"),
        ("a\\nb", "is empty or not printable"),
        ("escape/x.csv", "is a symbolic link out of the project"),
    ],
)
def test_data_paths_stay_inside_the_project(findings, tmp_path, path, reason):
    (tmp_path / "escape").symlink_to("/")
    text = f'program: p\ndata:\n  - {{name: bars, reader: ohlcv, path: "{path}"}}'
    (found,) = findings({"p/program.yaml": text})
    assert (found.code, str(found.location)) == ("FH119", "specs/p/program.yaml:3:40")
    assert reason in found.message


def test_a_data_file_need_not_exist_to_compile(findings):
    text = "program: p\ndata: [{name: bars, reader: ohlcv, path: examples/data/none.csv}]"
    assert findings({"p/program.yaml": text}) == ()


def test_the_library_gives_what_the_folder_lacks(write, monkeypatch):
    monkeypatch.setattr("foxhunt.spec.load.library_root", library_root)
    root = write(
        {"p/program.yaml": "program: p", "kernels/mine.yaml": KERNEL.replace("kernel: rms", "kernel: mine")}
    )
    specs = load_specs(root)
    shipped = {path.stem for path in (library_root() / "specs" / "kernels").glob("*.yaml")}
    assert set(specs.kernels) == shipped | {"mine"}
    assert specs.library == shipped


def test_a_kernel_of_the_folder_replaces_that_of_the_library(write, tmp_path, monkeypatch):
    library = tmp_path / "installed"
    (library / "specs" / "kernels").mkdir(parents=True)
    (library / "specs" / "kernels" / "rms.yaml").write_text(KERNEL)
    (library / "specs" / "kernels" / "relu.yaml").write_text(KERNEL.replace("kernel: rms", "kernel: relu"))
    monkeypatch.setattr("foxhunt.spec.load.library_root", lambda: library.resolve())
    root = write({"kernels/rms.yaml": KERNEL.replace("doc: Root", "doc: My root")})
    specs = load_specs(root)
    assert specs.kernels["rms"].doc.startswith("My root")
    assert specs.library == {"rms", "relu"}, "by name: a copied folder has no orphans"
    assert load_specs(library / "specs").library == {"rms", "relu"}, "the library's own folder"


def test_ten_thousand_launches_and_slots_load_in_seconds(write):
    n = 10_000
    slots = "".join(f"  - {{name: SLOT_{i}, index: {i}, floor: 1.0e-8, reset: fold}}\n" for i in range(n))
    items = "".join(
        f"      - {{kernel: relu, args: {{x: b{i}, y: b{i + 1}, z: SLOT_{i}}}, as: l{i}}}\n" for i in range(n)
    )
    root = write(
        {
            "p/a.yaml": f"program: p\nisv:\n{slots}",
            "p/b.yaml": f"steps:\n  - name: train\n    items:\n{items}",
        }
    )
    start = time.perf_counter()
    specs = load_specs(root)
    assert time.perf_counter() - start < 60
    assert specs.programs["p"].steps[0].items[9999].spot("args", "z").line == 10_003

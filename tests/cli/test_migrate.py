"""`foxhunt migrate`: values go by name across every safe change, and training goes on from them."""

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import foxhunt as package
from foxhunt.dtypes import DTYPES
from foxhunt.pipeline.migrate import migrate
from foxhunt.runtime import checkpoint
from foxhunt.runtime.load import load_plan
from foxhunt.runtime.tensorfile import read_tensors, write_tensors

sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "ir"))
from dqn import LAST, RETROFITS, SLOTS, SP4

SLOT = "  - {name: PEAK, reset: fold}\n"
RENAMED = [
    ("name: PEAK, reset", "name: TOP, was: PEAK, reset"),
    ("y: PEAK", "y: TOP"),
    ("{name: PEAK}, {name: t}", "{name: TOP}, {name: t}"),
]


def made_up(plan, seed=0):
    """A checkpoint's tensors with every element different."""
    random = np.random.default_rng(seed)
    return {
        e.name: random.permutation(e.count).reshape(e.shape).astype(DTYPES[e.dtype].numpy)
        for e in checkpoint.entities(plan)
    }


@pytest.fixture
def saved(project, foxhunt):
    """The compiled project with a checkpoint of made-up values: (tensors, their plan)."""
    assert foxhunt("compile", "specs").code == 0
    plan = load_plan(Path("generated/toy"))
    tensors = made_up(plan)
    checkpoint.save(Path("old.safetensors"), plan, tensors)
    return tensors, plan


@pytest.fixture
def change(edit, foxhunt):
    """Edit the specs and compile, breaking what is named."""

    def apply(*edits, breaks=()):
        for old, new in edits:
            edit(old, new)
        done = foxhunt("compile", "specs", *(a for name in breaks for a in ("--break", name)))
        assert done.code == 0, done.err
        return load_plan(Path("generated/toy"))

    return apply


def carried(*drops):
    return migrate(Path("old.safetensors"), Path("generated/toy"), drops)


def slot(plan, tensors, name):
    found = next(s for s in plan.slots if s.name == name)
    return tensors["isv"][found.index : found.index + found.count]


def triple(plan, tensors, name):
    index = next(s.index for s in plan.slots if s.name == name)
    position = next(o.position for o in plan.observations if o.slot == index)
    return tensors["wiener"][3 * position : 3 * position + 3]


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert np.array_equal(one[name], other[name]), name


def test_without_a_change_everything_keeps_its_place(saved):
    same(carried().tensors, saved[0])
    assert {c.action for c in carried().carries} == {"keep"}


def test_a_new_slot_starts_at_its_sentinel_with_a_zero_triple(saved, change):
    old, plan = saved
    new_plan = change(
        ("params:", "  - {name: LOW, sentinel: -7.0, reset: fold}\nparams:"),
        ("steps:", "  - {name: low, kernel: mean, args: {x: b}, out: {y: LOW}}\nsteps:"),
        ("[size, peak]", "[size, low, peak]"),
        ("{name: t}]", "{name: t}, {name: LOW}]"),
    )
    new = carried().tensors
    assert slot(new_plan, new, "LOW") == [-7.0]
    assert list(triple(new_plan, new, "LOW")) == [0.0, 0.0, 0.0]
    for name in ("SIZE", "PEAK"):
        assert slot(new_plan, new, name) == slot(plan, old, name)
        assert list(triple(new_plan, new, name)) == list(triple(plan, old, name))


def test_a_moved_and_renamed_slot_keeps_its_value_and_triple(saved, change):
    old, plan = saved
    edits = [(o, n.replace("name: TOP,", "name: TOP, index: 9,")) for o, n in RENAMED]
    new_plan = change(*edits, breaks=["TOP"])
    new = carried().tensors
    assert slot(new_plan, new, "TOP") == slot(plan, old, "PEAK")
    assert list(triple(new_plan, new, "TOP")) == list(triple(plan, old, "PEAK"))
    assert slot(new_plan, new, "GAIN") == slot(plan, old, "GAIN")


def test_params_go_with_their_moments_into_an_allocation_of_their_own_and_back(saved, change):
    own = ("name: w, shape: [N], group: net", "name: w, shape: [N], separate: true, group: own")
    change(own, breaks=["w", "b"])
    same(carried().tensors, saved[0])
    result = carried()
    checkpoint.save(Path("old.safetensors"), result.plan, result.tensors)
    change(own[::-1], breaks=["w", "b"])
    same(carried().tensors, saved[0])


def test_an_axis_of_one_changes_no_order(saved, change):
    change(("name: trace, shape: [M]", "name: trace, shape: [1, M]"), *UNUSED_TRACE, breaks=["trace"])
    new = carried().tensors["trace"]
    assert new.shape == (1, 5)
    assert np.array_equal(new.ravel(), saved[0]["trace"])


def test_a_new_param_starts_as_in_a_new_run_of_the_same_seed(saved, change):
    edits = [
        ("buffers:", "  - {name: c, shape: [N], group: more, init: normal, reset: never}\nbuffers:"),
        ("args: {x: w}", "args: {x: c}"),
    ]
    change(*edits)
    new = carried()
    with package.load("generated/toy", backend="host", seed=int(saved[0]["seed"][0])) as trainer:
        assert np.array_equal(new.tensors["c"], trainer.tensor("c"))
    assert not new.tensors["c.m"].any()
    assert np.array_equal(new.tensors["w"], saved[0]["w"])


def test_a_slot_with_another_source_restarts(saved, change, foxhunt):
    new_plan = change(
        ("name: PEAK, reset: fold", "name: PEAK, source: host, init: 1.5, reset: fold"),
        ("  - {name: peak, kernel: p99_abs, args: {x: w}, out: {y: PEAK}}\n", ""),
        ("producers: [size, peak]", "producers: [size]"),
        breaks=["PEAK"],
    )
    assert slot(new_plan, carried().tensors, "PEAK") == [1.5]
    assert "no producer any more" in " ".join(
        foxhunt("migrate", "old.safetensors", "--to", "toy").out.split()
    )


RETIRE = [
    ("name: PEAK, reset: fold", "name: PEAK, retired: unused"),
    ("{name: peak, ", "{name: peak, retired: unused, "),
    ("producers: [size, peak]", "producers: [size]"),
    ("{name: PEAK}, {name: t}", "{name: t}"),
    ("name: w, shape", "name: w, retired: unused, shape"),
    ("x: w, y: x", "x: x0, y: x"),
    ("counters:", "  - {name: x0, shape: [N], lifetime: input}\ncounters:"),
]


def test_retired_entries_keep_their_values_so_that_checkpoints_need_no_migration(saved, change):
    old, plan = saved
    new_plan = change(*RETIRE)
    assert new_plan.layout_hash == plan.layout_hash
    loaded, _ = checkpoint.load(Path("old.safetensors"), new_plan)
    same(loaded, old)
    same(carried().tensors, old)
    checkpoint.save(Path("new.safetensors"), new_plan, carried().tensors)
    same(checkpoint.load(Path("new.safetensors"), plan)[0], old)


UNUSED_TRACE = [
    ("y: trace}", "y: y0}"),
    ("counters:", "  - {name: y0, shape: [M], lifetime: step}\ncounters:"),
    ("diagnostics:", "suppress: [{rule: FH250, name: trace, reason: a test}]\ndiagnostics:"),
]
REFUSED = [
    ("deleted",
     [("counters:\n  - {name: t, advance: train, reset: never}\n", ""), (", {name: t}]", "]")], "t"),
    ("reshaped", [("M: 5", "M: 6")], "b"),
    ("renamed without was", [(o, n.replace(" was: PEAK,", "")) for o, n in RENAMED], "PEAK"),
    ("of another dtype",
     [("name: trace, shape", "name: trace, dtype: i32, shape"), *UNUSED_TRACE], "trace"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "edits", "name"), REFUSED, ids=[r[0] for r in REFUSED])
def test_what_cannot_be_carried_is_refused_by_name_unless_given_up(saved, edit, foxhunt, what, edits, name):
    for old, new in edits:
        edit(old, new)
    broken = [a for c in {name, "trace" if what == "reshaped" else name} for a in ("--break", c)]
    assert foxhunt("compile", "specs", *broken).code == 0
    done = foxhunt("migrate", "old.safetensors", "--to", "toy")
    assert done.code == 1
    assert "error[FH611]" in done.err
    assert f"--drop {name}" in done.err
    assert not Path("old-migrated.safetensors").exists()
    drops = [a for c in (name, "trace") for a in ("--drop", c)]
    assert foxhunt("migrate", "old.safetensors", "--to", "toy", *drops).code == 0
    plan = load_plan(Path("generated/toy"))
    loaded, _ = checkpoint.load(Path("old-migrated.safetensors"), plan)
    assert np.array_equal(loaded["w"], saved[0]["w"])


def test_a_migrated_run_continues(project, change, foxhunt):
    assert foxhunt("compile", "specs").code == 0
    with package.load("generated/toy", backend="host") as trainer:
        trainer.signals["GAIN"] = 1.25
        trainer.run(3)
        trainer.sync()
        before = trainer.diagnostics()
        trainer.save("old.safetensors")
        trainer.run(2)
        trainer.sync()
        after = trainer.diagnostics()
    change(*RENAMED, ("name: GAIN,", "name: GAIN, index: 5,"), breaks=["TOP", "GAIN"])
    with package.load("generated/toy", backend="host") as trainer:
        with pytest.raises(package.diagnostics.CheckpointError, match="FH532"):
            trainer.load("old.safetensors")
        assert (
            foxhunt("migrate", "old.safetensors", "--to", "generated/toy", "--out", "new.safetensors").code
            == 0
        )
        trainer.load("new.safetensors")
        assert trainer.signals["GAIN"] == 1.25
        found = trainer.diagnostics()
        assert [found[n] for n in ("SIZE", "TOP", "t")] == [before[n] for n in ("SIZE", "PEAK", "t")]
        trainer.run(2)
        trainer.sync()
        found = trainer.diagnostics()
        assert [found[n] for n in ("SIZE", "TOP", "t")] == [after[n] for n in ("SIZE", "PEAK", "t")]


def test_the_first_observation_of_a_new_slot_counts_in_full(project, change, foxhunt):
    assert foxhunt("compile", "specs").code == 0
    with package.load("generated/toy", backend="host") as trainer:
        trainer.run(5)
        trainer.save("old.safetensors")
    change(
        ("params:", "  - {name: LOW, sentinel: -7.0, reset: fold}\nparams:"),
        ("steps:", "  - {name: low, kernel: mean, args: {x: b}, out: {y: LOW}}\nsteps:"),
        ("[size, peak]", "[size, low, peak]"),
        ("{name: t}]", "{name: t}, {name: LOW}]"),
    )
    assert foxhunt("migrate", "old.safetensors", "--to", "toy").code == 0
    with package.load("generated/toy", backend="host") as trainer:
        trainer.load("old-migrated.safetensors")
        assert trainer.signals["LOW"] == -7.0
        trainer.run(1)
        trainer.sync()
        assert trainer.signals["LOW"] == pytest.approx(float(trainer.tensor("b").mean()), rel=1e-6)


def test_a_dry_run_prints_the_table_and_writes_nothing(saved, change, foxhunt):
    change(*RENAMED, breaks=["TOP"])
    done = foxhunt("migrate", "old.safetensors", "--to", "toy", "--dry-run")
    assert done.code == 0
    assert "was PEAK" in done.out
    assert "keep their place" in done.out
    assert sorted(p.name for p in Path().glob("*.safetensors")) == ["old.safetensors"]


# --- the history of the hand-written trainer

MULTI = {"oracle": ("m", "v", "wd", "weight"), "losses": ("next_bar", "regime"), "moe": ("entropy", "util")}
OUTPUTS = {"oracle": "[weight, m, v, wd]", "losses": "[next_bar, regime]", "moe": "[util, entropy]"}


def generation(project, producers, edits=()):
    """One generation of the history, with the slots that its producers feed; compiled."""
    text = " ".join(producers).replace("kernel: p99,", "kernel: p99_abs,")
    slots = [s for s in SLOTS if f"{s[0]}}}" in text or f"{s[0]}," in text or f"{s[0]}[" in text]
    dims = {6: "SIX", 4: "BRANCHES", 8: "GROUPS", 1: "1"}
    rows = [f"  - {{name: {n}, count: {dims[c]}, index: {i}, reset: fold}}" for n, c, i in slots]
    names = [p.split(",")[0].removeprefix("{name: ") for p in producers]
    lines = "".join(f"  - {p}\n".replace("kernel: p99,", "kernel: p99_abs,") for p in producers)
    listed = ", ".join(f"{{name: {n}}}" for n in ("LR", *(s[0] for s in slots)))
    gate = "buffers: [{name: gate, shape: [B, GROUPS], lifetime: input}]\n" if "x: gate" in text else ""
    spec = (
        "program: dqn\ndims: {B: 4, SIX: 6, BRANCHES: 4, GROUPS: 8}\n"
        "isv:\n  - {name: LR, index: 0, source: host, init: 3.0e-4, reset: never}\n" + "\n".join(rows) + "\n"
        "params: [{name: t, shape: [B], group: g, reset: never}]\n"
        f"{gate}producers:\n{lines}steps: [{{name: train, items: [{{producers: [{', '.join(names)}]}}]}}]\n"
        f"diagnostics: [{listed}]\n"
    )
    for old, new in edits:
        assert old in spec, old
        spec = spec.replace(old, new)
    for path in ("specs/dqn", "specs/kernels", "templates/kernels"):
        (project / path).mkdir(parents=True, exist_ok=True)
    (project / "specs/dqn/dqn.yaml").write_text(spec)
    used = {kernel: outputs for kernel, outputs in MULTI.items() if f"kernel: {kernel}," in spec}
    for kernel, outputs in used.items():
        shape = {"util": ", shape: [K]"}
        params = ", ".join(f"{o}: {{access: write{shape.get(o, '')}}}" for o in outputs)
        source = "[B, K]" if kernel == "moe" else "[...n]"
        (project / f"specs/kernels/{kernel}.yaml").write_text(
            f"kernel: {kernel}\nkind: body\ndoc: ones\nblock: 32\nreference: {kernel}\n"
            f"outputs: {OUTPUTS[kernel]}\nparams: {{x: {{shape: {source}}}, {params}}}\n"
        )
        body = "".join(f"  if (block.first() == 0) {o}[0] = 1.0f;\n" for o in outputs if o != "util")
        body += "  for (i64 i : block.elements(K)) util[i] = 1.0f;\n" if kernel == "moe" else ""
        (project / f"templates/kernels/{kernel}.cu.j2").write_text("{{ signature }} {\n" + body + "}\n")
    return spec


def by_name(plan, tensors):
    """Every slot's values and triples, by its name."""
    found = {}
    for s in plan.slots:
        positions = [o.position for o in plan.observations if s.index <= o.slot < s.index + s.count]
        triples = [list(tensors["wiener"][3 * p : 3 * p + 3]) for p in positions]
        found[s.name] = (list(tensors["isv"][s.index : s.index + s.count]), triples)
    return found


GONE = [
    ("AUX_LABEL_SCALE_EMA, count: 1, index: 117, reset: fold",
     "AUX_LABEL_SCALE_EMA, index: 117, retired: always 1"),
    ("{name: aux_label_scale, kernel", "{name: aux_label_scale, retired: always 1, kernel"),
    (", aux_label_scale,", ","),
    (", {name: AUX_LABEL_SCALE_EMA}", ""),
]  # fmt: skip
RENAMES = [
    *GONE,
    (
        "{name: Q_DIR_GRAD_BOUND, count: 1, index: 172,",
        "{name: Q_GRAD_BOUND, was: Q_DIR_GRAD_BOUND, index: 190,",
    ),
    ("y: Q_DIR_GRAD_BOUND", "y: Q_GRAD_BOUND"),
    ("[{name: LR}", "[{name: LR}"),
    ("{name: Q_DIR_GRAD_BOUND}", "{name: Q_GRAD_BOUND}"),
]
HISTORY = [
    ("sp4", SP4, ()),
    ("retrofits", SP4 + RETROFITS, ()),
    ("the label scale retired", SP4 + RETROFITS, GONE),
    ("the last two", SP4 + RETROFITS + LAST, GONE),
    ("one renamed and moved", SP4 + RETROFITS + LAST, RENAMES),
]


def test_the_history_of_dqn_is_walked_with_every_value_in_its_place(tmp_path, monkeypatch, foxhunt):
    monkeypatch.chdir(tmp_path)
    known, previous = {}, None
    for what, producers, edits in HISTORY:
        generation(tmp_path, producers, edits)
        breaks = ("--break", "Q_GRAD_BOUND") if edits is RENAMES else ()
        done = foxhunt("compile", "specs", *breaks)
        assert done.code == 0, (what, done.err)
        plan = load_plan(Path("generated/dqn"))
        if previous is None:
            checkpoint.save(Path("step.safetensors"), plan, made_up(plan))
        else:
            done = foxhunt("migrate", "step.safetensors", "--to", "dqn", "--out", "next.safetensors")
            assert done.code == 0, (what, done.err)
            Path("next.safetensors").replace("step.safetensors")
        tensors, _ = checkpoint.load(Path("step.safetensors"), plan)
        found = by_name(plan, tensors)
        for name, values in found.items():
            former = known.get({"Q_GRAD_BOUND": "Q_DIR_GRAD_BOUND"}.get(name, name))
            if former is not None:
                assert values == former, (what, name)
            elif previous is not None:
                assert not np.any(values[0]), (what, name)
                assert not np.any(values[1]), (what, name)
        known, previous = found, plan
    assert len(known) == 1 + len(SLOTS) - 1


def test_a_checkpoint_of_program_dqn_goes_on_after_an_append_a_move_and_a_rename(
    tmp_path, monkeypatch, foxhunt
):
    root = Path(__file__).parents[2]
    for folder in ("specs/dqn", "specs/aux", "specs/kernels", "templates"):
        shutil.copytree(root / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    options = ("compile", "specs", "--program", "dqn", "--variant", "tiny", "--out", "generated")
    assert foxhunt(*options).code == 0
    old_plan = load_plan(Path("generated/dqn"))
    old = made_up(old_plan)
    checkpoint.save(Path("old.safetensors"), old_plan, old)
    for path in Path("specs/dqn").glob("*.yaml"):
        text = re.sub(r"\bVSN_MASK_EMA\b", "VSN_SHARE_EMA", path.read_text())
        if path.name == "isv.yaml":
            text = re.sub(r"(name: VSN_SHARE_EMA,.*?)index: \d+", r"\1was: VSN_MASK_EMA, index: 300", text)
            text += "  - {name: FRESH, index: 400, source: host, init: 0.25, reset: never}\n"
        path.write_text(re.sub(r"^diagnostics:\n", "diagnostics:\n  - {name: FRESH}\n", text, flags=re.M))
    assert foxhunt(*options).code == 1
    assert foxhunt(*options, "--break", "VSN_SHARE_EMA").code == 0
    assert foxhunt("migrate", "old.safetensors", "--to", "dqn").code == 0
    plan = load_plan(Path("generated/dqn"))
    new, _ = checkpoint.load(Path("old-migrated.safetensors"), plan)
    before, after = by_name(old_plan, old), by_name(plan, new)
    assert after.pop("FRESH") == ([0.25], [])
    assert after.pop("VSN_SHARE_EMA") == before.pop("VSN_MASK_EMA")
    assert after == before
    for name in old.keys() - {"isv"}:
        assert np.array_equal(new[name], old[name]), name


# --- bad input


def test_a_damaged_or_foreign_file_is_refused(saved, foxhunt):
    for text in (b"", b"\x00" * 40, Path("old.safetensors").read_bytes()[:-1]):
        Path("bad.safetensors").write_bytes(text)
        done = foxhunt("migrate", "bad.safetensors", "--to", "toy")
        assert (done.code, "error[FH531]" in done.err) == (2, True)
    assert foxhunt("migrate", "none.safetensors", "--to", "toy").code == 2


@pytest.mark.parametrize(
    ("edit_metadata", "code"),
    [
        (lambda m: m | {"format": 99}, "FH532"),
        (lambda m: m | {"layout": "0" * 64}, "FH531"),
        (lambda m: m | {"lines": [*m["lines"], "isv 9999 HUGE f32 [1]"]}, "FH531"),
        (lambda m: m | {"lines": "isv"}, "FH531"),
        (lambda m: m | {"lines": [{}]}, "FH531"),
        (lambda m: {k: v for k, v in m.items() if k != "lines"}, "FH531"),
    ],
)
def test_a_layout_that_is_not_what_it_states_is_refused(saved, foxhunt, edit_metadata, code):
    tensors, metadata = read_tensors(Path("old.safetensors"))
    write_tensors(Path("bad.safetensors"), tensors, edit_metadata(metadata))
    done = foxhunt("migrate", "bad.safetensors", "--to", "toy")
    assert (done.code, f"error[{code}]" in done.err) == (2, True)


@pytest.mark.parametrize("name", ["isv", "wiener", "counters", "w", "b.m", "trace"])
def test_a_tensor_that_does_not_hold_its_entries_is_refused(saved, foxhunt, name):
    tensors, metadata = read_tensors(Path("old.safetensors"))
    for wrong in ({name: tensors[name][:1]}, {name: tensors[name].astype(np.int32)}):
        write_tensors(Path("bad.safetensors"), tensors | wrong, metadata)
        assert "error[FH533]" in foxhunt("migrate", "bad.safetensors", "--to", "toy").err
    write_tensors(Path("bad.safetensors"), {k: v for k, v in tensors.items() if k != name}, metadata)
    assert "error[FH533]" in foxhunt("migrate", "bad.safetensors", "--to", "toy").err


def test_a_target_that_is_no_program_is_refused(saved, foxhunt):
    for target in ("nowhere", "specs", "generated"):
        done = foxhunt("migrate", "old.safetensors", "--to", target)
        assert (done.code, "error[FH546]" in done.err) == (2, True)
    shown = foxhunt("migrate", "old.safetensors", "--to", "toi").err
    assert "help: did you mean `toy`? in generated/: toy" in shown
    Path("generated/toy/layout.lock").unlink()
    assert "error[FH546]" in foxhunt("migrate", "old.safetensors", "--to", "toy").err


def test_the_old_checkpoint_is_never_written_over(saved, foxhunt):
    assert foxhunt("migrate", "old.safetensors", "--to", "toy", "--out", "old.safetensors").code == 2
    done = foxhunt("migrate", "old.safetensors", "--to", "toy", "--out", "/proc/none/new.safetensors")
    assert (done.code, "error[FH535]" in done.err) == (2, True)


def test_a_checkpoint_of_another_program_is_told(saved, foxhunt):
    tensors, metadata = read_tensors(Path("old.safetensors"))
    write_tensors(Path("old.safetensors"), tensors, json.loads(json.dumps(metadata | {"program": "other"})))
    done = foxhunt("migrate", "old.safetensors", "--to", "toy", "--drop", "NOBODY")
    assert done.code == 0
    assert "of program other, not toy" in done.err
    assert "--drop NOBODY: nothing" in done.err

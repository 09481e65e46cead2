"""Program `dqn` as declared: every total of its bus is derived, and its history replays as single edits."""

import difflib
import re
import shutil
from pathlib import Path

import pytest

from foxhunt.contract.fingerprint import fingerprint
from foxhunt.contract.lock import check_allowed, compare, parse_lock, render_lock
from foxhunt.diagnostics import FoxhuntError
from foxhunt.ir.graph import build_graph
from foxhunt.ir.layout import lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.ir.system import reset_policies, reset_table
from foxhunt.ir.types import LaidOutProgram
from foxhunt.ir.verify import verify
from foxhunt.rules import RULES
from foxhunt.spec.load import load_specs
from foxhunt.spec.models import SpecSet

SPECS = Path(__file__).parents[2] / "specs"
PGROUPS = ("trunk", "value", "branches", "iqn", "iql_hi", "iql_lo", "attention", "curiosity")

BUS = {
    "REWARD_COMPONENT_EMA": (63, 6),
    "H_S2_RMS_EMA": (96, 1),
    "IQN_QUANTILE_EMA": (99, 4),
    "VSN_MASK_EMA": (105, 6),
    "AUX_NEXT_BAR_LOSS_EMA": (113, 1),
    "AUX_REGIME_LOSS_EMA": (114, 1),
    "AUX_LABEL_SCALE_EMA": (117, 1),
    "MOE_EXPERT_UTIL_EMA": (118, 8),
    "MOE_GATE_ENTROPY_EMA": (126, 1),
    "TARGET_Q_BOUND": (131, 1),
    "ATOM_POS_BOUND": (132, 4),
    "WEIGHT_BOUND": (136, 8),
    "ADAM_M_BOUND": (144, 8),
    "ADAM_V_BOUND": (152, 8),
    "WD_RATE": (160, 8),
    "GRAD_CLIP_BOUND": (168, 1),
    "H_S2_BOUND": (169, 1),
    "L1_LAMBDA_TRUNK": (170, 1),
    "BW_D_H_S2_BOUND": (171, 1),
    "Q_DIR_GRAD_BOUND": (172, 1),
}
SCRATCH = {
    "TARGET_Q_BOUND": (0, 1),
    "ATOM_POS_BOUND": (1, 4),
    "WEIGHT_BOUND": (5, 8),
    "ADAM_M_BOUND": (13, 8),
    "ADAM_V_BOUND": (21, 8),
    "WD_RATE": (29, 8),
    "L1_LAMBDA_TRUNK": (37, 1),
    "GRAD_CLIP_BOUND": (38, 1),
    "H_S2_BOUND": (39, 1),
    "H_S2_RMS_EMA": (40, 1),
    "AUX_NEXT_BAR_LOSS_EMA": (41, 1),
    "AUX_REGIME_LOSS_EMA": (42, 1),
    "AUX_LABEL_SCALE_EMA": (43, 1),
    "MOE_EXPERT_UTIL_EMA": (44, 8),
    "MOE_GATE_ENTROPY_EMA": (52, 1),
    "VSN_MASK_EMA": (53, 6),
    "IQN_QUANTILE_EMA": (59, 4),
    "REWARD_COMPONENT_EMA": (63, 6),
    "BW_D_H_S2_BOUND": (69, 1),
    "Q_DIR_GRAD_BOUND": (70, 1),
}


def check(specs: SpecSet, variant: str = "default") -> LaidOutProgram:
    """`dqn` with all its positions, all its rules checked."""
    found = lay_out(resolve(specs, "dqn", variant), None)
    verify(found, tuple(build_graph(found, step.name) for step in found.program.steps))
    return found


def laid_out(specs: Path = SPECS, variant: str = "default") -> LaidOutProgram:
    return check(load_specs(specs), variant)


@pytest.fixture(scope="module")
def dqn():
    return laid_out()


@pytest.fixture
def edited(tmp_path):
    """Edits a file of `dqn` in a copy of the specs by patterns, and says how many lines of a diff that is."""
    shutil.copytree(SPECS, tmp_path / "specs")

    def edit(file: str, *changes: tuple[str, object]) -> int:
        path = tmp_path / "specs" / "dqn" / file
        before = after = path.read_text()
        for pattern, new in changes:
            after, count = re.subn(pattern, new, after)
            assert count, f"{file} has no {pattern}"
        path.write_text(after)
        changed = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
        return sum(line[0] in "+-" for line in changed)

    edit.root = tmp_path / "specs"
    return edit


def layout_hash(found: LaidOutProgram) -> str:
    return fingerprint(found, {}).layout


def codes(specs: Path | SpecSet) -> set[str]:
    """The rules that specs break; none when they compile."""
    try:
        check(load_specs(specs) if isinstance(specs, Path) else specs)
    except FoxhuntError as error:
        return {d.code for d in error.diagnostics}
    return set()


# --- totals


def test_the_bus_has_173_slots_and_71_producers_in_213_floats(dqn):
    assert dqn.isv_total == 173
    assert dqn.scratch_total == len(dqn.program.observations) == 71
    assert next(a.count for a in dqn.allocations if a.name == "wiener") == 213


def test_every_slot_stands_where_the_trainer_has_it(dqn):
    found = {s.name: (s.index, s.count) for s in dqn.program.slots}
    assert {name: found[name] for name in BUS} == BUS
    assert all(s.index + s.count <= 63 for s in dqn.program.slots if s.name not in BUS)
    assert {s.name for s in dqn.program.slots if s.source == "producer" and s.retired is None} == (
        BUS.keys() - {"AUX_LABEL_SCALE_EMA"}
    )


def test_scratch_has_the_order_of_the_trainer(dqn):
    found: dict[str, list[int]] = {}
    for o in sorted(dqn.program.observations, key=lambda o: o.element):
        found.setdefault(o.slot, []).append(o.position)
    assert found == {slot: list(range(first, first + n)) for slot, (first, n) in SCRATCH.items()}


def test_a_retired_slot_keeps_its_positions_and_nothing_uses_them(dqn):
    lines = {(e.kind, e.position): e for e in dqn.entries if e.name == "AUX_LABEL_SCALE_EMA"}
    assert set(lines) == {("isv", 117), ("wiener", 3 * 43)}
    for step in dqn.program.steps:
        ranges = [r for la in step.launches for a in la.arguments for r in a.ranges]
        assert not any(r.base == "isv" and r.offset <= 117 < r.offset + r.count for r in ranges)
        assert not any(r.base == "scratch" and r.offset <= 43 < r.offset + r.count for r in ranges)


def test_the_parameter_groups_are_the_eight_of_the_trainer_and_curiosity_is_four_buffers(dqn):
    params = [t for t in dqn.program.tensors if t.role == "param"]
    assert tuple(dict.fromkeys(t.group for t in params)) == (*PGROUPS, "aux_net")
    assert [t.name for t in params if t.separate] == ["cur_w1", "cur_b1", "cur_w2", "cur_b2"]
    for group in PGROUPS[:-1]:
        assert group in dqn.places


def test_diagnostics_are_packed_one_after_another(dqn):
    offset = 0
    for name, word, words in dqn.diagnostics_words:
        assert word == offset, name
        offset += words
    listed = {name for name, _, _ in dqn.diagnostics_words}
    assert listed >= {s.name for s in dqn.program.slots if s.retired is None}


def test_a_variant_changes_no_position_of_the_bus(dqn):
    for variant in ("small", "tiny"):
        other = laid_out(variant=variant)
        assert (other.isv_total, other.scratch_total) == (173, 71)
        assert [s.index for s in other.program.slots] == [s.index for s in dqn.program.slots]


def test_every_bound_limits_something_and_every_observation_precedes_its_clamp(dqn):
    """The rule itself is FH255, which `laid_out` has checked; here: who takes each bound."""
    takers: dict[str, set[str]] = {}
    for step in dqn.program.steps:
        for launch in step.launches:
            for argument in launch.arguments:
                for r in argument.ranges if argument.kind in ("bound", "slot") else ():
                    slot = next(s for s in dqn.program.slots if s.index <= r.offset < s.index + s.count)
                    takers.setdefault(slot.name, set()).add(launch.kernel.kernel)
    assert takers["TARGET_Q_BOUND"] == {"atom_positions", "sanitise"}
    assert takers["ATOM_POS_BOUND"] == {"c51_target"}
    assert takers["WEIGHT_BOUND"] == takers["ADAM_M_BOUND"] == takers["ADAM_V_BOUND"] == {"clamp_group"}
    assert takers["WD_RATE"] == takers["L1_LAMBDA_TRUNK"] == takers["GRAD_CLIP_BOUND"] == {"adamw"}
    assert takers["H_S2_BOUND"] == {"sanitise", "bounded_elu_grad"}  # no slope where it holds the value
    assert takers["BW_D_H_S2_BOUND"] == {"limit_size"}
    assert takers["Q_DIR_GRAD_BOUND"] == {"limit_size"}
    assert takers["MOE_GATE_ENTROPY_EMA"] == {"moe_lambda_eff_update"}
    assert takers["H_S2_RMS_EMA"] == {"mag_concat_qdir"}


def test_acting_and_learning_read_the_same_parameters(dqn):
    def params(step):
        launches = next(s for s in dqn.program.steps if s.name == step).launches
        now = [la for la in launches if "now" in la.blocks]
        return {
            (r.base, r.offset) for la in now for a in la.arguments for r in a.ranges if r.base == "params"
        }

    assert params("collect") == params("train") == params("evaluate") != set()


def test_no_gradient_of_the_auxiliary_heads_or_of_curiosity_leaves_its_network(dqn):
    launches = next(s for s in dqn.program.steps if s.name == "train").launches
    for block, own in (("aux_backward", "aux_"), ("curious", "cur_")):
        inside = [la for la in launches if block in la.blocks]
        assert inside
        for launch in inside:
            for a in launch.arguments:
                for r in a.ranges if a.access != "read" else ():
                    assert not r.text.startswith(("enc", "now.")), (launch.name, r.text)
                    if r.text.partition(".")[2] == "g":
                        assert r.text.startswith((own, "dir_w", "dir_b", "reg_")), r.text


# --- history: each change is one edit of YAML

REASON = "labels are z-normalised; the divisor was always about 1"
WITHOUT_LAST = {
    "isv.yaml": [(r"  - \{name: (BW_D_H_S2|Q_DIR_GRAD)_BOUND,.*\n", "")],
    "producers.yaml": [
        (r"  - \{name: bw_d_h_s2_p99,.*\n", ""),
        (r"  - name: q_dir_grad_p99\n(    .*\n)+", ""),
    ],
    "diagnostics.yaml": [(r"  - \{name: (BW_D_H_S2|Q_DIR_GRAD)_BOUND\}\n", "")],
    "network.yaml": [
        (r"limit: (BW_D_H_S2|Q_DIR_GRAD)_BOUND", "limit: H_S2_BOUND"),
        (r" +- \{producers: \[(bw_d_h_s2|q_dir_grad)_p99\]\}\n", ""),
    ],
}


def test_69_producers_become_71_and_nothing_else_moves(edited, dqn):
    lines = {file: edited(file, *changes) for file, changes in WITHOUT_LAST.items()}
    assert lines == {
        "isv.yaml": 2,
        "producers.yaml": 5,
        "diagnostics.yaml": 2,
        "network.yaml": 6,
    }
    before = laid_out(edited.root)
    assert (before.isv_total, before.scratch_total) == (171, 69)
    assert set(before.entries) < set(dqn.entries)
    assert {(e.kind, e.position, e.name) for e in set(dqn.entries) - set(before.entries)} == {
        ("isv", 171, "BW_D_H_S2_BOUND"),
        ("isv", 172, "Q_DIR_GRAD_BOUND"),
        ("wiener", 3 * 69, "BW_D_H_S2_BOUND"),
        ("wiener", 3 * 70, "Q_DIR_GRAD_BOUND"),
    }
    assert layout_hash(before) != layout_hash(dqn)


def test_retiring_a_slot_keeps_the_hash_and_takes_a_word_out_of_the_diagnostics(edited, dqn):
    words = sum(words for _, _, words in dqn.diagnostics_words)
    edited("program.yaml", (r"\nvariants:", f"  PADDING_WORDS: {149 - words}\n\nvariants:"))
    padding = "  - {name: PADDING, count: PADDING_WORDS, index: 200, source: host, init: 0.0, reset: never}\n"
    listing = "  - {name: AUX_LABEL_SCALE_EMA}\n"
    edited("isv.yaml", (r"\Z", padding), (rf'index: 117, retired: "{REASON}"', "index: 117, reset: fold"))
    edited("producers.yaml", (rf', retired: "{REASON}"', ""))
    edited("steps.yaml", (r"( +)- aux_regime_loss\n", r"\g<0>\1- aux_label_scale\n"))
    edited("diagnostics.yaml", (r"  - \{name: MOE_EXPERT_UTIL", listing + r"\g<0>"))
    edited("diagnostics.yaml", (r"\Z", "  - {name: PADDING}\n"))
    live = laid_out(edited.root)

    lines = edited("isv.yaml", (r"index: 117, reset: fold", f'index: 117, retired: "{REASON}"'))
    lines += edited("producers.yaml", (r"(name: aux_label_scale,.*)\}\n", rf'\1, retired: "{REASON}"}}\n'))
    lines += edited("steps.yaml", (r" +- aux_label_scale\n", ""))
    lines += edited("diagnostics.yaml", (listing, ""))
    assert lines == 6
    retired = laid_out(edited.root)

    assert layout_hash(live) == layout_hash(retired)
    totals = [sum(words for _, _, words in found.diagnostics_words) for found in (live, retired)]
    assert totals == [150, 149]
    old, new = ({n: offset for n, offset, _ in found.diagnostics_words} for found in (live, retired))
    gone = old.pop("AUX_LABEL_SCALE_EMA")
    assert new == {n: offset - (offset > gone) for n, offset in old.items()}


def test_a_second_output_of_the_direction_head_bumps_the_layout(edited, dqn):
    assert edited("program.yaml", (r"DIRS: 2\b", "DIRS: 1")) == 2
    before = laid_out(edited.root)
    assert layout_hash(before) != layout_hash(dqn)
    changes = compare(parse_lock(render_lock(before, fingerprint(before, {}))), dqn)
    assert {c.name for c in changes if c.kind == "reshape"} == {
        f"{name}{suffix}" for name in ("dir_w", "dir_b") for suffix in ("", ".m", ".v")
    }
    with pytest.raises(FoxhuntError) as caught:
        check_allowed(changes)
    assert {d.code for d in caught.value.diagnostics} == {"FH603"}
    assert dqn.isv_total == before.isv_total


# --- no partial change


def without(specs: SpecSet, section: str, name: str) -> SpecSet:
    """The specs without one entry of `dqn`."""
    program = specs.programs["dqn"]
    left = tuple(e for e in getattr(program, section) if e.name != name)
    changed = program.model_copy(update={section: left})
    return specs.model_copy(update={"programs": {**specs.programs, "dqn": changed}})


@pytest.mark.parametrize("section", ["isv", "producers", "params"])
def test_what_is_taken_out_leaves_a_consistent_system_or_breaks_a_named_rule(section):
    specs = load_specs(SPECS)
    entries = getattr(specs.programs["dqn"], section)
    broken = {
        e.name: codes(without(specs, section, e.name)) for e in entries[:: 2 if section == "params" else 1]
    }
    assert all(found <= RULES.keys() for found in broken.values())
    spared = {name for name, found in broken.items() if not found}
    # a retired entry's place may be given up before anything is built on it; the lock then refuses the move
    assert spared <= {"AUX_LABEL_SCALE_EMA", "aux_label_scale"}, spared


def test_an_entry_without_a_reset_policy_does_not_compile():
    specs = load_specs(SPECS)
    for section in ("isv", "params", "buffers", "counters"):
        program = specs.programs["dqn"]
        entries = getattr(program, section)
        bare = tuple(e.model_copy(update={"reset": None}) for e in entries)
        changed = program.model_copy(update={section: bare})
        with pytest.raises(FoxhuntError) as caught:
            check(specs.model_copy(update={"programs": {**specs.programs, "dqn": changed}}))
        found = [d for d in caught.value.diagnostics if d.code == "FH252"]
        stateful = [
            e
            for e in entries
            if getattr(e, "retired", None) is None and getattr(e, "lifetime", "persistent") == "persistent"
        ]
        assert len(found) == len(stateful)


def test_a_slot_a_producer_and_their_wiring_are_added_as_a_whole_or_not_at_all(edited):
    edited("isv.yaml", (r"\Z", "  - {name: Z_RMS, reset: fold}\n"))
    assert codes(edited.root) == {"FH203", "FH250"}
    edited(
        "producers.yaml", (r"\Z", "  - {name: z_rms, kernel: rms, args: {x: now.body.z}, out: {y: Z_RMS}}\n")
    )
    assert codes(edited.root) == {"FH203", "FH250"}
    edited("steps.yaml", (r"( +)- h_s2_rms\n", r"\g<0>\1- z_rms\n"))
    assert codes(edited.root) == {"FH250"}
    edited("diagnostics.yaml", (r"\Z", "  - {name: Z_RMS}\n"))
    grown = laid_out(edited.root)
    assert (grown.isv_total, grown.scratch_total) == (174, 72)


# --- bounds


@pytest.mark.parametrize(
    ("file", "bound"),
    [
        ("network.yaml", "H_S2_BOUND"),
        ("network.yaml", "TARGET_Q_BOUND"),
        ("network.yaml", "BW_D_H_S2_BOUND"),
        ("network.yaml", "Q_DIR_GRAD_BOUND"),
        ("network.yaml", r'"ATOM_POS_BOUND\[DIRECTION\]"'),
        ("network.yaml", r'"WEIGHT_BOUND\[3\]"'),
        ("network.yaml", r'"ADAM_V_BOUND\[7\]"'),
        ("steps.yaml", "TARGET_Q_BOUND"),
    ],
)
def test_a_number_in_place_of_a_bound_breaks_the_adaptive_bounds_rule(edited, file, bound):
    edited(file, (rf"(limit|bound|w_limit|v_limit): {bound}", r'\1: "1.0"'))
    assert "FH215" in codes(edited.root)
    assert RULES["FH215"].name == "adaptive-bounds"


@pytest.mark.parametrize(
    ("observed", "clamped"),
    [
        (r"(name: target_q_p99,.*x: )target_q\b", r"\1target_q_in"),
        (r"(name: h_s2_p99,.*x: )now.body.save_h_s2", r"\1now.body.h"),
        (r"(name: bw_d_h_s2_p99,.*x: learn.trunk.)d_h_s2\b", r"\1d_h_s2_in"),
        (r"learn.heads.d_val, learn.heads.dir_d_adv\b", "learn.heads.d_val_in, learn.heads.dir_d_adv_in"),
    ],
)
def test_a_producer_behind_its_own_clamp_breaks_the_rule(edited, observed, clamped):
    assert edited("producers.yaml", (observed, clamped)) == 2
    assert "FH255" in codes(edited.root)
    assert RULES["FH255"].name == "no-self-limiting-bound"


def test_an_oracle_behind_the_clamp_of_the_weights_breaks_the_rule(edited):
    listing = r"      - \{producers: \[weight_p99,.*\n"
    (found,) = re.findall(listing, (SPECS / "dqn" / "network.yaml").read_text())
    edited("network.yaml", (listing, ""), (r"      - kernel: polyak\n", lambda m: found + m[0]))
    assert "FH255" in codes(edited.root)


# --- resets


def test_a_fold_clears_both_halves_of_every_signal_and_nothing_that_is_learned(dqn):
    assert set(reset_policies(dqn)) == {"fold"}
    table = reset_table(dqn, "fold")
    cleared = {s["index"] for s in table["slots"]}
    observed = [s for s in dqn.program.slots if s.source == "producer" and s.retired is None]
    assert cleared >= {s.index for s in observed}
    triples = {t for s in table["slots"] for t in s["triples"]}
    assert triples == set(range(71)) - {43}
    assert table["counters"] == ()
    assert [f["count"] for f in table["fills"]] == [dict(dqn.program.dims)["N"]]  # new episodes

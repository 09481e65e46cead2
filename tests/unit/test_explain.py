"""`foxhunt explain` answers from what was compiled: places, producers, consumers, reasons."""

import shutil
from itertools import pairwise

import pytest
from kernel_harness import ROOT
from view_programs import aux

from foxhunt.cli import main
from foxhunt.cli.whole import open_programs
from foxhunt.diagnostics import SpecError
from foxhunt.view.explain import explain, is_rule, rule_facts

EXAMPLE = ROOT / "tests" / "cases" / "design_example" / "specs"


@pytest.fixture(scope="module")
def index():
    return aux()


@pytest.fixture(scope="module")
def design():
    return open_programs(EXAMPLE, ["example"])[0]


def rows(index, name):
    """The rows of the first thing called `name`."""
    return dict(explain(name, [index])[0].rows)


def test_a_bound_says_where_it_stands_and_who_feeds_and_reads_it(index):
    found = rows(index, "TRUNK_WEIGHT_BOUND")
    slot = index.slots["TRUNK_WEIGHT_BOUND"]
    assert found["declared"] == (str(slot.at),)
    assert found["index"][0].startswith(f"{slot.index} of the bus; byte {4 * slot.index} ")
    assert found["source"] == ("producer trunk_weight_p99: train.optimise.trunk_weight_p99",)
    assert found["consumers"] == ("train.optimise.clamp_trunk limit (bound)",)
    assert "+inf before" in found["bound"][0]
    assert 'reset("fold")' in found["reset"][0]


def test_a_host_slot_says_how_it_is_set(index):
    assert 'trainer.signals["LR"]' in rows(index, "LR")["source"][0]


def test_a_step_buffer_says_its_arena_bytes_and_both_ends(index):
    found = rows(index, "h1")
    start = index.compiled.schedule.arena["h1"]
    assert f"bytes [{start:,}:" in found["place"][0]
    assert "train.forward.l1 y h1" in found["producers"]
    assert "train.forward.l2 x h1" in found["consumers"]


def test_a_gradient_and_a_group_are_named_through_their_params(index):
    assert rows(index, "aux_w1.g")["what"] == ("gradient of aux_w1",)
    assert rows(index, "trunk")["what"] == ("parameter group trunk",)
    assert "train.optimise.adamw w trunk" in rows(index, "aux_w1")["producers"]


def test_a_launch_may_be_named_by_its_end_and_says_where_it_landed(index):
    found = rows(index, "backward.dw1")
    assert found["kernel"] == ("bwd_dW_reduce (gemm)",)
    assert "beside" in found["landed in"][0]
    assert any("RAW dh1_pre" in edge for edge in found["waits for"])
    assert found["emitted"][0].startswith("launches/")
    assert "FLOP" in found["estimated"][0]


def test_a_sentinel_says_what_it_looks_at(index):
    found = rows(index, "train.sentinel")
    assert "policy report" in found["watches"][0]
    assert any(line.startswith("train.forward.heads_loss: dir_loss") for line in found["watches"])
    assert "beside train.apply" in found["landed in"][0]


def test_a_kernel_lists_its_launches_and_a_device_launch_its_tasks(index):
    assert any(line.startswith("train.forward.l3 ") for line in rows(index, "linear")["launches"])
    name = index.homes["train.backward.dw1"].launches[0].name
    assert any("train.backward.dw1" in line for line in rows(index, name)["tasks"])


def test_counters_producers_and_steps_have_explanations(index):
    assert rows(index, "adam_t")["advances"] == ("by 1 in the ingest of step train",)
    assert "→ GRAD_CLIP_BOUND" in rows(index, "grad_norm_p99")["observes"][0]
    assert rows(index, "evaluate")["order"][0] == "evaluate.ingest"


def test_blocks_and_reset_policies_have_explanations(index):
    assert "evaluate.forward.l1" in rows(index, "forward")["launches"]
    fold = rows(index, "fold")
    assert "TRUNK_WEIGHT_BOUND" in fold["slots"]
    assert "LR" not in fold["slots"]
    assert all(path in index.compiled.files for path in fold["emitted"])


def test_an_edge_is_explained_by_the_bytes_behind_it(index):
    found = rows(index, "train.forward.l1 -> train.forward.l2")
    assert found["order"] == ("train.forward.l1 ends before train.forward.l2 starts",)
    assert "RAW h1" in found["because"][0]


def test_a_long_wait_is_explained_by_a_chain_of_edges(index):
    found = rows(index, "train.draw_windows -> train.forward.l2")
    ends = [line.split("  ")[0].split(" → ") for line in found["because"]]
    assert ends[0][0] == "train.draw_windows"
    assert ends[-1][1] == "train.forward.l2"
    assert all(a[1] == b[0] for a, b in pairwise(ends))


def test_a_pair_the_wrong_way_round_is_turned(index):
    found = rows(index, "clamp_trunk -> trunk_weight_p99")
    assert (
        found["order"][0] == "train.optimise.trunk_weight_p99 ends before train.optimise.clamp_trunk starts"
    )
    assert "WAR trunk" in found["because"][0]


def test_independent_launches_may_run_side_by_side_and_say_what_both_read(index):
    found = rows(index, "dw1 → db1")
    assert found["order"] == ("none: they may run side by side",)
    assert found["both read"] == ("dh1_pre",)
    assert "one device launch" in found["device"][0]


def test_every_name_of_the_program_has_an_explanation(index):
    names = [*index.slots, *index.views, *index.tensors, *index.launches, *index.fused, *index.specs.kernels]
    for name in names:
        assert all(f.text() for f in explain(name, [index])), name


def test_a_retired_slot_says_why_and_nothing_of_resets_and_folds(design):
    found = rows(design, "AUX_LABEL_SCALE_EMA")
    assert list(found)[:2] == ["declared", "retired"]
    assert "divisor" in found["retired"][0]
    assert "reset" not in found


def test_a_sentinel_that_the_policy_switches_off_says_so(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "specs")
    spec = next((tmp_path / "specs").glob("*/program.yaml"))
    spec.write_text(f"{spec.read_text()}\nhealth: {{policy: off}}\n")
    without = open_programs(tmp_path / "specs", ["example"])[0]
    for name in ("train.sentinel", "sentinel", "train.sentinel -> train.apply"):
        with pytest.raises(SpecError) as error:
            explain(name, [without])
        (found,) = error.value.diagnostics
        assert (found.code, found.message) == ("FH290", "example has no sentinel: its health policy is off")
        assert found.location is not None


def test_a_rule_is_explained_by_its_code():
    assert is_rule("fh203")
    assert rule_facts("fh203").title == "rule FH203 slot-unfed"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("TRUNK_WEIGHT_BOUNDS", "TRUNK_WEIGHT_BOUND"),
        ("forward.l9", "forward.l"),
        ("l1 -> optimise.adamv", "adamw"),
        ("lr", "`LR`"),
        ("ADAM_T", "`adam_t`"),
    ],
)
def test_a_misspelt_name_gets_the_nearest(index, name, near):
    with pytest.raises(SpecError) as error:
        explain(name, [index])
    (found,) = error.value.diagnostics
    assert found.code == "FH290"
    assert near in found.help


@pytest.mark.parametrize(
    "name", ["", "->", "a -> b -> c", "☃", "x" * 5000, "l1 ->", "train.forward.l1 -> evaluate.keep"]
)
def test_nonsense_is_refused_and_not_a_fault(index, name):
    with pytest.raises(SpecError):
        explain(name, [index])


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    done = capsys.readouterr()
    return stop.value.code, done.out, done.err


def test_the_command_prints_and_refuses(capsys):
    specs = str(ROOT / "specs")
    code, out, _ = run(capsys, "explain", "LR", "--specs", specs, "--program", "aux")
    assert code == 0
    assert out.startswith("slot LR of aux\n")
    code, out, _ = run(capsys, "explain", "FH203")
    assert (code, out.splitlines()[0]) == (0, "rule FH203 slot-unfed")
    code, _, err = run(capsys, "explain", "LRR", "--specs", specs, "--program", "aux")
    assert code == 2
    assert "did you mean `LR`?" in err
    code, _, err = run(capsys, "explain", "LR", "--specs", specs, "--program", "auxx")
    assert code == 2
    assert "aux" in err
    code, _, err = run(capsys, "explain", "LR", "--specs", "no/such/folder")
    assert code == 2
    assert "FH101" in err

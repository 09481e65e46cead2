import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from runtime_toy import TRACE, ToyBackend, plan

import foxhunt
from foxhunt.backend.plan import Buffer, DataSource, Launch, Pointer, Scalar, Step, View
from foxhunt.diagnostics import CheckpointError, DataError, TrainerError
from foxhunt.runtime.gradients import left_gradients
from foxhunt.runtime.init import initial
from foxhunt.runtime.interrupt import Terminated, terminable
from foxhunt.runtime.trainer import Trainer


def make(eager=False, fail_at=None, the_plan=None, **options):
    return Trainer(the_plan or plan(), Path("."), backend=ToyBackend(eager, fail_at), **options)


def state(trainer):
    trainer.sync()
    return {name: buffer.copy() for name, buffer in trainer.backend.memory.items()}


def same(a, b):
    return all(np.array_equal(a[n], b[n]) for n in a)


def test_importing_foxhunt_loads_neither_numpy_nor_a_backend():
    code = "import sys, foxhunt; sys.exit(any(m in sys.modules for m in ('numpy', 'pydantic', 'yaml')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("eager", [True, False])
def test_a_learning_rate_set_before_each_of_400_queued_steps_is_seen_by_that_step(eager):
    rates = np.linspace(1, 2, TRACE, dtype=np.float32)
    with make(eager) as trainer:
        for rate in rates:
            trainer.signals["LR"] = rate
            trainer.step()
        assert np.array_equal(trainer.tensor("trace"), rates)


def test_the_host_is_never_more_than_64_steps_ahead():
    trainer = make()
    for _ in range(300):
        trainer.step()
        assert len(trainer.backend.queue) <= 64
    trainer.run(200, per_graph=64)
    trainer.sync()
    assert trainer.counters() == {"foxhunt.step": 500, "adam_t": 500}


@pytest.mark.parametrize("per_graph", [1, 2, 3, 16, 64])
def test_results_do_not_depend_on_how_steps_are_grouped(per_graph):
    one, many = make(True), make()
    for _ in range(7):
        one.step()
    many.run(7, "train", per_graph)
    assert same(state(one), state(many))


def test_run_holds_host_slots_and_a_write_takes_effect_at_the_next_enqueued_step():
    with make() as trainer:
        trainer.run(3)
        trainer.signals["LR"] = 2.0
        trainer.run(2)
        assert trainer.tensor("trace")[:6].tolist() == [0.5, 0.5, 0.5, 2.0, 2.0, 0.0]


def test_signals_show_what_the_newest_finished_step_published():
    trainer = make()
    assert trainer.signals["LR"] == 0.5
    assert trainer.signals["GAIN"].tolist() == [1.0, 1.0, 1.0]
    trainer.signals["GAIN[1]"] = 5
    trainer.signals["LR"] = 0.25
    trainer.step()
    assert trainer.signals["LR"] == 0.5, "not run yet"
    trainer.sync()
    assert trainer.signals["LR"] == 0.25
    assert trainer.signals["GAIN"].tolist() == [1.0, 5.0, 1.0]
    assert trainer.signals["GAIN[1]"] == 5.0
    assert trainer.diagnostics() == {"LOSS": trainer.signals["LOSS"], "adam_t": 1}
    assert list(trainer.signals) == ["LR", "GAIN", "LOSS", "TEMP"]


@pytest.mark.parametrize(
    ("name", "value", "code", "words"),
    [
        ("LRR", 1, "FH540", "Did you mean LR?"),
        ("lr", 1, "FH540", "Did you mean LR?"),
        ("GAIN[3]", 1, "FH540", "3 elements"),
        ("LOSS", 1, "FH541", "written by a producer"),
        ("TEMP", 1, "FH541", "written by a kernel"),
        ("LR", float("nan"), "FH542", "finite"),
        ("LR", float("inf"), "FH542", "finite"),
        ("LR", 1e39, "FH542", "finite"),
        ("LR", "fast", "FH542", "numbers"),
        ("LR", None, "FH542", "finite"),
        ("LR", [1, 2], "FH542", "1 numbers"),
        ("GAIN", [1, 2], "FH542", "3 numbers"),
        ("GAIN", [[1, 2], [3]], "FH542", "numbers"),
    ],
)
def test_a_signal_that_cannot_be_set_is_refused_by_name_and_changes_nothing(name, value, code, words):
    trainer = make()
    before = trainer.signals.host_values.copy()
    with pytest.raises(TrainerError) as error:
        trainer.signals[name] = value
    assert error.value.diagnostics[0].code == code
    assert words in str(error.value)
    assert np.array_equal(trainer.signals.host_values, before)


def test_reading_an_unknown_signal_offers_the_nearest():
    with pytest.raises(TrainerError, match="Did you mean LOSS"):
        make().signals["LOS"]


def test_parameters_start_from_seed_and_name_and_groups_do_not_overwrite_them():
    trainer = make(seed=7)
    assert np.array_equal(trainer.tensor("w"), initial("orthogonal", (4, 3), 7, "w"))
    assert trainer.tensor("b").tolist() == [1, 1, 1]
    assert trainer.tensor("ones").tolist() == [1, 1]
    assert trainer.tensor("trunk")[:12].tolist() == trainer.tensor("w").ravel().tolist()
    assert trainer.backend.memory["seed"].tolist() == [7]


def test_a_fold_reset_restores_what_names_the_policy_and_nothing_else():
    trainer = make(seed=3)
    fresh = trainer.tensor("w")
    trainer.signals["GAIN"] = 9
    trainer.signals["LR"] = 8
    trainer.run(5)
    trainer.write_tensor("b", np.float32([4, 5, 6]))
    trainer.reset("fold")
    assert np.array_equal(trainer.tensor("w"), fresh)
    assert trainer.tensor("b").tolist() == [4, 5, 6]
    assert trainer.signals["LOSS"] == 0.0
    assert trainer.counters() == {"foxhunt.step": 5, "adam_t": 0}
    trainer.step()
    trainer.sync()
    assert trainer.signals["GAIN"].tolist() == [1, 1, 1]
    assert trainer.signals["LR"] == 8
    assert trainer.counters() == {"foxhunt.step": 6, "adam_t": 1}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.step("trian"), "Did you mean train?"),
        (lambda t: t.reset("flod"), "Did you mean fold?"),
        (lambda t: t.tensor("ww"), "Did you mean w?"),
        (lambda t: t.tensor("h"), "debug=True"),
        (lambda t: t.write_tensor("h", np.zeros((4, 4))), "within a step"),
        (lambda t: t.write_tensor("w", np.zeros(12)), "float32 [4, 3]"),
        (lambda t: t.write_tensor("feed", np.zeros(5)), "int32 [5]"),
        (lambda t: t.run(-1), "n ≥ 0"),
        (lambda t: t.run(1, per_graph=0), "per_graph"),
        (lambda t: t.run(1, per_graph=65), "per_graph"),
        (lambda t: t.run(1.5), "whole numbers, n ≥ 0 and per_graph from 1 to 64, not 1.5 and 1"),
        (lambda t: t.run("3"), "not '3' and 1"),
        (lambda t: t.run(None), "not None and 1"),
        (lambda t: t.run(True), "not True and 1"),
        (lambda t: t.run(np.bool_(True)), "and 1"),
        (lambda t: t.run(np.array([1, 2])), "and 1"),
        (lambda t: t.run(2, per_graph=2.0), "not 2 and 2.0"),
        (lambda t: t.run(2, per_graph=None), "not 2 and None"),
        (lambda t: t.step(5), "there is no step 5"),
        (lambda t: t.step(""), "there is no step ''"),
        (lambda t: t.run(1, ["train"]), "there is no step ['train']"),
        (lambda t: t.reset(None), "there is no reset policy None"),
        (lambda t: t.reset(["fold"]), "there is no reset policy ['fold']"),
        (lambda t: t.tensor(3), "there is no tensor 3"),
        (lambda t: t.tensor(["w"]), "there is no tensor ['w']"),
        (lambda t: t.write_tensor(None, 1), "there is no tensor None"),
        (lambda t: t.write_tensor("b", [[1, 2], [3]]), "float32 [3], and these values are no array"),
        (lambda t: t.write_tensor("b", ["x", "y", "z"]), "float32 [3], not <U1 [3]"),
        (lambda t: t.write_tensor("b", [1, 2, 2j]), "not complex128 [3]"),
        (lambda t: t.write_tensor("b", [1, None, 2]), "not object [3]"),
        (lambda t: t.write_tensor("b", [1, 1e39, 2]), "float32 [3], which has no room for 1e+39"),
        (lambda t: t.write_tensor("feed", [0, 1, 2, 3, 2**31]), "which has no room for 2147483648"),
        (lambda t: t.signals[0], "there is no slot 0"),
        (lambda t: t.signals.__setitem__(None, 1), "there is no slot None"),
        (lambda t: t.signals.__setitem__(["LR"], 1), "there is no slot ['LR']"),
    ],
)
def test_a_request_that_cannot_be_met_says_why_and_leaves_the_trainer_as_it_was(call, words):
    trainer = make()
    before = state(trainer)
    with pytest.raises(TrainerError) as error:
        call(trainer)
    assert words in str(error.value)
    assert same(before, state(trainer))
    trainer.run(2)
    trainer.sync()
    assert trainer.counters()["foxhunt.step"] == 2


def test_numpy_integers_count_steps():
    trainer = make(seed=np.int32(7))
    trainer.run(np.int64(3), per_graph=np.uint8(2))
    trainer.run(np.int64(0))
    trainer.sync()
    assert trainer.counters()["foxhunt.step"] == 3
    assert trainer.backend.memory["seed"].tolist() == [7]


def test_a_tensor_takes_nan_and_inf_and_exact_conversions():
    trainer = make()
    trainer.write_tensor("b", [np.nan, -np.inf, 3])
    assert np.array_equal(trainer.tensor("b"), np.float32([np.nan, -np.inf, 3]), equal_nan=True)
    trainer.write_tensor("b", np.array([True, False, True]))
    assert trainer.tensor("b").tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "path", [".", "", "/", "..", "a\0b", "\ud800", "no/such/folder/a", None, b"x", 3, ["a"]]
)
def test_a_checkpoint_needs_the_path_of_a_file(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    trainer = make()
    for call, code in ((trainer.save, "FH535"), (trainer.load, "FH530")):
        with pytest.raises(CheckpointError) as error:
            call(path)
        assert error.value.diagnostics[0].code == code
    trainer.step()
    trainer.save(tmp_path / "a")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_debug_trainer_reads_step_buffers():
    assert make(debug=True).tensor("h").shape == (4, 4)


def test_input_buffers_are_fed_between_steps():
    trainer = make()
    trainer.write_tensor("feed", np.arange(5))
    assert trainer.tensor("feed").tolist() == [0, 1, 2, 3, 4]


def fed_plan():
    """The toy, whose step `train` reads the input `feed`, and `idle` writes it."""
    steps = []
    for name, access in (("train", "read"), ("idle", "write")):
        launch = Launch(f"{name}.use", "use", 1, 32, (Scalar(5), Pointer("feed", 0, 5, "i32", access)))
        steps.append(Step(name, (launch,), 10))
    return plan(steps=tuple(steps))


def test_the_first_run_of_a_step_warns_of_inputs_that_nobody_wrote(caplog):
    trainer = make(the_plan=fed_plan())
    trainer.run(0)
    trainer.step("idle")
    assert not caplog.records
    trainer.step("train")
    assert [r.getMessage() for r in caplog.records] == [
        "step train reads zeros where no input was written (write_tensor): feed"
    ]
    assert caplog.records[0].levelname == "WARNING"
    trainer.run(3, "train")
    assert len(caplog.records) == 1


def stored_plan(checkpoint):
    """The toy, whose step `train` reads the persistent `store`, which `collect` and `plant` write."""
    uses = {"train": (("store", "read"), ("trace", "update")), "collect": (("store", "write"),)}
    uses["plant"] = (("store", "update"), ("trace", "write"))
    steps = []
    for name, touched in uses.items():
        args = tuple(Pointer(buffer, 0, 4, "f32", access) for buffer, access in touched)
        steps.append(Step(name, (Launch(f"{name}.use", "use", 1, 32, args),), 10))
    buffers = (*plan().buffers, Buffer("store", "f32", 4, "state", checkpoint))
    views = (*plan().views, View("store", "store", 0, "f32", (4,)))
    return plan(steps=tuple(steps), buffers=buffers, views=views)


def test_a_step_whose_state_only_steps_write_that_never_ran_says_so_once(caplog):
    trainer = make(the_plan=stored_plan(checkpoint=True))
    trainer.run(2, "train")
    trainer.run(2, "train")
    (said,) = caplog.messages
    assert said == (
        "step train reads what only other steps write, none of which has run (collect, plant): store"
    )


@pytest.mark.parametrize("checkpointed", [True, False])
def test_state_that_a_step_a_person_or_a_checkpoint_has_written_is_no_reason_to_warn(
    caplog, tmp_path, checkpointed
):
    trainer = make(the_plan=stored_plan(checkpointed))
    trainer.run(1, "plant")
    trainer.run(1, "train")
    trainer.save(tmp_path / "c.safetensors")
    given = make(the_plan=stored_plan(checkpointed))
    given.write_tensor("store", np.ones(4, np.float32))
    given.run(1, "train")
    assert not caplog.records
    resumed = make(the_plan=stored_plan(checkpointed))
    resumed.load(tmp_path / "c.safetensors")
    caplog.clear()
    resumed.run(1, "train")
    assert [("none of which has run" in m) for m in caplog.messages] == [True] * (not checkpointed)


def test_an_input_that_was_written_is_no_reason_to_warn(caplog):
    trainer = make(the_plan=fed_plan())
    trainer.write_tensor("feed", np.zeros(5, np.int32))
    trainer.step("train")
    assert not caplog.records


def test_a_trainer_introduces_itself(tmp_path):
    trainer = make(eager=True, fail_at=3)
    assert repr(trainer) == "<Trainer toy (default) on toy, step 0, layout aaaaaaaaaaaa>"
    trainer.run(2)
    assert ", step 2, " in repr(trainer)
    with pytest.raises(RuntimeError):
        trainer.run(5)
    assert ", failed, " in repr(trainer)
    trainer.close()
    assert ", closed, " in repr(trainer)


def test_saving_and_loading_weights_that_are_not_finite_warns_of_them_by_name(tmp_path, caplog):
    trainer = make()
    trainer.save(tmp_path / "good")
    assert not caplog.records
    trainer.write_tensor("w", np.full((4, 3), np.nan))
    trainer.write_tensor("b.m", [0, -np.inf, 0])
    trainer.write_tensor("trace", np.full(TRACE, np.nan))  # no weight: a log may hold what it likes
    trainer.save(tmp_path / "bad")
    said = f"{tmp_path / 'bad'} holds NaN or inf: w (12 of 12), b.m (1 of 3)."
    assert [r.getMessage().partition(" Continue")[0] for r in caplog.records] == [said]
    assert "foxhunt verify toy --only finite" in caplog.text
    caplog.clear()
    warnings = make().load(tmp_path / "bad")
    assert [(w.code, w.severity, w.message) for w in warnings] == [("FH536", "warning", said)]
    assert said in caplog.text


def gradient_plan(*launches):
    """The toy with a gradient `w.g` in the arena and these launches in `train`."""
    buffers = tuple(Buffer("arena", "u8", 256, "arena") if b.name == "arena" else b for b in plan().buffers)
    buffers += (Buffer("x", "f32", 4, "input"),)
    views = (*plan().views, View("w.g", "arena", 16, "f32", (4, 3)), View("x", "x", 0, "f32", (4,)))
    return plan(buffers=buffers, views=views, steps=(Step("train", launches), Step("idle", ())))


def launch(name, *pointers):
    return Launch(name, name, 1, 32, tuple(Pointer(*p) for p in pointers))


GRADIENT = launch("gradient", ("arena", 64, 12, "f32", "write"))
OPTIMISE = launch("optimise", ("arena", 64, 12, "f32", "read"), ("params", 0, 12, "f32", "update"))
REUSE = launch("reuse", ("arena", 108, 9, "f32", "write"))
BESIDE = launch("beside", ("arena", 112, 9, "f32", "write"))


@pytest.mark.parametrize(
    ("launches", "left"),
    [
        ((GRADIENT, OPTIMISE), ["w.g"]),
        ((GRADIENT, OPTIMISE, BESIDE), ["w.g"]),
        ((GRADIENT, OPTIMISE, REUSE), []),
        ((REUSE, GRADIENT, OPTIMISE), ["w.g"]),
        ((GRADIENT,), []),
    ],
)
def test_a_gradient_stands_until_something_else_is_written_over_it(launches, left):
    the_plan = gradient_plan(*launches)
    assert [v.name for v in left_gradients(the_plan, the_plan.steps[0])] == left


def test_saving_warns_of_gradients_that_an_optimiser_skipped(tmp_path, caplog):
    trainer = make(the_plan=gradient_plan(GRADIENT, OPTIMISE))
    trainer.write_tensor("x", [1, np.nan, 3, 4])
    trainer.run(2)
    trainer.save(tmp_path / "a")
    assert not caplog.records
    trainer.run(1)
    trainer.sync()
    trainer.backend.memory["arena"][64:112].view(np.float32)[:5] = np.nan
    trainer.save(tmp_path / "a")
    (record,) = caplog.records
    assert record.getMessage() == (
        "the last step train had NaN or inf in its gradients: w.g (5 of 12). "
        "So have these inputs: x (1 of 4). "
        "adamw leaves such elements of a param as they are, so they do not train."
    )
    trainer.step("idle")
    trainer.save(tmp_path / "a")
    trainer.load(tmp_path / "a")
    trainer.save(tmp_path / "a")
    assert len(caplog.records) == 1, "these gradients are of no step that ended last"


def test_training_resumed_from_a_checkpoint_is_bit_identical(tmp_path):
    whole = make(seed=5)
    whole.run(70)
    whole.signals["LR"] = 0.125  # set, but not seen by a step yet
    whole.save(tmp_path / "a.safetensors")
    whole.run(80)
    resumed = make(seed=99)
    resumed.run(200)
    assert resumed.load(tmp_path / "a.safetensors") == ()
    assert resumed.signals["LR"] == 0.125
    assert resumed.counters()["foxhunt.step"] == 70
    resumed.run(80)
    assert same(state(whole), state(resumed))
    assert resumed.signals["LOSS"] == whole.signals["LOSS"]


def test_loading_keeps_the_storage(tmp_path):
    trainer = make()
    trainer.save(tmp_path / "a")
    before = {n: b.ctypes.data for n, b in trainer.backend.memory.items()}
    trainer.load(tmp_path / "a")
    assert before == {n: b.ctypes.data for n, b in trainer.backend.memory.items()}


def test_a_refused_checkpoint_changes_nothing(tmp_path):
    other = make(the_plan=plan(layout_hash="c" * 64))
    other.run(3)
    other.save(tmp_path / "a")
    trainer = make()
    before = state(trainer)
    with pytest.raises(CheckpointError):
        trainer.load(tmp_path / "a")
    assert same(before, state(trainer))


def test_a_step_that_failed_half_way_is_neither_continued_nor_saved(tmp_path):
    trainer = make(eager=True, fail_at=3)
    trainer.run(2)
    trainer.save(tmp_path / "good")
    with pytest.raises(RuntimeError):
        trainer.run(5)
    for call in (
        lambda: trainer.step(),
        lambda: trainer.save(tmp_path / "bad"),
        lambda: trainer.reset("fold"),
    ):
        with pytest.raises(TrainerError, match="half-way"):
            call()
    assert not (tmp_path / "bad").exists()
    trainer.backend.fail_at = None
    trainer.load(tmp_path / "good")
    trainer.step()
    trainer.sync()
    assert trainer.counters()["foxhunt.step"] == 3


@pytest.mark.parametrize("debug", [False, True])
def test_ctrl_c_stops_between_steps_and_the_state_can_be_saved(tmp_path, debug):
    trainer = make(eager=True, debug=debug)
    execute, pressed = trainer.backend._execute, []

    def interrupted(step):
        if not pressed and trainer.backend.done == 20:
            pressed.append(True)
            if not debug:  # as a backend takes it: after a step that the trainer has not counted yet
                execute(step)
            os.kill(os.getpid(), signal.SIGINT)
        execute(step)

    trainer.backend._execute = interrupted
    with pytest.raises(KeyboardInterrupt):
        trainer.run(100)
    done = trainer.counters()["foxhunt.step"]
    assert 20 < done < 100
    assert trainer.tensor("trace")[:done].all()
    assert not trainer.tensor("trace")[done:].any()
    trainer.save(tmp_path / "kept")
    trainer.signals["LR"] = 2.0
    trainer.run(5)
    assert trainer.tensor("trace")[done : done + 6].tolist() == [2.0] * 5 + [0.0]


def test_sigterm_is_held_between_steps_like_ctrl_c():
    trainer = make(eager=True, debug=True)
    execute, sent = trainer.backend._execute, []

    def terminated(step):
        if trainer.backend.done == 20 and not sent:
            sent.append(True)
            os.kill(os.getpid(), signal.SIGTERM)
        execute(step)

    trainer.backend._execute = terminated
    handler = signal.getsignal(signal.SIGTERM)
    with terminable(), pytest.raises(Terminated):
        trainer.run(100)
    assert trainer.counters()["foxhunt.step"] == 21
    assert signal.getsignal(signal.SIGTERM) is handler


def test_ctrl_c_while_waiting_leaves_a_trainer_that_can_be_saved(tmp_path):
    trainer = make()
    trainer.run(3)
    wait = trainer.backend.sync
    trainer.backend.sync = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        trainer.sync()
    trainer.backend.sync = wait
    trainer.save(tmp_path / "kept")
    assert trainer.counters()["foxhunt.step"] == 3


def test_steps_run_from_another_thread():
    trainer = make(eager=True)
    thread = threading.Thread(target=trainer.run, args=(5,))
    thread.start()
    thread.join()
    assert trainer.counters()["foxhunt.step"] == 5


def test_a_closed_trainer_says_so_and_closing_twice_is_harmless():
    trainer = make()
    with trainer:
        pass
    trainer.close()
    assert trainer.backend.closed
    for call in (
        trainer.step,
        trainer.sync,
        trainer.diagnostics,
        trainer.__enter__,
        lambda: trainer.tensor("w"),
        lambda: trainer.signals["LR"],
        lambda: trainer.signals.__setitem__("LR", 1),
    ):
        with pytest.raises(TrainerError, match="closed") as error:
            call()
        assert error.value.diagnostics[0].code == "FH545"


def test_a_resident_buffer_that_the_data_does_not_fit_is_refused_before_anything_is_built():
    bars = Path(__file__).parents[2] / "examples/data/eurusd_1h_2017.csv"
    views = (
        *plan().views,
        View("x", "feed", 0, "i32", (5,), fill="bars.closee"),
        View("y", "feed", 0, "f32", (9, 7), fill="bars.features"),
    )
    source = DataSource("bars", "ohlcv", str(bars))
    backend = ToyBackend()
    with pytest.raises(DataError) as error:
        Trainer(plan(views=views, data=(source,)), Path("."), backend=backend)
    assert [d.code for d in error.value.diagnostics] == ["FH526", "FH526"]
    assert "no data source gives bars.closee" in str(error.value)
    assert "float32 [9, 7], bars.features gives float32 [6225, 7]" in str(error.value)
    assert not hasattr(backend, "memory")


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, "a", 1.0, None, True])
def test_a_seed_is_a_whole_number_of_64_bits(seed):
    with pytest.raises(TrainerError, match="64 bits") as error:
        make(seed=seed)
    assert error.value.diagnostics[0].code == "FH542"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "no compiled program"),
        ("PLAN = 3", "not a foxhunt plan"),
        ("PLAN = (", "SyntaxError"),
        ("import nope", "nope"),
    ],
)
def test_a_folder_without_a_sound_trainer_is_refused(tmp_path, text, words):
    if text is not None:
        (tmp_path / "trainer.py").write_text(text)
    with pytest.raises(TrainerError) as error:
        foxhunt.load(tmp_path)
    assert error.value.diagnostics[0].code == "FH546"
    assert words in str(error.value)


@pytest.mark.parametrize("folder", [None, b"generated/aux", 3, "a\0b"])
def test_what_is_no_path_is_no_compiled_program(folder):
    with pytest.raises(TrainerError) as error:
        foxhunt.load(folder)
    assert error.value.diagnostics[0].code == "FH546"

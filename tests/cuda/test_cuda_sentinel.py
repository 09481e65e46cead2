"""The sentinel on the GPU finds what it finds on the host, and each policy leaves the same bits."""

import numpy as np
import pytest
from sentinel_program import POLICIES, PROGRAM, feed, found_rows, same, state
from small_programs import training

from foxhunt.diagnostics import TrainerError


def trained(folder, backend, policy, per_graph, debug=False):
    """What good, bad and good steps leave, and where the sentinel found something."""
    folder.mkdir()
    text = PROGRAM + f"health: {{policy: {policy}}}\n"
    with training(text, folder, backend, seed=3, debug=debug) as trainer:
        for count, bad, value in ((3, None, 0.0), (4, "want", np.inf), (2, "x", np.nan), (5, None, 0.0)):
            feed(trainer, bad, value)
            held = trainer.signals.host_values
            for row in range(64):
                trainer.backend.ingest_row(row)[:] = held
            trainer.backend.run("train", count, per_graph)  # past a stop, as enqueued steps go
        if policy == "stop":
            with pytest.raises(TrainerError, match="FH552"):
                trainer.sync()
        rows = found_rows(trainer) if policy != "off" else np.zeros(0)
        return state(trainer) | {"rows": rows}, trainer.not_finite().places


@pytest.mark.parametrize("policy", POLICIES)
def test_the_gpu_finds_and_holds_what_the_host_does(tmp_path, policy):
    expected, places = trained(tmp_path / "host", "host", policy, 1)
    assert [(p.launch, p.buffer, p.first) for p in places[:1]] == (
        [("train.mse_rows", "dy", 4)] if policy != "off" else []
    )
    for per_graph, debug in ((1, False), (3, False), (1, True)):
        folder = tmp_path / f"cuda{per_graph}{debug}"
        found, same_places = trained(folder, "cuda", policy, per_graph, debug)
        assert same(found, expected)
        assert same_places == places


def test_a_stop_is_raised_when_the_step_is_waited_for(tmp_path):
    text = PROGRAM + "health: {policy: stop}\n"
    with training(text, tmp_path, "cuda") as trainer:
        feed(trainer, "x")
        trainer.run(5)
        with pytest.raises(TrainerError, match="FH552"):
            trainer.sync()
        trainer.reset("fold")
        feed(trainer)
        trainer.run(1)
        trainer.sync()


def test_every_part_of_a_large_output_is_looked_at(tmp_path):
    text = """
dims: {N: 16001}
buffers:
  - {name: x, shape: [N], lifetime: input}
  - {name: kept, shape: [N], lifetime: persistent, reset: never}
steps:
  - name: copy
    items:
      - {kernel: add_many, args: {xs: [x], y: kept}}
"""
    with training(text, tmp_path, "cuda") as trainer:
        for k in (0, 4095, 4096, 12345, 16000):
            x = np.zeros(16001, np.float32)
            x[k] = np.nan
            trainer.write_tensor("x", x)
            trainer.run(1)
        trainer.sync()
        assert trainer.not_finite().places[0].steps == 5

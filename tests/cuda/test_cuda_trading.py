"""The experience side on the GPU: paths, episodes, ring and evaluation have the host's bits."""

import numpy as np
from small_programs import training
from trading_program import dim, trading_program

STEPS = (("plant", 1), ("collect", 40), ("sample", 3), ("evaluate", dim("BARS")), ("baselines", 1))


def traded(folder, backend, per_graph=1):
    """Everything that the steps leave, some actions greedy and some random, across a fold."""
    folder.mkdir()
    with training(trading_program(), folder, backend, seed=5) as trainer:
        for k, name in enumerate(("q_dir", "q_mag", "q_ord", "q_urg")):
            q = np.random.default_rng(k).standard_normal((dim("N"), dim("ACTIONS"))).astype(np.float32)
            trainer.write_tensor(name, q)
        rules = [[0, 1, 0], [1, 1, 0], [2, 1, 0], [3, 16, 5e-4], [4, 1, 5e-4]]
        trainer.write_tensor("rules", np.array(rules, np.float32))
        trainer.signals["EPSILON"] = 0.5
        trainer.signals["LOSS_LIMIT"] = 2e-3
        for step, count in STEPS:
            trainer.run(count, step, per_graph)
        trainer.reset("fold")
        trainer.run(2, "collect", per_graph)
        return {v.name: trainer.tensor(v.name) for v in trainer.plan.views}


def test_the_gpu_trades_as_the_host_does(tmp_path):
    host = traded(tmp_path / "host", "host")
    for per_graph in (1, 4):
        found = traded(tmp_path / f"cuda{per_graph}", "cuda", per_graph)
        assert not [n for n in host if host[n].tobytes() != found[n].tobytes()]
    assert host["ring_position"][0] == 42 * dim("N")

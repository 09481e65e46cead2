"""Feed random tensors through the compiled example and watch its signals; compile it first."""

from pathlib import Path

import numpy as np

import foxhunt

random = np.random.default_rng(0)
with foxhunt.load(Path(__file__).parent / "generated" / "watch") as trainer:
    for _ in range(100):
        trainer.write_tensor("x", random.normal(size=(64, 128)).astype(np.float32))
        trainer.run(1)
    trainer.sync()
    print(f"p99 of |x| {trainer.signals['X_BOUND']:.3f}, RMS {trainer.signals['X_RMS']:.3f}")
    print(f"largest |y| {np.abs(trainer.tensor('y')).max():.3f}")

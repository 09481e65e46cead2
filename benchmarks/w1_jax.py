"""W1 in JAX: many steps in one jitted scan."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the GPU is shared with the other arms

import jax
import jax.numpy as jnp
import numpy as np
import optax
from w1_problem import CLIP, KEEP, LR, REGIME_WEIGHT, WEIGHT_DECAY, Array, Problem

SCAN = 100  # steps of one compiled call, where that many are asked for


class JaxArm:
    """One call of the compiled scan for every SCAN steps, or for all of fewer."""

    name = "JAX jit + scan"

    def __init__(self, p: Problem, precision: str) -> None:
        jax.config.update(
            "jax_default_matmul_precision", "tensorfloat32" if precision == "tf32" else "highest"
        )
        self._problem = p
        self._optimizer = optax.chain(
            optax.clip_by_global_norm(CLIP), optax.adamw(LR, weight_decay=WEIGHT_DECAY)
        )
        self._data = (jnp.asarray(p.x), jnp.asarray(p.direction), jnp.asarray(p.regime))

        def scan(carry: Any, data: Any, length: int) -> Any:
            return jax.lax.scan(lambda c, _: (self._step(c, data), None), carry, None, length=length)[0]

        self._scan = jax.jit(scan, static_argnums=2)
        self.restart()

    def _loss(self, w: Any, x: Any, direction: Any, regime: Any) -> Any:
        def linear(name: str, y: Any) -> Any:
            return y @ w[f"{name}.w"] + w[f"{name}.b"]

        h = linear("l3", jax.nn.elu(linear("l2", jax.nn.elu(linear("l1", x)))))
        cross_entropy = optax.softmax_cross_entropy_with_integer_labels
        mask = (direction != 0).astype(jnp.float32)
        per_sample = cross_entropy(linear("dir", h), (direction > 0).astype(jnp.int32))
        dir_loss = (per_sample * mask).sum() / jnp.maximum(mask.sum(), 1)
        reg_loss = cross_entropy(linear("reg", h), regime).mean()
        return dir_loss + REGIME_WEIGHT * reg_loss, (dir_loss, reg_loss, h)

    def _step(self, carry: Any, data: Any) -> Any:
        w, state, statistics = carry
        (_, (dir_loss, reg_loss, h)), gradients = jax.value_and_grad(self._loss, has_aux=True)(w, *data)
        norm = optax.global_norm(gradients)
        updates, state = self._optimizer.update(gradients, state, w)
        seen = jnp.stack([dir_loss, reg_loss, jnp.abs(h).max(), jnp.sqrt((h**2).mean()), norm])
        return optax.apply_updates(w, updates), state, KEEP * statistics + (1 - KEEP) * seen

    def restart(self) -> None:
        w = {name: jnp.asarray(value) for name, value in self._problem.weights.items()}
        self._carry = (w, self._optimizer.init(w), jnp.zeros(5))

    def run(self, steps: int) -> None:
        length = min(steps, SCAN)
        for _ in range(steps // length):
            self._carry = self._scan(self._carry, self._data, length)
        jax.block_until_ready(self._carry)

    def outputs(self) -> tuple[dict[str, Array], Array]:
        w, _, statistics = self._carry
        return {name: np.asarray(value) for name, value in w.items()}, np.asarray(statistics)

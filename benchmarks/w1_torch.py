"""W1 in PyTorch: the step captured in a CUDA graph, as written or through torch.compile first."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional
from w1_problem import CLIP, KEEP, LAYERS, LR, REGIME_WEIGHT, WEIGHT_DECAY, Array, Problem


class TorchArm:
    """One graph replay a step."""

    def __init__(self, p: Problem, compiled: bool, precision: str) -> None:
        self.name = "torch.compile + CUDA graph" if compiled else "torch + CUDA graph"
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch._dynamo.reset()
        self._problem = p
        self._x = torch.tensor(p.x, device="cuda")
        direction = torch.tensor(p.direction, device="cuda").long()
        self._direction = torch.where(direction > 0, 1, torch.where(direction < 0, 0, -100))
        self._regime = torch.tensor(p.regime, device="cuda").long()
        self._weights = {
            name: torch.tensor(value, device="cuda").requires_grad_() for name, value in p.weights.items()
        }
        self._optimizer = torch.optim.AdamW(
            self._weights.values(), lr=LR, weight_decay=WEIGHT_DECAY, fused=True, capturable=True
        )
        self._statistics = torch.zeros(5, device="cuda")
        self._graph = self._capture(torch.compile(self._step) if compiled else self._step)

    def _linear(self, name: str, x: Any) -> Any:
        return torch.addmm(self._weights[f"{name}.b"], x, self._weights[f"{name}.w"])

    def _step(self) -> None:
        h = self._linear(
            "l3", functional.elu(self._linear("l2", functional.elu(self._linear("l1", self._x))))
        )
        direction = functional.cross_entropy(self._linear("dir", h), self._direction, ignore_index=-100)
        regime = functional.cross_entropy(self._linear("reg", h), self._regime)
        (direction + REGIME_WEIGHT * regime).backward()
        norm = torch.nn.utils.clip_grad_norm_(self._weights.values(), CLIP, foreach=True)
        with torch.no_grad():
            h = h.detach()
            seen = torch.stack(
                [direction.detach(), regime.detach(), h.abs().max(), h.pow(2).mean().sqrt(), norm.detach()]
            )
            self._statistics.copy_(KEEP * self._statistics + (1 - KEEP) * seen)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=False)

    def _capture(self, step: Any) -> Any:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):  # compilation and the allocator's warm-up stay out of the graph
                step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph

    def restart(self) -> None:
        with torch.no_grad():
            for name, value in self._problem.weights.items():
                self._weights[name].copy_(torch.tensor(value))
            for state in self._optimizer.state.values():
                for tensor in state.values():
                    tensor.zero_()
            self._statistics.zero_()
        torch.cuda.synchronize()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._graph.replay()
        torch.cuda.synchronize()

    def outputs(self) -> tuple[dict[str, Array], Array]:
        weights = {name: value.detach().cpu().numpy() for name, value in self._weights.items()}
        assert set(weights) == {f"{layer}.{part}" for layer in LAYERS for part in "wb"}
        return weights, np.asarray(self._statistics.cpu())

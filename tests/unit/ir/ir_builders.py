"""Small programs for tests of the IR: YAML text straight into models, and a handful of kernels."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import yaml

from foxhunt.diagnostics import FoxhuntError
from foxhunt.ir.graph import build_graph
from foxhunt.ir.layout import Lock, lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.ir.types import LaidOutProgram, Launch, StepGraph
from foxhunt.ir.verify import verify
from foxhunt.spec.models import Kernel, Program, SpecSet

KERNELS = """
- {kernel: copy, params: {x: {shape: [...n]}, y: {access: write, shape: [...n]}}, grid: "ceil_div(n, BLOCK)"}
- {kernel: fill, params: {y: {access: write, shape: [...n]}}}
- {kernel: bump, params: {x: {access: update, shape: [...n]}}}
- {kernel: look, params: {x: {shape: [...n]}}}
- {kernel: linear, params: {x: {shape: [B, K]}, w: {shape: [K, N]}, y: {access: write, shape: [B, N]}}}
- {kernel: twice, params: {x: {shape: [n]}, y: {access: write, shape: ["2 * n"]}}}
- {kernel: scale, params: {x: {access: update, shape: [...n]}, s: {kind: slot}}}
- {kernel: limit, params: {w: {access: update, shape: [...n], many: true}, limit: {kind: bound}}}
- {kernel: set_slot, params: {s: {access: write, kind: slot}}}
- {kernel: tick, params: {t: {kind: counter}, y: {access: write, shape: [...n]}}}
- {kernel: noise, params: {r: {kind: rng}, y: {access: write, shape: [...n]}}}
- {kernel: count, params: {x: {shape: [...n]}, y: {access: write, dtype: i64}}}
- {kernel: work, tickets: SPLITS, params: {x: {shape: [n]}},
   workspace: {part: {shape: [n, SPLITS], dtype: i32}}}
- {kernel: p99, kind: statistic, degenerate: zero,
   params: {x: {shape: [...n], many: true}, y: {access: write, shape: [1]}}}
- {kernel: util, kind: statistic, params: {x: {shape: [B, K]}, y: {access: write, shape: [K]}}}
- {kernel: pair, kind: statistic, outputs: [second, first],
   params: {x: {shape: [...n]}, first: {access: write}, second: {access: write}}}
"""


def _model(model, data):
    return model.model_validate(_frozen(data))


def _frozen(data):
    if isinstance(data, dict):
        return {key: _frozen(value) for key, value in data.items()}
    return tuple(map(_frozen, data)) if isinstance(data, list) else data


def kernels(text: str = "") -> dict[str, Kernel]:
    """The kernels above and those of `text`."""
    entries = yaml.safe_load(KERNELS) + (yaml.safe_load(text) or [])
    filled = ({"kind": "body", "doc": "", "reference": e["kernel"]} | e for e in entries)
    return {e["kernel"]: _model(Kernel, e) for e in filled}


def specs(text: str, more: str = "", *others: str) -> SpecSet:
    """A spec set whose programs are `text` and `others`; the kernels count as foxhunt's own."""
    programs = [_model(Program, yaml.safe_load(t)) for t in (text, *others)]
    known = kernels(more)
    return SpecSet(
        root="specs",
        programs={p.program: p for p in programs},
        kernels=known,
        sources={},
        library=frozenset(known),
    )


@dataclass(frozen=True)
class Built:
    """A program through all of the IR."""

    laid_out: LaidOutProgram
    graphs: tuple[StepGraph, ...]

    def launch(self, name: str) -> Launch:
        return next(launch for graph in self.graphs for launch in graph.launches if launch.name == name)

    def edges(self, step: str = "train") -> set[tuple[str, str, str]]:
        graph = next(g for g in self.graphs if g.step == step)
        return {(e.before, e.after, e.kind) for e in graph.edges}


def build(text: str, more: str = "", *others: str, lock: Lock | None = None, **dims: int) -> Built:
    """Resolve, lay out and build the graphs of the first program, without the rules."""
    found = specs(text, more, *others)
    program = resolve(found, next(iter(found.programs)), dims=dims)
    laid_out = lay_out(program, lock)
    return Built(laid_out, tuple(build_graph(laid_out, s.name) for s in program.steps))


def check(text: str, more: str = "", *others: str) -> Built:
    """`build`, then every rule."""
    built = build(text, more, *others)
    verify(built.laid_out, built.graphs)
    return built


def findings(text: str, more: str = "", *others: str) -> list[tuple[str, str]]:
    """The codes and messages that a program is refused with."""
    with pytest.raises(FoxhuntError) as caught:
        check(text, more, *others)
    return [(d.code, d.message) for d in caught.value.diagnostics]


def hints(text: str, more: str = "") -> list[str]:
    """The mends that a program is refused with."""
    with pytest.raises(FoxhuntError) as caught:
        check(text, more)
    return [d.help for d in caught.value.diagnostics]

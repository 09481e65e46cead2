"""The stages composed: specs, a name and options to everything that a compile produces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from foxhunt.backend.plan import Plan
from foxhunt.contract.fingerprint import Fingerprint, fingerprint
from foxhunt.contract.lock import LOCK_FILE, render_lock
from foxhunt.diagnostics import Diagnostic
from foxhunt.emit.environment import Renderer
from foxhunt.emit.render import FileSet, Kernels, render
from foxhunt.emit.templates import TemplateSet, load_templates
from foxhunt.ir.graph import build_graph
from foxhunt.ir.layout import Lock, lay_out
from foxhunt.ir.resolve import resolve
from foxhunt.ir.types import LaidOutProgram, StepGraph
from foxhunt.ir.verify import verify
from foxhunt.pipeline.plan import plan_of
from foxhunt.schedule.build import build_schedule
from foxhunt.schedule.types import Schedule
from foxhunt.spec.library import library_root
from foxhunt.spec.models import SpecSet


@dataclass(frozen=True)
class Compiled:
    """One program, compiled: every intermediate value, and the text of every generated file."""

    laid_out: LaidOutProgram
    graphs: tuple[StepGraph, ...]
    schedule: Schedule
    fingerprint: Fingerprint
    files: FileSet
    plan: Plan
    suppressed: tuple[Diagnostic, ...] = ()


def project_templates(specs_root: Path) -> TemplateSet:
    """The templates of the project around a specs folder, before those of the built-in library."""
    folders = [specs_root.resolve().parent / "templates", library_root() / "templates"]
    return load_templates(dict.fromkeys(f for f in folders if f.is_dir()))


def compile_program(
    specs: SpecSet,
    name: str,
    variant: str = "default",
    dims: Mapping[str, int] | None = None,
    templates: TemplateSet | None = None,
    lock: Lock | None = None,
    fused: bool = True,
) -> Compiled:
    """Resolve, lay out, graph, verify, schedule and render one program.

    `dims` override the variant's; `lock` keeps positions; `templates` default to the project's; without
    `fused` every launch stays a device launch of its own. Raises
    SpecError (FH2xx, FH3xx) and EmissionError (FH4xx) with all findings of the stage that fails. Touches no
    file but templates.
    """
    laid_out = lay_out(resolve(specs, name, variant, dict(dims or {})), lock)
    graphs = tuple(build_graph(laid_out, step.name) for step in laid_out.program.steps)
    suppressed = verify(laid_out, graphs)
    schedule = build_schedule(laid_out, graphs, fused=fused)
    renderer = Renderer(templates or project_templates(Path(specs.root)))
    kernels = Kernels(schedule, renderer)
    found = fingerprint(laid_out, kernels.semantics())
    plan = plan_of(schedule, found)
    files = render(schedule, kernels, plan, renderer)
    files[LOCK_FILE] = render_lock(laid_out, found)
    return Compiled(laid_out, graphs, schedule, found, files, plan, suppressed)

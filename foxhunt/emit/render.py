"""From a schedule and a template set to the text of every generated file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from foxhunt.diagnostics import EmissionError, fail
from foxhunt.emit import source
from foxhunt.emit.entry import KernelText, entry_context, entry_sizes, kernel_key
from foxhunt.emit.environment import Renderer
from foxhunt.emit.literal import literal, names
from foxhunt.emit.manifest import manifest
from foxhunt.emit.signature import check_body, constants, kernel_body
from foxhunt.ir import sentinel, system
from foxhunt.ir.types import LaidOutProgram, Launch
from foxhunt.schedule.types import FusedLaunch, Schedule

FileSet = dict[str, str]


class Kernels:
    """The rendered kernels of a schedule: their files, and what entries must know of them."""

    def __init__(self, schedule: Schedule, renderer: Renderer) -> None:
        """Render each kernel that some launch runs, once; the system kernels once a launch."""
        self.files: FileSet = {}
        self.texts: dict[str, KernelText] = {}
        for launch in _distinct(_members(schedule)):
            if launch.kernel.kernel in system.NAMES:
                self._add_system(schedule.laid_out, launch, renderer)
            else:
                self._add_library(launch, renderer)

    def semantics(self) -> dict[str, str]:
        """Comment-stripped texts by path: what the semantics hash is taken of. A sentinel changes no result,
        and what it looks at depends on sizes; what may follow from it is the policy, which is declared.
        """
        files = (f for f in sorted(self.files.items()) if "/sentinel" not in f[0])
        return {path: source.normalise(text) for path, text in files}

    def _add_library(self, launch: Launch, renderer: Renderer) -> None:
        kernel = launch.kernel
        template = f"kernels/{kernel.kernel}.cu.j2"
        body = kernel_body(renderer, kernel, [name for name, _ in launch.dims], template)
        check_body(renderer, template)
        sources = [f"specs/kernels/{kernel.kernel}.yaml", f"templates/{template}"]
        self._add(
            launch, renderer, f"kernels/{kernel.kernel}.cuh", f"k_{kernel.kernel}", "../", body, sources
        )

    def _add_system(self, laid_out: LaidOutProgram, launch: Launch, renderer: Renderer) -> None:
        name = launch.kernel.kernel
        step = launch.name.rsplit(".", 1)[0]
        table = {
            "ingest": system.ingest_table,
            "apply": system.apply_table,
            "publish": system.publish_table,
            "reset": system.reset_table,
            "sentinel": sentinel.sentinel_table,
            "sentinel_keep": sentinel.update_table,
            "sentinel_undo": sentinel.update_table,
        }[name](laid_out, step.removeprefix("reset_") if name == "reset" else step)
        template = f"base/{name}.cu.j2"
        symbols = [n for n, _ in launch.dims]
        body = kernel_body(renderer, launch.kernel, symbols, template, table=table, step=step)
        sources = [f"the specs of program {laid_out.program.name}", f"templates/{template}"]
        path = f"system/{step}/{name}.cuh"
        self._add(launch, renderer, path, f"s_{step}_{name}", "../../", body, sources)

    def _add(
        self,
        launch: Launch,
        renderer: Renderer,
        path: str,
        namespace: str,
        up: str,
        body: str,
        sources: list[str],
    ) -> None:
        kernel = launch.kernel
        context = {
            "sources": sources,
            "doc": kernel.doc,
            "namespace": namespace,
            "up": up,
            "consts": constants(kernel),
            "body": body.rstrip("\n"),
        }
        self.files[path] = renderer.render("program/kernel.cuh.j2", context)
        shared = kernel.kind != "statistic" and not body.endswith("\nstruct Shared {};\n")
        self.texts[kernel_key(launch)] = KernelText(path, namespace, source.host_threads(body), shared)


def _members(schedule: Schedule) -> Iterator[Launch]:
    for step in (*schedule.steps, *schedule.resets):
        for fused in step.launches:
            for task in fused.tasks:
                yield from task.launches


def _distinct(launches: Iterable[Launch]) -> list[Launch]:
    """One launch for each text to render, by name of the text."""
    first: dict[str, Launch] = {}
    for launch in launches:
        first.setdefault(kernel_key(launch), launch)
    return [first[key] for key in sorted(first)]


def _entries(schedule: Schedule) -> list[FusedLaunch]:
    """The first launch of each entry, in execution order."""
    first: dict[str, FusedLaunch] = {}
    for step in (*schedule.steps, *schedule.resets):
        for launch in step.launches:
            first.setdefault(launch.entry, launch)
    return list(first.values())


def render(schedule: Schedule, kernels: Kernels, plan: Any, renderer: Renderer) -> FileSet:
    """Every generated file by path, but for layout.lock. `plan` is what trainer.py spells out.

    Raises EmissionError (FH4xx) for what is wrong with a template, and for two writers of one path.
    """
    files: FileSet = {}

    def add(path: str, text: str) -> None:
        if path.lower() in taken:
            raise fail(
                EmissionError, "FH407", f"two things would be written to {path}", help="rename one of them"
            )
        taken.add(path.lower())
        files[path] = text

    taken: set[str] = set()
    program = schedule.laid_out.program.name
    for name, text in renderer.templates.prelude.items():
        add(f"prelude/{name}", text)
    for path, text in kernels.files.items():
        add(path, text)
    entries = _entries(schedule)
    add("layout.cuh", renderer.render("program/layout.cuh.j2", _layout(schedule, entries)))
    for launch in entries:
        context = {"program": program, **entry_context(launch, kernels.texts)}
        add(f"launches/{launch.entry}.cu", renderer.render("program/launch.cu.j2", context))
    add("trainer.py", renderer.render("program/trainer.py.j2", _trainer(schedule, plan)))
    add("manifest.json", manifest(schedule, dict(files), _system_digests(kernels, renderer)))
    return files


def _system_digests(kernels: Kernels, renderer: Renderer) -> dict[str, str]:
    """Each system kernel's template without its comments and the program's tables, as a short digest."""
    names = sorted(
        {path.rpartition("/")[2].removesuffix(".cuh") for path in kernels.files if path.startswith("system/")}
    )
    texts = {name: source.normalise(renderer.templates.files[f"base/{name}.cu.j2"]) for name in names}
    return {name: sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}


def _layout(schedule: Schedule, entries: Iterable[FusedLaunch]) -> Mapping[str, Any]:
    laid_out = schedule.laid_out
    program = laid_out.program
    slots = sorted((s for s in program.slots if s.index is not None), key=lambda s: s.index or 0)
    words = laid_out.diagnostics_words
    return {
        "program": program.name,
        "variant": program.variant,
        "dims": program.dims,
        "isv_total": laid_out.isv_total,
        "slots": [
            {
                "name": s.name,
                "index": s.index,
                "note": f"retired: {s.retired}"
                if s.retired
                else f"{s.count} elements"
                if s.count != 1
                else "",
            }
            for s in slots
        ],
        "last_slot_end": max(((s.index or 0) + s.count for s in slots), default=0),
        "scratch_total": laid_out.scratch_total,
        "wiener_total": 3 * laid_out.scratch_total,
        "diagnostics": [{"name": n, "offset": offset, "words": count} for n, offset, count in words],
        "diagnostics_words": sum(count for _, _, count in words),
        "entries": [{"name": n.entry, "sizes": sizes} for n in entries if (sizes := entry_sizes(n))],
    }


def _trainer(schedule: Schedule, plan: Any) -> Mapping[str, Any]:
    program = schedule.laid_out.program
    launches = sum(len(s.launches) for s in schedule.steps)
    text = literal(plan)
    return {
        "title": f"Program {program.name}: {len(program.steps)} steps, {launches} launches.",
        "program": program.name,
        "imports": names(plan, text),
        "plan": f"PLAN = {text}",
    }

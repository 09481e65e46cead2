"""Items of a step to launches: blocks are unfolded, producers repeated over their `foreach`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from foxhunt.diagnostics import Location
from foxhunt.dtypes import DTYPES, F32
from foxhunt.ir.arguments import Site, bind_arguments, launch_of, references
from foxhunt.ir.findings import Findings
from foxhunt.ir.names import Names, Reference, Scope
from foxhunt.ir.producers import ResolvedProducer, scratch_name
from foxhunt.ir.shapes import Signature, workspace_shapes
from foxhunt.ir.sizes import Sizes
from foxhunt.ir.types import Access, Argument, Launch, Lifetime, Range, Tensor
from foxhunt.spec import models as spec

MAX_LAUNCHES = 1_000_000
MAX_DEPTH = 64
_SYSTEM = ("ingest", "apply", "publish", "sentinel", "sentinel_keep", "sentinel_undo")


@dataclass(frozen=True)
class Library:
    """What items may name, and where findings go."""

    kernels: Callable[[str, Location], Signature | None]
    blocks: Mapping[str, spec.Block]
    producers: Mapping[str, ResolvedProducer]
    broken: frozenset[str]
    """Producers that already have a finding."""
    names: Names
    sizes: Sizes
    findings: Findings
    local: Callable[[spec.Buffer, str], Tensor | None]
    """Makes the tensor of a block's local under its qualified name."""


@dataclass(frozen=True)
class _Frame:
    """One item list: its `as` path, the blocks being unfolded, and what names mean there."""

    path: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    formals: Mapping[str, Reference] = field(default_factory=dict)

    @property
    def prefixes(self) -> tuple[str, ...]:
        return (*(".".join(self.path[:k]) + "." for k in range(len(self.path), 0, -1)), "")

    def inside(self, *names: str) -> str:
        return ".".join((*self.path, *names))


class StepExpander:
    """Unfolds one step. `launches` are in program order; `observed` are the producers that it lists."""

    def __init__(self, library: Library, step: spec.Step, locals_: dict[str, tuple[str, Tensor]]) -> None:
        """`locals_` are the block locals of the whole program so far: name to block and tensor."""
        self.library = library
        self.step = step
        self.locals = locals_
        self.findings = library.findings
        self.launches: list[Launch] = []
        self.workspaces: list[Tensor] = []
        self.observed: dict[str, Location] = {}
        self._visited = 0
        self._paths: dict[str, list[int]] = {}
        self._after: list[tuple[str, spec.Item, tuple[str, ...]]] = []

    def expand(self) -> tuple[Launch, ...]:
        """The launches of the step with their `after` resolved."""
        self._items(self.step.items, _Frame())
        waits: dict[int, list[str]] = {}
        for path, item, scope in self._after:
            targets = [self.launches[k].name for t in self._targets(item, scope) for k in self._paths[t]]
            for k in self._paths.get(path, ()):
                waits.setdefault(k, []).extend(targets)
        for k, targets in waits.items():
            self.launches[k] = replace(self.launches[k], after=tuple(dict.fromkeys(targets)))
        return tuple(self.launches)

    def _targets(self, item: spec.Item, scope: tuple[str, ...]) -> list[str]:
        found = []
        for k, name in enumerate(item.after):
            path = ".".join((*scope, name))
            if path in self._paths:
                found.append(path)
            else:
                start = ".".join((*scope, ""))
                siblings = [p.removeprefix(start) for p in self._paths if p.startswith(start)]
                message = f"`after` names {name}, which is no item here"
                hint = self.findings.nearest(name, siblings)
                self.findings.add("FH201", message, item.spot("after", k), hint)
        return found

    def _items(self, items: Iterable[spec.Item], frame: _Frame) -> None:
        taken: dict[str, Location] = {}
        listed: set[str] = set()  # labels of producers; one listed twice has a finding of its own
        for item in items:
            for label in _labels(item):
                if label in taken and not (item.producers and label in listed):
                    message = f"two items here are called {label}"
                    self.findings.add(
                        "FH218",
                        message,
                        item.at,
                        "add `as: <name>`",
                        related=((taken[label], "the other one"),),
                    )
                elif not frame.path and label in _SYSTEM:
                    message = f"{label} is the name of foxhunt's own launch in every step"
                    self.findings.add("FH205", message, item.at, "add `as: <name>`")
                taken.setdefault(label, item.at)
                listed |= {label} if item.producers else set()
                self._paths.setdefault(frame.inside(label), [])
            if self._full():
                return
            self._item(item, frame)

    def _item(self, item: spec.Item, frame: _Frame) -> None:
        labels = _labels(item)
        if item.after:
            self._after += [(frame.inside(label), item, frame.path) for label in labels]
        if item.kernel is not None:
            self._kernel(item, item.kernel, frame.inside(labels[0]), frame)
        elif item.use is not None:
            self._block(item, item.use, frame)
        else:
            for k, name in enumerate(item.producers or ()):
                self._producer(name, item.spot("producers", k), frame)

    def _kernel(self, item: spec.Item, kernel: str, path: str, frame: _Frame) -> None:
        sign = self.library.kernels(kernel, item.spot("kernel"))
        if sign is None:
            return
        site = Site(f"{self.step.name}.{path}", self.step.name, item.at, item)
        scope = Scope(self.library.names, frame.prefixes, frame.formals)
        arguments = bind_arguments(sign, item.args, site, scope, self.findings)
        bind = self._bind(item, {})
        if arguments is not None and bind is not None:
            self._add(launch_of(sign, arguments, bind, site, self.findings, frame.path), sign, path)

    def _bind(self, entry: spec.Item | spec.Producer, indices: Mapping[str, int]) -> dict[str, int] | None:
        values = {
            k: self.library.sizes.size(text, entry.spot("bind", k), indices) for k, text in entry.bind.items()
        }
        known = {k: v for k, v in values.items() if v is not None}
        return known if len(known) == len(values) else None

    def _add(self, launch: Launch | None, sign: Signature, path: str) -> None:
        if launch is None:
            return
        shapes = workspace_shapes(sign, dict(launch.dims), launch.name, launch.at, self.findings)
        for name, shape in shapes.items():
            self.workspaces.append(workspace_tensor(launch, name, shape))
        parts = path.split(".")
        for k in range(len(parts)):
            self._paths.setdefault(".".join(parts[: k + 1]), []).append(len(self.launches))
        self.launches.append(launch)

    def _block(self, item: spec.Item, name: str, frame: _Frame) -> None:
        block = self.library.blocks.get(name)
        if block is None:
            hint = self.findings.nearest(name, self.library.blocks)
            self.findings.add("FH201", f"unknown block {name}", item.spot("use"), hint)
            return
        chain = (*frame.chain, name)
        if name in frame.chain or len(chain) > MAX_DEPTH:
            what = "uses itself" if name in frame.chain else f"is nested more than {MAX_DEPTH} deep"
            shown = " → ".join(chain if len(chain) < 12 else (*chain[:6], "…", *chain[-5:]))
            self.findings.add("FH219", f"block {name} {what}: {shown}", item.spot("use"))
            return
        inner = (*frame.path, item.as_ or name)
        formals = self._formals(block, item, frame)
        for buffer in block.locals:
            self._local(buffer, block, ".".join((*inner, buffer.name)))
        if formals is not None:
            self._items(block.items, _Frame(inner, chain, formals))

    def _formals(self, block: spec.Block, item: spec.Item, frame: _Frame) -> dict[str, Reference] | None:
        site = Site(f"{self.step.name}.{frame.inside(block.name)}", self.step.name, item.at, item, "with")
        scope = Scope(self.library.names, frame.prefixes, frame.formals)
        missing = [f for f in block.formals if f not in item.with_]
        if missing:
            self.findings.add("FH213", f"block {block.name} also needs {', '.join(missing)}", item.at)
        bound: dict[str, Reference] = {}
        for name, given in item.with_.items():
            if name not in block.formals:
                hint = self.findings.nearest(name, block.formals)
                self.findings.add("FH213", f"block {block.name} has no formal {name}", site.spot(name), hint)
                continue
            found = references(site, name, given, scope, self.findings)
            if found is not None:
                ranges = tuple(r for reference in found for r in reference.ranges)
                entity = found[0].entity if len(found) == 1 else None
                bound[name] = Reference(found[0].kind, ranges, entity, found[0].slot)
        return bound if len(bound) == len(block.formals) else None

    def _local(self, buffer: spec.Buffer, block: spec.Block, name: str) -> None:
        known = self.locals.get(name)
        if known is None:
            tensor = self.library.local(buffer, name)
            if tensor is not None:
                self.locals[name] = (block.name, tensor)
        elif known[0] != block.name:
            message = f"blocks {known[0]} and {block.name} both have a local {name}"
            self.findings.add("FH202", message, buffer.at, "give one of the two uses another `as:`")

    def _producer(self, name: str, at: Location, frame: _Frame) -> None:
        producer = self.library.producers.get(name)
        if name in self.library.broken:
            return
        if producer is None:
            hint = self.findings.nearest(name, [*self.library.producers, *self.library.broken])
            self.findings.add("FH201", f"unknown producer {name}", at, hint)
            return
        if producer.declared.retired is not None:
            message = f"producer {name} is retired: {producer.declared.retired}"
            self.findings.add("FH204", message, at, "take it out of the step")
            return
        if name in self.observed:
            other = ((self.observed[name], "listed first here"),)
            self.findings.add("FH218", f"step {self.step.name} lists {name} twice", at, related=other)
            return
        self.observed[name] = at
        for index, indices in enumerate(producer.indices):
            self._observe(producer, index, indices, frame)

    def _observe(
        self, producer: ResolvedProducer, index: int, indices: Mapping[str, int], frame: _Frame
    ) -> None:
        entry, sign = producer.declared, producer.sign
        if sign is None or producer.reads is None or self._full():
            return
        tail = [str(v) for v in indices.values()]
        path = frame.inside(entry.name, *tail)
        site = Site(f"{self.step.name}.{path}", self.step.name, entry.at, entry)
        scope = Scope(self.library.names, frame.prefixes, {}, indices)
        outputs = [_output(sign, entry.name, o, index, ref) for o, ref in producer.outputs(index)]
        reads = bind_arguments(producer.reads, producer.arguments(index), site, scope, self.findings)
        bind = self._bind(entry, indices)
        if reads is None or bind is None:
            return
        launch = launch_of(sign, [*reads, *outputs], bind, site, self.findings, frame.path, entry.name)
        self._add(launch, sign, path)

    def _full(self) -> bool:
        """Whether the step is larger than any step can be; nested blocks can double at each level."""
        self._visited += 1
        if self._visited == MAX_LAUNCHES:
            message = f"step {self.step.name} unfolds to more than {MAX_LAUNCHES} items"
            self.findings.add("FH216", message, self.step.at)
        return self._visited >= MAX_LAUNCHES


def _output(sign: Signature, producer: str, output: str, index: int, slot: Range) -> Argument:
    """The observation of one foreach index as the kernel's written argument."""
    base = scratch_name(producer, output)
    observed = Range(base, index * slot.count, F32, slot.shape, slot.text)
    return Argument(output, sign.kernel.params[output].kind, Access.WRITE, False, (observed,))


def _labels(item: spec.Item) -> tuple[str, ...]:
    """What the launches or blocks of an item are called among its siblings."""
    name = item.as_ or item.kernel or item.use
    return (name,) if name is not None else tuple(item.producers or ())


def workspace_tensor(launch: Launch, name: str, shape: tuple[int, ...]) -> Tensor:
    """The step-lived tensor `<launch>.<workspace>`."""
    return Tensor(
        name=f"{launch.name}.{name}",
        role="workspace",
        dtype=DTYPES[launch.kernel.workspace[name].dtype],
        shape=shape,
        lifetime=Lifetime.STEP,
        init="zeros",
        reset="never",
        checkpoint=False,
        at=launch.at,
    )

"""SpecSet to Program: every name becomes a range of the entity that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from foxhunt.diagnostics import Location, SpecError, fail
from foxhunt.dtypes import DTYPES, F32
from foxhunt.expr import ExprError, evaluate, symbols
from foxhunt.ir.expand import Library, StepExpander
from foxhunt.ir.findings import Findings
from foxhunt.ir.names import Names, Scope
from foxhunt.ir.producers import ResolvedProducer, resolve_producer
from foxhunt.ir.shapes import Signature, signature
from foxhunt.ir.sizes import Sizes, check_bytes, evaluate_dims
from foxhunt.ir.types import Counter, DataSource, Lifetime, Program, Range, Slot, Step, Tensor
from foxhunt.spec import models as spec


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def at(self) -> Location: ...


_T = TypeVar("_T", bound=_Named)


def resolve(
    specs: spec.SpecSet, program: str, variant: str = "default", dims: Mapping[str, int] | None = None
) -> Program:
    """The program `program` with every name resolved, for one variant and dims set on top of it.

    Raises SpecError with all findings: unknown or repeated names, references outside their entity, shapes
    that do not unify, arguments of the wrong kind or type, sizes that do not fit.
    """
    source = specs.programs.get(program)
    if source is None:
        findings = Findings()
        known = f"known: {', '.join(sorted(specs.programs)) or 'none'}"
        hint = f"{findings.nearest(program, specs.programs)} {known}".lstrip()
        at = Location(specs.root)
        raise fail(SpecError, "FH201", f"unknown program {program}", at=at, help=hint)
    return _Resolver(specs, source, variant, dims or {}).program()


class _Resolver:
    """The state of one resolve: the namespace, the kernels met, and the findings."""

    def __init__(
        self, specs: spec.SpecSet, source: spec.Program, variant: str, dims: Mapping[str, int]
    ) -> None:
        self.specs = specs
        self.source = source
        self.variant, self.given = variant, tuple(sorted(dims.items()))
        self.findings = Findings()
        self.sizes = Sizes(self.findings, evaluate_dims(source, variant, dims, self.findings))
        self.names = Names(self.findings, self.sizes)
        self.signatures: dict[str, Signature | None] = {}

    def program(self) -> Program:
        source = self.source
        slots = [s for s in map(self._slot, source.isv) if s]
        params = [p for p in map(self._param, source.params) if p]
        buffers = [b for b in (self._buffer(b, b.name) for b in source.buffers) if b]
        declared = [s.name for s in source.isv] + [p.name for p in source.params]
        declared += [b.name for b in source.buffers]
        resolved = {s.name for s in slots} | {t.name for t in (*params, *buffers)}
        self.names.broken = set(declared) - resolved
        counters = [self._counter(c) for c in source.counters]
        self._declare(slots, params, buffers, counters)
        producers, broken = self._producers()
        locals_: dict[str, tuple[str, Tensor]] = {}
        library = Library(
            kernels=self._signature,
            blocks=self._blocks(),
            producers=producers,
            broken=broken,
            names=self.names,
            sizes=self.sizes,
            findings=self.findings,
            local=self._local,
        )
        expanders = [StepExpander(library, step, locals_) for step in self._unique(source.steps, "step")]
        steps = tuple(self._step(e, producers) for e in expanders)
        data = tuple(self._data(d) for d in self._unique(source.data, "data source"))
        self._check_fills()
        self._check_resets(library.blocks.values())
        self._check_diagnostics()
        ignored = self._ignored()
        self._check_own_kernels()
        self.findings.raise_if_any()
        workspaces = (w for e in expanders for w in e.workspaces)
        used = (s.kernel for s in self.signatures.values() if s is not None)
        return Program(
            name=source.program,
            variant=self.variant,
            precision=source.precision,
            dims=tuple(self.sizes.dims.items()),
            slots=tuple(slots),
            tensors=(*params, *buffers, *(t for _, t in locals_.values()), *workspaces),
            counters=tuple(counters),
            observations=tuple(o for p in producers.values() for o in p.observations()),
            steps=steps,
            diagnostics=tuple(d.name for d in source.diagnostics),
            data=data,
            source=source,
            kernels={k.kernel: k for k in sorted(used, key=lambda k: k.kernel)},
            given=self.given,
            ignored=ignored,
        )

    def _declare(
        self, slots: list[Slot], params: list[Tensor], buffers: list[Tensor], counters: list[Counter]
    ) -> None:
        for slot in slots:
            self.names.add_slot(slot)
        for counter in counters:
            self.names.add_counter(counter)
        known = [p for p in params if self.names.add_tensor(p)]
        self.names.add_groups(known)
        for buffer in buffers:
            self.names.add_tensor(buffer)

    def _slot(self, entry: spec.Slot) -> Slot | None:
        findings = self.findings
        count = self.sizes.size(entry.count, entry.spot("count"))
        if entry.source == "host" and entry.init is None and entry.retired is None:
            findings.add("FH222", f"host slot {entry.name} has no init", entry.at, "add `init: <number>`")
        if entry.source == "producer" and entry.init is not None:
            message = f"slot {entry.name} starts at its sentinel, so `init` means nothing"
            findings.add("FH222", message, entry.spot("init"), "use `sentinel:`, or another source")
        if entry.floor is not None and entry.floor < 0:
            findings.add("FH222", f"floor of slot {entry.name} is negative", entry.spot("floor"))
        if count is None or not check_bytes((count,), 12, f"slot {entry.name}", entry.at, findings):
            return None
        first = entry.sentinel if entry.source == "producer" or entry.init is None else entry.init
        return Slot(
            name=entry.name,
            count=count,
            source=entry.source,
            index=entry.index,
            init=first,
            sentinel=entry.sentinel,
            floor=entry.floor,
            reset=entry.reset or "",
            retired=entry.retired,
            was=entry.was,
            at=entry.at,
        )

    def _param(self, entry: spec.Param) -> Tensor | None:
        shape = self.sizes.shape(entry, entry.shape, "shape")
        if shape is None or not check_bytes(shape, F32.size, f"param {entry.name}", entry.at, self.findings):
            return None
        return Tensor(
            name=entry.name,
            role="param",
            dtype=F32,
            shape=shape,
            lifetime=Lifetime.PERSISTENT,
            init=entry.init,
            reset=entry.reset or "",
            checkpoint=True,
            at=entry.at,
            group=entry.group,
            separate=entry.separate,
            index=entry.index,
            retired=entry.retired,
            was=entry.was,
        )

    def _local(self, entry: spec.Buffer, name: str) -> Tensor | None:
        """A block's local, declared under its qualified name."""
        tensor = self._buffer(entry, name)
        return tensor if tensor is not None and self.names.add_tensor(tensor) else None

    def _buffer(self, entry: spec.Buffer, name: str) -> Tensor | None:
        shape = self.sizes.shape(entry, entry.shape, "shape")
        dtype = DTYPES[entry.dtype]
        if shape is None or not check_bytes(shape, dtype.size, f"buffer {name}", entry.at, self.findings):
            return None
        lifetime = Lifetime(entry.lifetime)
        return Tensor(
            name=name,
            role="buffer",
            dtype=dtype,
            shape=shape,
            lifetime=lifetime,
            init=entry.init,
            reset=entry.reset or "",
            checkpoint=entry.checkpoint and lifetime is Lifetime.PERSISTENT,
            at=entry.at,
            fill=entry.fill,
            was=entry.was,
        )

    def _counter(self, entry: spec.Counter) -> Counter:
        steps = {s.name for s in self.source.steps}
        if entry.advance is not None and entry.advance not in steps:
            message = f"counter {entry.name} advances with {entry.advance}, which is no step"
            self.findings.add(
                "FH258", message, entry.spot("advance"), self.findings.nearest(entry.advance, steps)
            )
        return Counter(entry.name, entry.advance, entry.reset or "", entry.at, entry.was)

    def _signature(self, name: str, at: Location) -> Signature | None:
        """The signature of a kernel, checked once."""
        kernel = self.specs.kernels.get(name)
        if kernel is None:
            hint = self.findings.nearest(name, self.specs.kernels)
            self.findings.add("FH201", f"unknown kernel {name}", at, hint)
            return None
        if name not in self.signatures:
            self.signatures[name] = signature(kernel, self.findings)
        return self.signatures[name]

    def _unique(self, entries: Iterable[_T], what: str) -> list[_T]:
        """Entries whose name is not taken by an earlier one, ignoring case."""
        first: dict[str, _T] = {}
        for entry in entries:
            taken = first.setdefault(entry.name.casefold(), entry)
            if taken is not entry:
                message = f"the {what} name {entry.name} is taken"
                self.findings.add("FH202", message, entry.at, related=((taken.at, "first declared here"),))
        return list(first.values())

    def _producers(self) -> tuple[dict[str, ResolvedProducer], frozenset[str]]:
        """The producers that could be resolved, and the names of the others."""
        found: dict[str, ResolvedProducer] = {}
        for entry in self._unique(self.source.producers, "producer"):
            gone = entry.retired is not None and entry.kernel not in self.specs.kernels
            sign = None if gone else self._signature(entry.kernel, entry.spot("kernel"))
            if sign is None and not gone:
                continue
            producer = resolve_producer(entry, sign, self.names, self.findings)
            if producer is not None:
                found[entry.name] = producer
        return found, frozenset(p.name for p in self.source.producers) - found.keys()

    def _blocks(self) -> dict[str, spec.Block]:
        """Own blocks, then those of the programs in `uses`, each program once."""
        entries: list[spec.Block] = []
        waiting, seen = [self.source.program], set[str]()
        while waiting:
            name = waiting.pop(0)
            used = self.specs.programs.get(name)
            if used is not None and name not in seen:
                entries += used.blocks
                waiting += used.uses
            seen.add(name)
        return {b.name: b for b in self._unique(entries, "block")}

    def _step(self, expander: StepExpander, producers: Mapping[str, ResolvedProducer]) -> Step:
        step = expander.step
        repeat = self.sizes.size(step.repeat, step.spot("repeat")) if step.repeat is not None else None
        launches = expander.expand()
        observed = tuple(o for name in expander.observed for o in producers[name].observations())
        return Step(step.name, repeat, launches, observed, step.at)

    def _data(self, entry: spec.DataSource) -> DataSource:
        options = tuple((k, self._option(entry, k, v)) for k, v in sorted(entry.options.items()))
        return DataSource(entry.name, entry.reader, entry.path, options, entry.at)

    def _option(self, entry: spec.DataSource, key: str, value: int | float | str) -> int | float | str:
        """Text that names only dims is a size; other text stays text."""
        if not isinstance(value, str):
            return value
        try:
            names = symbols(value)
            if names and all(n in self.sizes.dims for n in names):
                return evaluate(value, self.sizes.dims)
        except ExprError:
            pass
        return value

    def _check_fills(self) -> None:
        sources = [d.name for d in self.source.data]
        for buffer in self.source.buffers:
            if buffer.lifetime == "resident" and buffer.fill is None:
                message = f"resident buffer {buffer.name} is filled from nowhere"
                self.findings.add("FH251", message, buffer.at, "add `fill: <source>.<array>`")
            if buffer.fill is None:
                continue
            source, dot, array = buffer.fill.partition(".")
            at = buffer.spot("fill")
            if buffer.lifetime != "resident":
                self.findings.add(
                    "FH205", f"{buffer.name} is {buffer.lifetime}: only resident buffers fill", at
                )
            elif source not in sources or not dot or not array:
                message = f"`{buffer.fill}` is no array of a data source"
                self.findings.add("FH201", message, at, self.findings.nearest(source, sources))

    def _check_resets(self, blocks: Iterable[spec.Block]) -> None:
        """Each policy is a folder of generated files, so two may not differ by case alone."""
        source = self.source
        entries: list[spec.Slot | spec.Param | spec.Buffer | spec.Counter]
        entries = [*source.isv, *source.params, *source.buffers, *source.counters]
        entries += [b for block in blocks for b in block.locals]
        first: dict[str, tuple[str, Location]] = {}
        told: set[str] = set()
        for entry in entries:
            if entry.reset is None:
                continue
            at = entry.spot("reset")
            policy, there = first.setdefault(entry.reset.casefold(), (entry.reset, at))
            if entry.reset != policy and entry.reset not in told:
                told.add(entry.reset)
                message = f"the reset policies {policy} and {entry.reset} differ in case alone"
                related = ((there, f"{policy} is first named here"),)
                self.findings.add("FH202", message, at, f"write {policy} in both, or rename one", related)

    def _check_diagnostics(self) -> None:
        for entry in self._unique(self.source.diagnostics, "diagnostics"):
            found = self.names.lookup(entry.name)
            if found is None:
                self.names.unknown(entry.name, entry.at, ())
            elif found.retired is not None:
                self.findings.add("FH204", f"{entry.name} is retired: {found.retired}", entry.at)
            elif found.kind == "tensor":
                message = f"{entry.name} is a param or buffer"
                self.findings.add("FH214", message, entry.at, "diagnostics list slots and counters")

    def _ignored(self) -> tuple[tuple[Range, ...], ...]:
        """What the sentinel ignores: ranges of params, buffers and groups, for each name."""
        health = self.source.health
        ranges = []
        for k, name in enumerate(health.ignore if health is not None else ()):
            assert health is not None
            at = health.spot("ignore", k)
            found = Scope(self.names).resolve(name, at)
            if found is not None and found.kind != "tensor":
                self.findings.add("FH214", f"{name} is a {found.kind}, which no sentinel looks at", at)
            ranges.append(found.ranges if found is not None else ())
        return tuple(ranges)

    def _check_own_kernels(self) -> None:
        """A kernel that comes with these specs, and not with foxhunt, is used by one of their programs."""
        used: set[str | None] = set()
        for program in self.specs.programs.values():
            used.update(p.kernel for p in program.producers)
            used.update(i.kernel for block in program.blocks for i in block.items)
            used.update(i.kernel for step in program.steps for i in step.items)
        for name, kernel in self.specs.kernels.items():
            if name not in used and name not in self.specs.library:
                message = f"kernel {name} is used by no program"
                self.findings.add("FH250", message, kernel.at, "use it, or remove it")

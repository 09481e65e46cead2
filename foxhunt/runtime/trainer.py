"""The trainer: one compiled program on one backend, stepped, steered and saved from Python."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from math import prod
from pathlib import Path
from threading import get_ident
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foxhunt.backend.base import Backend, BuildProgress, make_backend
from foxhunt.backend.plan import Plan, Step, View
from foxhunt.diagnostics import CheckpointError, Diagnostic, TrainerError, fail
from foxhunt.dtypes import DTYPES
from foxhunt.runtime import checkpoint
from foxhunt.runtime.arguments import path_of, seed_of, values_of, whole
from foxhunt.runtime.feeding import Feeding
from foxhunt.runtime.fills import first_values, load_fills
from foxhunt.runtime.gradients import skipped
from foxhunt.runtime.interrupt import whole_steps
from foxhunt.runtime.ring import Snapshot, ring_of
from foxhunt.runtime.sentinel import NotFinite, Sentinel, Stop
from foxhunt.runtime.signals import Signals, Value
from foxhunt.runtime.views import step_of, unknown

log = logging.getLogger(__name__)
_CHUNK = 16  # steps enqueued at once
_POLL = 20e-6  # seconds


class Trainer:
    """A program that trains.

        with foxhunt.load("generated/aux") as trainer:
            trainer.signals["LR"] = 1e-4
            trainer.run(150)
            print(trainer.diagnostics())

    Steps are enqueued and run in call order; `sync` waits for them. Use it from one thread; `signals` and
    `diagnostics` may be read from others.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        *,
        backend: str | Backend = "auto",
        seed: int = 0,
        debug: bool = False,
        progress: BuildProgress | None = None,
    ) -> None:
        """Build the kernels of `folder`, allocate, fill and initialise.

        `seed` keys parameters and kernel randomness. `debug` builds kernels that check their accesses,
        slowly. `progress` hears of each kernel compiled. Raises DataError, BuildError or BackendError.
        """
        seed = seed_of(seed)
        self.plan, self._debug, self._closed, self._failed = plan, debug, False, False
        self._views = {view.name: view for view in plan.views}
        self._roles = {buffer.name: buffer.role for buffer in plan.buffers}
        self._feeding = Feeding(plan)
        self._thread = get_ident()  # that runs steps
        self._last: Step | None = None  # whose step buffers the arena holds
        fills = load_fills(plan, folder)
        self.backend = make_backend(backend, progress)
        try:
            self.backend.build(folder, plan, debug)
            self.backend.allocate(plan)
            self._sentinel = Sentinel(plan, self.backend)
            self._ring = ring_of(plan, self.backend.publish_words, self._sentinel.words)
            self.signals = Signals(plan, lambda: self._snapshot().isv, self._check_open)
            self._initialise(seed, fills)
            self.backend.prepare(plan)
        except BaseException:
            self.backend.close()
            raise

    # --- steps

    def step(self, name: str | None = None) -> None:
        """Enqueue one execution of a step; without a name, of the program's first."""
        self.run(1, name)

    def run(self, n: int, step: str | None = None, per_graph: int = 1) -> None:
        """Enqueue `n` executions with the host slots as they are now; `per_graph` of them a CUDA graph.

        Results do not depend on `per_graph` (1 to 64). Waits only when 64 steps are ahead of the device.
        Ctrl-C stops between two steps. The first run of a step logs a warning of what it reads though nothing
        is there: inputs that nobody wrote, and buffers that only steps write which have not run. Raises
        TrainerError FH543 for an unknown step or an impossible number; then nothing was enqueued; and FH552
        once the policy `stop` has found NaN or inf, between two chunks of steps too.
        """
        self._check_usable()
        chosen = step_of(self.plan, step)
        rest, together = whole(n), whole(per_graph)
        most = self.plan.ingest_rows
        if rest is None or together is None or rest < 0 or not 1 <= together <= most:
            given = f"{n!r:.60} and {per_graph!r:.60}"
            message = f"run takes whole numbers, n ≥ 0 and per_graph from 1 to {most}, not {given}"
            raise fail(TrainerError, "FH543", message)
        self._thread = get_ident()
        if rest:
            for warning in self._feeding.warnings(chosen):
                log.warning("%s", warning)
        chunk = 1 if self._debug else max(_CHUNK // together, 1) * together
        while rest > 0:
            self._look()
            count = min(rest, chunk)
            self._enqueue(chosen, count, together)
            rest -= count

    def _enqueue(self, step: Step, count: int, together: int) -> None:
        first = self._enqueued
        try:
            with whole_steps() if self._debug else nullcontext():
                self._commit(count)
                self.backend.run(step.name, count, together)
                self._enqueued += count
            self._last = step
        except KeyboardInterrupt:
            self._settle()  # a backend takes one only between two steps, but perhaps before they were counted
            self._last = step if self._enqueued > first else self._last
            raise
        except BaseException:
            self._failed = True
            raise

    def reset(self, policy: str) -> None:
        """Put every entry of a reset policy back to its first value; slots together with their triples.

        Raises TrainerError FH543 for a policy that no entry names.
        """
        self._check_usable()
        steps = {s.name.removeprefix("reset_"): s.name for s in self.plan.resets}
        if not isinstance(policy, str) or policy not in steps:
            raise unknown("FH543", "reset policy", policy, steps)
        self._last = None
        with whole_steps(), self._failing():
            self.backend.run(steps[policy], 1)
            for view, values in first_values(self.plan, int(self._read_whole("seed")[0]), policy):
                self._write(view, values)
            self._sentinel.forget()
            self.signals.reset(policy)
            self._settle()

    def sync(self) -> None:
        """Wait until every enqueued step has run; `signals` and `diagnostics` are then current.

        Warns when steps have left NaN or inf; the policy `stop` raises TrainerError FH552 instead.
        """
        self._wait()
        self._look()

    # --- state

    def diagnostics(self) -> dict[str, Value | int]:
        """The program's diagnostics as the newest finished step published them, without waiting.

        In the thread that runs steps it looks for NaN and inf as `tensor` does.
        """
        snapshot = self._snapshot()
        if get_ident() == self._thread:
            self._sentinel.check(snapshot.found, "once")
        indices = {c.name: c.index for c in self.plan.counters}
        return {
            name: int(snapshot.counters[indices[name]]) if name in indices else self.signals[name]
            for name, _, _ in self.plan.diagnostics
        }

    def counters(self) -> dict[str, int]:
        """Every counter as last published, `foxhunt.step` first."""
        values = self._snapshot().counters
        return {"foxhunt.step": int(values[0])} | {c.name: int(values[c.index]) for c in self.plan.counters}

    def health(self) -> dict[str, tuple[int, int]]:
        """Per observation (`producer@position`): how many were refused, and steps without one."""
        rows = self._snapshot().health
        names = [(f"{o.producer}@{o.position}", o.position) for o in self.plan.observations]
        return {name: (int(rows[p, 0]), int(rows[p, 1])) for name, p in names}

    def not_finite(self) -> NotFinite:
        """Where NaN or inf was found at the end of a step since the start, the last `load` or `reset`."""
        return self._sentinel.found(self._snapshot().found)

    def tensor(self, name: str) -> NDArray[Any]:
        """A copy of a param, moment or buffer; waits for enqueued steps.

        Step buffers share memory and end with their step, so only a debug trainer reads them. Warns when
        steps have left NaN or inf. Raises TrainerError FH544, and FH552 where the policy `stop` has found
        some and nothing has raised it yet.
        """
        self._check_open()
        values = self._read(self._view(name, reading=True))
        self._look("once")
        return values

    def write_tensor(self, name: str, values: ArrayLike) -> None:
        """Overwrite a param, moment or buffer (an input, say) between steps.

        Raises TrainerError FH544 when shape or kind do not fit, or a finite value is too large for the dtype.
        """
        self._check_open()
        view = self._view(name, reading=False)
        self._write(view, values_of(view, values))
        self._feeding.wrote(view.buffer)
        self._look("pass")

    def save(self, path: str | Path) -> None:
        """Write a checkpoint, whole or not at all. Raises CheckpointError.

        Logs a warning when params or moments, or the gradients of the last step, hold NaN or inf.
        """
        self._check_usable()
        file = path_of(path, CheckpointError, "FH535")
        self._wait()
        tensors = {
            e.name: self.backend.read(e.buffer, e.offset_bytes, e.count, e.dtype).reshape(e.shape)
            for e in checkpoint.entities(self.plan)
        }
        if "isv" in tensors:
            self.signals.put_into(tensors["isv"])  # a value set since the last step belongs to the next one
        checkpoint.save(file, self.plan, tensors)
        self._look("log")
        checkpoint.log_warnings(checkpoint.not_finite(self.plan, tensors, file))
        checkpoint.log_warnings(skipped(self.plan, self._last, self._read) if self._last else ())

    def load(self, path: str | Path) -> tuple[Diagnostic, ...]:
        """Continue from a checkpoint, bit for bit; returns and logs warnings.

        The storage stays the same, so captured graphs stay valid. Raises CheckpointError; then nothing
        changed.
        """
        self._check_open()
        tensors, warnings = checkpoint.load(path_of(path, CheckpointError, "FH530"), self.plan)
        checkpoint.log_warnings(warnings)
        with whole_steps(), self._failing():
            self.backend.sync()
            for entity in checkpoint.entities(self.plan):
                self.backend.write(entity.buffer, entity.offset_bytes, tensors[entity.name].ravel())
            self.signals.take_from(self._read_whole("isv"))
            self._sentinel.forget()
            self._feeding.loaded()
            self._settle()
            self._failed, self._last = False, None
        return warnings

    def close(self) -> None:
        """Give the device's memory back; harmless when done twice.

        Waits for enqueued steps and looks for NaN and inf as `tensor` does, unless an exception is under way.
        """
        self._end(look=sys.exc_info()[0] is None)

    def __enter__(self) -> Self:
        """The trainer itself. Raises TrainerError FH545 when it is closed."""
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; without looking where an exception is under way."""
        self._end(look=kind is None)

    def __repr__(self) -> str:
        """Program, variant, backend, the step last published, and the first digits of the layout."""
        try:
            state = f"step {self.counters()['foxhunt.step']}"
        except TrainerError:
            state = "closed"
        state += ", failed" if self._failed else ""
        program = f"{self.plan.program} ({self.plan.variant})"
        layout = self.plan.layout_hash[:12]
        return f"<Trainer {program} on {self.backend.name}, {state}, layout {layout}>"

    # --- the ring protocol

    def _commit(self, count: int) -> None:
        """Write the host slots as the ingest rows of the next `count` steps, once the device left them."""
        last_free = self.plan.ingest_rows - count
        while self._enqueued - self._base - (self.backend.completed() - self._done) > last_free:
            time.sleep(_POLL)
        for step in range(self._enqueued, self._enqueued + count):
            self.backend.ingest_row(step % self.plan.ingest_rows)[:] = self.signals.host_values

    def _snapshot(self) -> Snapshot:
        """What the newest step published, or what `_settle` saw if no step has ended since."""
        self._check_open()
        return self._ring.read() or self._settled

    def _settle(self) -> None:
        """Take over state that changed outside steps: `signals` shows it until the next step has run."""
        self.backend.sync()
        self._ring.forget()
        counters = self._read_whole("counters")
        health = self._read_whole("health") if "health" in self._roles else np.zeros(0, np.int64)
        low = health.astype(np.uint64).astype(np.uint32).reshape(-1, 2)
        isv, found = self._read_whole("isv"), self._sentinel.row()
        self._settled = Snapshot(int(counters[0]), isv, counters, low, found)
        self._enqueued = self._base = int(counters[0])
        self._done = self.backend.completed()

    def _look(self, stop: Stop = "raise") -> None:
        """Warn or raise as the health policy says, of what the newest finished step has published."""
        if self._sentinel.words:
            self._sentinel.check(self._snapshot().found, stop)

    def _end(self, look: bool) -> None:
        if self._closed:
            return
        try:
            if look and not self._failed:
                self._wait()
                self._look("once")
        finally:
            self._closed = True
            self.backend.close()

    def _wait(self) -> None:
        self._check_open()
        with self._failing():
            self.backend.sync()

    # --- filling

    def _initialise(self, seed: int, fills: list[tuple[View, NDArray[Any]]]) -> None:
        isv = self._read_whole("isv")
        for slot in self.plan.slots:
            isv[slot.index : slot.index + slot.count] = slot.init
        self.backend.write("isv", 0, isv)
        if "seed" in self._roles:
            self.backend.write("seed", 0, np.array([seed], np.int64))
        for view, array in (*first_values(self.plan, seed, None), *fills):
            self._write(view, array)
        self._settle()

    def _write(self, view: View, array: NDArray[Any]) -> None:
        self.backend.write(
            view.buffer, view.offset * DTYPES[view.dtype].size, np.ascontiguousarray(array).ravel()
        )

    def _read(self, view: View) -> NDArray[Any]:
        offset = view.offset * DTYPES[view.dtype].size
        flat: NDArray[Any] = self.backend.read(view.buffer, offset, prod(view.shape), view.dtype)
        return flat.reshape(view.shape)

    def _read_whole(self, name: str) -> NDArray[Any]:
        buffer = next(b for b in self.plan.buffers if b.name == name)
        whole: NDArray[Any] = self.backend.read(name, 0, buffer.count, buffer.dtype)
        return whole

    # --- refusals

    def _view(self, name: str, reading: bool) -> View:
        if not isinstance(name, str) or name not in self._views:
            raise unknown("FH544", "tensor", name, self._views)
        view = self._views[name]
        if self._roles[view.buffer] == "arena" and not (reading and self._debug):
            help = (
                "Make it persistent, or read it with debug=True." if reading else "Only its step writes it."
            )
            message = f"{name} lives within a step and shares its memory with others"
            raise fail(TrainerError, "FH544", message, help=help)
        return view

    def _check_open(self) -> None:
        if self._closed:
            raise fail(TrainerError, "FH545", "the trainer is closed")

    def _check_usable(self) -> None:
        self._check_open()
        if self._failed:
            help = "Load a checkpoint, or make a new trainer."
            raise fail(TrainerError, "FH547", "a step failed half-way, so the state is undefined", help=help)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Remember that the block failed: a step that stopped half-way must not be continued or saved."""
        try:
            yield
        except KeyboardInterrupt:  # a wait that was broken off can be taken up again
            raise
        except BaseException:
            self._failed = True
            raise

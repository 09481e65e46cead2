"""Launches of a step as the driver takes them: addresses resolved once, parameter words kept in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from foxhunt.backend.base import pack, runnable
from foxhunt.backend.cubin import Cubin
from foxhunt.backend.plan import Launch, Plan, Step
from foxhunt.diagnostics import BackendError, fail

MAX_WORDS = 4095  # 8-byte parameters that a launch can carry (32,764 bytes since CUDA 12.1)


def load_functions(cupy: Any, cubins: Mapping[str, Cubin], plan: Plan) -> dict[str, Any]:
    """The loaded function of every entry that `plan` launches.

    Reading an attribute makes the driver load the code now: it would do so at the first launch, perhaps
    inside a capture.
    """
    driver = cupy.cuda.driver
    functions: dict[str, Any] = {}
    for step in runnable(plan).values():
        for launch in step.launches:
            if launch.entry in functions:
                continue
            if launch.entry not in cubins:
                raise fail(
                    BackendError,
                    "FH585",
                    f"launches/{launch.entry}.cu is missing.",
                    help="Run `foxhunt compile`: the generated folder is incomplete.",
                )
            function = _load(cupy, launch, cubins[launch.entry])
            threads = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function.ptr)
            _check(launch, threads)
            functions[launch.entry] = function
    return functions


def _load(cupy: Any, launch: Launch, cubin: Cubin) -> Any:
    module = cupy.cuda.function.Module()
    try:
        module.load(cubin.image)
        return module.get_function(launch.entry)
    except cupy.cuda.driver.CUDADriverError as error:
        raise fail(
            BackendError,
            "FH582",
            f"launch {launch.name}: the driver refuses its code for {cubin.arch}: {error}.",
            help="A CUDA compiler of a later major version than the driver's makes code that it cannot load.",
        ) from error


def _check(launch: Launch, threads: int) -> None:
    problem = ""
    if launch.block > threads:
        problem = f"needs {launch.block} threads a block, its kernel can have {threads}"
    elif len(launch.args) > MAX_WORDS:
        problem = f"has {len(launch.args)} parameter words, a launch can carry {MAX_WORDS}"
    elif not 0 < launch.grid < 2**31:
        problem = f"has {launch.grid} blocks, a launch can have 1 to 2147483647"
    if problem:
        raise fail(BackendError, "FH582", f"launch {launch.name} {problem}.")


class BoundLaunch:
    """One launch with its parameters in memory: a word each, and a pointer to each word for the driver."""

    def __init__(self, cupy: Any, launch: Launch, function: Any, addresses: Mapping[str, int]) -> None:
        """Resolve the pointers of `launch` against the buffers' `addresses`."""
        self.plan = launch
        self._cupy = cupy
        self._function = function
        self._words, _ = pack(launch, addresses)
        places = self._words.ctypes.data + 8 * np.arange(len(self._words), dtype=np.int64)
        self._parameters = places.astype(np.uint64)

    def enqueue(self, stream: Any) -> None:
        """Put the launch on `stream`. Raises BackendError FH582 with its name if the driver refuses."""
        driver, plan = self._cupy.cuda.driver, self.plan
        parameters = self._parameters.ctypes.data
        try:
            driver.launchKernel(
                self._function.ptr, plan.grid, 1, 1, plan.block, 1, 1, 0, stream.ptr, parameters, 0
            )
        except driver.CUDADriverError as error:
            raise fail(BackendError, "FH582", f"launch {plan.name} cannot start: {error}.") from error

    def run(self, stream: Any) -> None:
        """Enqueue and wait. Raises BackendError FH582 with the launch's name if it fails on the device."""
        self.enqueue(stream)
        try:
            stream.synchronize()
        except self._cupy.cuda.runtime.CUDARuntimeError as error:
            raise fail(
                BackendError, "FH582", f"launch {self.plan.name} failed on the device: {error}."
            ) from error


class Sequence:
    """The launches of one step, bound to addresses."""

    def __init__(
        self, cupy: Any, step: Step, functions: Mapping[str, Any], addresses: Mapping[str, int]
    ) -> None:
        """Bind every launch; streams and events for lanes are made here, outside any capture."""
        self._cupy = cupy
        self.launches = tuple(BoundLaunch(cupy, x, functions[x.entry], addresses) for x in step.launches)
        lanes = sorted({x.lane for x in step.launches} - {0})
        self._streams = {lane: cupy.cuda.Stream(non_blocking=True) for lane in lanes}
        self._waited = {name for x in step.launches for name in x.waits}

    def enqueue_in_order(self, stream: Any, wait: bool) -> None:
        """One execution on one stream, in plan order; with `wait` each launch is waited for."""
        for launch in self.launches:
            if wait:
                launch.run(stream)
            else:
                launch.enqueue(stream)

    def enqueue_on_lanes(self, origin: Any) -> None:
        """One execution, forked from `origin` on the plan's lanes; each rejoins it, waited for or not."""
        lanes = {0: origin, **self._streams}
        ends: dict[str, Any] = {}
        if self._streams:
            start = self._mark(origin)
            for stream in self._streams.values():
                stream.wait_event(start)
        for launch in self.launches:
            stream = lanes[launch.plan.lane]
            for name in launch.plan.waits:
                stream.wait_event(ends[name])
            launch.enqueue(stream)
            if launch.plan.name in self._waited:
                ends[launch.plan.name] = self._mark(stream)
        for stream in self._streams.values():
            origin.wait_event(self._mark(stream))

    def _mark(self, stream: Any) -> Any:
        event = self._cupy.cuda.Event(disable_timing=True)
        event.record(stream)
        return event

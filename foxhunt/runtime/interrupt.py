"""Ctrl-C and SIGTERM between steps instead of inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM, where it stops a run as Ctrl-C does."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises `Terminated` until the block ends, so that a run can keep a checkpoint."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated

    handler = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


@contextmanager
def whole_steps() -> Iterator[None]:
    """Hold back SIGINT and SIGTERM until the block ends, so that state is that of a whole number of steps."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            stack.enter_context(_held(number))
        yield


@contextmanager
def _held(number: signal.Signals) -> Iterator[None]:
    handler = signal.getsignal(number)
    if not callable(handler):  # left to the system, which ignores it or ends the process
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(number, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(number, handler)
        if held:
            handler(*held[0])

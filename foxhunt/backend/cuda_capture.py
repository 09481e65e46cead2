"""Capture of launches into one CUDA graph; a failure ends the capture and leaves the stream usable."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from foxhunt.diagnostics import BackendError, fail

_lock = threading.RLock()
# What is being captured. Of the process, not of a backend: an unsafe call from any thread breaks a capture in
# global mode, and the driver was seen to accept some such calls.
_captured: str | None = None


def refuse_while_capturing(action: str) -> None:
    """Raise BackendError FH584 if a capture is under way. Each build, allocation and copy asks here first."""
    if _captured is not None:
        raise fail(
            BackendError,
            "FH584",
            f"cannot {action} while {_captured} is being captured.",
            help="Build and allocate everything before the first capture.",
        )


def capture(cupy: Any, stream: Any, enqueue: Callable[[], None], what: str) -> Any:
    """The executable graph of what `enqueue` puts on `stream`, which must not be the default stream.

    Garbage collection is off meanwhile, since a collected device array would be freed inside the capture. Any
    exception ends the capture; CUDA's own become BackendError FH583.
    """
    global _captured
    refuse_while_capturing(f"capture {what}")
    with _lock:
        collecting = gc.isenabled()
        gc.disable()
        _captured = what
        try:
            stream.begin_capture(cupy.cuda.runtime.streamCaptureModeGlobal)
            try:
                enqueue()
            except BaseException:
                _abandon(cupy, stream)
                raise
            return stream.end_capture()
        except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
            raise fail(
                BackendError,
                "FH583",
                f"capture of {what} failed: {error}.",
                help="Something allocated, copied or synchronised on this device meanwhile; capture again.",
            ) from error
        finally:
            _captured = None
            if collecting:
                gc.enable()


def _abandon(cupy: Any, stream: Any) -> None:
    """End the capture of `stream`, whatever state it is in, and throw the result away."""
    with suppress(cupy.cuda.runtime.CUDARuntimeError):  # what ending an invalidated capture raises
        stream.end_capture()

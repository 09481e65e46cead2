"""Metrics of a run: one JSON object a line, and TensorBoard if wanted."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from foxhunt.diagnostics import DataError, Location, TrainerError, extra, fail


class MetricsWriter:
    """Appends records to a JSONL file: `step`, `seconds` since the writer opened, then the metrics.

    Each line goes to the file at once, so a killed run keeps what it wrote. The file ends with a whole line
    even after a write that failed half-way. NaN and ±inf become null. Arrays become `NAME[i]`.
    """

    def __init__(self, path: Path, tensorboard: Path | None = None) -> None:
        """Open `path` for appending; a last line that a kill cut off is dropped.

        Raises TrainerError FH548 if it cannot, or tensorboardX is missing.
        """
        self._board = _board(tensorboard) if tensorboard else None
        self._path, self._start = path, time.monotonic()
        with self._writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b", buffering=0)
            self._file.truncate(_whole_lines(self._file))

    def write(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Append one record, whole or not at all. Raises TrainerError FH548 when the disk is full."""
        flat = flatten(metrics)
        record = {"step": step, "seconds": round(time.monotonic() - self._start, 6), **flat}
        with self._writing():
            self._append(json.dumps(record, allow_nan=False).encode() + b"\n")
        if self._board is not None:
            for name, value in flat.items():
                if value is not None:
                    self._board.add_scalar(name, value, step)

    def close(self) -> None:
        """Put everything on disk."""
        if self._board is not None:
            self._board.close()
        with self._writing():
            if not self._file.closed:
                os.fsync(self._file.fileno())
                self._file.close()

    def __enter__(self) -> Self:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _append(self, line: bytes) -> None:
        end, rest = self._file.seek(0, os.SEEK_END), memoryview(line)
        try:
            while rest:  # a disk that fills up takes a part first
                rest = rest[self._file.write(rest) :]
        except BaseException:
            with suppress(OSError):
                self._file.truncate(end)
            raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            message = f"cannot write metrics: {error.strerror}"
            raise fail(TrainerError, "FH548", message, at=Location(str(self._path))) from error


def flatten(metrics: Mapping[str, Any]) -> dict[str, int | float | None]:
    """Scalars by name, arrays element by element as `NAME[i]`, what is not finite as None."""
    flat: dict[str, int | float | None] = {}
    for name, value in metrics.items():
        array = np.asarray(value)
        entries = (
            [(name, array[()])]
            if array.ndim == 0
            else [(f"{name}[{i}]", v) for i, v in enumerate(array.flat)]
        )
        for key, entry in entries:
            number = int(entry) if np.issubdtype(array.dtype, np.integer) else float(entry)
            flat[key] = number if math.isfinite(number) else None
    return flat


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The records of a metrics file. A last line cut off by a kill is left out. Raises DataError FH549."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise fail(DataError, "FH549", f"metrics cannot be read: {error}", at=Location(str(path))) from error
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line) if line else None
        except ValueError as error:
            if number == len(lines):
                break
            raise fail(DataError, "FH549", "not a JSON record", at=Location(str(path), number)) from error
        if isinstance(record, dict):
            records.append(record)
    return records


def _whole_lines(file: BinaryIO) -> int:
    """The bytes up to the end of the last whole line."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 4096)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _board(folder: Path) -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        help = f"To get it: {extra('tensorboard')}."
        raise fail(TrainerError, "FH548", "TensorBoard output needs tensorboardX", help=help) from error
    return SummaryWriter(str(folder))

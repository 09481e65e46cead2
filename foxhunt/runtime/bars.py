"""Market bars from CSV or Parquet: parsed, and refused with every finding if they are not sound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foxhunt.diagnostics import DataError, Diagnostic, Location, extra, fail

COLUMNS = ("time", "open", "high", "low", "close", "volume")
HOUR = 3_600_000  # milliseconds
_CAP = 20
_DAY = 24 * HOUR


@dataclass(frozen=True)
class Bars:
    """Bars in time order.

    `lines` int64 [n]: the line (CSV) or row (Parquet) of each bar. `times` int64 [n]: start of the bar,
    milliseconds since 1970 UTC. `values` float64 [n, 5]: open, high, low, close (price units) and volume.
    """

    path: str
    lines: NDArray[np.int64]
    times: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass
class Findings:
    """Collects findings in one file; shows the first of them and counts the rest."""

    path: str
    shown: list[Diagnostic] = field(default_factory=list)
    total: int = 0

    def add(self, code: str, line: int, message: str, help: str = "") -> None:
        """Note one finding."""
        self.total += 1
        if self.total <= _CAP:
            self.shown.append(Diagnostic(code, message, Location(self.path, line), help))

    def check(self) -> None:
        """Raise DataError if there is any finding."""
        if self.total > _CAP:
            self.shown.append(
                Diagnostic("FH521", f"and {self.total - _CAP} more findings", Location(self.path))
            )
        if self.shown:
            raise DataError(tuple(self.shown))


def read_bars(path: Path, max_gap_hours: float = 24.0) -> Bars:
    """The bars of a `.csv` or `.parquet` file.

    Its columns are Time, Open, High, Low, Close, Volume, in any case and order. Times are
    `DD.MM.YYYY HH:MM:SS.mmm` or ISO 8601; without a zone they are UTC. `max_gap_hours` bounds the time
    between two bars, not counting Saturdays and Sundays. Raises DataError with all findings together.
    """
    if not path.is_file():
        raise fail(DataError, "FH520", "no such data file", at=Location(str(path)), help="Check the path.")
    try:
        bars = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except OSError as error:
        raise fail(DataError, "FH520", f"cannot be read: {error.strerror}", at=Location(str(path))) from error
    _check(bars, max_gap_hours)
    return bars


def _read_csv(path: Path) -> Bars:
    findings = Findings(str(path))
    rows = _decode(path, findings).splitlines()
    if not any(row.strip() for row in rows):
        findings.add("FH520", 0, "the file is empty", "It needs a header and one line a bar.")
        findings.check()
    columns = _column_order(_cells(rows[0]), findings)
    lines, times, values = [], [], []
    for line, row in enumerate(rows[1:], start=2):
        if not row.strip():
            continue
        cells = _cells(row)
        if len(cells) <= max(columns):
            findings.add("FH521", line, f"{len(cells)} fields, the header has {max(columns) + 1} or more")
            continue
        time = _time(cells[columns[0]], line, findings)
        numbers = [
            _number(cells[c], name, line, findings) for c, name in zip(columns[1:], COLUMNS[1:], strict=True)
        ]
        if time is not None and None not in numbers:
            lines.append(line)
            times.append(time)
            values.append(numbers)
    findings.check()
    return _bars(path, lines, times, np.array(values, np.float64).reshape(-1, 5))


def _decode(path: Path, findings: Findings) -> str:
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        findings.add(
            "FH521", line, f"not UTF-8 text (byte 0x{raw[error.start]:02x})", "Save the file as UTF-8."
        )
        findings.check()
        raise


def _cells(row: str) -> list[str]:
    return [cell.strip().strip('"') for cell in row.split(",")]


def _column_order(header: Iterable[str], findings: Findings) -> list[int]:
    names = [name.lower() for name in header]
    for name in COLUMNS:
        if names.count(name) != 1:
            problem = "stands twice" if name in names else "is missing"
            shown = ", ".join(names)[:100]
            findings.add("FH521", 1, f"column {name.title()} {problem}; the header has: {shown}")
    findings.check()
    return [names.index(name) for name in COLUMNS]


def _time(text: str, line: int, findings: Findings) -> int | None:
    try:
        if len(text) > 2 and text[2] == ".":
            when = datetime.strptime(
                text, "%d.%m.%Y %H:%M:%S.%f" if text.count(".") == 3 else "%d.%m.%Y %H:%M:%S"
            )
        else:
            when = datetime.fromisoformat(text)
        return _milliseconds(when)
    except (ValueError, OverflowError):
        help = "Write DD.MM.YYYY HH:MM:SS.mmm or ISO 8601."
        findings.add("FH521", line, f"not a time: {text[:40]!r}", help)
        return None


def _milliseconds(when: datetime) -> int:
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def _number(text: str, name: str, line: int, findings: Findings) -> float | None:
    try:
        if "_" in text:
            raise ValueError  # float() would take 1_000
        number = float(text)
    except ValueError:
        findings.add("FH521", line, f"{name} is not a number: {text[:40]!r}")
        return None
    if not math.isfinite(number):
        findings.add("FH523", line, f"{name} is {text}")
        return None
    return number


def _read_parquet(path: Path) -> Bars:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        help = f"To get it: {extra('parquet')}; or save the bars as CSV."
        raise fail(DataError, "FH527", "Parquet needs pyarrow", at=Location(str(path)), help=help) from error
    findings = Findings(str(path))
    try:
        table = parquet.read_table(path)
        columns = dict(enumerate(table.column(c).to_pylist() for c in range(len(table.column_names))))
    except (ArrowException, ValueError) as error:
        raise fail(DataError, "FH521", f"not a Parquet file: {error}", at=Location(str(path))) from error
    order = _column_order(table.column_names, findings)
    raw: list[list[object]] = [columns[c] for c in order]
    lines, times, values = [], [], []
    for line, (when, *numbers) in enumerate(zip(*raw, strict=True), start=1):
        time = _milliseconds(when) if isinstance(when, datetime) else _time(str(when), line, findings)
        parsed = [_number(str(n), name, line, findings) for n, name in zip(numbers, COLUMNS[1:], strict=True)]
        if time is not None and None not in parsed:
            lines.append(line)
            times.append(time)
            values.append(parsed)
    findings.check()
    return _bars(path, lines, times, np.array(values, np.float64).reshape(-1, 5))


def _bars(path: Path, lines: list[int], times: list[int], values: NDArray[np.float64]) -> Bars:
    return Bars(str(path), np.array(lines, np.int64), np.array(times, np.int64), values)


def _check(bars: Bars, max_gap_hours: float) -> None:
    """Prices that can be, times that rise, and no hole that weekends do not explain."""
    findings = Findings(bars.path)
    op, high, low, close, volume = bars.values.T
    checks = (
        (bars.values[:, :4].min(axis=1, initial=np.inf) <= 0, "a price is not positive"),
        (volume < 0, "volume is negative"),
        (high < low, "high is below low"),
        ((high >= low) & (np.maximum(op, close) > high), "open or close is above high"),
        ((high >= low) & (np.minimum(op, close) < low), "open or close is below low"),
    )
    for wrong, message in checks:
        for k in np.flatnonzero(wrong):
            findings.add("FH523", int(bars.lines[k]), message)
    step = np.diff(bars.times)
    for k in np.flatnonzero(step == 0):
        findings.add(
            "FH522", int(bars.lines[k + 1]), "the same time as the bar before", "Remove one of the two."
        )
    for k in np.flatnonzero(step < 0):
        findings.add(
            "FH522", int(bars.lines[k + 1]), "an earlier time than the bar before", "Sort the bars by time."
        )
    gap = (step - _weekend(bars.times[1:]) + _weekend(bars.times[:-1])) / HOUR
    for k in np.flatnonzero(gap > max_gap_hours):
        message = (
            f"{gap[k]:g} hours without a bar before this one, weekends not counted (limit {max_gap_hours:g})"
        )
        findings.add("FH524", int(bars.lines[k + 1]), message, "Fill the hole, or raise max_gap_hours.")
    findings.check()


def _weekend(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Milliseconds of Saturdays and Sundays before each time, from a fixed Saturday on."""
    days = times // _DAY - 2  # 1970-01-03 was a Saturday
    weeks, day = days // 7, days % 7
    within = np.where(day < 2, day * _DAY + times % _DAY, 2 * _DAY)
    return (weeks * 2 * _DAY + within).astype(np.int64)

"""Data sources: readers that turn a file into the named arrays which fill resident buffers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.backend.plan import DataSource
from foxhunt.diagnostics import DataError, Location, closest, fail
from foxhunt.runtime.bars import HOUR, Bars, read_bars
from foxhunt.runtime.options import Options, read_options
from foxhunt.runtime.paths import ohlcv_paths

Arrays = dict[str, NDArray[Any]]
Reader = Callable[[Path | None, Options], Arrays]

VOLATILITY_BARS = 6  # of the trailing-volatility feature
LOOKBACK = VOLATILITY_BARS  # bars before a window that its oldest features look at
CLIP = 5.0  # standard deviations; a spike must not outweigh the other 440 inputs


@dataclass(frozen=True)
class WindowOptions:
    """Options of the `ohlcv` reader, in bars unless said otherwise."""

    window: int = 63  # bars a sample sees
    horizon: int = 30  # the direction label looks so far ahead
    regime_bars: int = 6  # the regime label measures volatility over so many bars ahead
    regimes: int = 5  # classes, equally frequent in the training part
    train_fraction: float = 0.8  # of the bars
    max_gap_hours: float = 24.0  # between two bars, weekends not counted


def ohlcv(path: Path | None, options: Options) -> Arrays:
    """Bars as standardised features, labels' raw material and a purged split by time.

    For T bars and K regimes: `features` f32 [T, 7], `hour` f32 [T, 2] (sin, cos of the UTC hour), `close`
    f32 [T], `log_return` f32 [T] (0 at the first bar), `regime_edges` f32 [K−1], `train_ends` and `eval_ends`
    i64 [N] (the last bar of each window), `hour_of_day` i32 [T]. Statistics and edges come from the training
    part only; neither a window (with the bars that its features look back at) nor a label crosses the split.
    Raises DataError.
    """
    if path is None:
        raise fail(DataError, "FH520", "reader ohlcv needs a path", help="Add `path:` to the data source.")
    chosen = read_options("ohlcv", WindowOptions, options, path)
    if chosen.train_fraction >= 1 or chosen.regimes < 2:
        message = "train_fraction must be below 1 and regimes at least 2"
        raise fail(DataError, "FH527", message, at=Location(str(path)))
    return windows(read_bars(path, chosen.max_gap_hours), chosen)


READERS: dict[str, Reader] = {"ohlcv": ohlcv, "ohlcv_paths": ohlcv_paths}


def load_source(source: DataSource, folder: Path) -> Arrays:
    """The arrays of one data source.

    A relative path is looked for in `folder`, in its parents, then in the working directory.
    """
    reader = READERS.get(source.reader)
    if reader is None:
        near = closest(source.reader, READERS)
        help = f"Did you mean {near}?" if near else f"Readers: {', '.join(READERS)}."
        raise fail(
            DataError, "FH527", f"no reader {source.reader!r} for data source {source.name}", help=help
        )
    return reader(_find(source.path, folder), dict(source.options))


def _find(text: str | None, folder: Path) -> Path | None:
    if text is None:
        return None
    here = folder.resolve()
    candidates = [base / text for base in (here, *here.parents)]
    return next((c for c in candidates if c.is_file()), Path(text))


def windows(bars: Bars, options: WindowOptions) -> Arrays:
    """The arrays of `ohlcv` for bars that are in memory."""
    total = len(bars.times)
    split = int(total * options.train_fraction)
    before = options.window - 1 + LOOKBACK
    ahead = max(options.horizon, options.regime_bars)
    train_ends = np.arange(before, split - ahead, dtype=np.int64)
    eval_ends = np.arange(split + before, total - ahead, dtype=np.int64)
    if len(train_ends) < options.regimes or not len(eval_ends):
        message = (
            f"{total} bars are too few for windows of {options.window} bars and labels {ahead} bars ahead"
        )
        share = min(options.train_fraction, 1 - options.train_fraction)
        help = f"At least {math.ceil((before + ahead + options.regimes) / share)} bars are needed."
        raise fail(DataError, "FH525", message, at=Location(bars.path), help=help)
    close = bars.values[:, 3]
    log_return = np.zeros(total)
    log_return[1:] = np.diff(np.log(close))
    returns = log_return.astype(np.float32)
    edges = _edges(future_volatility(returns, train_ends, options.regime_bars), options.regimes, bars.path)
    hours = bars.times // HOUR % 24
    angle = 2 * np.pi * hours / 24
    return {
        "features": _standardise(_features(bars, log_return), split),
        "hour": np.stack([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32),
        "close": close.astype(np.float32),
        "log_return": returns,
        "regime_edges": edges,
        "train_ends": train_ends,
        "eval_ends": eval_ends,
        "hour_of_day": hours.astype(np.int32),
    }


def future_volatility(
    log_return: NDArray[np.float32], ends: NDArray[np.int64], bars: int
) -> NDArray[np.float32]:
    """Root of the summed squared log returns of the `bars` bars after each end, in float32; [N]."""
    total = np.zeros(len(ends), np.float32)
    for k in range(1, bars + 1):
        total += log_return[ends + k] * log_return[ends + k]
    return np.sqrt(total)


def _edges(volatility: NDArray[np.float32], regimes: int, path: str) -> NDArray[np.float32]:
    edges = np.quantile(volatility.astype(np.float64), np.arange(1, regimes) / regimes).astype(np.float32)
    if not (np.diff(edges) > 0).all() or edges[0] <= 0:
        message = f"the prices move too little to tell {regimes} volatility regimes apart"
        raise fail(DataError, "FH523", message, at=Location(path))
    return edges


def _features(bars: Bars, log_return: NDArray[np.float64]) -> NDArray[np.float64]:
    """[T, 7]: log return, log range, upper and lower wick, log volume, its change, trailing volatility."""
    op, high, low, close, volume = bars.values.T
    log_volume = np.log1p(volume)
    squares = np.concatenate([np.zeros(VOLATILITY_BARS), np.cumsum(log_return**2)])
    trailing = np.sqrt(np.maximum(squares[VOLATILITY_BARS:] - squares[:-VOLATILITY_BARS], 0.0))
    columns = (
        log_return,
        np.log(high / low),
        np.log(high / np.maximum(op, close)),
        np.log(np.minimum(op, close) / low),
        log_volume,
        np.diff(log_volume, prepend=log_volume[:1]),
        trailing,
    )
    return np.stack(columns, axis=1)


def _standardise(features: NDArray[np.float64], split: int) -> NDArray[np.float32]:
    """Zero mean and unit deviation over the training part, clipped; a constant feature stays 0."""
    train = features[:split]
    deviation = train.std(axis=0)
    scaled = (features - train.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    clipped: NDArray[np.float32] = np.clip(scaled, -CLIP, CLIP).astype(np.float32)
    return clipped

"""Reader `ohlcv_paths`: real bars cut into price paths of the form that the trading kernels take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.diagnostics import DataError, Location, fail
from foxhunt.runtime.bars import Bars, read_bars
from foxhunt.runtime.options import Options, read_options


@dataclass(frozen=True)
class PathOptions:
    """Options of the `ohlcv_paths` reader, in bars unless said otherwise."""

    length: int = 321  # of a path: history that the features look back on, then what is traded, then one
    train_paths: int = 1024  # how many
    eval_paths: int = 1024
    train_fraction: float = 0.8  # of the bars
    max_gap_hours: float = 24.0  # between two bars, weekends not counted


def ohlcv_paths(path: Path | None, options: Options) -> dict[str, NDArray[Any]]:
    """Log prices of stretches of bars, each relative to its first bar, and where the stretches start.

    `train_paths` f32 [train_paths, length] from the first part of the bars, `eval_paths` f32 [eval_paths,
    length] from the rest, evenly spaced and overlapping where there are more than fit; `train_starts` and
    `eval_starts` i64, the bars they start at. A path holds the history and the labels of all its bars, so
    none of them crosses the split. Raises DataError.
    """
    if path is None:
        message = "reader ohlcv_paths needs a path"
        raise fail(DataError, "FH520", message, help="Add `path:` to the data source.")
    chosen = read_options("ohlcv_paths", PathOptions, options, path)
    if chosen.train_fraction >= 1:
        raise fail(DataError, "FH527", "train_fraction must be below 1", at=Location(str(path)))
    return cut(read_bars(path, chosen.max_gap_hours), chosen)


def cut(bars: Bars, options: PathOptions) -> dict[str, NDArray[Any]]:
    """The arrays of `ohlcv_paths` for bars that are in memory."""
    log_close = np.log(bars.values[:, 3])
    split = int(len(log_close) * options.train_fraction)
    if min(split, len(log_close) - split) < options.length:
        message = (
            f"{len(log_close)} bars are too few for paths of {options.length} on both sides of the split"
        )
        share = min(options.train_fraction, 1 - options.train_fraction)
        help = f"At least {math.ceil((options.length + 1) / share)} bars are needed."
        raise fail(DataError, "FH525", message, at=Location(bars.path), help=help)
    arrays: dict[str, NDArray[Any]] = {}
    parts = (("train", 0, split, options.train_paths), ("eval", split, len(log_close), options.eval_paths))
    for name, first, stop, count in parts:
        starts = np.linspace(first, stop - options.length, count).astype(np.int64)
        paths = log_close[starts[:, None] + np.arange(options.length)]
        arrays[f"{name}_paths"] = (paths - paths[:, :1]).astype(np.float32)
        arrays[f"{name}_starts"] = starts
    return arrays

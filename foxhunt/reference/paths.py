"""Oracles of the kernels that make price paths, and what a trader sees of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foxhunt.reference.philox import Words, philox
from foxhunt.reference.registry import Inputs, Outputs, reference

Dims = Mapping[str, int]
Consts = Mapping[str, float | int]
Array = NDArray[Any]

GROUPS = 5
MEAN_BARS = (48, 16, 64, 8, 32, 24, 12, 4)
RETURN_BARS = (4, 8, 16, 32, 64, 48, 24, 12)


@reference("planted_paths")
def planted_paths(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Random walk plus a reverting deviation, both from 0 at the first bar of the price; [P, L]."""
    seed = int(inputs["seed"])
    path, bar = (np.ascontiguousarray(a, np.uint64) for a in np.indices((dims["P"], dims["L"])))
    zero, stream = np.zeros_like(path), np.full_like(path, int(consts["STREAM"]))
    x, y, z, w = philox((path, bar, zero, stream), (seed & 0xFFFFFFFF, seed >> 32))
    steps, noise = consts["SIGMA"] * _normal(x, y), consts["NOISE"] * _normal(z, w)
    steps[:, 0] = 0
    deviation = np.empty_like(noise)
    deviation[:, 0] = consts["DEVIATION"] * _normal(z, w)[:, 0]
    for t in range(1, dims["L"]):
        deviation[:, t] = consts["KEEP"] * deviation[:, t - 1] + noise[:, t]
    return {"price": steps.cumsum(axis=1) + deviation - deviation[:, :1], "deviation": deviation}


def _normal(radius: Words, angle: Words) -> Array:
    """Box and Muller, from the upper 24 bits of two words."""
    u = ((radius >> np.uint64(8)).astype(np.float64) + 1) * 2.0**-24
    turns = (angle >> np.uint64(8)).astype(np.float64) * 2.0**-24
    result: Array = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * turns)
    return result


@reference("bar_paths")
def bar_paths(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """The bars, and a deviation of 0."""
    return {"price": inputs["bars"].copy(), "deviation": np.zeros((dims["P"], dims["L"]))}


@reference("market_features")
def market_features(inputs: Inputs, dims: Dims, consts: Consts) -> Outputs:
    """Five groups of features a bar [P * L, M], in units of the volatility of the last LOOK bars."""
    seen = _Seen(np.asarray(inputs["price"], np.float64), consts)
    count = dims["M"] // GROUPS
    columns = [feature for group in seen.groups() for feature in group[:count]]
    flat = np.stack([column.ravel() for column in columns], axis=1)
    return {"market": np.clip(flat, -consts["CLIP"], consts["CLIP"])}


class _Seen:
    """The last LOOK bars before each bar of paths [P, L]; before its first bar a path stood still."""

    def __init__(self, price: Array, consts: Consts) -> None:
        """`changes[k]` are the log returns k bars ago."""
        self.look, self.fade = int(consts["LOOK"]), consts["FADE"]
        self.least, self.usual = consts["LEAST_VOLATILITY"], consts["USUAL_VOLATILITY"]
        bars = np.arange(price.shape[1])
        self.back = [price[:, np.maximum(bars - k, 0)] for k in range(self.look + 1)]
        self.changes = np.stack([self.back[k] - self.back[k + 1] for k in range(self.look)])
        self.volatility = np.maximum(self.rms(self.look), self.least)

    def groups(self) -> list[list[Array]]:
        """All eight features of each group."""
        v = self.volatility
        return [
            [self.changes[k] / v for k in range(8)],
            [self.from_mean(n) for n in MEAN_BARS],
            [(self.back[0] - self.back[n]) / (v * np.sqrt(n)) for n in RETURN_BARS],
            [
                np.log(v / self.usual),
                self.relative_rms(4),
                self.relative_rms(16),
                np.abs(self.changes[:16]).max(axis=0) / v / 3,
                self.relative_rms(8),
                self.relative_rms(32),
                np.abs(self.changes[0]) / v,
                np.abs(self.changes).mean(axis=0) / v,
            ],
            [
                self.momentum(),
                self.in_range(16),
                self.in_range(64),
                np.sign(self.changes[:32]).mean(axis=0),
                self.in_range(32),
                self.in_range(8),
                np.sign(self.changes[:8]).mean(axis=0),
                (self.changes[:-1] * self.changes[1:]).sum(axis=0) / v**2 / self.look,
            ],
        ]

    def rms(self, bars: int) -> Array:
        """Root mean square change of so many bars."""
        result: Array = np.sqrt((self.changes[:bars] ** 2).mean(axis=0))
        return result

    def relative_rms(self, bars: int) -> Array:
        """Log of the same in units of the volatility."""
        return np.log(np.maximum(self.rms(bars), self.least) / self.volatility)

    def from_mean(self, bars: int) -> Array:
        """Distance from the mean of so many bars."""
        distance: Array = self.back[0] - np.mean(self.back[:bars], axis=0)
        distance /= self.volatility * np.sqrt(bars / 3)
        return distance

    def momentum(self) -> Array:
        """The returns' sum, fading with age."""
        weights = self.fade ** np.arange(self.look)
        total: Array = np.tensordot(weights, self.changes, axes=1)
        total /= self.volatility * np.sqrt(1 / (1 - self.fade**2))
        return total

    def in_range(self, bars: int) -> Array:
        """Place between the lowest (−1) and the highest (1) of so many bars; 0 where they are equal."""
        low, high = np.min(self.back[:bars], axis=0), np.max(self.back[:bars], axis=0)
        width = high - low
        place = (2 * self.back[0] - high - low) / np.where(width > 0, width, 1)
        return np.where(width > 0, place, 0)

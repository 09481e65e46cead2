"""Pearls A and D (math §1) in float64: how observations are folded into slots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HISTORY = 256
LEAST_GAIN, GREATEST_GAIN = 1 / 1024, 0.9
GREATEST_MOVE = 1e18


@dataclass
class Applicator:
    """One slot with its Wiener triple and health counters; `fold` takes one observation a step."""

    sentinel: float = 0.0
    degenerate_zero: bool = False
    x: float = 0.0
    S: float = 0.0
    D: float = 0.0
    lag: float = 0.0
    anomalies: int = 0
    skips: int = 0

    def __post_init__(self) -> None:
        """A fresh slot holds its sentinel."""
        self.x = self.sentinel

    @property
    def fresh(self) -> bool:
        """Whether nothing has been observed since the last reset."""
        return (self.x, self.S, self.D, self.lag) == (self.sentinel, 0.0, 0.0, 0.0)

    def skip(self) -> None:
        """A producer that had no observation this step."""
        self.skips += 1

    def fold(self, y: float) -> None:
        """One observation; a skipped one changes nothing but a counter."""
        if self.degenerate_zero and y == 0.0:
            self.skips += 1
            return
        if not np.isfinite(y) or abs(y - self.x) > GREATEST_MOVE or abs(y - self.lag) > GREATEST_MOVE:
            self.anomalies += 1
            return
        if self.fresh:
            self.x = self.lag = y
            return
        self.S += ((y - self.x) ** 2 - self.S) / HISTORY
        self.D += ((y - self.lag) ** 2 - self.D) / HISTORY
        self.x += self.gain * (y - self.x)
        self.lag = y

    @property
    def gain(self) -> float:
        """The gain that S and D imply: 1 − sqrt(D/S − 1), within its limits."""
        if self.S == 0.0:
            return LEAST_GAIN
        noise = min(max(self.D / self.S - 1.0, 0.0), 1.0)
        return float(min(max(1.0 - np.sqrt(noise), LEAST_GAIN), GREATEST_GAIN))

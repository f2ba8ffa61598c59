"""Boxes of positions and ranges of values that do not jitter from frame to frame; the order in
which elements are sent. All of it is pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# a span of positions that far below their distance from the origin is lost in float32
FINEST = 2.0**-20
SMALLEST = 1e-30
KEPT = 0.25  # a box is kept while so much of it is used, on each axis
OUTLYING = 16.0  # a box so many times that of nearly all elements leaves no detail to them


@dataclass(frozen=True, slots=True)
class FrameAxis:
    """An interval of positions: its edge is a power of two, its origin a multiple of a sixteenth
    of it.
    """

    origin: float = 0.0
    extent: float = 0.0

    def holding(self, low: float, high: float) -> FrameAxis:
        """This one while it holds low to high and is not far too wide, else a new one."""
        span = max(high - low, abs(low) * FINEST, abs(high) * FINEST, SMALLEST)
        kept = self.extent > 0 and self.origin <= low and high <= self.origin + self.extent
        if kept and span >= KEPT * self.extent:
            return self
        extent = 2.0 ** math.ceil(math.log2(1.25 * span))
        grid = extent / 16
        return FrameAxis(math.floor(((low + high) / 2 - extent / 2) / grid + 0.5) * grid, extent)


@dataclass(frozen=True, slots=True)
class FrameBox:
    """Three axes."""

    axes: tuple[FrameAxis, FrameAxis, FrameAxis] = (FrameAxis(), FrameAxis(), FrameAxis())

    def holding(self, bounds: tuple[tuple[float, float], ...]) -> FrameBox:
        """See `FrameAxis.holding`."""
        x, y, z = (a.holding(*b) for a, b in zip(self.axes, bounds, strict=True))
        return FrameBox((x, y, z))

    @property
    def origin(self) -> tuple[float, float, float]:
        x, y, z = self.axes
        return x.origin, y.origin, z.origin

    @property
    def extent(self) -> tuple[float, float, float]:
        x, y, z = self.axes
        return x.extent, y.extent, z.extent


def without_outliers(
    bounds: tuple[float, float], sample: NDArray[Any]
) -> tuple[tuple[float, float], bool]:
    """The bounds of one axis, or twice those of 99.8 % of a sample where a few far elements would
    leave no detail to all others; whether they were cut.
    """
    low, high = np.quantile(sample, (0.001, 0.999)).tolist()
    if len(sample) < 1000 or high - low <= 0 or bounds[1] - bounds[0] <= OUTLYING * (high - low):
        return bounds, False
    margin = (high - low) / 2
    return (max(bounds[0], low - margin), min(bounds[1], high + margin)), True


def sending_order(count: int) -> NDArray[np.int32]:
    """Rows 0 to count - 1 in a fixed pseudo-random order, by a hash of the row: a prefix is an
    unbiased subsample, and it stays nearly the same when rows come or go at the end.

    The hash is the finaliser of MurmurHash3 (Appleby 2011), which no two rows share.
    """
    h = np.arange(count, dtype=np.uint32) + np.uint32(0x9E3779B9)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h ^= h >> np.uint32(shift)
        h *= np.uint32(factor)
    h ^= h >> np.uint32(16)
    return np.argsort(h, kind="stable").astype(np.int32)

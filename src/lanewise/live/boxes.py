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
FARTHEST = 2.0**125  # a box of what is farther out has no edge in float32
KEPT = 0.25  # a box is kept while so much of it is used, on each axis
SHARE = 4096  # rows of a share of the order, at most
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
    leave no detail to all others; none beyond `FARTHEST`. Whether they were cut.
    """
    low, high = (max(-FARTHEST, min(b, FARTHEST)) for b in bounds)
    if (low, high) != bounds:
        return (low, high), True
    if len(sample) < 1000:
        return bounds, False
    few = len(sample) // 1000
    # as a rule more than those few are on either side of a sixteenth in the middle
    middle, apart = (high + low) / 2, (high - low) / OUTLYING / 2
    sides = sample <= middle - apart, sample >= middle + apart
    if all(np.count_nonzero(side) > few for side in sides):
        return bounds, False
    ordered = np.partition(sample, (few, len(sample) - 1 - few))
    low, high = float(ordered[few]), float(ordered[-1 - few])
    if high - low <= 0 or bounds[1] - bounds[0] <= OUTLYING * (high - low):
        return bounds, False
    margin = (high - low) / 2
    return (max(bounds[0], low - margin), min(bounds[1], high + margin)), True


def shares(count: int) -> int:
    """How many equal shares the order of so many rows has, a power of two: each is an unbiased
    sample. They are no larger than what a slow viewer is sent.
    """
    return max(256, 1 << max(0, math.ceil(count / SHARE) - 1).bit_length())


def whole_shares(wanted: int, count: int) -> int:
    """The largest prefix of the order of `count` rows that has at most `wanted` and is an unbiased
    sample.
    """
    if wanted >= count:
        return count
    parts = shares(count)
    return wanted * parts // count * count // parts or wanted


def sending_order(count: int) -> NDArray[np.int32]:
    """Rows 0 to count - 1 in a fixed pseudo-random order: of every `shares` neighbouring rows each
    share has one, which a hash of their number chooses. The rows of a share ascend, so that
    rows are brought into the order by writing some hundreds of sequential streams, not by random
    accesses.
    The order stays the same when rows come or go at the end, while `shares` does.

    The hash is the finaliser of MurmurHash3 (Appleby 2011).
    """
    parts = np.uint32(shares(count))
    row = np.arange(count, dtype=np.uint32)
    h = row // parts + np.uint32(0x9E3779B9)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h ^= h >> np.uint32(shift)
        h *= np.uint32(factor)
    h ^= h >> np.uint32(16)
    share = ((row ^ h) % parts).astype(np.uint16 if parts <= 1 << 16 else np.uint32)
    return np.argsort(share, kind="stable").astype(np.int32)

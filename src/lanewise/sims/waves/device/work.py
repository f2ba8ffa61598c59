"""What the host prepares of Hough maps: for all maps of a search, for a direction, and for maps
that are computed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.waves.hough import Patch, PatchGrid, Significance, StackMotion, shift_vectors
from lanewise.support.attributes import frozen

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUND = 16  # bins


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class MapField:
    """What all maps of a search have in common.

    Attributes:
        farthest: of the pixels from the centre, as vectors
        start, frequencies: number of the first frequency, and how many; frequency i is first +
          resolution i, Hz
        centre: Hz, that shifts of pixels are computed at
        reference: GPS nanoseconds of all frequencies and spin-downs
        residuals: (r) spin-downs besides that of a map, Hz/s, rising; drifts: (r, s) see
          `hough.drift_offsets`
        threshold: of F; weighted: whether stacks have weights
    """

    grid: PatchGrid
    farthest: float
    motion: StackMotion
    first: float
    resolution: float
    start: int
    frequencies: int
    centre: float
    reference: int
    residuals: Floats
    drifts: Ints
    threshold: float
    weighted: bool

    @property
    def stacks(self) -> int:
        return len(self.motion.time)

    @property
    def pixels(self) -> int:
        return self.grid.vectors[..., 0].size

    def shifts(self, f1dots: Sequence[float]) -> Floats:
        """(spin-downs, s, 3): the vectors of `hough.shift_vectors` in bins."""
        every = [shift_vectors(self.motion, self.reference, self.centre, f) for f in f1dots]
        return np.stack(every) / self.resolution

    def margin(self, f1dots: Sequence[float]) -> int:
        """Bins of F besides the frequencies that the pixels of no direction leave; rounded up, so
        that buffers fit more than one map.
        """
        largest = float(np.linalg.norm(self.shifts(f1dots), axis=2).max()) * self.farthest
        return rounded(int(largest * (1 + 1e-9) + 0.5) + 1 + int(abs(self.drifts).max()))


def rounded(margin: int) -> int:
    """Up to a multiple of ROUND bins."""
    return -(-margin // ROUND) * ROUND


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class SkyDirection:
    """A direction in radians.

    Attributes:
        order: (pixels) numbers of the pixels of its patch, as `hough.pixel_order` has them; rank:
          the place of each pixel there
        axes: of the patch, one per row
        stacks: (s, 5) sums of a^2, b^2 and a b, whether F can be computed of them, and the weight
          of each stack
    """

    patch: Patch
    order: Ints
    rank: NDArray[np.int32]
    axes: Floats
    stacks: Floats
    significance: Significance


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Maps that are computed together: of directions, for spin-downs (Hz/s) each.

    There is memory for `room` directions.

    Attributes:
        f: (directions, spin-downs) of (s, bins) where F is known already, with a margin in bins
          each; None to compute it by demodulation
    """

    directions: tuple[SkyDirection, ...]
    f1dots: tuple[float, ...]
    room: int
    f: tuple[tuple[tuple[int, Floats], ...], ...] | None = None


@frozen
@dataclass(frozen=True, slots=True)
class DirectionGroup:
    """Directions (alpha, delta) and spin-downs of a `Batch`."""

    sky: tuple[tuple[float, float], ...]
    f1dots: tuple[float, ...]
    room: int


def grouped(points: Sequence[tuple[float, float, float]], most: int) -> Iterator[DirectionGroup]:
    """Neighbours of one direction, and directions with the same spin-downs, together: at most
    `most` maps, in their order.
    """
    runs: list[tuple[tuple[float, float], list[float]]] = []
    for alpha, delta, f1dot in points:
        if not runs or runs[-1][0] != (alpha, delta) or len(runs[-1][1]) == most:
            runs.append(((alpha, delta), []))
        runs[-1][1].append(f1dot)
    first = 0
    while first < len(runs):
        f1dots, last = runs[first][1], first
        while last < len(runs) and runs[last][1] == f1dots:
            last += 1
        count, largest = last - first, max(1, most // len(f1dots))
        room = -(-count // -(-count // largest))  # batches of nearly one size
        for begin in range(first, last, room):
            sky = tuple(runs[i][0] for i in range(begin, min(begin + room, last)))
            yield DirectionGroup(sky, tuple(f1dots), room)
        first = last

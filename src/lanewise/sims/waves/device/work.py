"""What the host prepares of a Hough map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanewise.attributes import frozen
from lanewise.sims.waves.hough import Patch, needed_margin
from lanewise.sims.waves.prepared import Geometry

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUND = 16  # bins


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class MapWork:
    """One map, as the host has prepared it.

    patch, order                     pixels, and their numbers as `hough.pixel_order` has them
    residuals                        spin-downs beside f1dot, Hz/s, rising
    first, resolution, frequencies   of the map, Hz; margin: bins of F beside them
    f1dot                            of the centre, Hz/s
    reference                        GPS nanoseconds of both
    offsets, drifts, weights         see `hough.number_counts`
    seen                             of one direction
    matrix                           (3, s) sums of a^2, b^2 and a b
    f                                (s, bins) where F is known already, from -margin on; None to compute it by demodulation
    """

    patch: Patch
    order: Ints
    residuals: Floats
    first: float
    resolution: float
    frequencies: int
    f1dot: float
    reference: int
    offsets: Ints
    drifts: Ints
    weights: Floats
    threshold: float
    seen: Geometry
    matrix: Floats
    f: Floats | None = None

    @property
    def margin(self) -> int:
        return needed_margin(self.offsets, self.drifts)

    @property
    def pixels(self) -> int:
        return int(np.prod(self.offsets.shape[1:]))

    @property
    def bins(self) -> int:
        """Bins of F, with margins that are rounded up."""
        return self.frequencies + 2 * rounded(self.margin)


def rounded(margin: int) -> int:
    """A margin in bins, rounded up so that buffers fit more than one map."""
    return -(-margin // ROUND) * ROUND

"""Where a candidate comes from: the direction, the spin-down of the coarse grid, the pixel and the
residual spin-down of its map.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lanewise.sims.waves.hierarchical import Candidates
from lanewise.sims.waves.hough import Patch, make_patch
from lanewise.sims.waves.timing.arrival import sky_vectors
from lanewise.sims.waves.units.job import Ready
from lanewise.sims.waves.units.partition import Part
from lanewise.support.attributes import frozen

NEAREST = 1e-9  # of a frequency's or a spin-down's step: what rounding may do


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """A cell of a map: pixel is its row and column, residual the number of its residual
    spin-down.
    """

    patch: Patch
    f1dot: float
    pixel: tuple[int, int]
    residual: int


def origins(ready: Ready, row: Candidates, sky: Part, spins: Part) -> Iterator[Origin]:
    """All cells of these directions and spin-downs that lie where a candidate does; maps may
    overlap.
    """
    grids = ready.grids
    step = (
        grids.residuals[1] - grids.residuals[0]
        if len(grids.residuals) > 1
        else grids.search.stack**-2
    )
    for direction in _near(ready, row, sky):
        patch = make_patch(*ready.job.sky[direction], ready.grids.patch, grids.first_bin)
        for r, c in np.argwhere(
            (patch.alpha == row["alpha"]) & (patch.delta == row["delta"])
        ).tolist():
            for f1dot in grids.f1dot[slice(*spins)].tolist():
                residual = int(np.argmin(abs(f1dot + grids.residuals - row["f1dot"])))
                if abs(f1dot + grids.residuals[residual] - row["f1dot"]) <= NEAREST * max(
                    step, abs(row["f1dot"])
                ):
                    yield Origin(patch, f1dot, (r, c), residual)


def _near(ready: Ready, row: Candidates, sky: Part) -> list[int]:
    """Numbers of the directions whose patches may hold a candidate."""
    directions = np.array(ready.job.sky[slice(*sky)])
    towards = sky_vectors(directions[:, 0], directions[:, 1]) @ sky_vectors(
        np.array(row["alpha"]), np.array(row["delta"])
    )
    # twice the distance of the corners: pixels stand out
    reach = math.cos(min(math.pi, math.hypot(*ready.grids.patch)))
    return (sky[0] + np.flatnonzero(towards >= reach)).tolist()

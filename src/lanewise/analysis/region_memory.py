"""How the accesses of neighbouring threads lie in memory: side by side, with gaps, at one place, or wherever data tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanewise.analysis.region import SECTOR, Pattern, Region
from lanewise.analysis.sampling import Known, Sample, value_of
from lanewise.ir import nodes as ir

SIMD_SAMPLE = 16  # neighbours that are looked at on a CPU
LINE = 128  # bytes of one pass through the L1 cache or shared memory


@dataclass(frozen=True, slots=True)
class Lie:
    """The pattern of an access, the sectors and the passes that a warp takes (see `region.Access`)."""

    pattern: Pattern
    sectors: float
    wavefronts: float


def lie_of_warp(places: Sample | None, active: Sample, size: int) -> Lie:
    """The lie of `size` bytes a thread at these elements; None for places that data tell."""
    lanes = int(active.shape[1])
    if places is None:
        sectors, passes = lanes * max(1, -(-size // SECTOR)), max(lanes * size // LINE, lanes // 2, 1)
        return Lie("gathered", float(sectors), float(passes))
    everywhere = np.broadcast_to(places, active.shape)
    taken = everywhere[active.any(axis=1)]
    rows = taken if len(taken) else everywhere
    sectors = _distinct(rows, size, SECTOR) * max(1, size // SECTOR)
    distances = np.diff(rows, axis=1)
    if not distances.any():
        return Lie("broadcast", sectors, max(1.0, size / 8))
    return Lie("streamed" if (distances == 1).all() else "strided", sectors, max(_distinct(rows, size, LINE), 1.0))


def _distinct(rows: Sample, size: int, unit: int) -> float:
    """Units of memory that a warp's first bytes lie in, on average."""
    return float(np.mean([len(np.unique(row * size // unit)) for row in rows]))


def lie_along_simd(index: ir.Expression, size: int, samples: Known, variable: str) -> Lie:
    """The same on a CPU, for elements or sources that neighbour each other in a SIMD register.

    `wavefronts` is the distance of neighbours here, 0 where it is not one number.
    """
    base = samples.get(variable)
    places = None
    if base is not None:
        places = value_of(index, {**samples, variable: np.asarray(base) + np.arange(SIMD_SAMPLE)})
    if places is None:
        return Lie("gathered", 1.0, 0.0)
    distances = np.unique(np.diff(np.broadcast_to(places, (*np.shape(places)[:-1], SIMD_SAMPLE)), axis=-1))
    if len(distances) != 1:
        return Lie("gathered", 1.0, 0.0)
    distance = float(abs(distances[0]))
    pattern: Pattern = "broadcast" if distance == 0 else "streamed" if distance == 1 else "strided"
    return Lie(pattern, max(1.0, size / SECTOR), distance)


@dataclass(frozen=True, slots=True)
class Touch:
    """What the threads of the sample touch with one access: elements of `size` bytes, where `active`."""

    key: str
    places: Sample
    size: int
    active: Sample


def note_sectors(region: Region, touches: list[Touch]) -> None:
    """Sectors of each array's buffer that a warp touches in one execution of a region, each counted once."""
    for key in dict.fromkeys(t.key for t in touches):
        mine = [t for t in touches if t.key == key]
        counts: list[int] = []
        for row in range(mine[0].places.shape[0]):
            sectors = [
                (t.places[row] * t.size + d)[t.active[row]] // SECTOR for t in mine for d in range(0, t.size, SECTOR)
            ]
            counts.append(len(np.unique(np.concatenate(sectors))))
        found = [c for c in counts if c]
        region.sectors[key] = region.sectors.get(key, 0.0) + (float(np.mean(found)) if found else 0.0)

"""The hierarchical search: F of every stack, peaks, Hough maps, a list of the most significant candidates.

What LALPulsar's HierarchicalSearch does (that of Einstein@Home), and with its grids: frequencies and spin-downs at the middle of the
observation, a coarse grid of spin-downs with residual ones between, a patch of pixels about each direction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanewise.attributes import frozen
from lanewise.errors import InputError
from lanewise.sims.waves.demodulation import f_statistic
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.hough import (
    ROTATION_SPEED,
    Patch,
    Significance,
    drift_offsets,
    make_patch,
    needed_margin,
    number_counts,
    pixel_offsets,
    stack_motion,
    stack_weights,
)
from lanewise.sims.waves.noise import WINDOW
from lanewise.sims.waves.prepared import DTERMS, SearchData, earth_states, geometry, prepare, split
from lanewise.sims.waves.sft import SftSet
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris

Floats = NDArray[np.float64]
DOPPLER = 1.05e-4  # the largest shift of frequencies at a detector
SPARE_BINS = 50  # of SFTs, on both sides of the band


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched. Frequencies in Hz and spin-downs in Hz/s at `reference` (GPS nanoseconds), each from a lowest value over a band.

    stack        seconds that a stack lasts; most_stacks: how many at most
    resolution   of frequencies, Hz; None for 1 / stack
    f1dot_step   of the coarse grid, Hz/s; None for 1 / stack^2
    residuals    spin-downs about each one of the coarse grid, f1dot_step / residuals apart; None for the number of stacks. Even numbers
                 are those of the next odd one
    threshold    of F = 2F / 2: above it is a peak
    patch        sizes of the patch in radians; None for 1 / (stack freq v), v being the speed of the Earth's surface over c
    weighted     whether stacks count by their noise and the detectors' response
    """

    freq: float
    freq_band: float
    f1dot: float
    f1dot_band: float
    reference: int
    stack: float
    most_stacks: int | None = None
    resolution: float | None = None
    f1dot_step: float | None = None
    residuals: int | None = None
    threshold: float = 2.6
    patch: tuple[float, float] | None = None
    weighted: bool = False
    dterms: int = DTERMS
    window: int = WINDOW


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """The Hough maps of one direction and one spin-down of the coarse grid.

    frequencies    (f) Hz, at the middle of the observation
    f1dot          (r) Hz/s
    counts         (r, f, rows, columns) number counts; significance: of them
    """

    patch: Patch
    frequencies: Floats
    f1dot: Floats
    counts: Floats
    significance: Floats


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Grids:
    """A search on data: the grids at the middle of the observation (GPS nanoseconds)."""

    search: Search
    data: SearchData
    middle: int
    resolution: float
    first: float
    frequencies: int
    f1dot: Floats
    residuals: Floats

    @property
    def first_bin(self) -> int:
        """The bin of `first`; Hough maps know multiples of the resolution alone."""
        return math.floor(self.first / self.resolution + 0.5)

    @property
    def correction(self) -> float:
        """What candidates' frequencies get because of that, Hz: by how much the frequency asked for misses a bin (LALPulsar's bug 147)."""
        asked = self.search.freq / self.resolution
        return self.search.freq - self.resolution * math.floor(asked + 0.5)


def set_up(sfts: SftSet, search: Search) -> Grids:
    """Stacks, noise and grids. Raises InputError where the SFTs' band does not suffice."""
    stacks = split(sfts, search.stack, search.most_stacks)
    start, end = stacks[0].start, max(s.end for s in stacks)
    middle = (start + end) // 2
    cover = search_cover(search, start, end, sfts.duration)
    data = prepare(sfts, cover, stacks=stacks, dterms=search.dterms, window=search.window)
    low, high = _range_at(search, middle)
    resolution = search.resolution or 1 / search.stack
    step = search.f1dot_step or 1 / search.stack**2
    many = search.residuals or len(stacks)
    half = many // 2
    return Grids(
        search, data, middle, resolution, low, int((high - low) / resolution + 1e-6) + 1,
        _grid(search.f1dot, step, int(search.f1dot_band / step + 1e-6) + 1), _grid(-half * (step / many), step / many, 2 * half + 1),
    )  # fmt: skip


def search_cover(search: Search, start: int, end: int, duration: float) -> tuple[float, float]:
    """The band in Hz that a search of data from `start` to `end` (GPS nanoseconds) covers; duration: of an SFT, seconds.

    Frequencies at both ends, the largest Doppler shift, and 50 bins for the offsets of pixels and spin-downs.
    """
    lows, highs = zip(*(_range_at(search, t) for t in (start, end)), strict=True)
    wings = max(highs) * DOPPLER + SPARE_BINS / duration
    return min(lows) - wings, max(highs) + wings


def _grid(first: float, step: float, count: int) -> Floats:
    return np.asarray(first + step * np.arange(count), np.float64)


def _range_at(search: Search, time: int) -> tuple[float, float]:
    """The lowest and highest frequency at a time."""
    since = (time - search.reference) * 1e-9
    drifts = sorted((search.f1dot * since, (search.f1dot + search.f1dot_band) * since))
    return search.freq + drifts[0], search.freq + search.freq_band + drifts[1]


def hough_maps(
    grids: Grids, ephemeris: Ephemeris, alpha: float, delta: float, f1dot: float, part: tuple[int, int] | None = None
) -> Maps:
    """The maps of a direction (radians) and a spin-down of the coarse grid (Hz/s).

    part: the first frequency's number and that behind the last, for a part of them: the maps are the same as those of all.
    """
    search, data, resolution = grids.search, grids.data, grids.resolution
    low, high = part or (0, grids.frequencies)
    size = search.patch or (1 / (search.stack * grids.first * ROTATION_SPEED),) * 2
    earths = earth_states(data, ephemeris)
    motion = stack_motion(data, earths)
    patch = make_patch(alpha, delta, (size[0], size[1]), grids.first_bin)
    offsets = pixel_offsets(patch, motion, grids.middle, grids.first_bin * resolution, f1dot, resolution)
    drifts = drift_offsets(motion, grids.middle, grids.residuals, resolution)
    margin = needed_margin(offsets, drifts)
    freq = grids.first + resolution * np.arange(low - margin, high + margin)
    templates = Templates(freq, alpha, delta, f1dot, reference=grids.middle)
    f = f_statistic(data, templates, ephemeris, dterms=search.dterms).two_f / 2
    weights = np.ones(data.stacks)
    if search.weighted:
        weights = stack_weights(data, geometry(data, ephemeris, alpha, delta, earths=earths))[0]
    counts = number_counts(f > search.threshold, margin, high - low, offsets, drifts, weights)
    found = _grid(resolution * grids.first_bin, resolution, grids.frequencies)[low:high] + grids.correction
    return Maps(patch, found, f1dot + grids.residuals, counts, Significance.of(weights, search.threshold)(counts))


COLUMNS = ("freq", "alpha", "delta", "f1dot", "significance", "count")
Candidates = NDArray[np.void]
CANDIDATE = np.dtype([(name, np.float64) for name in COLUMNS])


def candidates(maps: Maps, most: int) -> Candidates:
    """The pixels of the highest significance, at most `most`, in the order of `merged`."""
    best = _highest(maps.significance, most)
    r, f, row, column = np.unravel_index(best, maps.significance.shape)
    found = np.empty(len(best), CANDIDATE)
    found["freq"], found["f1dot"] = maps.frequencies[f], maps.f1dot[r]
    found["alpha"], found["delta"] = maps.patch.alpha[row, column], maps.patch.delta[row, column]
    found["significance"] = maps.significance[r, f, row, column]
    found["count"] = maps.counts[r, f, row, column]
    return merged([found], most)


def _highest(significance: Floats, most: int) -> NDArray[np.intp]:
    """Places of the `most` highest and, of those as high as the last, all that the order of `merged` may prefer."""
    flat = significance.ravel()
    if most >= flat.size:
        return np.arange(flat.size)
    least = np.partition(flat, -most)[-most]
    above, ties = np.flatnonzero(flat > least), np.flatnonzero(flat == least)
    frequency, wanted = np.unravel_index(ties, significance.shape)[1], most - len(above)
    return np.concatenate([above, ties[frequency <= np.partition(frequency, wanted - 1)[wanted - 1]]])


def merged(lists: Sequence[Candidates], most: int) -> Candidates:
    """A list of fixed length: the most significant first; ties in the order of frequency, alpha, delta, f1dot, count: it is one list."""
    everything = np.concatenate(lists)
    keys = [everything[name] for name in ("count", "f1dot", "delta", "alpha", "freq")]
    return everything[np.lexsort((*keys, -everything["significance"]))][:most]


def hierarchical_search(
    sfts: SftSet, search: Search, ephemeris: Ephemeris, sky: Sequence[tuple[float, float]], most: int = 100
) -> Candidates:
    """The most significant candidates of all directions and spin-downs: a structured array with `COLUMNS`."""
    if not sky:
        raise InputError("there are no directions to search; wanted at least one (alpha, delta)")
    grids = set_up(sfts, search)
    top = np.empty(0, CANDIDATE)
    for alpha, delta in sky:
        for f1dot in grids.f1dot.tolist():
            top = merged([top, candidates(hough_maps(grids, ephemeris, alpha, delta, f1dot), most)], most)
    return top


def middle_time(grids: Grids) -> float:
    """The middle of the observation, GPS seconds: what candidates' frequencies refer to."""
    return grids.middle / SECOND

"""The hierarchical search: F of every stack, peaks, Hough maps, a list of the most significant candidates.

What LALPulsar's HierarchicalSearch does (that of Einstein@Home), and with its grids: frequencies and spin-downs at the middle of the
observation, a coarse grid of spin-downs with residual ones between, a patch of pixels about each direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from lanewise.attributes import frozen
from lanewise.errors import InputError
from lanewise.sims.waves.demodulation import antenna_matrices, f_statistic
from lanewise.sims.waves.device.maps import Best, HoughDevice
from lanewise.sims.waves.device.memory import Memory
from lanewise.sims.waves.device.work import MapWork
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
    pixel_order,
    stack_motion,
    stack_weights,
)
from lanewise.sims.waves.kernels import Method
from lanewise.sims.waves.noise import WINDOW
from lanewise.sims.waves.prepared import DTERMS, Geometry, SearchData, earth_states, geometry, prepare, split
from lanewise.sims.waves.resampling import Band, f_statistic_band
from lanewise.sims.waves.sft import SftSet
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris

Floats = NDArray[np.float64]
DOPPLER = 1.05e-4  # the largest shift of frequencies at a detector
METHODS = ("demod", "resamp")
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
    counts         (r, f, rows, columns) number counts; significance: of them; two_f: the mean 2F of the stacks
    """

    patch: Patch
    frequencies: Floats
    f1dot: Floats
    counts: Floats
    significance: Floats
    two_f: Floats


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


class MapMaker:
    """What the host prepares of the maps of a search: what does not change from map to map is computed once.

    method: "demod", or "resamp", which computes F on the host in float64, by Fourier transforms.
    """

    def __init__(self, grids: Grids, ephemeris: Ephemeris, method: str = "demod") -> None:
        if method not in METHODS:
            raise InputError(f"method is {method!r}; wanted one of {', '.join(METHODS)}")
        self.grids, self.ephemeris, self.method = grids, ephemeris, method
        self._earths = earth_states(grids.data, ephemeris)
        self._motion = stack_motion(grids.data, self._earths)
        self._direction: tuple[float, float] | None = None

    def _look(self, alpha: float, delta: float) -> tuple[Geometry, Patch, NDArray[np.int64]]:
        """Of a direction; the last one is remembered, because spin-downs follow each other."""
        if self._direction != (alpha, delta):
            grids, search = self.grids, self.grids.search
            size = search.patch or (1 / (search.stack * grids.first * ROTATION_SPEED),) * 2
            patch = make_patch(alpha, delta, (size[0], size[1]), grids.first_bin)
            seen = geometry(grids.data, self.ephemeris, alpha, delta, earths=self._earths)
            self._seen = seen, patch, pixel_order(patch)
            self._direction = alpha, delta
        return self._seen

    def work(self, alpha: float, delta: float, f1dot: float) -> MapWork:
        """Of a direction (radians) and a spin-down of the coarse grid (Hz/s)."""
        grids, search, data, resolution = self.grids, self.grids.search, self.grids.data, self.grids.resolution
        seen, patch, order = self._look(alpha, delta)
        offsets = pixel_offsets(patch, self._motion, grids.middle, grids.first_bin * resolution, f1dot, resolution)
        drifts = drift_offsets(self._motion, grids.middle, grids.residuals, resolution)
        weights = stack_weights(data, seen)[0] if search.weighted else np.ones(data.stacks)
        f = None
        if self.method == "resamp":
            margin = needed_margin(offsets, drifts)
            band = Band(
                grids.first - margin * resolution, resolution, grids.frequencies + 2 * margin, alpha, delta,
                grids.middle, f1dot,
            )  # fmt: skip
            f = f_statistic_band(data, band, self.ephemeris, dterms=search.dterms).two_f / 2
        matrix = antenna_matrices(data, seen).sum(axis=2)[:, :, 0]
        return MapWork(
            patch, order, grids.residuals, grids.first, resolution, grids.frequencies, f1dot, grids.middle, offsets, drifts,
            weights, search.threshold, seen, matrix, f,
        )  # fmt: skip

    @property
    def frequencies(self) -> Floats:
        """Of the maps, Hz: bin numbers are what they know."""
        grids = self.grids
        return _grid(grids.resolution * grids.first_bin, grids.resolution, grids.frequencies) + grids.correction


def hough_maps(
    grids: Grids,
    ephemeris: Ephemeris,
    alpha: float,
    delta: float,
    f1dot: float,
    *,
    device: str = "numpy",
    method: str = "demod",
    kernel: Method = "interpolated",
    part: tuple[int, int] | None = None,
) -> Maps:
    """The maps of a direction (radians) and a spin-down of the coarse grid (Hz/s).

    device   "numpy" is the definition, in float64; "cpu", "cuda", ... run kernels
    method   "demod", or "resamp": F by Fourier transforms, on the host
    kernel   of demodulation on a device, see `f_statistic`
    part     the first frequency's number and that behind the last: the maps of these are those of all. For the definition

    Raises InputError for a part of maps on a device.
    """
    if part is not None and (device != "numpy" or method != "demod"):
        raise InputError("a part of a band is computed by the definition alone: device='numpy' and method='demod'")
    maker = MapMaker(grids, ephemeris, method)
    work = maker.work(alpha, delta, f1dot)
    if device == "numpy":
        counts, two_f = _maps(grids, ephemeris, work, part)
    else:
        counts, two_f = HoughDevice(
            grids.data, device, grids.search.dterms, kernel=kernel, buffers=1, largest=work
        ).whole(work)
    significance = Significance.of(work.weights, work.threshold)(counts)
    frequencies = maker.frequencies[slice(*part)] if part is not None else maker.frequencies
    return Maps(work.patch, frequencies, f1dot + grids.residuals, counts, significance, two_f)


def _maps(
    grids: Grids, ephemeris: Ephemeris, work: MapWork, part: tuple[int, int] | None = None
) -> tuple[Floats, Floats]:
    """Number counts and mean 2F by NumPy."""
    margin, f = work.margin, work.f
    low, high = part or (0, work.frequencies)
    if f is None:
        freq = work.first + work.resolution * np.arange(low - margin, high + margin)
        templates = Templates(freq, *work.patch.centre, work.f1dot, reference=work.reference)
        f = f_statistic(grids.data, templates, ephemeris, dterms=grids.search.dterms).two_f / 2
    counts = number_counts(f > work.threshold, margin, high - low, work.offsets, work.drifts, work.weights)
    ones = np.ones(len(f))
    return counts, number_counts(2 * f, margin, high - low, work.offsets, work.drifts, ones) / len(f)


COLUMNS = ("freq", "alpha", "delta", "f1dot", "significance", "count", "twoF")
Candidates = NDArray[np.void]
CANDIDATE = np.dtype([(name, np.float64) for name in COLUMNS])


def candidates(maps: Maps, most: int) -> Candidates:
    """The cells of the highest significance, at most `most`, in the order of `merged`.

    Of cells as significant as the last one those are taken that come first in that order: the list of a search does not depend on how it
    was divided, nor on the device.
    """
    places = _highest(maps.significance, most)
    r, f, row, column = np.unravel_index(places, maps.significance.shape)
    found = np.empty(len(places), CANDIDATE)
    found["freq"], found["f1dot"] = maps.frequencies[f], maps.f1dot[r]
    found["alpha"], found["delta"] = maps.patch.alpha[row, column], maps.patch.delta[row, column]
    found["significance"], found["count"] = maps.significance[r, f, row, column], maps.counts[r, f, row, column]
    found["twoF"] = maps.two_f[r, f, row, column]
    return merged([found], most)


def _candidates_of(best: Best, work: MapWork, frequencies: Floats) -> Candidates:
    """What a device has chosen of a map."""
    f, rank, r = np.unravel_index(best.place, (work.frequencies, work.pixels, len(work.drifts)))
    pixel = work.order[rank]
    found = np.empty(len(best.place), CANDIDATE)
    found["freq"], found["f1dot"] = frequencies[f], (work.f1dot + work.residuals)[r]
    found["alpha"], found["delta"] = work.patch.alpha.reshape(-1)[pixel], work.patch.delta.reshape(-1)[pixel]
    found["significance"], found["count"], found["twoF"] = best.significance, best.count, best.two_f
    return found


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


def search_maps(
    grids: Grids,
    ephemeris: Ephemeris,
    points: Sequence[tuple[float, float, float]],
    most: int = 100,
    *,
    device: str = "numpy",
    method: str = "demod",
    kernel: Method = "interpolated",
    buffers: int = 2,
    announce: Callable[[Memory], None] | None = None,
) -> Iterator[Candidates]:
    """The most significant candidates, at most `most`, of the maps of each point (alpha, delta, f1dot), in their order.

    buffers    2 on a device to compute the next map while the host finishes the last, 1 for one after the other; the results are the same
    announce   is called with the memory that a search on a device takes, before it begins

    For the others see `hough_maps`. Raises InputError where the memory of a device does not suffice.
    """
    if not points:
        return
    maker = MapMaker(grids, ephemeris, method)
    if device == "numpy":
        for point in points:
            work = maker.work(*point)
            counts, two_f = _maps(grids, ephemeris, work)
            significance = Significance.of(work.weights, work.threshold)(counts)
            maps = Maps(work.patch, maker.frequencies, point[2] + grids.residuals, counts, significance, two_f)
            yield candidates(maps, most)
        return
    first = maker.work(*points[0])
    hough = HoughDevice(grids.data, device, grids.search.dterms, kernel=kernel, buffers=buffers, largest=first)
    if announce is not None:
        announce(hough.memory(first))
    works = chain([first], (maker.work(*p) for p in points[1:]))
    for work, best in hough.best(works, most):
        yield _candidates_of(best, work, maker.frequencies)


def hierarchical_search(
    sfts: SftSet,
    search: Search,
    ephemeris: Ephemeris,
    sky: Sequence[tuple[float, float]],
    most: int = 100,
    *,
    device: str = "numpy",
    method: str = "demod",
    kernel: Method = "interpolated",
    buffers: int = 2,
) -> Candidates:
    """The most significant candidates of all directions and spin-downs: a structured array with `COLUMNS`.

    For what is computed where see `search_maps`.
    """
    if not sky:
        raise InputError("there are no directions to search; wanted at least one (alpha, delta)")
    grids = set_up(sfts, search)
    points = [(alpha, delta, f1dot) for alpha, delta in sky for f1dot in grids.f1dot.tolist()]
    top = np.empty(0, CANDIDATE)
    for found in search_maps(
        grids, ephemeris, points, most, device=device, method=method, kernel=kernel, buffers=buffers
    ):
        top = merged([top, found], most)
    return top


def middle_time(grids: Grids) -> float:
    """The middle of the observation, GPS seconds: what candidates' frequencies refer to."""
    return grids.middle / SECOND

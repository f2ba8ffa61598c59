"""The hierarchical search: F of every stack, peaks, Hough maps, a list of the most significant
candidates.

What LALPulsar's HierarchicalSearch does (that of Einstein@Home), and with its grids: frequencies
and spin-downs at the middle of the observation, a coarse grid of spin-downs with residual ones
between, a patch of pixels about each direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.waves.demodulation import demodulated, group_sums, usable_matrix
from lanewise.sims.waves.detectors import detector
from lanewise.sims.waves.device.buffers import MapShape, shape_of
from lanewise.sims.waves.device.fetching import ahead
from lanewise.sims.waves.device.maps import Best, HoughDevice, maps_together
from lanewise.sims.waves.device.memory import Memory
from lanewise.sims.waves.device.work import Batch, DirectionGroup, MapField, SkyDirection, grouped
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.hough import (
    ROTATION_SPEED,
    Patch,
    PatchGrid,
    Significance,
    drift_offsets,
    needed_margin,
    number_counts,
    patch_axes,
    pixel_offsets,
    pixel_order,
    stack_motion,
    weights_of_patterns,
)
from lanewise.sims.waves.kernels import Method
from lanewise.sims.waves.lost import warn_of_loss
from lanewise.sims.waves.noise import WINDOW
from lanewise.sims.waves.prepared import DTERMS, SearchData, earth_states, prepare, sfts_of, split
from lanewise.sims.waves.ranges import (
    FASTEST,
    RANGES,
    check_setting,
    check_settings,
    check_values,
    numbers_of,
)
from lanewise.sims.waves.resampling import Band, resampled
from lanewise.sims.waves.sft import SftSet
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris, patterns_of, turned_response
from lanewise.support.attributes import frozen, near
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import numerals

Floats = NDArray[np.float64]
DOPPLER = 1.05e-4  # the largest shift of frequencies at a detector
METHODS = ("demod", "resamp")
SPARE_BINS = 50  # of SFTs, on both sides of the band
MOST_CELLS = 1e12  # of a direction: years
MOST_CANDIDATES = 100_000_000  # 5.6 GB
MERGED = 64  # lists at a time
THREADS = 3  # that prepare directions for a device
TOGETHER = 12  # directions that one of them prepares at a time: fewer steps of Python for each


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched. Frequencies in Hz and spin-downs in Hz/s at `reference` (GPS nanoseconds),
    each from a lowest value over a band.

    stack        seconds that a stack lasts; most_stacks: how many at most resolution   of
    frequencies, Hz; None for 1 / stack f1dot_step   of the coarse grid, Hz/s; None for 1 / stack^2
    residuals    spin-downs about each one of the coarse grid, f1dot_step / residuals apart; None
    for the number of stacks. Even numbers
                 are those of the next odd one
    threshold    of F = 2F / 2: above it is a peak patch        sizes of the patch in radians; None
    for 1 / (stack freq v), v being the speed of the Earth's surface over c weighted     whether
    stacks count by their noise and the detectors' response
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

    def __post_init__(self) -> None:
        """Raises InputError for values that no search has."""
        check_settings(self)
        if self.patch is not None and not all(0 < side <= math.pi for side in self.patch):
            raise InputError(f"patch is {self.patch}; wanted two sizes above 0, at most pi radians")
        if (last := self.freq + self.freq_band) > FASTEST:
            raise InputError(f"the search ends at {RANGES['freq'].refusal(last, ' Hz')}")


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """The Hough maps of one direction and one spin-down of the coarse grid.

    frequencies    (f) Hz, at the middle of the observation f1dot          (r) Hz/s counts
    (r, f, rows, columns) number counts; significance: of them; two_f: the mean 2F of the stacks
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
    def patch(self) -> tuple[float, float]:
        """Sizes of patches in radians."""
        side = 1 / (self.search.stack * self.first * ROTATION_SPEED)
        return self.search.patch or (side, side)

    @property
    def correction(self) -> float:
        """What candidates' frequencies get because of that, Hz: by how much the frequency asked for
        misses a bin (LALPulsar's bug 147).
        """
        asked = self.search.freq / self.resolution
        return self.search.freq - self.resolution * math.floor(asked + 0.5)


@checked(InputError)
def set_up(sfts: SftSet, search: Search) -> Grids:
    """Stacks, noise and grids.

    Warns (SignalLossWarning) where SFTs are too long for the frequency. Raises InputError where the
    SFTs' band does not suffice.
    """
    if search.stack > (whole := (sfts.end - sfts.start) / SECOND):
        stack, data = numerals(search.stack, whole)
        raise InputError(
            f"a stack lasts {stack} s, and the data {data} s; wanted at most that (--stack)"
        )
    stacks = split(sfts, search.stack, search.most_stacks)
    start, end = stacks[0].start, max(s.end for s in stacks)
    middle = (start + end) // 2
    cover = search_cover(search, start, end, sfts.duration)
    data = prepare(sfts, cover, stacks=stacks, dterms=search.dterms, window=search.window)
    low, high = _range_at(search, middle)
    if not RANGES["freq"].holds(low):
        raise InputError(
            f"at the middle of the observation, GPS {middle / SECOND:.0f}, the search begins at "
            f"{RANGES['freq'].refusal(low, ' Hz')}: is the reference time right?"
        )
    resolution = search.resolution or 1 / search.stack
    step = search.f1dot_step or 1 / search.stack**2
    many = search.residuals or len(stacks)
    fastest = max(abs(search.f1dot), abs(search.f1dot + search.f1dot_band))
    warn_of_loss(max(high, low), sfts.duration, None, fastest)
    half, spins, frequencies = (
        many // 2,
        search.f1dot_band / step + 1,
        (high - low) / resolution + 1,
    )
    if not spins * frequencies * many <= MOST_CELLS:
        raise InputError(
            f"the search has {frequencies:.3g} frequencies, {spins:.3g} spin-downs and {many} "
            "about each; wanted at most "
            f"{MOST_CELLS:.0e} of all: a narrower band, or larger steps"
        )
    return Grids(
        search,
        data,
        middle,
        resolution,
        low,
        int((high - low) / resolution + 1e-6) + 1,
        _grid(search.f1dot, step, int(search.f1dot_band / step + 1e-6) + 1),
        _grid(-half * (step / many), step / many, 2 * half + 1),
    )


@checked(InputError)
def search_cover(search: Search, start: int, end: int, duration: float) -> tuple[float, float]:
    """The band in Hz that a search of data from `start` to `end` (GPS nanoseconds) covers;
    duration: of an SFT, seconds.

    Frequencies at both ends, the largest Doppler shift, and 50 bins for the offsets of pixels and
    spin-downs.
    """
    for name, value in (("reference", start), ("reference", end), ("duration", duration)):
        check_setting(name, value)
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
    """What the host prepares of the maps of a search: what does not change from map to map is
    computed once.

    method: "demod", or "resamp", which computes F on the host in float64, by Fourier transforms.
    part: the first frequency's number and that behind the last; without it all. Raises InputError
    for a part that there is not.
    """

    def __init__(
        self,
        grids: Grids,
        ephemeris: Ephemeris,
        method: str = "demod",
        part: tuple[int, int] | None = None,
    ) -> None:
        if method not in METHODS:
            raise InputError(
                f"method is {method!r}{near(method, METHODS) or ';'} wanted one of "
                f"{', '.join(METHODS)}"
            )
        low, high = part or (0, grids.frequencies)
        if not 0 <= low < high <= grids.frequencies:
            raise InputError(
                f"the part is {low} to {high} of {grids.frequencies} frequencies; wanted one with "
                "some of them"
            )
        self.grids, self.ephemeris, self.method = grids, ephemeris, method
        search, data, resolution = grids.search, grids.data, grids.resolution
        self.earths = earth_states(data, ephemeris)
        motion = stack_motion(data, self.earths)
        patch = PatchGrid.of(grids.patch, grids.first_bin)
        self.field = MapField(
            patch,
            float(np.linalg.norm(patch.from_centre, axis=1).max()),
            motion,
            grids.first,
            resolution,
            low,
            high - low,
            grids.first_bin * resolution,
            grids.middle,
            grids.residuals,
            drift_offsets(motion, grids.middle, grids.residuals, resolution),
            search.threshold,
            search.weighted,
        )
        self._responses = [
            (which, turned_response(self.earths[name], detector(name)))
            for name, which in sfts_of(data).items()
        ]
        self._root = np.sqrt(data.weight)
        # Bin numbers are what maps know.
        every = (
            _grid(resolution * grids.first_bin, resolution, grids.frequencies) + grids.correction
        )
        self.frequencies: Floats = every[low:high]

    def direction(self, alpha: float, delta: float) -> SkyDirection:
        """Of a direction in radians."""
        return self.directions([(alpha, delta)])[0]

    def directions(self, points: Sequence[tuple[float, float]]) -> list[SkyDirection]:
        """Of directions (alpha, delta) in radians, each as it would be alone; several threads may
        ask.
        """
        data, field = self.grids.data, self.field
        a, b = (np.empty((len(points), len(data))) for _ in range(2))
        alpha, delta = np.asarray(points, np.float64).T
        for which, response in self._responses:
            a[:, which], b[:, which] = patterns_of(response, alpha, delta)
        a *= self._root
        b *= self._root
        sums = np.asarray(group_sums(data, np.stack([a**2, b**2, a * b])), np.float64)
        matrices = sums.reshape(3, len(points), data.stacks, -1).sum(axis=3)
        usable = usable_matrix(*matrices).astype(np.float64)
        weights = (
            weights_of_patterns(data, a, b)
            if field.weighted
            else np.ones((len(points), data.stacks))
        )
        stacks = np.stack([*matrices, usable, weights], axis=-1)
        return [
            self._prepared(patch, stacks[i]) for i, patch in enumerate(field.grid.patches(points))
        ]

    def _prepared(self, patch: Patch, stacks: Floats) -> SkyDirection:
        order = pixel_order(patch)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        significance = Significance.of(stacks[:, -1], self.field.threshold)
        return SkyDirection(patch, order, rank, patch_axes(*patch.centre), stacks, significance)

    def offsets(self, patch: Patch, f1dot: float) -> NDArray[np.int64]:
        """By how many bins the pixels of a patch see each stack moved: the definition."""
        field = self.field
        return pixel_offsets(
            patch, field.motion, field.reference, field.centre, f1dot, field.resolution
        )

    def batch(self, group: DirectionGroup, directions: Sequence[SkyDirection]) -> Batch:
        """Maps that are computed together: these are the directions of the group."""
        f = None
        if self.method == "resamp":
            f = tuple(
                tuple(self._resampled(d, f1dot) for f1dot in group.f1dots) for d in directions
            )
        return Batch(tuple(directions), group.f1dots, group.room, f)

    def batches(self, groups: Sequence[DirectionGroup]) -> Iterator[Batch]:
        """Of all groups; threads prepare the directions of about two batches before they are asked
        for.
        """
        points = (point for group in groups for point in group.sky)
        most = max(THREADS, 2 * max(len(g.sky) for g in groups))
        some = iter(lambda: tuple(islice(points, TOGETHER)), ())
        directions = chain.from_iterable(
            ahead(self.directions, some, THREADS, -(-most // TOGETHER))
        )
        for group in groups:
            yield self.batch(group, list(islice(directions, len(group.sky))))

    def _resampled(self, direction: SkyDirection, f1dot: float) -> tuple[int, Floats]:
        """The margin in bins, and F of the stacks (s, bins) with it."""
        field, patch = self.field, direction.patch
        margin = needed_margin(self.offsets(patch, f1dot), field.drifts)
        first = field.first + (field.start - margin) * field.resolution
        band = Band(
            first,
            field.resolution,
            field.frequencies + 2 * margin,
            *patch.centre,
            field.reference,
            f1dot,
        )
        return margin, resampled(
            self.grids.data, band, self.ephemeris, dterms=self.grids.search.dterms
        ).two_f / 2

    def definition(self, direction: SkyDirection, f1dot: float) -> tuple[Floats, Floats]:
        """Number counts and mean 2F by NumPy, (r, f, rows, columns) each.

        Raises InputError where bins are missing.
        """
        grids, field, patch = self.grids, self.field, direction.patch
        offsets = self.offsets(patch, f1dot)
        margin = needed_margin(offsets, field.drifts)
        if self.method == "resamp":
            _, f = self._resampled(direction, f1dot)
        else:
            number = np.arange(field.start - margin, field.start + field.frequencies + margin)
            templates = Templates(
                field.first + field.resolution * number,
                *patch.centre,
                f1dot,
                reference=field.reference,
            )
            f = (
                demodulated(grids.data, templates, self.ephemeris, dterms=grids.search.dterms).two_f
                / 2
            )
        weights, count = direction.stacks[:, 4], field.frequencies
        counts = number_counts(f > field.threshold, margin, count, offsets, field.drifts, weights)
        return counts, number_counts(
            2 * f, margin, count, offsets, field.drifts, np.ones(len(f))
        ) / len(f)

    def maps(self, direction: SkyDirection, f1dot: float, counts: Floats, two_f: Floats) -> Maps:
        shape = (len(self.grids.residuals), self.field.frequencies, *direction.patch.shape)
        counts, two_f = counts.reshape(shape), two_f.reshape(shape)
        spins = f1dot + self.grids.residuals
        return Maps(
            direction.patch, self.frequencies, spins, counts, direction.significance(counts), two_f
        )

    def blame(self, direction: SkyDirection, f1dot: float) -> None:
        """Raise an error for a map that a device found to have values that are not finite: the
        definition says which bins are missing.
        """
        field, patch, data = self.field, direction.patch, self.grids.data
        margin = needed_margin(self.offsets(patch, f1dot), field.drifts)
        ends = np.array([field.start - margin, field.start + field.frequencies + margin - 1])
        templates = Templates(
            field.first + field.resolution * ends, *patch.centre, f1dot, reference=field.reference
        )
        demodulated(data, templates, self.ephemeris, dterms=self.grids.search.dterms)
        raise InputError("a map has values that are not finite; so have the data")

    def device(
        self, device: str, *, kernel: Method = "interpolated", buffers: int = 2
    ) -> HoughDevice:
        """Maps on a device; nothing is there before it is loaded."""
        search, data = self.grids.search, self.grids.data
        return HoughDevice(
            data, self.field, self.earths, device, search.dterms, kernel=kernel, buffers=buffers
        )

    def shape(self, group: DirectionGroup, most: int) -> MapShape:
        """Of maps that are computed together."""
        return shape_of(self.field, group.room, group.f1dots, most)

    def groups(
        self, points: Sequence[tuple[float, float, float]], most: int
    ) -> list[DirectionGroup]:
        """The points of a search on a device as maps that are computed together."""
        f1dots = sorted({p[2] for p in points})
        together = maps_together(self.field, self.field.margin(f1dots), most)
        return list(grouped(points, together))


@checked(InputError)
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

    device   "numpy" is the definition, in float64; "cpu", "cuda", ... run kernels method   "demod",
    or "resamp": F by Fourier transforms, on the host kernel   of demodulation on a device, see
    `f_statistic` part     the first frequency's number and that behind the last: the maps of these
    are those of all
    """
    maker = MapMaker(grids, ephemeris, method, part)
    check_points([(alpha, delta, f1dot)])
    if device == "numpy":
        direction = maker.direction(alpha, delta)
        return maker.maps(direction, f1dot, *maker.definition(direction, f1dot))
    group = DirectionGroup(((alpha, delta),), (f1dot,), 1)
    hough = maker.device(device, kernel=kernel, buffers=1)
    hough.load(maker.shape(group, 1))
    batch = maker.batch(group, [maker.direction(alpha, delta)])
    return maker.maps(batch.directions[0], f1dot, *hough.whole(batch, maker.blame))


COLUMNS = ("freq", "alpha", "delta", "f1dot", "significance", "count", "twoF")
Candidates = NDArray[np.void]
CANDIDATE = np.dtype([(name, np.float64) for name in COLUMNS])


def candidates(maps: Maps, most: int) -> Candidates:
    """The cells of the highest significance, at most `most`, in the order of `merged`.

    Of cells as significant as the last one those are taken that come first in that order: the list
    of a search does not depend on how it was divided, nor on the device.
    """
    places = _highest(maps.significance, most)
    r, f, row, column = np.unravel_index(places, maps.significance.shape)
    rows = np.empty(len(places), CANDIDATE)
    rows["freq"], rows["f1dot"] = maps.frequencies[f], maps.f1dot[r]
    rows["alpha"], rows["delta"] = maps.patch.alpha[row, column], maps.patch.delta[row, column]
    rows["significance"], rows["count"] = (
        maps.significance[r, f, row, column],
        maps.counts[r, f, row, column],
    )
    rows["twoF"] = maps.two_f[r, f, row, column]
    return merged([rows], most)


def _candidates_of(maker: MapMaker, batch: Batch, best: Best) -> Iterator[Candidates]:
    """What a device has chosen, map by map."""
    field, spins = maker.field, len(batch.f1dots)
    f, rank, r = np.unravel_index(
        best.place, (field.frequencies, field.pixels, len(field.residuals))
    )
    rows = np.empty(best.place.shape, CANDIDATE)
    rows["freq"] = maker.frequencies[f]
    rows["significance"], rows["count"], rows["twoF"] = best.significance, best.count, best.two_f
    for d, direction in enumerate(batch.directions):
        own = slice(d * spins, (d + 1) * spins)
        pixel = direction.order[rank[own]]
        rows["alpha"][own] = direction.patch.alpha.reshape(-1)[pixel]
        rows["delta"][own] = direction.patch.delta.reshape(-1)[pixel]
        rows["f1dot"][own] = np.add.outer(batch.f1dots, field.residuals)[
            np.arange(spins)[:, None], r[own]
        ]
    yield from rows


def _highest(significance: Floats, most: int) -> NDArray[np.intp]:
    """Places of the `most` highest and, of those as high as the last, all that the order of
    `merged` may prefer.
    """
    flat = significance.ravel()
    if most >= flat.size:
        return np.arange(flat.size)
    least = np.partition(flat, -most)[-most]
    above, ties = np.flatnonzero(flat > least), np.flatnonzero(flat == least)
    frequency, missing = np.unravel_index(ties, significance.shape)[1], most - len(above)
    return np.concatenate(
        [above, ties[frequency <= np.partition(frequency, missing - 1)[missing - 1]]]
    )


def merged(lists: Sequence[Candidates], most: int) -> Candidates:
    """A list of fixed length: the most significant first; ties in the order of frequency, alpha,
    delta, f1dot, count: it is one list.
    """
    everything = np.concatenate(lists)
    if len(everything) > most:  # what is below the last one needs no order
        level = everything["significance"]
        everything = everything[level >= np.partition(level, -most)[-most]]
    keys = [everything[name] for name in ("count", "f1dot", "delta", "alpha", "freq")]
    return everything[np.lexsort((*keys, -everything["significance"]))][:most]


def check_points(points: Sequence[tuple[float, float, float]]) -> None:
    """Refuse what is no list of alpha, delta and spin-down; by arrays, as there may be millions."""
    numbers = numbers_of("the list of points", points)
    if numbers.size and numbers.shape[1:] != (3,):
        raise InputError(
            f"the list of points has the shape {numbers.shape}; wanted alpha, delta and f1dot of "
            "each"
        )
    for name, column in zip(("alpha", "delta", "f1dot"), numbers.reshape(-1, 3).T, strict=True):
        check_values("point", name, column)


def check_most(most: int) -> None:
    """Refuse an empty list, and one that is longer than any table."""
    if not 1 <= most <= MOST_CANDIDATES:
        raise InputError(
            f"a list of {most} candidates is asked for; wanted 1 to {MOST_CANDIDATES:,}"
        )


class MapSearch:
    """A search that was made ready: its data stay on the device from call to call, and so does what
    kernels are bound to.

    buffers   2 on a device to compute the next maps while the host finishes the last, 1 for one
    after the other; the results are the same part      the first frequency's number and that behind
    the last; without it all

    For the others see `hough_maps`.
    """

    @checked(InputError)
    def __init__(
        self,
        grids: Grids,
        ephemeris: Ephemeris,
        *,
        device: str = "numpy",
        method: str = "demod",
        kernel: Method = "interpolated",
        buffers: int = 2,
        part: tuple[int, int] | None = None,
    ) -> None:
        self.maker = MapMaker(grids, ephemeris, method, part)
        self._device = (
            None if device == "numpy" else self.maker.device(device, kernel=kernel, buffers=buffers)
        )

    def candidates(
        self,
        points: Sequence[tuple[float, float, float]],
        most: int = 100,
        announce: Callable[[Memory], None] | None = None,
    ) -> Iterator[Candidates]:
        """See `search_maps`."""
        check_points(points)
        check_most(most)
        return self._candidates(points, most, announce)

    def _candidates(
        self,
        points: Sequence[tuple[float, float, float]],
        most: int,
        announce: Callable[[Memory], None] | None,
    ) -> Iterator[Candidates]:
        maker, hough = self.maker, self._device
        if not points:
            return
        if hough is None:
            for alpha, delta, f1dot in points:
                direction = maker.direction(alpha, delta)
                yield candidates(
                    maker.maps(direction, f1dot, *maker.definition(direction, f1dot)), most
                )
            return
        groups = maker.groups(points, most)
        largest = max((maker.shape(g, most) for g in _kinds(groups)), key=lambda shape: shape.bytes)
        if announce is not None:
            announce(hough.memory(largest))
        hough.load(largest)
        for batch, best in hough.best(maker.batches(groups), most, maker.blame):
            yield from _candidates_of(maker, batch, best)


def _kinds(groups: Sequence[DirectionGroup]) -> list[DirectionGroup]:
    """One group of each size and spin-downs."""
    return list({(g.room, g.f1dots): g for g in groups}.values())


@checked(InputError)
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
    part: tuple[int, int] | None = None,
    announce: Callable[[Memory], None] | None = None,
) -> Iterator[Candidates]:
    """The most significant candidates, at most `most`, of the maps of each point (alpha, delta,
    f1dot), in their order.

    announce: is called with the memory that a search on a device takes, before it begins.

    Neighbours among the points that have one direction, and directions with the same spin-downs,
    are computed together on a device. For the others see `MapSearch`, which keeps what is loaded
    for more points. Raises InputError where the memory of a device does not suffice.
    """
    search = MapSearch(
        grids, ephemeris, device=device, method=method, kernel=kernel, buffers=buffers, part=part
    )
    yield from search.candidates(points, most, announce)


@checked(InputError)
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
    """The most significant candidates of all directions and spin-downs: a structured array with
    `COLUMNS`.

    For what is computed where see `search_maps`.
    """
    check_most(most)
    if not sky:
        raise InputError("there are no directions to search; wanted at least one (alpha, delta)")
    grids = set_up(sfts, search)
    points = [(alpha, delta, f1dot) for alpha, delta in sky for f1dot in grids.f1dot.tolist()]
    top = [np.empty(0, CANDIDATE)]
    for batch in search_maps(
        grids, ephemeris, points, most, device=device, method=method, kernel=kernel, buffers=buffers
    ):
        top.append(batch)
        if len(top) == MERGED:
            top = [merged(top, most)]
    return merged(top, most)


def middle_time(grids: Grids) -> float:
    """The middle of the observation, GPS seconds: what candidates' frequencies refer to."""
    return grids.middle / SECOND

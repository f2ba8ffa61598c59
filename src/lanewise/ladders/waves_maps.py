"""The rungs of the ladder `waves` that are whole maps: F of a spin-down and its Hough map, as the
thesis proposed to continue.

The data are noise in SFTs of stacks and detectors, on an Earth that moves in circles: times and
responses are computed as in a search.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.ladders.run import duration, skipped
from lanewise.ladders.rung import Options, Rung
from lanewise.ladders.waves_data import DTERMS, DURATION, FIRST, Size, size_of
from lanewise.ladders.waves_thesis import (
    BUFFERED,
    DIRECTIONS,
    FIGURES,
    HOUGH,
    HOUGH_BESIDE,
    HOUGH_HOST,
)
from lanewise.sims.common.devices import to_host
from lanewise.sims.waves import (
    Ephemeris,
    Maps,
    MapSearch,
    Search,
    SearchData,
    geometry,
    search_maps,
)
from lanewise.sims.waves.definition import antenna_matrices, assembled
from lanewise.sims.waves.hierarchical import Candidates, candidates
from lanewise.sims.waves.hierarchical_setup import Grids
from lanewise.sims.waves.hough import (
    Significance,
    drift_offsets,
    make_patch,
    needed_margin,
    number_counts,
    pixel_offsets,
    stack_motion,
)
from lanewise.sims.waves.kernels import Sft, Template, dirichlet_kernel
from lanewise.sims.waves.prepared import earth_states
from lanewise.support.errors import DeviceError, InputError

Floats = NDArray[np.float64]
START = 1_238_166_018 * 10**9  # GPS nanoseconds
AROUND = 40  # bins of an SFT on both sides of the band: Doppler shifts, drifts, and the kernel
PATCH, RESIDUALS, MOST, THRESHOLD = 0.01, 9, 100, 2.6  # radians; spin-downs; candidates; of F
YEAR, RADIUS = 365.25 * 86_400.0, 499.0
# of the largest mean 2F; candidates that definition and device have in common, at least
TOLERANCE, SAME = 1e-4, 0.9
LIMIT, QUICK_LIMIT, RUNS, ENOUGH = 60.0, 6.0, 3, 2.0  # seconds, but for the second-last
Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class _Circle:
    """A body that goes round the barycentre once a year; the Sun stays there."""

    radius: float

    def at(self, times: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """See `ephemeris.Body`."""
        turn: Floats = np.asarray(2 * np.pi * (times * 1e-9 % YEAR) / YEAR, np.float64)
        speed = 2 * np.pi * self.radius / YEAR
        still = np.zeros_like(turn)
        place = self.radius * np.stack([np.cos(turn), np.sin(turn), still], axis=1)
        return place, speed * np.stack([-np.sin(turn), np.cos(turn), still], axis=1)


class MapData:
    """Noise, the grids of a search in it, and directions."""

    def __init__(self, size: Size, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.size = size
        self.ephemeris = Ephemeris("circles", _Circle(RADIUS), _Circle(0.0))
        n, stack = size.stacks * size.detectors * size.sfts, size.sfts * DURATION
        width = size.frequencies // size.sfts + 2 * AROUND
        noise = rng.normal(scale=math.sqrt(0.5), size=(2, n * width)).astype(np.float32)
        starts = START + np.arange(size.stacks * size.sfts).reshape(
            size.stacks, 1, size.sfts
        ) * round(DURATION * 1e9)
        shape = (size.stacks, size.detectors, size.sfts)
        middle = np.broadcast_to(starts + round(DURATION * 5e8), shape).reshape(-1)
        span = np.stack([starts[:, 0, 0], starts[:, 0, -1] + round(DURATION * 1e9)], axis=1)
        data = SearchData(
            ("H1", "L1")[: size.detectors],
            size.stacks,
            DURATION,
            noise[0] + np.complex64(1j) * noise[1],
            width * np.arange(n + 1),
            np.full(n, round(FIRST * DURATION) - AROUND),
            size.sfts * np.arange(size.stacks * size.detectors + 1),
            middle,
            np.ones(n),
            np.ones(size.stacks),
            span,
            0,
        )
        reference, resolution, step = int(span.mean()), 1 / stack, stack**-2
        search = Search(
            freq=FIRST,
            freq_band=size.frequencies * resolution,
            f1dot=0.0,
            f1dot_band=size.spins * step,
            reference=reference,
            stack=stack,
            residuals=RESIDUALS,
            threshold=THRESHOLD,
            patch=(PATCH, PATCH),
            dterms=DTERMS,
        )
        half, fine = RESIDUALS // 2, step / max(RESIDUALS, size.stacks)
        self.grids = Grids(
            search,
            data,
            reference,
            resolution,
            FIRST,
            size.frequencies,
            -1e-11 + step * np.arange(size.spins, dtype=np.float64),
            fine * np.arange(-half, half + 1, dtype=np.float64),
        )
        self._searches = dict[tuple[str, int], MapSearch]()
        self.sky: Floats = rng.uniform((-3.0, -1.4), (3.0, 1.4), (DIRECTIONS, 2))

    def search(self, device: str, buffers: int) -> MapSearch:
        """A search whose data are on the device: they are loaded once, whatever is searched after
        that.
        """
        if (device, buffers) not in self._searches:
            self._searches[device, buffers] = MapSearch(
                self.grids, self.ephemeris, device=device, kernel="dirichlet", buffers=buffers
            )
        return self._searches[device, buffers]

    def points(self, directions: int) -> list[Point]:
        """All spin-downs of the first directions."""
        return [
            (a, d, f) for a, d in self.sky[:directions].tolist() for f in self.grids.f1dot.tolist()
        ]


# ------------------------------------------------------------ versions


@dataclass(frozen=True, slots=True)
class MapVersion:
    """run: (data, points, device) to the candidates of each map."""

    name: str
    run: Callable[[MapData, list[Point], str], Iterator[Candidates]]
    over: str | None = None


def _on_the_host(data: MapData, points: list[Point], device: str) -> Iterator[Candidates]:
    """F of all stacks by one call of the kernel, as in the rung before; maps by NumPy, while the
    device waits.
    """
    search = _HostSearch.of(data, device)
    for point in points:
        yield search.candidates(search.statistic(point))


def _beside(data: MapData, points: list[Point], device: str) -> Iterator[Candidates]:
    """The same, but a thread of the host makes the map of the last point while the device computes
    F of the next one.
    """
    search = _HostSearch.of(data, device)
    last: Future[Candidates] | None = None
    with ThreadPoolExecutor(1) as host:
        for point in points:
            computed = search.statistic(point)
            before, last = last, host.submit(search.candidates, computed)
            if before is not None:
                yield before.result()
        if last is not None:
            yield last.result()


@dataclass(frozen=True, slots=True)
class _Statistic:
    """2F of all stacks at a point (stacks, frequencies), and what its map needs besides it."""

    two_f: Floats
    patch: Any
    offsets: Any
    margin: int
    f1dot: float


@dataclass(frozen=True, slots=True)
class _HostSearch:
    """What all maps of a search share."""

    data: MapData
    device: str
    earths: Any
    motion: Any
    drifts: Any
    bins: lw.RaggedArray

    @classmethod
    def of(cls, data: MapData, device: str) -> _HostSearch:
        grids, d = data.grids, data.grids.data
        earths = earth_states(d, data.ephemeris)
        motion = stack_motion(d, earths)
        drifts = drift_offsets(motion, grids.middle, grids.residuals, grids.resolution)
        bins = lw.ragged(d.data, counts=np.diff(d.offset), device=device)
        return cls(data, device, earths, motion, drifts, bins)

    def statistic(self, point: Point) -> _Statistic:
        """F by one call of the kernel."""
        grids, d, (alpha, delta, f1dot) = self.data.grids, self.data.grids.data, point
        seen = geometry(d, self.data.ephemeris, alpha, delta, earths=self.earths)
        patch = make_patch(alpha, delta, (PATCH, PATCH), grids.first_bin)
        first = grids.first_bin * grids.resolution
        offsets = pixel_offsets(patch, self.motion, grids.middle, first, f1dot, grids.resolution)
        margin = needed_margin(offsets, self.drifts)
        records = cast("Any", Sft).array(
            delay=seen.arrival.since(grids.middle)[0],
            bins_per_hertz=seen.arrival.rate[0] * DURATION,
            a=seen.a[0].astype(np.float32),
            b=seen.b[0].astype(np.float32),
            first_bin=d.first_bin.astype(np.int32),
            device=self.device,
        )
        f = grids.first + grids.resolution * np.arange(-margin, grids.frequencies + margin)
        templates = cast("Any", Template).array(
            frequency=f, f1dot=np.full(len(f), f1dot), f2dot=np.zeros(len(f)), device=self.device
        )
        counts = np.full((d.stacks, len(d.detectors)), self.data.size.sfts)
        sfts = lw.ragged(records, counts=counts, device=self.device)
        parts = to_host(dirichlet_kernel(DTERMS)(templates, sfts, self.bins))
        sums = parts.reshape(len(f), d.stacks, -1, 2, 2).astype(np.float64)
        amplitudes = (sums[..., 0] + 1j * sums[..., 1]).transpose(3, 1, 2, 0)
        matrices = np.broadcast_to(antenna_matrices(d, seen), (3, *amplitudes.shape[1:]))
        return _Statistic(assembled(amplitudes, matrices).two_f, patch, offsets, margin, f1dot)

    def candidates(self, at: _Statistic) -> Candidates:
        """The map of a point by NumPy, and its strongest cells."""
        grids, ones = self.data.grids, np.ones(self.data.grids.data.stacks)
        where = (at.margin, grids.frequencies, at.offsets, self.drifts, ones)
        peaks = number_counts(at.two_f / 2 > THRESHOLD, *where)
        mean = number_counts(at.two_f, *where) / len(ones)
        steps = np.arange(grids.frequencies, dtype=np.float64)
        frequencies = (
            grids.resolution * grids.first_bin + grids.resolution * steps + grids.correction
        )
        significance = Significance.of(ones, THRESHOLD)(peaks)
        spins = at.f1dot + grids.residuals
        return candidates(Maps(at.patch, frequencies, spins, peaks, significance, mean), MOST)


def _on_the_device(buffers: int) -> Callable[[MapData, list[Point], str], Iterator[Candidates]]:
    """F and maps on the device, several maps at a time; 2 sets of buffers: it computes while the
    host finishes the last ones.
    """

    def run(data: MapData, points: list[Point], device: str) -> Iterator[Candidates]:
        return data.search(device, buffers).candidates(points, MOST)

    return run


MAP_VERSIONS = (
    MapVersion(HOUGH_HOST, _on_the_host),
    MapVersion(HOUGH_BESIDE, _beside, HOUGH_HOST),
    MapVersion(HOUGH, _on_the_device(1), HOUGH_HOST),
    MapVersion(BUFFERED, _on_the_device(2), HOUGH),
)
"""In the order of the ladder, behind those of F alone."""


# ------------------------------------------------------------ measured


def climb_maps(cells: int, options: Options) -> Iterator[Rung]:
    """The rungs of one size. Errors are against the definition in float64, of one map."""
    data = MapData(size_of(cells), options.seed)
    try:
        expected = next(
            search_maps(data.grids, data.ephemeris, data.points(1)[:1], MOST, device="numpy")
        )
    except InputError as refusal:  # of fewer bins than a map needs
        yield from (
            skipped(_blank(v, data, cells, options), "illegal", str(refusal)) for v in MAP_VERSIONS
        )
        return
    for version in MAP_VERSIONS:
        yield measure_maps(version, data, cells, options, expected)


def measure_maps(
    version: MapVersion, data: MapData, cells: int, options: Options, expected: Candidates
) -> Rung:
    """The rung of a version: checked, then timed; skipped with the reason where it is wrong as well
    long, or has no device.
    """
    blank = _blank(version, data, cells, options)
    try:
        candidates = next(iter(list(version.run(data, data.points(1)[:1], options.device))))
        error, same = _compared(candidates, expected)
        blank = replace(blank, relative_error=error)
        if not (error <= TOLERANCE and same >= SAME):
            wrong = (
                f"wrong: the relative error of mean 2F is {error:.1e}, and {same:.0%} of the "
                "candidates are those of float64"
            )
            return skipped(
                blank, "wrong", f"{wrong}; wanted at most {TOLERANCE:.0e}, and {SAME:.0%}"
            )
        return _timed(version, data, blank, options)
    except DeviceError as refusal:
        return skipped(blank, "device", str(refusal))


def _blank(version: MapVersion, data: MapData, cells: int, options: Options) -> Rung:
    figure, size = FIGURES[version.name], data.size
    return Rung(
        name=version.name,
        bodies=cells,
        device=options.device,
        skipped="not run",
        over=None,
        extra={
            "stacks": size.stacks,
            "sfts": size.sfts,
            "detectors": size.detectors,
            "frequencies": size.frequencies,
            "residuals": RESIDUALS,
            "thesis": figure.text,
            "thesis_where": figure.where,
        },
    )


def _compared(candidates: Candidates, expected: Candidates) -> tuple[float, float]:
    """The largest difference of mean 2F over the largest, of cells that both lists have; and their
    share.
    """
    cell = ["freq", "alpha", "delta", "f1dot"]
    there = {tuple(row[cell].tolist()): float(row["twoF"]) for row in expected}
    both = [
        (float(row["twoF"]), there[k])
        for row in candidates
        if (k := tuple(row[cell].tolist())) in there
    ]
    if not both:
        return math.inf, 0.0
    ours, theirs = np.array(both).T
    return float(abs(ours - theirs).max() / theirs.max()), len(both) / len(expected)


def _timed(version: MapVersion, data: MapData, blank: Rung, options: Options) -> Rung:
    """The median of searches of as many directions as there is time for: on a GPU all of the
    thesis's.
    """

    def seconds_of(points: list[Point]) -> float:
        start = time.perf_counter()
        assert len(list(version.run(data, points, options.device))) == len(points)
        return time.perf_counter() - start

    limit, one = QUICK_LIMIT if options.quick else LIMIT, data.points(1)
    seconds_of(one)  # compiles
    first = seconds_of(one)
    if first > limit:
        return skipped(
            blank,
            "too long",
            f"a direction takes {duration(first)}, and a rung gets {duration(limit)}",
        )
    most = DIRECTIONS if options.on_gpu and not options.quick else 4
    points = data.points(max(1, min(most, int(limit / 2 / first))))
    seconds_of(points)  # loads buffers of this size
    runs: list[float] = []
    for _ in range(RUNS):
        runs.append(seconds_of(points))
        if sum(runs) > ENOUGH:
            break
    seconds = statistics.median_low(runs) / len(points)
    rate = {"templates_sfts_per_second": data.size.cells * data.size.sfts / seconds}
    return replace(
        blank,
        skipped=None,
        seconds=seconds,
        extra={**blank.extra, "maps": len(points), "runs": len(runs), **rate},
    )

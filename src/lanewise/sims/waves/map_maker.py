"""Makes the maps of a hierarchical search, direction by direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from lanewise.profiling import stage, staged
from lanewise.sims.common.devices import require_memory
from lanewise.sims.waves.definition import group_sums, usable_matrix
from lanewise.sims.waves.demodulation import demodulated
from lanewise.sims.waves.detectors import detector
from lanewise.sims.waves.device.buffers import MapShape, shape_of
from lanewise.sims.waves.device.fetching import ahead
from lanewise.sims.waves.device.maps import HoughDevice, maps_together
from lanewise.sims.waves.device.spectra import are_far
from lanewise.sims.waves.device.work import Batch, DirectionGroup, MapField, SkyDirection, grouped
from lanewise.sims.waves.hierarchical_setup import (
    DOPPLER,
    METHODS,
    THREADS,
    TOGETHER,
    Floats,
    Grids,
    Maps,
    steps_from,
)
from lanewise.sims.waves.hough import (
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
from lanewise.sims.waves.prepared import earth_states, sfts_of
from lanewise.sims.waves.resampling import Band, resampled
from lanewise.sims.waves.templates import Templates
from lanewise.sims.waves.timing import Ephemeris, patterns_of, turned_response
from lanewise.support.attributes import near
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

# of a cell of a map, of a pixel in a stack, and of a value of F of all data and of each detector
CELL_BYTES, OFFSET_BYTES, VALUE_BYTES = 56, 16, 64
LONGEST_DELAY = 1000.0  # seconds from the barycentre to a detector: there are 510


class MapMaker:
    """What the host prepares of the maps of a search: what does not change from map to map is
    computed once.

    method: "demod", or "resamp", which computes F on the host in float64, by Fourier transforms.
    part: the first frequency's number and that after the last; without it all. Raises InputError
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
            steps_from(resolution * grids.first_bin, resolution, grids.frequencies)
            + grids.correction
        )
        self.frequencies: Floats = every[low:high]

    def direction(self, alpha: float, delta: float) -> SkyDirection:
        """Of a direction in radians."""
        return self.directions([(alpha, delta)])[0]

    @staged("barycentring", name="directions")
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
        patches = field.grid.patches(points)
        order = pixel_order(patches)
        rank = np.empty(order.shape, np.int32)
        np.put_along_axis(rank, order, np.arange(order.shape[1], dtype=np.int32)[None], axis=1)
        return [
            SkyDirection(
                patch,
                order[i],
                rank[i],
                patch_axes(*patch.centre),
                stacks[i],
                Significance.of(stacks[i, :, -1], field.threshold),
            )
            for i, patch in enumerate(patches)
        ]

    @staged("Hough", name="shifts of pixels")
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
        else:
            self._check_unseen(group.f1dots, directions)
        return Batch(tuple(directions), group.f1dots, group.room, f)

    def _check_unseen(self, f1dots: Sequence[float], directions: Sequence[SkyDirection]) -> None:
        """Raise an error for missing bins that would leave no value of a map that is not finite."""
        far = self._are_far(f1dots)
        for direction in directions:
            # F of a stack that does not determine it is a number, whatever its bins
            if far or not direction.stacks[:, 3].all():
                for f1dot in f1dots:
                    self._check_bins(direction, f1dot)

    def batches(self, groups: Sequence[DirectionGroup]) -> Iterator[Batch]:
        """Of all groups; threads prepare the directions of about two batches before they are
        needed.
        """
        points = (point for group in groups for point in group.sky)
        most = max(THREADS, 2 * max(len(g.sky) for g in groups))
        some = iter(lambda: tuple(islice(points, TOGETHER)), ())
        directions = chain.from_iterable(
            ahead(self.directions, some, THREADS, -(-most // TOGETHER))
        )
        for group in groups:
            with stage("barycentring", name="directions"):
                these = list(islice(directions, len(group.sky)))
            yield self.batch(group, these)

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
        self.require_whole()
        offsets = self.offsets(patch, f1dot)
        margin = needed_margin(offsets, field.drifts)
        stacks, frequencies = grids.data.stacks, field.frequencies + 2 * margin
        require_memory(
            "cpu",
            VALUE_BYTES * (1 + len(grids.data.detectors)) * stacks * frequencies,
            f"F of {counted(stacks, 'stack', 'stacks')} at "
            f"{counted(frequencies, 'frequency', 'frequencies')}",
        )
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
        with stage("Hough", name="number counts"):
            counts = number_counts(
                f > field.threshold, margin, count, offsets, field.drifts, weights
            )
        with stage("Hough", name="mean 2F"):
            means = number_counts(2 * f, margin, count, offsets, field.drifts, np.ones(len(f)))
            return counts, means / len(f)

    def require_whole(self) -> None:
        """Refuse a map all of whose cells do not fit into memory."""
        field = self.field
        cells = field.pixels * field.frequencies * len(field.residuals)
        require_memory(
            "cpu",
            CELL_BYTES * cells + OFFSET_BYTES * field.stacks * field.pixels,
            f"a map of {field.frequencies:,} frequencies, {len(field.residuals):,} spin-downs and "
            f"{field.pixels:,} pixels",
        )

    @staged("Hough", name="significance")
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
        self._check_bins(direction, f1dot)
        raise InputError("a map has values that are not finite; so have the data")

    def _check_bins(self, direction: SkyDirection, f1dot: float) -> None:
        """Raise an error for a map whose bins are missing, as the definition does."""
        field, patch, data = self.field, direction.patch, self.grids.data
        margin = needed_margin(self.offsets(patch, f1dot), field.drifts)
        ends = np.array([field.start - margin, field.start + field.frequencies + margin - 1])
        templates = Templates(
            field.first + field.resolution * ends, *patch.centre, f1dot, reference=field.reference
        )
        demodulated(data, templates, self.ephemeris, dterms=self.grids.search.dterms)

    def _are_far(self, f1dots: Sequence[float]) -> bool:
        """Whether bins may be missing that a device does not miss."""
        field, data = self.field, self.grids.data
        bins = field.start + field.frequencies + field.margin(f1dots)
        highest = field.first + field.resolution * bins
        since = float(abs(data.middle - field.reference).max()) * 1e-9 + LONGEST_DELAY
        return are_far(data, (highest, max(map(abs, f1dots))), since, 1 + DOPPLER)

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

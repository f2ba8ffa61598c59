"""The hierarchical search: F of every stack, peaks, Hough maps, a list of the most significant
candidates.

What LALPulsar's HierarchicalSearch does (that of Einstein@Home), and with its grids: frequencies
and spin-downs at the middle of the observation, a coarse grid of spin-downs with residual ones
between, a patch of pixels about each direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lanewise.profiling import stage, staged
from lanewise.sims.waves.device.maps import Best
from lanewise.sims.waves.device.memory import Memory
from lanewise.sims.waves.device.work import Batch, DirectionGroup
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.hierarchical_setup import Floats, Grids, Maps, Search, set_up
from lanewise.sims.waves.kernels import Method
from lanewise.sims.waves.map_maker import MapMaker
from lanewise.sims.waves.ranges import check_values, numbers_of
from lanewise.sims.waves.sft import SftSet
from lanewise.sims.waves.timing import Ephemeris
from lanewise.support.checks import checked
from lanewise.support.errors import InputError

MOST_CANDIDATES = 100_000_000  # 5.6 GB
MERGED = 64  # lists at a time


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

        device: "numpy" is the definition, in float64; "cpu", "cuda", ... run kernels
        method: "demod", or "resamp": F by Fourier transforms, on the host
        kernel: of demodulation on a device, see `f_statistic`
        part: the first frequency's number and that after the last: the maps of these are those of
          all

    For the search of all of them see `search_maps`.
    """
    maker = MapMaker(grids, ephemeris, method, part)
    check_points([(alpha, delta, f1dot)])
    if device == "numpy":
        direction = maker.direction(alpha, delta)
        return maker.maps(direction, f1dot, *maker.definition(direction, f1dot))
    maker.require_whole()
    group = DirectionGroup(((alpha, delta),), (f1dot,), 1)
    hough = maker.device(device, kernel=kernel, buffers=1)
    hough.load(maker.shape(group, 1))
    batch = maker.batch(group, [maker.direction(alpha, delta)])
    return maker.maps(batch.directions[0], f1dot, *hough.whole(batch, maker.blame))


COLUMNS = ("freq", "alpha", "delta", "f1dot", "significance", "count", "twoF")
Candidates = NDArray[np.void]
CANDIDATE = np.dtype([(name, np.float64) for name in COLUMNS])


@staged("candidates", name="best cells")
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
    every = batch.directions
    direction, spin = (x[:, None] for x in divmod(np.arange(len(rows)), spins))
    pixel = np.stack([d.order for d in every])[direction, rank]
    rows["alpha"] = np.stack([d.patch.alpha.reshape(-1) for d in every])[direction, pixel]
    rows["delta"] = np.stack([d.patch.delta.reshape(-1) for d in every])[direction, pixel]
    rows["f1dot"] = np.add.outer(batch.f1dots, field.residuals)[spin, r]
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


@staged("candidates", name="merged lists")
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
            f"a list of {most} candidates is requested; wanted 1 to {MOST_CANDIDATES:,}"
        )


class MapSearch:
    """A prepared search: its data and bound kernels stay on the device between calls.

    Attributes:
        buffers: 2 on a device to compute the next maps while the host finishes the last, 1 for one
          after the other; the results are the same
        part: the first frequency's number and that after the last; without it all

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
        with stage("setup", name="maps"):
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
        with stage("transfer", name="SFTs to the device"):
            hough.load(largest)
        for batch, best in hough.best(maker.batches(groups), most, maker.blame):
            with stage("candidates", name="of maps"):
                lists = list(_candidates_of(maker, batch, best))
            yield from lists


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

    announce: called with the memory that a search on a device needs, before it begins.

    Adjacent points with the same direction, and directions with the same spin-downs, are computed
    together on a device. For the other arguments see `MapSearch`, which keeps the loaded data for
    further points. Raises InputError where the memory of a device does not suffice.
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
    with stage("setup", name="noise and grids"):
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

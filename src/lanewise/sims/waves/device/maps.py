"""Hough maps on a device: F of every stack, number counts, the best pixels and their 2F, with no
copy back in between.

Maps of several directions and spin-downs are computed together. In each, the best frequency of
every pixel is found first; the `most` best cells of a map lie in the `most` pixels whose best ones
come first, and these are then looked at cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.profiling import stage
from lanewise.sims.common.devices import array_module, on, resolve
from lanewise.sims.waves.device.buffers import CELLS, BlockCalls, Buffers, MapShape, shape_of
from lanewise.sims.waves.device.fetching import DoubleBuffer, Fetched, fetch
from lanewise.sims.waves.device.memory import Memory, search_memory
from lanewise.sims.waves.device.spectra import Spectra, View
from lanewise.sims.waves.device.top import first_cells
from lanewise.sims.waves.device.work import Batch, MapField, SkyDirection
from lanewise.sims.waves.kernels import Method
from lanewise.sims.waves.prepared import SearchData
from lanewise.sims.waves.timing import EarthState
from lanewise.support.attributes import frozen

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# raises an error for a map of which something is not finite
Blame = Callable[[SkyDirection, float], None]


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best cells of maps, (maps, cells) each, in the order of candidates.

    Attributes:
        place: in (frequency, rank, residual), flat: rank is the place of a pixel in
          `SkyDirection.order`, so that of cells of one significance those of lower places come
          first
        two_f: the mean over the stacks
    """

    place: Ints
    count: Floats
    significance: Floats
    two_f: Floats


def maps_together(field: MapField, margin: int, most: int) -> int:
    """How many maps are computed at a time, at most."""
    cells = field.pixels * len(field.residuals)
    f = field.stacks * (field.frequencies + 2 * margin)
    return max(
        1, min(CELLS // cells, CELLS // (min(most, cells) * field.frequencies), 4 * CELLS // f)
    )


class HoughDevice:
    """Maps of one search on one device. buffers: 2 to compute the next maps while the host finishes
    the last; 1 for one after the other.
    """

    def __init__(
        self,
        data: SearchData,
        field: MapField,
        earths: Mapping[str, EarthState],
        device: str,
        dterms: int,
        *,
        kernel: Method = "interpolated",
        buffers: int = 2,
    ) -> None:
        self.device, self.data, self.field = resolve(device), data, field
        self._earths, self._dterms, self._pipeline = earths, dterms, DoubleBuffer(buffers)
        self._kernel: Method = kernel
        self._loaded: Spectra | None = None
        self._memory: Memory | None = None
        self._buffers: list[Buffers | None] = [None] * buffers
        self._views: list[list[View]] = [[] for _ in range(buffers)]

    def memory(self, largest: MapShape) -> Memory:
        """What maps of at most this size take, with what all maps share."""
        return search_memory(self.data, largest, self.device, self._kernel, self._pipeline.buffers)

    def load(self, largest: MapShape) -> None:
        """Bring the SFTs to the device, once.

        Raises InputError, before that, where memory does not suffice for maps of this size.
        """
        needed = self.memory(largest)
        if self._loaded is None or self._memory is None:
            needed.check()
            with on(self.device):
                self._loaded = Spectra(
                    self.data, self.device, self._dterms, kernel=self._kernel, by_detector=False
                )
                self._loaded.know(self._earths, self.field.reference)
        elif (more := needed.less(self._memory)).total > 0:
            more.check()
        self._memory = needed

    @property
    def _spectra(self) -> Spectra:
        assert self._loaded is not None, "nothing is loaded"
        return self._loaded

    def _room(self, batch: Batch, slot: int, most: int) -> Buffers:
        shape, room = shape_of(self.field, batch.room, batch.f1dots, most), self._buffers[slot]
        if room is None or room.shape != shape:
            self._buffers[slot] = room = None  # its memory is free before the next is taken
            views = self._views[slot]
            views += [self._spectra.view() for _ in range(shape.directions - len(views))]
            room = self._buffers[slot] = Buffers(
                self._spectra, self.field, shape, views[: shape.directions]
            )
        return room

    @property
    def allocated(self) -> int:
        """Bytes of vectors and maps that buffers have now."""
        return sum(room.allocated for room in self._buffers if room is not None)

    def whole(self, batch: Batch, blame: Blame) -> tuple[Floats, Floats]:
        """Number counts and mean 2F of all cells of a map, (r, f, pixels), on the host."""
        with on(self.device):
            return self._whole(batch, blame)

    def _whole(self, batch: Batch, blame: Blame) -> tuple[Floats, Floats]:
        field = self.field
        cells = field.pixels * len(field.residuals)
        room = self._room(batch, 0, max(1, min(cells, CELLS // field.frequencies)))
        room.fill(batch)
        room.f_of(batch)
        both, step = np.empty((2, cells, field.frequencies)), room.shape.chosen
        for first in (min(x, cells - step) for x in range(0, cells, step)):
            room.chosen.data[...] = room.table[first : first + step].reshape(-1)
            for start, size in room.shape.blocks():
                for whole, part in zip(both, room.block(start, size).cells(), strict=True):
                    whole[first : first + step, start : start + size] = fetch(part)().reshape(
                        step, size
                    )
        if not np.isfinite(both[1]).all():
            blame(batch.directions[0], batch.f1dots[0])
        shape = (2, len(field.residuals), field.pixels, field.frequencies)
        counts, sums = both.reshape(shape).transpose(0, 1, 3, 2)
        return counts, sums / field.stacks

    def best(
        self, batches: Iterable[Batch], most: int, blame: Blame
    ) -> Iterator[tuple[Batch, Best]]:
        """The best cells, at most `most`, of each of the maps of these batches (directions by
        spin-downs), in their order.
        """

        def start(batch: Batch, slot: int) -> tuple[Batch, list[Fetched]]:
            with on(self.device):
                with stage("setup", name="buffers and kernels"):
                    room = self._room(batch, slot, most)
                with stage("transfer", name="directions to the device"):
                    room.fill(batch)
                with stage("statistic", name="F of stacks"):
                    room.f_of(batch)
                with stage("Hough", name="best cells"):
                    return batch, [
                        self._best_of(room, start, size, most)
                        for start, size in room.shape.blocks()
                    ]

        def finish(started: tuple[Batch, list[Fetched]]) -> tuple[Batch, Best]:
            return started[0], self._finished(*started, most, blame)

        return self._pipeline.run(batches, start, finish)

    def _best_of(self, room: Buffers, start: int, size: int, most: int) -> Fetched:
        """Begin with the best cells of a block of frequencies: (place, count, significance, sum of
        2F), (4, maps, cells).
        """
        shape, module = room.shape, array_module(self.device)
        calls: BlockCalls = room.block(start, size)
        limit = shape.frequencies * shape.cells
        largest = None if shape.weighted else shape.stacks
        level, count, frequency = (x.reshape(shape.cells, shape.maps).T for x in calls.best())
        rank = self._ranks(room)
        order = (start + frequency.astype(np.int64)) * shape.cells + rank
        pixels = first_cells(
            level if shape.weighted else count, order, shape.chosen, limit=limit, largest=largest
        )
        room.chosen.data[...] = room.table[pixels].reshape(-1)
        count, total = (
            x.reshape(shape.chosen, size, shape.maps).transpose(2, 0, 1) for x in calls.cells()
        )
        means, deviations = (
            room.motion.data.reshape(shape.maps, -1)[:, i, None, None] for i in (0, 1)
        )
        level = (count - means) / deviations
        cells = module.take_along_axis(rank, pixels, axis=1)[:, :, None]
        order = (start + module.arange(size, dtype=np.int64)) * shape.cells + cells
        order, count, level, total = (
            x.reshape(shape.maps, -1) for x in (order, count, level, total)
        )
        bad = ~module.isfinite(total)
        first = module.where(bad, np.inf, level if shape.weighted else count)
        places = first_cells(first, order, most, limit=limit, largest=largest)
        chosen = [
            module.take_along_axis(x, places, axis=1)
            for x in (order.astype(np.float64), count, level, total)
        ]
        return fetch(module.stack(chosen))

    def _ranks(self, room: Buffers) -> Any:
        """(maps, cells): where a pixel and residual spin-down come among those of one frequency."""
        shape, module = room.shape, array_module(self.device)
        rank = (
            room.ranks.astype(np.int64)[:, None, None, :] * shape.residuals
            + module.arange(shape.residuals)[:, None]
        )
        wide = (shape.directions, shape.spins, shape.residuals, shape.pixels)
        return module.broadcast_to(rank, wide).reshape(shape.maps, shape.cells)

    def _finished(self, batch: Batch, parts: list[Fetched], most: int, blame: Blame) -> Best:
        place, count, level, total = np.concatenate([fetched() for fetched in parts], axis=2)
        spins = len(batch.f1dots)
        maps = len(batch.directions) * spins
        place, count, level, total = (x[:maps] for x in (place, count, level, total))
        if len(bad := np.flatnonzero(~np.isfinite(total).all(axis=1))):
            d, s = divmod(int(bad[0]), spins)
            blame(batch.directions[d], batch.f1dots[s])
        if len(parts) > 1:
            order = np.lexsort((place, -level), axis=1)[:, :most]
            place, count, level, total = (
                np.take_along_axis(x, order, axis=1) for x in (place, count, level, total)
            )
        return Best(place.astype(np.int64), count, level, total / self.field.stacks)

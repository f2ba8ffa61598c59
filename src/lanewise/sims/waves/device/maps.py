"""Hough maps on a device: F of every stack, number counts, summed 2F and the best pixels, with no copy back in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.attributes import frozen
from lanewise.errors import InputError
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import array_module
from lanewise.sims.waves.demodulation import amplitudes as defined
from lanewise.sims.waves.demodulation import usable_matrix
from lanewise.sims.waves.device.fetching import DoubleBuffer, Fetched, fetch
from lanewise.sims.waves.device.hough_kernels import Pixel, Place, Stack, StackMatrix, f_of_amplitudes, hough
from lanewise.sims.waves.device.memory import Memory, search_memory
from lanewise.sims.waves.device.spectra import Spectra, on_device, records, upload
from lanewise.sims.waves.device.top import highest
from lanewise.sims.waves.device.work import MapWork, rounded
from lanewise.sims.waves.hough import Significance
from lanewise.sims.waves.kernels import Method
from lanewise.sims.waves.prepared import SearchData
from lanewise.sims.waves.templates import Templates

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CELLS = 1 << 21  # of a map at a time


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best cells of a map, in the order of candidates.

    place   in (frequency, rank, residual), flat: rank is the place of a pixel in `MapWork.order`, so that of cells of one significance
            those of lower places come first
    two_f   the mean over the stacks
    """

    place: Ints
    count: Floats
    significance: Floats
    two_f: Floats


@dataclass(eq=False, slots=True)
class _Block:
    """Cells of a range of frequencies; they are moved from one range to the next."""

    cells: Any
    start: int
    size: int
    call: Any


class _Buffers:
    """Memory of one map, and calls that are bound to it."""

    def __init__(self, spectra: Spectra, view: int, work: MapWork) -> None:
        data, device = spectra.data, spectra.device
        stacks, self.bins, self.pixels = data.stacks, work.bins, work.pixels
        self.residuals, self.frequencies, self.threshold = len(work.drifts), work.frequencies, work.threshold
        self.spectra, self.view, self.device = spectra, view, device
        self.templates = spectra.templates(self.bins)
        flat = lw.ragged(
            np.zeros((self.bins * stacks, 4), np.float32), counts=np.full(self.bins, stacks), device=device
        )
        self.amplitudes = spectra.bind(self.templates, flat.data.reshape(self.bins, stacks, 4), view)
        zeros = np.zeros(stacks)
        numbers = np.arange(stacks, dtype=np.int32)
        self.matrix = records(StackMatrix, a=zeros, b=zeros, c=zeros, number=numbers, usable=numbers, device=device)
        places = records(Place, number=np.arange(self.bins, dtype=np.int32), device=device)
        self.f = lw.ragged(np.zeros(stacks * self.bins), counts=np.full(stacks, self.bins), device=device)
        self.statistic = f_of_amplitudes.bind(
            self.matrix, lw.ragged(places, counts=np.ones(self.bins, np.int64), device=device), flat,
            out=self.f.data.reshape(stacks, self.bins),
        )  # fmt: skip
        self.stacks = lw.ragged(records(Stack, weight=zeros, device=device), counts=[stacks], device=device)
        self.shifts = self._rows(stacks, self.pixels)
        self.drifts = self._rows(stacks, self.residuals)
        self._blocks: dict[int, _Block] = {}

    def _rows(self, stacks: int, length: int) -> Any:
        return lw.ragged(np.zeros(stacks * length, np.float32), counts=np.full(stacks, length), device=self.device)

    def fits(self, work: MapWork) -> bool:
        return (self.bins, self.pixels, self.residuals, self.frequencies, self.threshold) == (
            work.bins, work.pixels, len(work.drifts), work.frequencies, work.threshold,
        )  # fmt: skip

    def f_of(self, work: MapWork) -> None:
        """F of every stack at the map's frequencies and beside them."""
        margin = rounded(work.margin)
        if work.f is not None:
            rows = np.full((len(work.f), self.bins), np.nan)
            beside = margin - work.margin
            rows[:, beside : beside + work.f.shape[1]] = work.f
            upload(self.f.data, rows.reshape(-1))
            return
        self.templates.frequency = work.first + work.resolution * np.arange(-margin, work.frequencies + margin)
        self.templates.f1dot = np.full(self.bins, work.f1dot)
        self.matrix.a, self.matrix.b, self.matrix.c = work.matrix
        self.matrix.usable = usable_matrix(*work.matrix).astype(np.int32)
        self.spectra.look(work.seen, 0, work.reference, self.view)
        self.amplitudes()
        self.statistic()

    def transform(self, work: MapWork) -> None:
        """What the maps of this work look up."""
        shifts = work.offsets.reshape(len(work.offsets), -1)[:, work.order]
        upload(self.shifts.data, shifts.reshape(-1).astype(np.float32))
        upload(self.drifts.data, np.ascontiguousarray(work.drifts.T).reshape(-1).astype(np.float32))
        self.stacks.data.weight = work.weights

    def block(self, start: int, size: int) -> tuple[Any, Any]:
        """Number counts and sums of 2F of frequencies from `start` on, flat (frequency, rank, residual), on the device."""
        margin = (self.bins - self.frequencies) // 2
        if size not in self._blocks:
            f, p, r = (
                x.reshape(-1).astype(np.int32)
                for x in np.meshgrid(np.arange(size), np.arange(self.pixels), np.arange(self.residuals), indexing="ij")
            )
            cells = records(Pixel, frequency=f + margin, pixel=p, residual=r, device=self.device)
            # One thread adds the stacks of a cell in their order, however many cells a part has: parts must not change the list.
            plan = lw.Plan(slices=1)
            call = hough.bind(cells, self.stacks, self.shifts, self.drifts, self.f, self.threshold, plan=plan)
            self._blocks[size] = _Block(cells, 0, size, call)
        block = self._blocks[size]
        if block.start != start:
            block.cells.frequency += np.int32(start - block.start)
            block.start = start
        counts, sums = block.call()
        return counts.reshape(-1), sums.reshape(-1)


class HoughDevice:
    """Maps of one search on one device. buffers: 2 to compute the next map while the host finishes the last; 1 for one after the other."""

    def __init__(
        self, data: SearchData, device: str, dterms: int, *, kernel: Method = "interpolated", buffers: int = 2,
        largest: MapWork | None = None,
    ) -> None:  # fmt: skip
        """largest: a map whose memory is checked before anything is uploaded. Raises InputError where it does not suffice."""
        self.device, self.data, self._dterms = resolve(device), data, dterms
        self._kernel: Method = kernel
        self._pipeline = DoubleBuffer(buffers)
        if largest is not None:
            self.memory(largest).check()
        self._spectra = Spectra(data, self.device, dterms, kernel=kernel, by_detector=False, views=buffers)
        self._buffers: list[_Buffers | None] = [None] * buffers

    def memory(self, work: MapWork) -> Memory:
        """What a search with maps like this one takes."""
        return search_memory(
            self.data, work.bins, work.pixels, _step(work) * work.pixels * len(work.drifts), self.device, self._kernel,
            self._pipeline.buffers,
        )  # fmt: skip

    def _room(self, work: MapWork, slot: int) -> _Buffers:
        room = self._buffers[slot]
        if room is None or not room.fits(work):
            self._buffers[slot] = None  # its memory is free before the next is taken
            room = self._buffers[slot] = _Buffers(self._spectra, slot, work)
        return room

    def whole(self, work: MapWork) -> tuple[Floats, Floats]:
        """Number counts and mean 2F of all cells, (r, f, rows, columns), on the host."""
        with on_device(self.device):
            return self._whole(work)

    def _whole(self, work: MapWork) -> tuple[Floats, Floats]:
        room = self._room(work, 0)
        room.f_of(work)
        room.transform(work)
        shape = (len(work.drifts), work.frequencies, *work.offsets.shape[1:])
        both = np.empty((2, len(work.drifts), work.frequencies, work.pixels))
        for start, size in _blocks(work):
            for whole, part in zip(both, room.block(start, size), strict=True):
                cells = fetch(part)().reshape(size, work.pixels, len(work.drifts))
                whole[:, start : start + size, work.order] = cells.transpose(2, 0, 1)
        _check_finite(self.data, work, self._dterms, both[1])
        return both[0].reshape(shape), both[1].reshape(shape) / self.data.stacks

    def best(self, works: Iterator[MapWork] | Sequence[MapWork], most: int) -> Iterator[tuple[MapWork, Best]]:
        """The best cells of each of the maps, at most `most`, in the order of the maps; ties in the order of their cells."""
        return self._pipeline.run(works, lambda work, slot: self._start(work, slot, most), self._finish)

    def _start(self, work: MapWork, slot: int, most: int) -> tuple[MapWork, list[tuple[int, int, Fetched]]]:
        with on_device(self.device):
            return work, self._parts(work, slot, most)

    def _parts(self, work: MapWork, slot: int, most: int) -> list[tuple[int, int, Fetched]]:
        room = self._room(work, slot)
        room.f_of(work)
        room.transform(work)
        significance = Significance.of(work.weights, work.threshold)
        module = array_module(self.device)
        parts: list[tuple[int, int, Fetched]] = []
        for start, size in _blocks(work):
            counts, sums = room.block(start, size)
            levels = significance(counts)
            at = highest(levels, most)
            held = module.stack(
                [at.astype(np.float64), counts[at], levels[at], sums[at], sums.sum() + module.zeros(len(at))]
            )
            parts.append((start, size, fetch(held)))
        return parts

    def _finish(self, started: tuple[MapWork, list[tuple[int, int, Fetched]]]) -> tuple[MapWork, Best]:
        work, parts = started
        found: list[Floats] = []
        for start, _, fetched in parts:
            rows = fetched().copy()
            _check_finite(self.data, work, self._dterms, rows[4])
            rows[0] += start * work.pixels * len(work.drifts)
            found.append(rows)
        place, count, level, total, _ = np.concatenate(found, axis=1)
        order = np.lexsort((place, -level))
        return work, Best(place[order].astype(np.int64), count[order], level[order], total[order] / self.data.stacks)


def _step(work: MapWork) -> int:
    """Frequencies of a map at a time."""
    return max(1, min(work.frequencies, CELLS // max(1, work.pixels * len(work.drifts))))


def _blocks(work: MapWork) -> Iterator[tuple[int, int]]:
    step = _step(work)
    for start in range(0, work.frequencies, step):
        yield start, min(step, work.frequencies - start)


def _check_finite(data: SearchData, work: MapWork, dterms: int, sums: Any) -> None:
    """What is not a number needs bins that there are not; the definition says which."""
    if np.isfinite(sums).all():
        return
    for at in (-work.margin, work.frequencies + work.margin - 1):
        template = Templates(
            work.first + work.resolution * at,
            work.seen.alpha[0],
            work.seen.delta[0],
            work.f1dot,
            reference=work.reference,
        )
        defined(data, work.seen, np.zeros(1, np.int64), template, np.zeros(1, np.int64), dterms)
    raise InputError("a map has values that are not finite; so have the data")

"""The memory of maps that are computed together, and calls that are bound to it once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.sims.common.devices import get_device, is_gpu
from lanewise.sims.waves.device.fetching import FetchedArray
from lanewise.sims.waves.device.hough_kernels import (
    CHOSEN,
    MATRIX,
    MOTION,
    All,
    Cell,
    Entry,
    Part,
    Pixel,
    best_frequencies,
    cells_of_maps,
    f_of_amplitudes,
    peak_words,
)
from lanewise.sims.waves.device.look import TURNED, turned
from lanewise.sims.waves.device.spectra import Spectra, View, records, upload
from lanewise.sims.waves.device.work import Batch, MapField
from lanewise.support.attributes import frozen

EXACT = 53  # binary digits of integers that float64 adds without rounding
WORD, WORDS = 8, 8  # frequencies of a word, and words that are added side by side, at most
CELLS = 1 << 21  # cells of maps that are chosen from at a time
PADDING = 1 << 15  # bytes behind rows, and of what is there once
SORTED = 64  # bytes of a cell while the best are chosen


@frozen
@dataclass(frozen=True, slots=True)
class MapShape:
    """Sizes of maps that are computed together.

    Attributes:
        directions, spins: maps are directions times spin-downs
        frequencies, block: of a map, and of these as many at a time
        margin: bins of F besides the frequencies
        chosen: pixels of a map, with their residual spin-downs, whose frequencies are looked at one
          by one
    """

    directions: int
    spins: int
    stacks: int
    pixels: int
    residuals: int
    frequencies: int
    block: int
    margin: int
    chosen: int
    weighted: bool

    @property
    def maps(self) -> int:
        return self.directions * self.spins

    @property
    def bins(self) -> int:
        return self.frequencies + 2 * self.margin

    @property
    def values(self) -> int:
        """Of F."""
        return self.maps * self.stacks * self.bins

    @property
    def cells(self) -> int:
        """Pixels of a map, once for each residual spin-down."""
        return self.pixels * self.residuals

    @property
    def digits(self) -> int:
        return EXACT if self.weighted else self.stacks.bit_length()

    @property
    def word(self) -> int:
        """How many frequencies a word has: no more than the smallest block."""
        smallest = min(size for _, size in self.blocks())
        return 1 if self.weighted else max(1, min(WORD, smallest, EXACT // self.digits))

    def blocks(self) -> Iterator[tuple[int, int]]:
        """First frequency and number of frequencies of each block; they are of nearly one size."""
        count = -(-self.frequencies // self.block)
        for i in range(count):
            first, end = (self.frequencies * j // count for j in (i, i + 1))
            yield first, end - first

    @property
    def vector_bytes(self) -> int:
        """Of F and what it is made of."""
        entries = self.values * (12 + 16 + 8 + 8 + 8)
        per_map = self.maps * (
            8 * (2 + MOTION * self.stacks) + 8 * self.stacks + 4 * self.stacks * self.residuals
        )
        return (
            PADDING
            + entries
            + per_map
            + self.directions * (8 * (MATRIX * self.stacks + TURNED) + 4 * self.pixels)
            + 24 * self.spins * self.bins
        )

    @property
    def map_bytes(self) -> int:
        """Of pixels, and of the cells of those that are chosen."""
        pixels = self.cells * (28 + 32) + self.maps * self.cells * 20
        cells = self.chosen * self.block * (8 + 16 * self.maps)
        return pixels + cells + self.maps * self.chosen * 8 * CHOSEN

    @property
    def sorted_bytes(self) -> int:
        """While the best are chosen."""
        return SORTED * self.maps * max(self.cells, self.chosen * self.block)

    @property
    def bytes(self) -> int:
        """Of one set of buffers, and of choosing."""
        return self.vector_bytes + self.map_bytes + self.sorted_bytes


def shape_of(field: MapField, directions: int, f1dots: tuple[float, ...], most: int) -> MapShape:
    """Of the maps of that many directions, of which the `most` best cells are requested."""
    cells = field.pixels * len(field.residuals)
    chosen = min(most, cells)
    maps = directions * len(f1dots)
    block = max(1, min(field.frequencies, CELLS // (chosen * maps)))
    return MapShape(
        directions,
        len(f1dots),
        field.stacks,
        field.pixels,
        len(field.residuals),
        field.frequencies,
        block,
        field.margin(f1dots),
        chosen,
        field.weighted,
    )


@dataclass(eq=False, slots=True)
class BlockCalls:
    """Calls for blocks of one size."""

    best: Any
    cells: Any
    allocated: int


class Buffers:
    """Memory of the maps of a batch, and calls that are bound to it."""

    def __init__(
        self, spectra: Spectra, field: MapField, shape: MapShape, views: list[View]
    ) -> None:
        self.spectra, self.field, self.shape, self.device = spectra, field, shape, spectra.device
        self.views, self._f1dots, self._start = views, None, 0
        stacks, bins, values = shape.stacks, shape.bins, shape.values
        self._plan = lw.Plan(slices=1, targets=1) if is_gpu(self.device) else lw.Plan(slices=1)
        self.templates = spectra.templates(shape.spins * bins)
        self.amplitude_rows = self._rows(np.zeros((values, 4), np.float32), 1)
        flat = self.amplitude_rows.data.reshape(shape.directions, shape.spins * bins, stacks, 4)
        self.turned = spectra.array(np.zeros((shape.directions, TURNED)))
        # SFTs are added in one order, however many templates are computed together: work units must
        # not change the list.
        one = lw.Plan(slices=1)
        self.amplitudes = [
            call
            for d, v in enumerate(views)
            for call in (
                spectra.looking(v, self.turned, d),
                spectra.bind(self.templates, v, flat[d], one),
            )
        ]
        entries = self._bind_statistic()
        self._make_maps()
        self._sent = [
            FetchedArray(x)
            for x in (
                self.stacks.data, self.motion.data, self.weights.data, self.ranks, self.turned,
            )
        ]  # fmt: skip
        self._demodulated: Callable[[], object] | None = None
        self._calls: dict[int, BlockCalls] = {}
        self._arrays: list[Any] = [
            self.templates, self.amplitude_rows, entries, self.stacks, self.f, self.packed,
            self.f_of_maps, self.motion, self.weights, self.drifts, self.chosen, self.parts,
            self.pixels, self.table, self.ranks, self.turned,
        ]  # fmt: skip

    def _bind_statistic(self) -> Any:
        """F of the amplitudes, and its words; the entries that they are computed for."""
        shape = self.shape
        entries = _entries(shape, self.device)
        every = lw.ragged(
            records(All, number=np.zeros(1, np.int32), device=self.device),
            counts=[1],
            device=self.device,
        )
        self.stacks = self._rows(np.zeros(shape.directions * shape.stacks * MATRIX), 1)
        self.f = self._rows(np.zeros(shape.values), 1)
        self.statistic = f_of_amplitudes.bind(
            entries,
            every,
            self.stacks,
            self.amplitude_rows,
            out=self.f.data.reshape(-1, 1),
            plan=self._plan,
        )
        self.packed, self.f_of_maps = (
            self._rows(np.zeros(shape.values), shape.maps),
            self._rows(np.zeros(shape.values), shape.maps),
        )
        words = peak_words(shape.word, shape.digits)
        out = self.packed.data.reshape(-1, 1), self.f_of_maps.data.reshape(-1, 1)
        self.words = words.bind(
            entries, every, self.stacks, self.f, self.field.threshold, out=out, plan=self._plan
        )
        return entries

    def _make_maps(self) -> None:
        """What maps are added up from, and what is chosen of them."""
        spectra, field, shape = self.spectra, self.field, self.shape
        maps, stacks = shape.maps, shape.stacks
        self.motion = self._rows(np.zeros(maps * (2 + MOTION * stacks)), maps)
        self.weights = self._rows(np.ones(maps * stacks), maps)
        self.drifts = self._rows(np.tile(field.drifts.T.reshape(-1), maps).astype(np.float32), maps)
        self.chosen = self._rows(np.zeros(maps * shape.chosen * CHOSEN), maps)
        self.parts = lw.ragged(
            records(Part, start=np.zeros(maps, np.int32), device=self.device),
            counts=np.ones(maps, np.int64),
            device=self.device,
        )
        vectors = np.tile(field.grid.from_centre, (shape.residuals, 1))
        residual = np.repeat(np.arange(shape.residuals), shape.pixels)
        self.pixels = records(
            Pixel, from_centre=vectors, residual=residual.astype(np.int32), device=self.device
        )
        self.table = spectra.array(np.column_stack([vectors, residual]))
        self.ranks = spectra.array(np.zeros((shape.directions, shape.pixels), np.int32))

    @property
    def allocated(self) -> int:
        """Bytes of the arrays, those of the calls among them."""
        return sum(x.nbytes for x in self._arrays) + sum(c.allocated for c in self._calls.values())

    def _rows(self, values: Any, rows: int) -> Any:
        return lw.ragged(values, counts=np.full(rows, len(values) // rows), device=self.device)

    # ------------------------------------------------------------ a batch

    def fill(self, batch: Batch) -> None:
        """What the maps of this batch need.

        Where there is room for more directions, the last one stands in for them.
        """
        shape, stacks, motion, weights, ranks, seen = self.shape, *(m.host for m in self._sent)
        every = self.field.shifts(batch.f1dots)
        stacks = stacks.reshape(-1, shape.stacks, MATRIX)
        weights = weights.reshape(-1, shape.spins, shape.stacks)
        motion = motion.reshape(-1, shape.spins, 2 + MOTION * shape.stacks)
        for d in range(shape.directions):
            direction = batch.directions[min(d, len(batch.directions) - 1)]
            stacks[d], ranks[d], weights[d], seen[d] = (
                direction.stacks,
                direction.rank,
                direction.stacks[:, 4],
                turned(*direction.patch.centre),
            )
            motion[d, :, 0], motion[d, :, 1] = (
                direction.significance.mean,
                direction.significance.deviation,
            )
            motion[d, :, 2:] = (every @ direction.axes.T).reshape(shape.spins, -1)
        for mirror in self._sent:
            mirror.send()
        if batch.f1dots != self._f1dots:
            self._templates(batch.f1dots)

    def _templates(self, f1dots: tuple[float, ...]) -> None:
        field, shape = self.field, self.shape
        number = field.start + np.arange(-shape.margin, shape.frequencies + shape.margin)
        self.templates.frequency = np.tile(field.first + field.resolution * number, shape.spins)
        self.templates.f1dot = np.repeat(f1dots, shape.bins)
        self._f1dots = f1dots

    def f_of(self, batch: Batch) -> None:
        """F of every stack at the maps' frequencies and next to them, and its peaks."""
        if batch.f is None:
            if self._demodulated is None:
                self._demodulated = get_device(self.device).replay(self._demodulate)
            self._demodulated()
        else:
            upload(self.f.data, self._host_f(batch.f))
            self.words()

    def _demodulate(self) -> None:
        """F of all directions that there is room for, and its peaks. A GPU has these launches in a
        graph: one by one they took its host longer than the GPU.
        """
        for call in (*self.amplitudes, self.statistic, self.words):
            call()

    def _host_f(self, f: Any) -> Any:
        shape = self.shape
        rows = np.full((shape.directions, shape.spins, shape.stacks, shape.bins), np.nan)
        for d, of_direction in enumerate(f):
            for s, (margin, values) in enumerate(of_direction):
                beside = shape.margin - margin
                rows[d, s, :, beside : beside + values.shape[1]] = values
        return rows.reshape(-1)

    # ------------------------------------------------------------ a block of frequencies

    def block(self, start: int, size: int) -> BlockCalls:
        """The calls for a block of frequencies, which begins there from now on."""
        if start != self._start:
            self.parts.data.start += np.int32(start - self._start)
            self._start = start
        if size not in self._calls:
            self._calls[size] = self._bound(size)
        return self._calls[size]

    def _bound(self, size: int) -> BlockCalls:
        shape, field = self.shape, self.field
        word = shape.word
        numbers = {
            "stacks": shape.stacks,
            "bins": shape.bins,
            "residuals": shape.residuals,
            "margin": shape.margin,
        }
        values = {k: np.int32(v) for k, v in numbers.items()}
        best = best_frequencies(word, shape.digits, max(1, min(WORDS, size // word))).bind(
            self.pixels,
            self.parts,
            self.motion,
            self.drifts,
            self.packed,
            frequencies=np.int32(size),
            plan=self._plan,
            **values,
        )
        chosen, frequency = (
            x.reshape(-1).astype(np.int32) for x in np.indices((shape.chosen, size))
        )
        cells = records(Cell, chosen=chosen, frequency=frequency, device=self.device)
        single = cells_of_maps.bind(
            cells,
            self.parts,
            self.chosen,
            self.motion,
            self.drifts,
            self.f_of_maps,
            self.weights,
            field.threshold,
            plan=self._plan,
            **values,
        )
        results = (*best.results, *single.results)
        return BlockCalls(best, single, cells.nbytes + sum(x.nbytes for x in results))


def _entries(shape: MapShape, device: str) -> Any:
    """For each value of the maps: its amplitudes, and the stack that it is of."""
    m, k, b = np.indices((shape.maps, shape.stacks, shape.bins), np.int32)
    return records(
        Entry,
        place=np.arange(shape.values, dtype=np.int32),
        amplitude=((m * shape.bins + b) * shape.stacks + k).reshape(-1),
        stack=(m // shape.spins * shape.stacks + k).reshape(-1),
        device=device,
    )

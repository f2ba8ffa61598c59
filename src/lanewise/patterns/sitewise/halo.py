"""What parts of a mesh bring from each other: ghost layers of populations, fields and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.language.types import Scalar
from lanewise.patterns.sitewise.slabs import Slab
from lanewise.patterns.sitewise.streaming import Phase
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.runtime.exchange import Move, Moves
from lanewise.runtime.memory import array_module, bring, on

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GhostLayer:
    """A ghost layer: that of a part, and the layer of its owner that it is a copy of, each counted
    with ghosts. steps: how far it is from the layers that its part owns, negative below.
    """

    part: int
    layer: int
    owner: int
    source: int
    steps: int


def ghost_layers(slabs: Sequence[Slab]) -> tuple[GhostLayer, ...]:
    """All of a box that was cut so."""
    found: list[GhostLayer] = []
    for part, slab in enumerate(slabs):
        numbers = slab.numbers
        for layer in slab.ghosts:
            n = int(numbers[layer])
            owner = next(p for p, s in enumerate(slabs) if n in s.layers)
            source = n - slabs[owner].layers.start + slabs[owner].below
            last = slab.below + len(slab.layers) - 1
            steps = layer - slab.below if layer < slab.below else layer - last
            found.append(GhostLayer(part, layer, owner, source, steps))
    return tuple(found)


def leaves_needed(lattice: Lattice, phase: Phase, steps: int) -> tuple[int, ...]:
    """The populations of a ghost layer that a phase needs, `steps` layers from those that a part
    owns.

    A step that puts along links updates the first ghosts as well, which reads all of them.
    """
    if phase.put_links:
        if abs(steps) == 1:
            return tuple(range(lattice.size))
        if not phase.load_links:
            return ()
    elif abs(steps) > 1 or not phase.load_links:
        return ()
    inwards = -1 if steps > 0 else 1
    return tuple(
        lattice.opposite[q] if phase.load_opposite else q
        for q, e in enumerate(lattice.velocities)
        if e[-1] == inwards
    )


@dataclass(frozen=True, slots=True, eq=False)
class GhostArrival:
    """What came to a part, and where it belongs: numbers of an array, or a slice of it."""

    device: str
    came: Any
    array: Any
    to: Any

    def __call__(self) -> None:
        with on(self.device):
            self.array[self.to] = self.came


@dataclass(frozen=True, slots=True, eq=False)
class GhostExchange:
    """Brings ghosts: columns of their owners to memory of the parts that need them, from where each
    part puts them where they belong. Nothing else reads or writes that memory.
    """

    moves: Moves
    arrivals: tuple[GhostArrival, ...]

    @staticmethod
    def of(pieces: Sequence[GhostPiece]) -> GhostExchange:
        moves: list[Move] = []
        arrivals: list[GhostArrival] = []
        for p in pieces:
            rows = p.to.stop - p.to.start if isinstance(p.to, slice) else len(p.to)
            shape = (rows, *p.target.shape[1:])
            came = array_module(p.target_device).empty(shape, p.target.dtype)
            moves.append(Move(p.source_device, p.take, p.target_device, came))
            arrivals.append(GhostArrival(p.target_device, came, p.target, p.to))
        return GhostExchange(Moves(tuple(moves)), tuple(arrivals))

    @property
    def nbytes(self) -> int:
        """What goes between parts."""
        return self.moves.nbytes

    def __call__(self) -> None:
        self.moves()
        for arrival in self.arrivals:
            arrival()


@dataclass(frozen=True, slots=True, eq=False)
class GhostPiece:
    """Elements of one array that become elements of another one. of, to: which ones, as numbers or
    a slice.
    """

    source: Any
    of: Any
    source_device: str
    target: Any
    to: Any
    target_device: str

    def take(self) -> Any:
        """A copy of them, or a view."""
        return self.source[self.of]


def record_exchange(
    arrays: Sequence[RecordArray],
    layers: Iterable[GhostLayer],
    plane: int,
    storage: Scalar,
    leaves_of: Callable[[int], Sequence[int]],
) -> GhostExchange:
    """Brings ghost layers of records, an array for each part. leaves_of: the numbers of the leaves
    of a layer that are wanted, by its steps from the layers that a part owns.

    What a part has of another one comes in one piece.
    """
    pairs: dict[tuple[int, int], list[tuple[Whole, Whole]]] = {}
    for layer in layers:
        if leaves := leaves_of(layer.steps):
            source, target = arrays[layer.owner], arrays[layer.part]
            of = _numbers(source, leaves, layer.source * plane, plane, storage)
            to = _numbers(target, leaves, layer.layer * plane, plane, storage)
            pairs.setdefault((layer.owner, layer.part), []).append((of, to))
    pieces: list[GhostPiece] = []
    for (owner, part), numbers in pairs.items():
        source, target = arrays[owner], arrays[part]
        of, to = (np.concatenate(each) for each in zip(*numbers, strict=True))
        pieces.append(
            GhostPiece(
                _scalars(source, storage),
                bring(of, source.device),
                source.device,
                _scalars(target, storage),
                bring(to, target.device),
                target.device,
            )
        )
    return GhostExchange.of(pieces)


def array_exchange(
    arrays: Sequence[Any], devices: Sequence[str], layers: Iterable[GhostLayer], plane: int
) -> GhostExchange:
    """Brings ghost layers of arrays with one row a site, one array for each part."""
    return GhostExchange.of(
        [
            GhostPiece(
                arrays[x.owner],
                slice(x.source * plane, (x.source + 1) * plane),
                devices[x.owner],
                arrays[x.part],
                slice(x.layer * plane, (x.layer + 1) * plane),
                devices[x.part],
            )
            for x in layers
        ]
    )


def _scalars(array: RecordArray, storage: Scalar) -> Any:
    """The memory of records whose leaves all have one type, as an array of that."""
    data, size = places_of(array).data, storage.size
    return data[: len(data) // size * size].view(storage.dtype)


def _numbers(
    array: RecordArray, leaves: Sequence[int], first: int, count: int, storage: Scalar
) -> Whole:
    """Where these leaves of so many records lie, from one on, counted in scalars."""
    arrangement = array.layout.arrange(array.record.leaves)
    starts = arrangement.starts(len(array))
    sites = np.arange(first, first + count)
    found: list[Whole] = []
    for leaf in leaves:
        slot = arrangement.slot(array.record.leaves[leaf].name)
        buffer = arrangement.buffers[slot.buffer]
        block, lane = np.divmod(sites, buffer.width)
        start = starts[slot.buffer] + slot.offset
        found.append((start + block * buffer.block + lane * slot.stride) // storage.size)
    return np.concatenate(found)

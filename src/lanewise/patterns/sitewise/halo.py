"""What parts of a mesh bring from each other: ghost layers of populations, fields and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.language.types import Scalar
from lanewise.launch.sent import Sent
from lanewise.patterns.sitewise.slabs import Slab, slabs_of
from lanewise.patterns.sitewise.streaming import Phase
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.runtime.exchange import Move, Moves
from lanewise.runtime.memory import address, array_module, bring, on
from lanewise.runtime.mesh import Mesh
from lanewise.runtime.transport import Transport

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


@dataclass(frozen=True, slots=True)
class GhostLaw:
    """What is copied of ghosts, by how many layers each part owns. depth: ghost layers on a side.
    plane: sites of a layer. nbytes: of a site, by how many steps its layer is from those that a
    part owns.
    """

    name: str
    depth: int
    periodic: bool
    plane: int
    nbytes: Mapping[int, int]

    def __call__(self, layers: Sequence[int]) -> Sent:
        found: dict[tuple[int, int], int] = {}
        for x in ghost_layers(slabs_of(layers, self.depth, periodic=self.periodic)):
            if each := self.nbytes[x.steps]:
                pair = x.owner, x.part
                found[pair] = found.get(pair, 0) + each * self.plane
        return Sent(self.name, found)

    def ghosts(self, layers: Sequence[int]) -> tuple[int, ...]:
        """How many layers of others each part has."""
        slabs = slabs_of(layers, self.depth, periodic=self.periodic)
        return tuple(slab.below + slab.above for slab in slabs)


def law_of(name: str, of: BoxCut, nbytes: Callable[[int], int]) -> GhostLaw:
    """Of a box that was cut so. nbytes: of a site of a layer, by its steps."""
    depth = max((max(slab.below, slab.above) for slab in of.slabs), default=0)
    periodic = bool(of.slabs[0].below)
    steps = [n for n in range(-depth, depth + 1) if n]
    return GhostLaw(name, depth, periodic, of.plane, {n: nbytes(n) for n in steps})


@dataclass(frozen=True, slots=True, eq=False)
class GhostEnd:
    """Elements of an array of a part: numbers, or a slice."""

    device: str
    array: Any
    elements: Any

    def take(self) -> Any:
        """A copy of them, or a view."""
        return self.array[self.elements]

    def taken(self) -> Any:
        """The same, wherever the current device is."""
        with on(self.device):
            return self.take()

    def put(self, values: Any) -> None:
        """Give them the values of an array on their device."""
        with on(self.device):
            self.array[self.elements] = values

    def room(self, module: Any) -> Any:
        """An array for them."""
        e = self.elements
        count = e.stop - e.start if isinstance(e, slice) else len(e)
        return module.empty((count, *self.array.shape[1:]), self.array.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class GhostPiece:
    """Elements of one part that become elements of another one. source, target: None where that
    part lies in another process. ranks: those of both.
    """

    source: GhostEnd | None
    target: GhostEnd | None
    ranks: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class GhostArrival:
    """What comes to a part, and where it belongs. rank: from where, if from another process."""

    came: Any
    to: GhostEnd
    rank: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class GhostExchange:
    """Brings ghosts: columns of their owners to memory of the parts that need them, from where each
    part puts them where they belong. Nothing else reads or writes that memory.

    sent: what others get of this process, with their ranks.
    """

    moves: Moves
    arrivals: tuple[GhostArrival, ...]
    sent: tuple[tuple[int, GhostEnd], ...]
    received: tuple[GhostArrival, ...]
    transport: Transport
    law: GhostLaw

    @staticmethod
    def of(pieces: Sequence[GhostPiece], transport: Transport, law: GhostLaw) -> GhostExchange:
        """pieces: of all parts, in the same order on every process. law: what they are."""
        moves: list[Move] = []
        arrivals: list[GhostArrival] = []
        sent: list[tuple[int, GhostEnd]] = []
        received: list[GhostArrival] = []
        for p in pieces:
            owner, part = p.ranks
            match p.source, p.target:
                case GhostEnd() as source, GhostEnd() as target:
                    came = target.room(array_module(target.device))
                    moves.append(Move(source.device, source.take, target.device, came))
                    arrivals.append(GhostArrival(came, target))
                case GhostEnd() as source, None:
                    sent.append((part, source))
                case None, GhostEnd() as target:
                    came = target.room(array_module(target.device))
                    received.append(GhostArrival(came, target, owner))
                case _:
                    """Of two other processes."""
        all_moves = Moves(tuple(moves))
        ends = tuple(arrivals), tuple(sent), tuple(received)
        return GhostExchange(all_moves, *ends, transport, law)

    @property
    def nbytes(self) -> int:
        """What goes to parts of this process."""
        return self.moves.nbytes + sum(int(a.came.nbytes) for a in self.received)

    def __call__(self) -> None:
        self.moves()
        for a in self.arrivals:
            a.to.put(a.came)
        if not self.sent and not self.received:
            return
        sent = [(rank, end.taken()) for rank, end in self.sent]
        self.transport.exchange(sent, [(a.rank, a.came) for a in self.received])
        for a in self.received:
            a.to.put(a.came)


@dataclass(frozen=True, slots=True)
class BoxCut:
    """How a box is cut: the slabs of all parts of a mesh. plane: the sites of a layer."""

    mesh: Mesh
    slabs: tuple[Slab, ...]
    plane: int

    def layers(self) -> Iterator[tuple[GhostLayer, int | None, int | None, tuple[int, int]]]:
        """All ghosts, with the places of owner and part among the parts of this process, and the
        ranks of both.
        """
        own, ranks = self.mesh.own, self.mesh.ranks
        for x in ghost_layers(self.slabs):
            owner = x.owner - own.start if x.owner in own else None
            part = x.part - own.start if x.part in own else None
            yield x, owner, part, (ranks[x.owner], ranks[x.part])


def record_exchange(
    name: str,
    arrays: Sequence[RecordArray],
    of: BoxCut,
    storage: Scalar,
    leaves_of: Callable[[int], Sequence[int]],
) -> GhostExchange:
    """Brings ghost layers of records, an array for each part of this process. leaves_of: the
    numbers of the leaves of a layer that are wanted, by its steps from the layers that a part owns.
    name: of the exchange.

    What a part has of another one comes in one piece.
    """
    pairs: dict[tuple[int, int], tuple[int | None, int | None, tuple[int, int]]] = {}
    numbers: dict[tuple[int, int], tuple[list[Whole], list[Whole]]] = {}
    for layer, owner, part, ranks in of.layers():
        if leaves := leaves_of(layer.steps):
            pair = layer.owner, layer.part
            pairs[pair] = owner, part, ranks
            sources, targets = numbers.setdefault(pair, ([], []))
            for there, lies, at in ((owner, sources, layer.source), (part, targets, layer.layer)):
                if there is not None:
                    first = at * of.plane
                    lies.append(_numbers(arrays[there], leaves, first, of.plane, storage))

    pieces: list[GhostPiece] = []
    for pair, (owner, part, ranks) in pairs.items():
        places = [np.concatenate(lies) if lies else None for lies in numbers[pair]]
        here = [
            (arrays[there], lies)
            for there, lies in zip((owner, part), places, strict=True)
            if there is not None and lies is not None
        ]
        ends = iter(_ends(here, storage))
        source, target = (None if lies is None else next(ends) for lies in places)
        pieces.append(GhostPiece(source, target, ranks))
    law = law_of(name, of, lambda steps: len(leaves_of(steps)) * storage.size)
    return GhostExchange.of(pieces, of.mesh.transport, law)


def array_exchange(name: str, arrays: Sequence[Any], of: BoxCut) -> GhostExchange:
    """Brings ghost layers of arrays with one row a site, one array for each part of this process.
    name: of what they hold.
    """
    row = int(arrays[0].itemsize * np.prod(arrays[0].shape[1:], dtype=int))
    law = law_of(f"ghosts of {name}", of, lambda _: row)

    def end(there: int | None, layer: int) -> GhostEnd | None:
        if there is None:
            return None
        rows = slice(layer * of.plane, (layer + 1) * of.plane)
        return GhostEnd(of.mesh.devices[there], arrays[there], rows)

    pieces = [
        GhostPiece(end(owner, x.source), end(part, x.layer), ranks)
        for x, owner, part, ranks in of.layers()
    ]
    return GhostExchange.of(pieces, of.mesh.transport, law)


LONGEST = 512  # bytes of a row; longer ones would save nothing more


def _ends(ends: Sequence[tuple[RecordArray, Whole]], storage: Scalar) -> list[GhostEnd]:
    """Records and places in their memory, counted in scalars, as the longest rows of words that lie
    whole in all of them: fewer places are read.
    """
    memory = [places_of(array).data for array, _ in ends]
    row = LONGEST
    while row > storage.size and not all(
        _lie_whole(row // storage.size, storage, data, lies)
        for data, (_, lies) in zip(memory, ends, strict=True)
    ):
        row //= 2
    return [
        GhostEnd(
            array.device,
            _in_rows(data, row, storage),
            bring(lies[:: row // storage.size] // (row // storage.size), array.device),
        )
        for (array, lies), data in zip(ends, memory, strict=True)
    ]


def _lie_whole(scalars: int, storage: Scalar, data: Any, lies: Whole) -> bool:
    """Whether places of scalars in some memory are those of whole rows of so many."""
    if len(lies) % scalars or address(data) % min(scalars * storage.size, 8):
        return False
    rows = lies.reshape(-1, scalars)
    first, end = rows[:, :1], len(data) // (scalars * storage.size) * scalars
    together = bool((rows == first + np.arange(scalars)).all())
    return together and not (first % scalars).any() and int(lies.max(initial=-1)) < end


def _in_rows(data: Any, row: int, storage: Scalar) -> Any:
    """Memory as rows of so many bytes. Their words have bits, and no number."""
    word = storage.dtype if row == storage.size else np.dtype(f"u{min(row, 8)}")
    words = data[: len(data) // row * row].view(word)
    return words.reshape(-1, row // 8) if row > 8 else words


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

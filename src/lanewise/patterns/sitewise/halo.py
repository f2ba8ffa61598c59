"""What parts of a mesh bring from each other: ghost layers of populations, fields and values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from lanewise.language.lattices.base import Lattice
from lanewise.language.types import Scalar
from lanewise.launch.sent import Sent
from lanewise.patterns.sitewise.blocks import Block, Cut, Place, Span, Whole, sites_of
from lanewise.patterns.sitewise.streaming import Phase
from lanewise.primitives.sent_rows import sender
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.runtime.exchange import Move, Moves, PeerWrite, Puts
from lanewise.runtime.memory import address, array_module, bring, on, reaches
from lanewise.runtime.mesh import Mesh
from lanewise.runtime.transport import Transport

Steps = tuple[int, ...]
"""How far some ghosts are from the layers that their part owns, along every axis, the slowest one
first: negative below, 0 within these layers.
"""


@dataclass(frozen=True, slots=True)
class GhostBox:
    """Ghosts of a part that lie alike: in one layer of ghosts, or where several of these meet.

    place: among the sites of the part; source: among those of their owner, each with its ghosts.
    """

    part: int
    place: Place
    owner: int
    source: Place
    steps: Steps

    @property
    def count(self) -> int:
        return prod(p.stop - p.start for p in self.place)


def ghost_boxes(blocks: Sequence[Block]) -> tuple[GhostBox, ...]:
    """All of a box that was cut so."""
    parts = {tuple(s.owned.start for s in b.spans): n for n, b in enumerate(blocks)}
    firsts = [sorted({first[axis] for first in parts}) for axis in range(len(blocks[0].spans))]
    found: list[GhostBox] = []
    for part, block in enumerate(blocks):
        axes = zip(block.spans, firsts, strict=True)
        for stretches in product(*(_stretches(span, starts) for span, starts in axes)):
            steps = tuple(s.steps for s in stretches)
            if not any(steps):
                continue
            owner = parts[tuple(s.owner for s in stretches)]
            spans = zip(blocks[owner].spans, stretches, strict=True)
            source = tuple(s.source(span) for span, s in spans)
            place = tuple(slice(s.first, s.first + s.count) for s in stretches)
            found.append(GhostBox(part, place, owner, source, steps))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Layers of a part along an axis: those that it owns, or a layer of ghosts.

    number: of the first one in the box. owner: the first layer of the part that owns them.
    """

    first: int
    count: int
    number: int
    owner: int
    steps: int

    def source(self, owner: Span) -> slice:
        """Which layers of their owner they are."""
        first = self.number - self.owner + owner.below
        return slice(first, first + self.count)


def _stretches(span: Span, starts: Sequence[int]) -> list[_Stretch]:
    numbers, own = span.numbers, len(span.owned)
    found: list[_Stretch] = []
    for layer in (*range(span.below + 1), *range(span.below + own, span.count)):
        number = int(numbers[layer])
        last = span.below + own - 1
        steps = layer - span.below if layer <= span.below else layer - last
        owner = starts[bisect_right(starts, number) - 1]
        found.append(_Stretch(layer, 1 if steps else own, number, owner, steps))
    return found


def leaves_needed(lattice: Lattice, phase: Phase, steps: Steps) -> tuple[int, ...]:
    """The populations of ghosts that a phase needs: those that arrive at what it updates.

    A step that puts along links also updates the first ghosts from which a link leads to sites that
    the part owns. It gets all of their populations.
    """
    every = range(lattice.size)
    if phase.put_links and _are_updated(lattice, steps):
        return tuple(every)
    if not phase.load_links:
        return ()
    arrive = (
        tuple(n and n + e for n, e in zip(steps, reversed(v), strict=True))
        for v in lattice.velocities
    )
    wanted = (_are_updated(lattice, to) if phase.put_links else not any(to) for to in arrive)
    needed = (q for q, is_wanted in zip(every, wanted, strict=True) if is_wanted)
    return tuple(lattice.opposite[q] if phase.load_opposite else q for q in needed)


def _are_updated(lattice: Lattice, steps: Steps) -> bool:
    """Whether a part owns sites or some link leads from them to sites that it owns. Along an axis
    along which they lie within its layers all links do.
    """
    return any(
        all(not n or n + e == 0 for n, e in zip(steps, reversed(v), strict=True))
        for v in lattice.velocities
    )


@dataclass(frozen=True, slots=True)
class GhostLaw:
    """What is copied of ghosts, by how a box is cut. depth: ghost layers on a side. nbytes: of a
    site, by its steps.
    """

    name: str
    depth: int
    periodic: tuple[bool, ...]
    nbytes: Mapping[Steps, int]

    def __call__(self, cut: Cut) -> Sent:
        found: dict[tuple[int, int], int] = {}
        for x in ghost_boxes(cut.blocks(self.depth, self.periodic)):
            if each := self.nbytes[x.steps]:
                pair = x.owner, x.part
                found[pair] = found.get(pair, 0) + each * x.count
        return Sent(self.name, found)


def law_by_steps(
    name: str, depth: int, periodic: tuple[bool, ...], nbytes: Callable[[Steps], int]
) -> GhostLaw:
    """nbytes: of a site, by its steps."""
    every = product(range(-depth, depth + 1), repeat=len(periodic))
    return GhostLaw(name, depth, periodic, {n: nbytes(n) for n in every if any(n)})


def law_of(name: str, of: BoxCut, nbytes: Callable[[Steps], int]) -> GhostLaw:
    """Of a box that was cut so."""
    depth = max((max(s.below, s.above) for b in of.blocks for s in b.spans), default=0)
    return law_by_steps(name, depth, of.periodic, nbytes)


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

    def reaches(self, target: GhostEnd) -> bool:
        """Whether its device can write to the places of another one."""
        listed = not isinstance(self.elements, slice) and not isinstance(target.elements, slice)
        return listed and reaches(self.device, target.array)

    def written_to(self, target: GhostEnd) -> PeerWrite:
        """What copies them to those of another one, which it reaches."""
        ends = self.array, self.elements, target.array, target.elements
        nbytes = len(self.elements) * self.array[:1].nbytes
        return PeerWrite(self.device, target.device, sender(self.device, *ends), nbytes)

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
    """Brings ghosts. Owners write them where they belong, if they reach that memory. Else columns
    go to memory of the parts that need them, which put them there; nothing else reads or writes it.

    sent: what others get of this process, with their ranks.
    """

    puts: Puts
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
        writes: list[PeerWrite] = []
        arrivals: list[GhostArrival] = []
        sent: list[tuple[int, GhostEnd]] = []
        received: list[GhostArrival] = []
        for p in pieces:
            owner, part = p.ranks
            match p.source, p.target:
                case GhostEnd() as source, GhostEnd() as target if source.reaches(target):
                    writes.append(source.written_to(target))
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
        direct, by_columns = Puts(tuple(writes)), Moves(tuple(moves))
        ends = tuple(arrivals), tuple(sent), tuple(received)
        return GhostExchange(direct, by_columns, *ends, transport, law)

    @property
    def nbytes(self) -> int:
        """What goes to parts of this process."""
        own = self.puts.nbytes + self.moves.nbytes
        return own + sum(int(a.came.nbytes) for a in self.received)

    def __call__(self) -> None:
        self.puts()
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
    """How a box is cut on a mesh. blocks: of all parts. periodic: along every axis."""

    mesh: Mesh
    cut: Cut
    periodic: tuple[bool, ...]
    blocks: tuple[Block, ...]

    @property
    def in_slabs(self) -> bool:
        """Whether the sites of the parts follow each other."""
        return self.cut.in_slabs

    @property
    def own(self) -> tuple[Block, ...]:
        """The parts of this process."""
        return self.blocks[self.mesh.own.start : self.mesh.own.stop]

    def pairs(self) -> Iterator[GhostPair]:
        """All parts that have ghosts of another one, in one order on every process."""
        found: dict[tuple[int, int], list[GhostBox]] = {}
        for x in ghost_boxes(self.blocks):
            found.setdefault((x.owner, x.part), []).append(x)
        own, ranks = self.mesh.own, self.mesh.ranks
        for (owner, part), boxes in found.items():
            ends = tuple(n - own.start if n in own else None for n in (owner, part))
            yield GhostPair((ends[0], ends[1]), (ranks[owner], ranks[part]), tuple(boxes))


@dataclass(frozen=True, slots=True)
class GhostPair:
    """Ghosts that a part has of another one. ends: the numbers of the owner and of that part among
    the parts of this process; None in another one. ranks: of both.
    """

    ends: tuple[int | None, int | None]
    ranks: tuple[int, int]
    boxes: tuple[GhostBox, ...]


def record_exchange(
    name: str,
    arrays: Sequence[RecordArray],
    of: BoxCut,
    storage: Scalar,
    leaves_of: Callable[[Steps], Sequence[int]],
) -> GhostExchange:
    """Brings ghosts of records, an array for each part of this process. leaves_of: the numbers of
    the leaves of ghosts that are wanted, by their steps. name: of the exchange.

    What a part has of another one comes in one piece.
    """
    shapes, pieces = [b.shape for b in of.own], list[GhostPiece]()
    for pair in of.pairs():
        boxes = [(x, leaves) for x in pair.boxes if (leaves := leaves_of(x.steps))]
        if not boxes:
            continue
        here: list[tuple[RecordArray, Whole]] = []
        for there, places in zip(
            pair.ends, ([x.source for x, _ in boxes], [x.place for x, _ in boxes]), strict=True
        ):
            if there is None:
                continue
            lies = [
                _numbers(arrays[there], leaves, _numbered(shapes[there], place), storage)
                for (_, leaves), place in zip(boxes, places, strict=True)
            ]
            here.append((arrays[there], np.concatenate(lies)))
        ends = iter(_ends(here, storage))
        source, target = (None if there is None else next(ends) for there in pair.ends)
        pieces.append(GhostPiece(source, target, pair.ranks))
    law = law_of(name, of, lambda steps: len(leaves_of(steps)) * storage.size)
    return GhostExchange.of(pieces, of.mesh.transport, law)


def array_exchange(name: str, arrays: Sequence[Any], of: BoxCut) -> GhostExchange:
    """Brings ghosts of arrays with one row a site, one array for each part of this process. name:
    of what they hold.

    Layers of a slab come one by one, without a list of their sites; of a block all that it has of
    another one comes in one piece.
    """
    row = int(arrays[0].itemsize * np.prod(arrays[0].shape[1:], dtype=int))
    law = law_of(f"ghosts of {name}", of, lambda _: row)
    own = of.own

    def end(there: int | None, places: Sequence[Place]) -> GhostEnd | None:
        if there is None:
            return None
        shape, device = own[there].shape, of.mesh.devices[there]
        sites: Any = [sites_of(shape, place) for place in places]
        if len(sites) == 1 and isinstance(sites[0], slice):
            return GhostEnd(device, arrays[there], sites[0])
        numbered = np.concatenate([_numbered(shape, place) for place in places])
        return GhostEnd(device, arrays[there], bring(numbered, device))

    pieces: list[GhostPiece] = []
    for pair in of.pairs():
        together = [[x] for x in pair.boxes] if of.in_slabs else [list(pair.boxes)]
        for some in together:
            source = end(pair.ends[0], [x.source for x in some])
            target = end(pair.ends[1], [x.place for x in some])
            pieces.append(GhostPiece(source, target, pair.ranks))
    return GhostExchange.of(pieces, of.mesh.transport, law)


def _numbered(shape: tuple[int, ...], place: Place) -> Whole:
    """The sites of a box within a box of this shape, one by one."""
    sites = sites_of(shape, place)
    return np.arange(sites.start, sites.stop) if isinstance(sites, slice) else sites


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


def _numbers(array: RecordArray, leaves: Sequence[int], sites: Whole, storage: Scalar) -> Whole:
    """Where these leaves of some records lie, counted in scalars."""
    arrangement = array.layout.arrange(array.record.leaves)
    starts = arrangement.starts(len(array))
    found: list[Whole] = []
    for leaf in leaves:
        slot = arrangement.slot(array.record.leaves[leaf].name)
        buffer = arrangement.buffers[slot.buffer]
        block, lane = np.divmod(sites, buffer.width)
        start = starts[slot.buffer] + slot.offset
        found.append((start + block * buffer.block + lane * slot.stride) // storage.size)
    return np.concatenate(found)

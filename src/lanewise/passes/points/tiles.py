"""Where the elements of a box lie in shared memory: the order of dimensions, and the length of rows.

The order of dimensions is that in which a thread's own copies are neighbours, so that they are one load of four; rows are as long as makes
the fewest conflicts of banks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from lanewise.analysis.index_sums import IndexSum
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import value_array
from lanewise.passes.points.boxes import WARP, WIDEST, WORD, Box, lanes_of, value, wavefronts
from lanewise.passes.points.shape import Shape, first_of
from lanewise.types import Scalar


@dataclass(frozen=True, slots=True)
class Tile:
    """A box with its place in shared memory. across: elements that a thread brings at once."""

    box: Box
    array: ir.ArrayArgument
    kind: Scalar
    across: int
    outer: tuple[int, ...]  # the dimensions but the inner one, in the order of the shape in shared memory

    def place(self, indices: list[ir.Expression], half: ir.Expression | None) -> tuple[ir.Expression, ...]:
        """The indices in shared memory of a place in the box."""
        front = () if half is None else (half,)
        return (*front, *(indices[d] for d in self.outer), indices[self.box.inner])


@dataclass(frozen=True, slots=True)
class Walk:
    """How the threads of a block go over a box, in the order of memory: `lanes` neighbours along its rows, so many rows at once.

    groups: what is brought at once in a row; rows: of the box, all its dimensions but the last together.
    """

    groups: int
    rows: int
    lanes: int
    down: int

    @staticmethod
    def over(box: Box, across: int, threads: int) -> Walk:
        """The one with the fewest loads of a thread; with neighbours of a power of two, or of a whole row: nobody divides then."""
        groups, rows = box.extents[-1] // across, prod(box.extents[:-1])
        powers = [1 << n for n in range(threads.bit_length()) if threads % (1 << n) == 0]
        choices = [n for n in {*powers, threads, groups} if threads % n == 0]
        lanes = min(choices, key=lambda n: (-(-groups // n) * -(-rows // (threads // n)), groups % n != 0, -n))
        return Walk(groups, rows, lanes, threads // lanes)

    @property
    def columns(self) -> int:
        """Loads of a thread along a row."""
        return -(-self.groups // self.lanes)

    @property
    def turns(self) -> int:
        """Rows of a thread."""
        return -(-self.rows // self.down)


@dataclass(frozen=True, slots=True)
class Ground:
    """What tiles lie on. rounds: of a tile of a loop; starts: of the variables at which tiles begin, where a literal says so."""

    kernel: ir.Kernel
    shape: Shape
    indices: tuple[str, ...]
    rounds: int
    starts: Mapping[str, int]

    @property
    def kind(self) -> Scalar:
        """The type of indices."""
        return self.kernel.counts[0].type

    def tile(self, box: Box, number: int, *, doubled: bool) -> Tile:
        """The place of a box, the array's `number`-th; `doubled` for one tile that is computed and one that is brought."""
        name = own(f"tile.{box.array}" + (f".{number}" if number > 1 else ""))
        source = self.kernel.array(box.array)
        kind, last = source.leaves[0].type, len(box.extents) - 1
        most = min(WIDEST // kind.size, source.multiple) if kind.size >= WORD else 1
        across = next(n for n in (4, 2, 1) if n <= most and self._is_multiple(box.origin(last), n))
        extents = list(box.extents)
        extents[last] = -(-extents[last] // across) * across
        outer = tuple(d for d in range(len(extents)) if d != box.inner)
        box = replace(box, extents=tuple(extents))
        shape = (*((2,) if doubled else ()), *(extents[d] for d in outer), self._pitch(box, outer, across))
        array = replace(value_array(name, kind, written=True), space="shared", shape=shape, length=prod(shape))
        return Tile(box, array, kind, across, outer)

    def _is_multiple(self, origin: IndexSum, n: int) -> bool:
        return origin.constant % n == 0 and all(c * self._factor(e) % n == 0 for e, c in origin.terms.items())

    def _factor(self, e: ir.Expression) -> int:
        """A number that a variable is a multiple of."""
        if isinstance(e, ir.Local):
            for d, i in enumerate(self.indices):
                if e.name == first_of(i):
                    return self.shape.side(d)
            if (start := self.starts.get(e.name)) is not None and start % self.rounds == 0:
                return self.rounds
        return 1

    def _pitch(self, box: Box, outer: tuple[int, ...], across: int) -> int:
        """The length of rows in shared memory: the one with the fewest conflicts of banks."""
        length, words = box.extents[box.inner], self.kernel.array(box.array).leaves[0].type.size // WORD
        wide = 4 if words == 1 and len({s.indices[box.inner].constant for s in box.sites}) >= 4 else 1
        if any(box.sums[box.inner].coefficient(n) for n in box.rounds) and words == 1:
            wide = 4
        if not outer or not words:
            return -(-length // wide) * wide
        lanes = lanes_of(self.shape, self.indices)
        places = {d: box.place(box.sites[0], d) for d in range(len(box.extents))}
        lanes_at = {d: [value(place, v) for v in lanes] for d, place in places.items()}
        walk, last = Walk.over(box, across, self.shape.total), len(box.extents) - 1
        best = (1 << 30, 0)
        for pad in range(0, 33):
            pitch = length + pad
            if pitch % wide:
                continue
            strides: dict[int, int] = {box.inner: 1}
            step = pitch
            for d in reversed(outer):
                strides[d] = step
                step *= box.extents[d]
            read = [sum(lanes_at[d][n] * strides[d] for d in strides) * words for n in range(len(lanes))]
            cost = (
                wavefronts([r // wide * wide for r in read], wide)
                * len(box.sites)
                * max(1, prod(box.rounds.values()))
                // wide
            )
            stored: list[int] = []
            for lane in range(WARP):
                places, rest = {}, lane // walk.lanes
                places[last] = lane % walk.lanes * across
                for d in reversed(range(last)):
                    places[d], rest = rest % box.extents[d], rest // box.extents[d]
                stored.append(sum(places[d] * strides[d] for d in strides) * words)
            cost += wavefronts(stored, 1) * -(-box.elements // self.shape.total)
            best = min(best, (cost, pitch))
        return best[1]

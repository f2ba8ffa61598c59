"""Where the elements of a box lie in shared memory: the order of dimensions, the length of rows,
and whether they are swizzled.

The order of dimensions is that in which a thread's own copies are neighbours, so that they are one
load of four; rows are as long as makes the fewest conflicts of banks. Threads that turn a box round
store down its columns, and no length of rows that keeps loads of four whole spreads a column over
more than two groups of banks. A swizzle does: groups of four change places within a row, in another
way every four rows, `a[row, i] at i ^ 4 (row / 4 mod 8)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from lanewise.analysis.index_sums import IndexSum
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import shared_values
from lanewise.ir.verify import RANK
from lanewise.language.target import WARP
from lanewise.language.types import Scalar
from lanewise.passes.points.boxes import WIDEST, WORD, ReadBox, lanes_of, value, wavefronts
from lanewise.passes.points.shape import Shape, first_of

GROUP, PHASES = 4, 8  # elements that a swizzle keeps together; groups that are all banks


@dataclass(frozen=True, slots=True)
class Tile:
    """A box with its place in shared memory. across: elements that a thread brings at once.

    folded: where tiles have so many dimensions that a ring of them has none: the extent
    of the first, in which they follow each other.
    """

    box: ReadBox
    array: ir.ArrayArgument
    kind: Scalar
    across: int
    # the dimensions but the inner one, in the order of the shape in shared memory
    outer: tuple[int, ...]
    swizzled: bool = False
    folded: int = 0

    def place(
        self, indices: list[ir.Expression], half: ir.Expression | None
    ) -> tuple[ir.Expression, ...]:
        """The indices in shared memory of a place in the box."""
        if half is not None and self.folded:
            first = self.outer[0]
            turn = build.index_of(half, indices[first].type)
            indices = [*indices]
            indices[first] = build.add(build.multiply(turn, self.folded), indices[first])
            half = None
        front = () if half is None else (half,)
        last = indices[self.box.inner]
        if self.swizzled:
            moved = build.multiply(_phase(build.divide(indices[self.outer[-1]], GROUP)), GROUP)
            last = _exclusive_or(last, moved)
        return (*front, *(indices[d] for d in self.outer), last)

    def read(
        self, sums: list[IndexSum], kind: Scalar, half: ir.Expression | None
    ) -> tuple[ir.Expression, ...]:
        """The indices in shared memory of what is read there; neighbours that begin with a group
        differ by constants.
        """
        places = [a.expression(kind) for a in sums]
        if not self.swizzled:
            return self.place(places, half)
        column, row = sums[self.box.inner], sums[self.outer[-1]]
        group, rows = _quotient(column), _quotient(row)
        if group is None:
            return self.place(places, half)
        phase = _phase(
            build.divide(places[self.outer[-1]], GROUP) if rows is None else rows.expression(kind)
        )
        moved = build.multiply(_exclusive_or(group.expression(kind), phase), GROUP)
        last = build.add(moved, column.constant % GROUP)
        return (*self.place(places, half)[:-1], last)


@dataclass(frozen=True, slots=True)
class BoxWalk:
    """How the threads of a block go over a box, in the order of memory: `lanes` neighbours along
    its rows, so many rows at once.

    groups: what is brought at once in a row; rows: of the box, all its dimensions but the last
    together.
    """

    groups: int
    rows: int
    lanes: int
    down: int

    @staticmethod
    def over(box: ReadBox, across: int, threads: int) -> BoxWalk:
        """The one with the fewest loads of a thread; with neighbours of a power of two, or of a
        whole row: nothing divides then.
        """
        groups, rows = box.extents[-1] // across, prod(box.extents[:-1])
        powers = [1 << n for n in range(threads.bit_length()) if threads % (1 << n) == 0]
        choices = [n for n in {*powers, threads, groups} if threads % n == 0]
        lanes = min(
            choices,
            key=lambda n: (-(-groups // n) * -(-rows // (threads // n)), groups % n != 0, -n),
        )
        return BoxWalk(groups, rows, lanes, threads // lanes)

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
    """What tiles lie on. rounds: of a tile of a loop; starts: of the variables at which tiles
    begin, where a literal says so.
    """

    kernel: ir.Kernel
    shape: Shape
    indices: tuple[str, ...]
    rounds: int
    starts: Mapping[str, int]

    @property
    def kind(self) -> Scalar:
        """The type of indices."""
        return self.kernel.counts[0].type

    def tile(self, box: ReadBox, number: int, *, stages: int = 1, copied: bool = False) -> Tile:
        """The place of a box, the array's `number`-th: `stages` for a tile that is computed and
        those that are on their way.

        `copied`: asynchronous copies bring it, which put neighbours side by side, or single
        elements anywhere.
        """
        name = own(f"tile.{box.array}" + (f".{number}" if number > 1 else ""))
        source = self.kernel.array(box.array)
        kind, last = source.leaves[0].type, len(box.extents) - 1
        most = min(WIDEST // kind.size, source.multiple) if kind.size >= WORD else 1
        across = next(n for n in (4, 2, 1) if n <= most and self._is_multiple(box.origin(last), n))
        across = 1 if copied and box.inner != last else across
        extents = list(box.extents)
        extents[last] = -(-extents[last] // across) * across
        outer = tuple(d for d in range(len(extents)) if d != box.inner)
        box = replace(box, extents=tuple(extents))
        pitch, swizzled = self._rows(
            box, outer, across, turnable=stages == 1, whole=across if copied else 1
        )
        shape = (*((stages,) if stages > 1 else ()), *(extents[d] for d in outer), pitch)
        folded = extents[outer[0]] if copied and len(shape) > RANK else 0
        shape = (stages * folded, *shape[2:]) if folded else shape
        array = shared_values(name, kind, *shape)
        return Tile(box, array, kind, across, outer, swizzled, folded)

    def _is_multiple(self, origin: IndexSum, n: int) -> bool:
        return origin.constant % n == 0 and all(
            c * self._factor(e) % n == 0 for e, c in origin.terms.items()
        )

    def _factor(self, e: ir.Expression) -> int:
        """A number that a variable is a multiple of."""
        if isinstance(e, ir.Local):
            for d, i in enumerate(self.indices):
                if e.name == first_of(i):
                    return self.shape.side(d)
            if (start := self.starts.get(e.name)) is not None and start % self.rounds == 0:
                return self.rounds
        return 1

    def _rows(
        self, box: ReadBox, outer: tuple[int, ...], across: int, *, turnable: bool, whole: int
    ) -> tuple[int, bool]:
        """The length of rows in shared memory, and whether they are swizzled: what has the fewest
        conflicts of banks.

        whole: what the length is a multiple of, since so many elements are copied at once.
        """
        length = box.extents[box.inner]
        words = self.kernel.array(box.array).leaves[0].type.size // WORD
        wide = (
            4 if words == 1 and len({s.indices[box.inner].constant for s in box.sites}) >= 4 else 1
        )
        if any(box.sums[box.inner].coefficient(n) for n in box.rounds) and words == 1:
            wide = 4
        if not outer or not words:
            return -(-length // max(wide, whole)) * max(wide, whole), False
        banks = _Banks(box, outer, across, wide, words, self.shape, self.indices)
        choices = [
            (banks.cost(length + pad), length + pad)
            for pad in range(33)
            if (length + pad) % max(wide, whole) == 0
        ]
        cost, pitch = min(choices)
        groups = (
            turnable
            and not box.rounds
            and (wide, words) == (4, 1)
            and length % (GROUP * PHASES) == 0
        )
        return (
            (length, True)
            if groups and banks.cost(length, swizzled=True) < cost
            else (pitch, False)
        )


@dataclass(frozen=True)
class _Banks:
    """How often the banks of shared memory are accessed for a box. wide: elements of a read; words:
    of an element.
    """

    box: ReadBox
    outer: tuple[int, ...]
    across: int
    wide: int
    words: int
    shape: Shape
    indices: tuple[str, ...]

    def cost(self, pitch: int, *, swizzled: bool = False) -> int:
        """Wavefronts of a warp that reads its elements, and of all its turns of storing them."""
        box, wide = self.box, self.wide
        read = [self._word(p, pitch, swizzled=swizzled) for p in self.read]
        rounds = max(1, prod(box.rounds.values()))
        cost = wavefronts([r // wide * wide for r in read], wide) * len(box.sites) * rounds // wide
        stored = [self._word(p, pitch, swizzled=swizzled) for p in self.stored]
        return cost + wavefronts(stored, 1) * -(-box.elements // self.shape.total)

    @cached_property
    def read(self) -> list[dict[int, int]]:
        """The places that a warp reads, by dimension."""
        places = {d: self.box.place(self.box.sites[0], d) for d in range(len(self.box.extents))}
        return [
            {d: value(place, v) for d, place in places.items()}
            for v in lanes_of(self.shape, self.indices)
        ]

    @cached_property
    def stored(self) -> list[dict[int, int]]:
        """The places that a warp stores to first."""
        extents = self.box.extents
        walk, last = BoxWalk.over(self.box, self.across, self.shape.total), len(extents) - 1
        stored: list[dict[int, int]] = []
        for lane in range(WARP):
            places, rest = {last: lane % walk.lanes * self.across}, lane // walk.lanes
            for d in reversed(range(last)):
                places[d], rest = rest % extents[d], rest // extents[d]
            stored.append(places)
        return stored

    def _word(self, places: Mapping[int, int], pitch: int, *, swizzled: bool) -> int:
        """Where an element lies."""
        word = places[self.box.inner]
        if swizzled:
            word ^= places[self.outer[-1]] // GROUP % PHASES * GROUP
        step = pitch
        for d in reversed(self.outer):
            word += places[d] * step
            step *= self.box.extents[d]
        return word * self.words


def _quotient(a: IndexSum) -> IndexSum | None:
    """A sum in groups, without what its constant is beyond them; None where variables do not count
    in groups.
    """
    if any(c % GROUP for c in a.terms.values()):
        return None
    return IndexSum(a.constant // GROUP, {e: c // GROUP for e, c in a.terms.items()})


def _phase(row: ir.Expression) -> ir.Expression:
    """By what groups change places in the rows of a group."""
    return ir.Binary("&", row, ir.Literal(PHASES - 1, row.type), row.type)


def _exclusive_or(a: ir.Expression, b: ir.Expression) -> ir.Expression:
    return ir.Binary("^", a, b, a.type)

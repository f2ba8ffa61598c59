"""How the threads of a block bring tiles to shared memory: which elements, in which order, under
which tests.

    load a[$y.first + $thread // 8, $k.start + $thread % 8]: $next.0.0.0; ...; store $tile.a[$thread
    % 8, $thread // 8] = $next.0.0.0; ...
Neighbouring threads bring neighbours in memory, whichever threads read them. Several loads come
before the first store, so that they are on their way together. What lies outside of the array is
not brought: no point that exists reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from typing import Literal

from lanewise.analysis.index_sums import IndexSum
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import Scalar
from lanewise.passes.points.shape import THREAD, first_of
from lanewise.passes.points.tiles import BoxWalk, Ground, Tile

BRING = own("bring")  # the number of a row of a thread
# loads before the first store; loads that are written out; rows of a loop that are
TOGETHER, MANY, TURNS = 8, 32, 4
Half = Literal["load", "store"]
HALVES: tuple[Half, Half] = ("load", "store")
Tests = tuple[ir.Expression, ...]


@dataclass(frozen=True, slots=True)
class _Move:
    """A load of each thread: in which of its rows, and which one along it; `register` tells its
    variables from those of others.
    """

    row: int | ir.Expression
    column: int
    register: int


@dataclass(frozen=True, slots=True)
class Bringing:
    """Brings tiles. number: of a tile among those that are brought together. guarded: whether
    elements may lie outside of the array.
    """

    ground: Ground
    kinds: dict[int, Scalar] = field(default_factory=dict[int, Scalar], compare=False)
    """Of the tiles of each number.

    Several loops have tiles, and a variable has one type in a kernel.
    """

    def stage(
        self, p: Tile, number: int, *, guarded: bool, half: ir.Expression | None = None
    ) -> ir.Block:
        """Bring a tile, all at once where it is small."""
        walk = self._walk(p)
        if walk.columns * walk.turns > (TOGETHER if guarded else MANY):
            return self._in_turns(p, number, guarded=guarded, half=half)
        moves = sorted(self._moves(p), key=lambda m: self._ends(walk, m))
        return self._all(p, number, moves, guarded=guarded, half=half)

    def part(
        self, p: Tile, number: int, which: Half, *, guarded: bool, half: ir.Expression | None = None
    ) -> ir.Block:
        """One half of the way: into registers, or from there into shared memory."""
        return self._part(p, number, self._moves(p), which, guarded=guarded, half=half)

    def copies(self, p: Tile, *, guarded: bool, half: ir.Expression) -> ir.Block:
        """Begin to copy a tile past the registers. Zeros stand for what is outside of the array:
        nothing decides who copies.
        """
        done: list[ir.Statement] = []
        for tests, members in groupby(self._moves(p), lambda m: self._tests(p, m, guarded=False)):
            done += _under(
                tests, tuple(self._copy(p, m, guarded=guarded, half=half) for m in members)
            )
        return tuple(done)

    def _copy(self, p: Tile, m: _Move, *, guarded: bool, half: ir.Expression) -> ir.Statement:
        places = self._places(p, m)
        there: ir.Expression | None = None
        for test in self._inside(p, m) if guarded else ():
            there = test if there is None else ir.Logical("and", there, test)
        to = p.place(places, half)
        return ir.CopyElement(
            p.array.name, to, p.box.array, self._indices(p, places), p.across, there
        )

    def registers(self, p: Tile, number: int) -> list[str]:
        """The variables that a tile passes through between the halves of its way."""
        return [n for m in self._moves(p) for n in self._names(p, number, m)]

    def _names(self, p: Tile, number: int, m: _Move) -> tuple[str, ...]:
        which = number if self.kinds.setdefault(number, p.kind) == p.kind else f"{p.kind}.{number}"
        return tuple(own(f"next.{which}.{m.register}.{n}") for n in range(p.across))

    def _walk(self, p: Tile) -> BoxWalk:
        return BoxWalk.over(p.box, p.across, self.ground.shape.total)

    def _moves(self, p: Tile) -> list[_Move]:
        walk = self._walk(p)
        places = product(range(walk.turns), range(walk.columns))
        return [_Move(row, column, n) for n, (row, column) in enumerate(places)]

    def _in_turns(
        self, p: Tile, number: int, *, guarded: bool, half: ir.Expression | None
    ) -> ir.Block:
        """Many rows of each thread as a loop: written out they take registers for as many
        addresses.
        """
        walk, kind = self._walk(p), self.ground.kind
        row = ir.Local(BRING, kind)
        moves = [_Move(row, column, column) for column in range(walk.columns)]
        body = self._all(p, number, moves, guarded=guarded, half=half)
        zero, one = ir.Literal(0, kind), ir.Literal(1, kind)
        return (ir.For(BRING, zero, ir.Literal(walk.turns, kind), one, body, unroll=TURNS),)

    def _all(
        self, p: Tile, number: int, moves: list[_Move], *, guarded: bool, half: ir.Expression | None
    ) -> ir.Block:
        """Both halves of moves: one by one where each has its own tests."""
        if guarded:
            return tuple(
                s
                for m in moves
                for s in _under(self._tests(p, m, guarded=True), self._both(p, number, m, half))
            )
        done: list[ir.Statement] = []
        for first in range(0, len(moves), TOGETHER):
            for which in HALVES:
                done += self._part(
                    p, number, moves[first : first + TOGETHER], which, guarded=False, half=half
                )
        return tuple(done)

    def _both(self, p: Tile, number: int, m: _Move, half: ir.Expression | None) -> ir.Block:
        return tuple(s for which in HALVES for s in self._move(p, number, m, which, half))

    def _part(
        self,
        p: Tile,
        number: int,
        moves: Sequence[_Move],
        which: Half,
        *,
        guarded: bool,
        half: ir.Expression | None,
    ) -> ir.Block:
        """Moves under the same tests stand together under them."""
        done: list[ir.Statement] = []
        for tests, members in groupby(moves, lambda m: self._tests(p, m, guarded=guarded)):
            done += _under(
                tests, tuple(s for m in members for s in self._move(p, number, m, which, half))
            )
        return tuple(done)

    def _tests(self, p: Tile, m: _Move, *, guarded: bool) -> Tests:
        """Whether there is something to bring."""
        walk, shape, kind = self._walk(p), self.ground.shape, self.ground.kind
        thread = ir.Local(THREAD, kind)
        tests: list[ir.Expression] = []
        row, column = self._ends(walk, m)
        if row:
            tests.append(build.less(self._row(walk, m), walk.rows))
        if column:
            left = walk.groups - m.column * walk.lanes
            tests.append(
                build.less(
                    build.remainder(thread, walk.lanes) if walk.lanes < shape.total else thread,
                    left,
                )
            )
        return (*tests, *(self._inside(p, m) if guarded else ()))

    def _ends(self, walk: BoxWalk, m: _Move) -> tuple[bool, bool]:
        """Whether some threads are beyond the last row of the box, and beyond the end of its
        rows.
        """
        last = not isinstance(m.row, int) or m.row == walk.turns - 1
        return (
            walk.rows % walk.down != 0 and last,
            walk.groups % walk.lanes != 0 and m.column == walk.columns - 1,
        )

    def _inside(self, p: Tile, m: _Move) -> Tests:
        """Whether what is brought lies in the array."""
        kernel, kind = self.ground.kernel, self.ground.kind
        kinds = {c.name: c.type for c in kernel.counts + kernel.uniforms}
        tests: list[ir.Expression] = []
        for d, place in enumerate(self._places(p, m)):
            origin = p.box.origin(d)
            index = build.add(origin.expression(kind), place)
            if not self._counts_up(origin):
                tests.append(ir.Compare(">=", index, ir.Literal(0, kind)))
            length = kernel.array(p.box.array).shape[d]
            stop = (
                ir.Literal(length, kind)
                if isinstance(length, int)
                else ir.Local(length, kinds[length])
            )
            tests.append(build.less(index, stop))
        return tuple(tests)

    def _counts_up(self, origin: IndexSum) -> bool:
        """Whether a place is surely not negative."""
        own_names = {first_of(i) for i in self.ground.indices}
        return origin.constant >= 0 and all(
            c > 0
            and isinstance(e, ir.Local)
            and (e.name in own_names or self.ground.starts.get(e.name, -1) >= 0)
            for e, c in origin.terms.items()
        )

    def _row(self, walk: BoxWalk, m: _Move) -> ir.Expression:
        thread = ir.Local(THREAD, self.ground.kind)
        return build.add(build.divide(thread, walk.lanes), _times(m.row, walk.down))

    def _places(self, p: Tile, m: _Move) -> list[ir.Expression]:
        """Where in the box this thread brings elements: in the order of memory."""
        extents, walk = p.box.extents, self._walk(p)
        thread, last = ir.Local(THREAD, self.ground.kind), len(extents) - 1
        column = build.multiply(build.remainder(thread, walk.lanes), p.across)
        places: list[ir.Expression] = [thread] * len(extents)
        places[last] = build.add(column, m.column * walk.lanes * p.across)
        rest = self._row(walk, m)
        for d in reversed(range(last)):
            places[d] = rest if d == 0 else build.remainder(rest, extents[d])
            rest = build.divide(rest, extents[d])
        return places

    def _indices(self, p: Tile, places: list[ir.Expression]) -> tuple[ir.Expression, ...]:
        """Where in the array a place in the box is."""
        return tuple(
            build.add(p.box.origin(d).expression(self.ground.kind), place)
            for d, place in enumerate(places)
        )

    def _move(
        self, p: Tile, number: int, m: _Move, which: Half, half: ir.Expression | None
    ) -> ir.Block:
        names, places = self._names(p, number, m), self._places(p, m)
        if which == "load":
            return (
                ir.LoadElement(p.box.array, self._indices(p, places), names[0], more=names[1:]),
            )
        values, last = tuple(ir.Local(n, p.kind) for n in names), len(places) - 1
        if p.box.inner == last and p.array.shape[-1] % p.across == 0:  # pyright: ignore[reportOperatorIssue]
            return (
                ir.StoreElement(p.array.name, p.place(places, half), values[0], more=values[1:]),
            )
        stores: list[ir.Statement] = []
        for n, v in enumerate(values):
            shifted = [*places[:last], build.add(places[last], n)]
            stores.append(ir.StoreElement(p.array.name, p.place(shifted, half), v))
        return tuple(stores)


def _under(tests: Tests, body: ir.Block) -> ir.Block:
    for test in reversed(tests):
        body = (ir.If(test, body),)
    return body


def _times(r: int | ir.Expression, factor: int) -> int | ir.Expression:
    return r * factor if isinstance(r, int) else build.multiply(r, factor)

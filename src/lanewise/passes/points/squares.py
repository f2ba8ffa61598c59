"""Squares in tiles: where rows are another array's columns, squares lie side by side in both, and
what comes next is requested.

    for each square: load 16 rows of a; turn; store 16 rows of c, a line of memory each
->  for the squares of a tile, along the rows that are written:
      prefetch 16 lines of the next tile; load 16 rows of a; turn; store 16 rows of c
A square alone touches a line in each of 32 pages, more than a core follows by itself, and than
memory gives fast. The squares of a tile write pieces of few rows, one shortly after the other. What
the next tile reads is requested meanwhile, row by row in long pieces, as many lines with each
square as it reads itself: memory always has something to read and something to write. Tiles are
longer along the rows that are read, and follow each other that way, some of them, before those
below: a panel writes to few pages. Where one array is written they begin where its lines of memory
do, since a line that two registers write goes to memory twice.

Where rows begin anywhere in a line no square writes whole lines. Then what a tile writes is
gathered in memory of the core's own:
    for the squares of a tile, along the rows that are read: load 16 rows of a; turn; store 16 rows
    of $tile.c for each row of the tile: load $tile.c; store c
    its registers one after the other
Legal where every point writes its element of an array once and nothing reads that array: then it
does not matter when it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd
from typing import Any

from lanewise.analysis.affine import AffineAccess, accesses
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered, own
from lanewise.ir.traverse import flat_map, reads, rewrite, written_in
from lanewise.ir.values import shared_values
from lanewise.language.target import LINE
from lanewise.language.types import Scalar
from lanewise.passes.base import refuse
from lanewise.passes.points import lanes, line_starts, merging
from lanewise.passes.points.shape import BLOCK, THREAD, Shape, first_of, thread_of

LONG, SHORT = 512, 128  # bytes of the sides of a tile whose squares write to memory
# points of the long side of a tile in memory of the core's own: more do not fit its caches
MOST = 1024
FLAT = 8  # times as many points as on its short side
# tiles side by side: the pages that they write are few enough for a core to remember where
# they lie
PANEL = 16
PADDING = 16  # elements between its rows, which else would share few lines of a cache
READ_PHASE = own("read.phase")
NEXT = "next."  # before the names of what belongs to the tile after this one


def legal(kernel: ir.Kernel, shape: Shape, side: int = 0) -> str | None:
    """Why the pass does not apply, or None. side: points of the long side of a tile in memory of
    the core's own, or 0 for none.
    """
    if reason := lanes.legal(kernel, shape):
        return reason
    if not lanes.turned(kernel) or shape.points[-1] != 1 or shape.points[-2] != shape.total:
        return "no rows are another array's columns, which squares of as many rows as lanes turn"
    if not side:
        return None
    if not 0 < side <= MOST or side % shape.total:
        return (
            f"a tile has whole squares of {shape.total} points, and at most {MOST} per side; "
            f"{side} were requested"
        )
    loops, body = merging.nest(kernel)
    names = {x.variable for x in loops}
    written = {a.name for a in kernel.arrays if a.written}
    stores: list[str] = []
    for a in accesses(body, tuple(x.variable for x in loops)):
        if a.array not in written:
            continue
        if not a.is_store:
            return (
                f"{a.array} is read and written, and a tile writes it when all of its points are "
                "computed"
            )
        places = [i.name for i in a.statement.indices if isinstance(i, ir.Local)]
        if a.loops or a.guards or len(a.statement.indices) != 2 or set(places) != names:
            return f"not every point writes its own element of {a.array}, once and in any case"
        stores.append(a.array)
    if len(set(stores)) != len(stores):
        return "a point writes an element twice, and a tile has room for one of both"
    return None


def rows_are_lines(kernel: ir.Kernel, lengths: Mapping[str, Any]) -> bool:
    """Whether rows of what a kernel writes are whole lines of memory, by the lengths of a call."""
    written = [a for a in kernel.arrays if a.written and a.shape]
    rows = (
        (n if isinstance(n := a.shape[-1], int) else int(lengths[n])) * a.leaves[0].type.size
        for a in written
    )
    return all(n % LINE == 0 for n in rows)


def apply(kernel: ir.Kernel, shape: Shape, side: int = 0) -> ir.Kernel:
    """The kernel in blocks of tiles; raises `PlanError` where it does not fit. side: as in
    `legal`.
    """
    if reason := legal(kernel, shape, side):
        raise refuse("SIMD lanes", kernel, reason)
    return _Tiles(kernel, shape, side).kernel()


class _Tiles:
    """`long` is the index along the rows that are read, `short` the other one."""

    def __init__(self, kernel: ir.Kernel, shape: Shape, side: int) -> None:
        self.reference, self.shape, self.count = kernel, shape, shape.total
        self.loops, self.body = merging.nest(kernel)
        self.kind: Scalar = self.loops[0].extent.type
        names = tuple(x.variable for x in self.loops)
        self.loop = dict(zip(names, self.loops, strict=True))
        self.accesses = accesses(self.body, names)
        self.stores = [a for a in self.accesses if a.is_store]
        # else what is read lies along the first index
        reads_rows = all(a.is_store for a in lanes.turned(kernel))
        self.short, self.long = names if reads_rows else names[::-1]
        self.gathers = bool(side)
        size = max(4, *(a.leaves[0].type.size for a in kernel.arrays))
        long, most = (side, side // FLAT) if side else (self.whole(LONG // size), SHORT // size)
        short = max(
            n for n in range(self.count, max(most, self.count) + 1, self.count) if long % n == 0
        )
        # rows of all that is written
        one_way = all(a.way(self.long) != "next" for a in self.stores)
        self.sides = {self.short: short, self.long: long if one_way else short}
        self.ahead = [] if side else self.read_next()
        self.moved = not side and len({a.array for a in self.stores}) == 1

    def whole(self, points: int) -> int:
        """As many points, in whole squares."""
        return max(points // self.count, 1) * self.count

    def kernel(self) -> ir.Kernel:
        y, x = self.loops
        block, following = ir.Local(BLOCK, self.kind), build.add(ir.Local(BLOCK, self.kind), 1)
        thread: ir.Block = (
            *self.begun(),
            ir.Assign(self.tiles.name, self.tiles_along(self.long)),
            *self.place(block, ""),
            *(ir.Assign(self.end(n).name, self.last(n)) for n in (self.short, self.long)),
            *(self.place(following, NEXT) if self.ahead else ()),
            ir.Assign(thread_of(x.variable), ir.Local(THREAD, self.kind)),
            ir.Assign(thread_of(y.variable), ir.Literal(0, self.kind)),
            *(self.gathered() if self.gathers else self.squares()),
        )
        threads = ir.Parallel(THREAD, ir.Literal(self.count, self.kind), thread)
        total = build.multiply(self.tiles_along(self.short), self.tiles_along(self.long))
        arrays = (*self.reference.arrays, *(self.array(a) for a in self.stores if self.gathers))
        return replace(self.reference, arrays=arrays, body=(ir.Parallel(BLOCK, total, (threads,)),))

    # ------------------------------------------------------------ tiles

    def phase(self, index: str) -> ir.Local:
        """How far before the first point tiles begin along an index."""
        return ir.Local(own(f"{index}.phase"), self.kind)

    @property
    def tiles(self) -> ir.Local:
        """How many tiles follow each other along the rows that are read."""
        return ir.Local(own(f"{self.long}.tiles"), self.kind)

    def begun(self) -> ir.Block:
        """Where tiles begin with lines of what is written, and of what is read: how far before the
        first point.

        Where several arrays are read they are taken to lie as the one that is written does: NumPy's
        do.
        """
        if not self.moved:
            return ()
        written = self.reference.array(self.stores[0].array)
        read = {a.array for a in self.accesses if not a.is_store}
        found = [ir.Assign(line_starts.PHASE, ir.Builtin("phase", self.kind))]
        along = dict.fromkeys((self.short, self.long), (written, line_starts.PHASE))
        if len(read) == 1 and all(
            a.way(self.long) == "next" for a in self.accesses if not a.is_store
        ):
            found.append(ir.Assign(READ_PHASE, ir.Builtin("read_phase", self.kind)))
            along[self.long] = self.reference.array(read.pop()), READ_PHASE
        for name, (array, phase) in along.items():
            found.append(
                line_starts.row_phase(
                    self.reference, array, self.loop[name], self.phase(name).name, phase
                )
            )
        return tuple(found)

    def tiles_along(self, index: str) -> ir.Expression:
        """How many tiles there are along an index; where they begin with lines the last one may
        have no points.
        """
        more = (
            LINE // self.reference.array(self.stores[0].array).leaves[0].type.size - 1
            if self.moved
            else 0
        )
        return build.ceil_divide(build.add(self.loop[index].extent, more), self.sides[index])

    def place(self, tile: ir.Expression, which: str) -> ir.Block:
        """The numbers of a tile along both indices, and where it begins: with a line, maybe before
        the first point.
        """
        down, along = (
            ir.Local(own(f"{which}{n}.tile"), self.kind) for n in (self.short, self.long)
        )
        begins: list[ir.Statement] = []
        for name, number in ((self.short, down), (self.long, along)):
            first = build.multiply(number, self.sides[name])
            begin = build.subtract(first, self.phase(name)) if self.moved else first
            begins.append(ir.Assign(self.begin(name, which).name, begin))
        if self.gathers:
            numbers: ir.Block = (
                ir.Assign(down.name, build.divide(tile, self.tiles)),
                ir.Assign(along.name, build.subtract(tile, build.multiply(down, self.tiles))),
            )
        else:
            numbers = self.in_panels(tile, down, along, which)
        return (*numbers, *begins)

    def in_panels(
        self, tile: ir.Expression, down: ir.Local, along: ir.Local, which: str
    ) -> ir.Block:
        """The numbers of a tile where `PANEL` of them lie side by side, then those below them,
        before the next panel begins.
        """
        panel, number, width = (
            ir.Local(own(f"{which}{n}"), self.kind) for n in ("panel", "panel.tile", "panel.width")
        )
        tiles = build.multiply(self.tiles_along(self.short), PANEL)
        left = build.subtract(self.tiles, build.multiply(panel, PANEL))
        return (
            ir.Assign(panel.name, build.divide(tile, tiles)),
            ir.Assign(number.name, build.subtract(tile, build.multiply(panel, tiles))),
            # after the last tile there is none
            ir.Assign(width.name, build.maximum(build.minimum(left, PANEL), 1)),
            ir.Assign(down.name, build.divide(number, width)),
            ir.Assign(
                along.name,
                build.add(
                    build.multiply(panel, PANEL),
                    build.subtract(number, build.multiply(down, width)),
                ),
            ),
        )

    def begin(self, index: str, which: str = "") -> ir.Local:
        return ir.Local(own(f"{which}{index}.begin"), self.kind)

    def end(self, index: str) -> ir.Local:
        return ir.Local(own(f"{index}.end"), self.kind)

    def last(self, index: str) -> ir.Expression:
        """Where a tile ends along an index."""
        return build.minimum(
            build.add(self.begin(index), self.sides[index]), self.loop[index].extent
        )

    def along(self, order: tuple[str, str], square: ir.Block) -> ir.Block:
        """All squares of a tile, those along the second index one after the other."""
        for name in reversed(order):
            step = ir.Literal(self.count, self.kind)
            square = (
                ir.For(
                    first_of(name), self.begin(name), self.end(name), step, square, role="tiles"
                ),
            )
        return square

    # ------------------------------------------------------------ squares that write to memory

    def squares(self) -> ir.Block:
        before = (0, 1) if self.moved else ()
        points = merging.points_of_a_block(self.reference, self.shape, masked=1, before=before)
        down, along = (
            build.divide(
                build.subtract(ir.Local(first_of(n), self.kind), self.begin(n)), self.count
            )
            for n in (self.short, self.long)
        )
        number = build.add(build.multiply(along, self.sides[self.short] // self.count), down)
        return self.along((self.long, self.short), (*self.asked(number), points))

    # ------------------------------------------------------------ what comes next

    def read_next(self) -> list[tuple[AffineAccess, str]]:
        """Of each array that is read one access, at a place that the indices alone say, and the
        index along its rows.
        """
        given = written_in(self.body)
        found: dict[tuple[str, str], AffineAccess] = {}
        for a in self.accesses:
            if (
                a.is_store
                or a.loops
                or not given.isdisjoint(n for i in a.statement.indices for n in reads(i))
            ):
                continue
            for rows in (self.long, self.short):
                if a.way(rows) == "next":
                    found.setdefault((a.array, rows), a)
        return [(a, rows) for (_, rows), a in found.items()]

    def asked(self, number: ir.Expression) -> ir.Block:
        """With the `number`-th square of a tile as many registers of the next tile as it reads
        itself, of every array that is read.
        """
        square = ir.Local(own("square"), self.kind)
        every = [s for a, rows in self.ahead for s in self.lines(a, rows, square)]
        return (ir.Assign(square.name, number), *every) if every else ()

    def lines(self, a: AffineAccess, along: str, square: ir.Local) -> ir.Block:
        """What a square asks for: the rows of the next tile follow each other, each from its
        beginning on.
        """
        (down,) = {self.short, self.long} - {along}
        each = self.sides[along] // self.count  # registers of a row
        together = gcd(self.count, each)  # that surely lie in one row
        # registers of a line
        step = max(1, LINE // (self.count * self.reference.array(a.array).leaves[0].type.size))
        row, place = (ir.Local(own(f"{NEXT}{n}.{a.array}"), self.kind) for n in (down, along))
        done: list[ir.Statement] = []
        for first in range(0, self.count, together):
            piece = build.add(build.multiply(square, self.count // together), first // together)
            within = build.multiply(build.remainder(piece, each // together), together * self.count)
            done += [
                ir.Assign(
                    row.name,
                    build.add(self.begin(down, NEXT), build.divide(piece, each // together)),
                ),
                ir.Assign(place.name, build.add(self.begin(along, NEXT), within)),
            ]
            for n in range(0, together, step):
                there = {down: row, along: build.add(place, n * self.count)}
                indices = tuple(
                    rewrite(i, lambda e, there=there: _moved(e, there)) for i in a.statement.indices
                )
                done.append(ir.PrefetchElement(a.array, indices))
        return tuple(done)

    # ------------------------------------------------------------ tiles in memory of the core's own

    def gathered(self) -> ir.Block:
        """The squares of a tile, which write to it; and what writes its rows."""
        stored = {a.array: a for a in self.stores}

        def to_tile(s: ir.Statement) -> ir.Block:
            if not isinstance(s, ir.StoreElement):
                return (s,)
            indices = [
                build.subtract(
                    i, self.begin(i.name) if isinstance(i, ir.Local) else ir.Literal(0, self.kind)
                )
                for i in s.indices
            ]
            return (replace(s, array=_tile(stored[s.array]), indices=tuple(indices)),)

        nest: ir.Block = flat_map(self.body, to_tile)
        for loop in reversed(self.loops):
            nest = (replace(loop, body=nest),)
        arrays = (*self.reference.arrays, *(self.array(a) for a in self.stores))
        gathering = replace(self.reference, body=nest, arrays=arrays)
        points = merging.points_of_a_block(gathering, self.shape, masked=1)
        squares = self.along(
            (self.short, self.long),
            (replace(points, otherwise=self.in_any_case(points.otherwise)),),
        )
        return (*squares, ir.Barrier(), *(self.written(a) for a in self.stores))

    def array(self, a: AffineAccess) -> ir.ArrayArgument:
        """What a tile writes of an array, in the order of that array."""
        kind = self.reference.array(a.array).leaves[0].type
        row, column = (self.sides[i.name] for i in a.statement.indices if isinstance(i, ir.Local))
        return shared_values(_tile(a), kind, row, column + PADDING)

    def in_any_case(self, block: ir.Block) -> ir.Block:
        """A square at an end without the tests of its stores: a tile has room for what lies beyond,
        and nothing reads it.
        """
        slow, rows = self.loops[0].variable, self.shape.points[0]
        beyond = {numbered(slow, p): numbered(own(f"{slow}.at"), p) for p in range(rows)}
        tiles = {_tile(a) for a in self.stores}

        def placed(e: ir.Expression) -> ir.Expression:
            return (
                replace(e, name=beyond[e.name])
                if isinstance(e, ir.Local) and e.name in beyond
                else e
            )

        def free(s: ir.Statement) -> ir.Block:
            match s:
                case ir.StoreElement() if s.array in tiles:
                    return (replace(s, indices=tuple(rewrite(i, placed) for i in s.indices)),)
                case ir.If(then=(ir.StoreElement(array=array),), otherwise=()) if array in tiles:
                    return s.then
                case _:
                    return (s,)

        return flat_map(block, free)

    def written(self, a: AffineAccess) -> ir.For:
        """The rows of an array that a tile writes, one after the other."""
        row, column = (i.name for i in a.statement.indices if isinstance(i, ir.Local))
        lane, kind = ir.Local(THREAD, self.kind), self.kind
        at_row, at = ir.Local(own(f"{row}.row"), kind), ir.Local(own(f"{column}.piece"), kind)
        begin, end = self.begin(column), self.end(column)
        whole = build.add(
            begin, build.multiply(build.divide(build.subtract(end, begin), self.count), self.count)
        )
        value = ir.Local(own(f"{a.array}.value"), self.reference.array(a.array).leaves[0].type)

        def moved(first: ir.Expression) -> ir.Block:
            place = (
                build.subtract(at_row, self.begin(row)),
                build.add(build.subtract(first, begin), lane),
            )
            indices = (at_row, build.add(first, lane))
            return ir.LoadElement(_tile(a), place, value.name), ir.StoreElement(
                a.array, indices, value
            )

        last = ir.Local(own(f"{column}.whole"), kind)
        rest = ir.If(build.less(build.add(last, lane), end), moved(last))
        body: ir.Block = (
            ir.Assign(last.name, whole),
            ir.For(at.name, begin, last, ir.Literal(self.count, kind), moved(at)),
            ir.If(build.less(last, end), (rest,)),
        )
        return ir.For(at_row.name, self.begin(row), self.end(row), ir.Literal(1, kind), body)


def _moved(e: ir.Expression, there: dict[str, ir.Expression]) -> ir.Expression:
    return there.get(e.name, e) if isinstance(e, ir.Local) else e


def _tile(a: AffineAccess) -> str:
    return own(f"tile.{a.array}")

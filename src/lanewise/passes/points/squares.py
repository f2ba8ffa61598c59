"""Squares in tiles: where rows are another array's columns, what the squares of a tile write is gathered in memory of the core.

    for each square: load 16 rows of a; turn; store 16 rows of c, a line of memory each
->  for the squares of a tile, along the rows that are read: load 16 rows of a; turn; store 16 rows of $tile.c
    for each row of the tile: load $tile.c; store c                                      many lines of memory one after the other
A square alone touches a line in each of 32 pages, and comes back to them when others have driven them out. In tiles both sides are
read and written in long pieces, which a core fetches ahead, and past the caches where an array is large. Tiles are longer along the rows
that are read: what is fetched ahead ends with a page. Those of one array that is written begin where lines of memory do, since a line that
two tiles write goes to memory twice, and is read in between.
Legal where every point writes its element of an array once and nobody reads that array: then it does not matter when it is written.
"""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.affine import Access, accesses
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import numbered, own
from lanewise.ir.traverse import flat_map, rewrite
from lanewise.ir.values import value_array
from lanewise.passes.base import refuse
from lanewise.passes.points import lanes, merging
from lanewise.passes.points.shape import BLOCK, THREAD, Shape, first_of, thread_of
from lanewise.types import Scalar

MOST = 1024  # points of the long side: more do not fit the caches of a core
SHORT = 8  # times as many points along the rows that are read as along those that are written
LINE = 64  # bytes of a line of memory
PADDING = 16  # elements between rows, which else would share few lines of a cache


def legal(kernel: ir.Kernel, shape: Shape, side: int) -> str | None:
    """Why the pass does not apply to tiles of `side` points along the rows that are read, or None."""
    if reason := lanes.legal(kernel, shape):
        return reason
    if not lanes.turned(kernel) or shape.points[-1] != 1 or shape.points[-2] != shape.total:
        return "no rows are another array's columns, which squares of as many rows as lanes turn"
    if not 0 < side <= MOST or side % shape.total:
        return f"a tile has whole squares of {shape.total} points, and at most {MOST} a side; {side} were asked for"
    loops, body = merging.nest(kernel)
    names = {x.variable for x in loops}
    written = {a.name for a in kernel.arrays if a.written}
    stores: list[str] = []
    for a in accesses(body, tuple(x.variable for x in loops)):
        if a.array not in written:
            continue
        if not a.is_store:
            return f"{a.array} is read and written, and a tile writes it when all of its points are computed"
        places = [i.name for i in a.statement.indices if isinstance(i, ir.Local)]
        if a.loops or a.guards or len(a.statement.indices) != 2 or set(places) != names:
            return f"not every point writes an element of its own of {a.array}, once and in any case"
        stores.append(a.array)
    if len(set(stores)) != len(stores):
        return "a point writes an element twice, and a tile has room for one of both"
    return None


def apply(kernel: ir.Kernel, shape: Shape, side: int) -> ir.Kernel:
    """The kernel in blocks of tiles with `side` points along the rows that are read; raises `PlanError` where it does not fit."""
    if reason := legal(kernel, shape, side):
        raise refuse("SIMD lanes", kernel, reason)
    return _Tiles(kernel, shape, side).kernel()


class _Tiles:
    def __init__(self, kernel: ir.Kernel, shape: Shape, side: int) -> None:
        self.reference, self.shape = kernel, shape
        self.loops, self.body = merging.nest(kernel)
        self.kind: Scalar = self.loops[0].extent.type
        self.names = tuple(x.variable for x in self.loops)
        self.stores = [a for a in accesses(self.body, self.names) if a.is_store]
        self.reads_rows = all(a.is_store for a in lanes.turned(kernel))  # else what is read lies along the first index
        short = max(side // SHORT // shape.total, 1) * shape.total
        one_way = len({self.along(a) for a in self.stores}) == 1
        self.long = self.names[1 if self.reads_rows else 0]
        self.sides = {n: side if n == self.long and one_way else short for n in self.names}
        self.moved = (
            len(self.stores) == 1
        )  # tiles begin with lines of what is written, and of what is read and lies alike

    def kernel(self) -> ir.Kernel:
        y, x = self.loops
        tiles = ir.Local(own(f"{x.variable}.tiles"), self.kind)
        count = self.tiles_along(x)
        block = ir.Local(BLOCK, self.kind)
        row, column = ir.Local(own(f"{y.variable}.tile"), self.kind), ir.Local(own(f"{x.variable}.tile"), self.kind)
        head: ir.Block = (
            ir.Assign(tiles.name, count),
            ir.Assign(row.name, build.divide(block, tiles)),
            ir.Assign(column.name, build.subtract(block, build.multiply(row, tiles))),
            *((ir.Assign(self.phase.name, ir.Builtin("phase", self.kind)),) if self.moved else ()),
            *self.span(y, row),
            *self.span(x, column),
            ir.Assign(thread_of(x.variable), ir.Local(THREAD, self.kind)),
            ir.Assign(thread_of(y.variable), ir.Literal(0, self.kind)),
        )
        body = (*head, self.squares(), ir.Barrier(), *(self.written(a) for a in self.stores))
        threads = ir.Parallel(THREAD, ir.Literal(self.shape.total, self.kind), body)
        total = build.multiply(self.tiles_along(y), count)
        arrays = (*self.reference.arrays, *(self.array(a) for a in self.stores))
        return replace(self.reference, arrays=arrays, body=(ir.Parallel(BLOCK, total, (threads,)),))

    @staticmethod
    def along(a: Access) -> str:
        """The index along the rows of what is written."""
        return next(reversed([i.name for i in a.statement.indices if isinstance(i, ir.Local)]))

    @property
    def phase(self) -> ir.Local:
        return ir.Local(own("phase"), self.kind)

    def tiles_along(self, loop: ir.Parallel) -> ir.Expression:
        """How many tiles there are along an index; where they begin with lines the last one may have no points."""
        size = self.reference.array(self.stores[0].array).leaves[0].type.size
        more = LINE // size - 1 if self.moved else 0
        return build.ceil_divide(build.add(loop.extent, more), self.sides[loop.variable])

    def begin(self, index: str) -> ir.Local:
        return ir.Local(own(f"{index}.begin"), self.kind)

    def end(self, index: str) -> ir.Local:
        return ir.Local(own(f"{index}.end"), self.kind)

    def span(self, loop: ir.Parallel, tile: ir.Local) -> ir.Block:
        """From where to where a tile goes along an index."""
        begin, end, side = self.begin(loop.variable), self.end(loop.variable), self.sides[loop.variable]
        first = build.multiply(tile, side)
        if not self.moved:
            last = build.minimum(build.add(begin, side), loop.extent)
            return ir.Assign(begin.name, first), ir.Assign(end.name, last)
        start = build.subtract(first, self.phase)
        whole = self.reads_rows and loop.variable == self.long  # its first register may begin before the first point
        return (
            ir.Assign(begin.name, start if whole else build.maximum(start, 0)),
            ir.Assign(end.name, build.maximum(build.minimum(build.add(start, side), loop.extent), begin)),
        )

    def array(self, a: Access) -> ir.ArrayArgument:
        """What a tile writes of an array, in the order of that array."""
        plain = value_array(_tile(a), self.reference.array(a.array).leaves[0].type, written=True)
        row, column = (self.sides[i.name] for i in a.statement.indices if isinstance(i, ir.Local))
        shape = (row, column + PADDING)
        return replace(plain, space="shared", length=shape[0] * shape[1], shape=shape)

    def squares(self) -> ir.For:
        """All squares of a tile, along the rows that are read."""
        stored = {a.array: a for a in self.stores}

        def gathered(s: ir.Statement) -> ir.Block:
            if not isinstance(s, ir.StoreElement):
                return (s,)
            indices = [
                build.subtract(i, self.begin(i.name) if isinstance(i, ir.Local) else ir.Literal(0, self.kind))
                for i in s.indices
            ]
            return (replace(s, array=_tile(stored[s.array]), indices=tuple(indices)),)

        nest: ir.Block = flat_map(self.body, gathered)
        for loop in reversed(self.loops):
            nest = (replace(loop, body=nest),)
        arrays = (*self.reference.arrays, *(self.array(a) for a in self.stores))
        gathering = replace(self.reference, body=nest, arrays=arrays)
        points = merging.points_of_a_block(gathering, self.shape, masked=1, before=self.moved and self.reads_rows)
        inner: ir.Block = (replace(points, otherwise=self.in_any_case(points.otherwise)),)
        for name in reversed(self.names if self.reads_rows else self.names[::-1]):
            step = ir.Literal(self.shape.total, self.kind)
            inner = (ir.For(first_of(name), self.begin(name), self.end(name), step, inner, role="tiles"),)
        (outer,) = inner
        assert isinstance(outer, ir.For)
        return outer

    def in_any_case(self, block: ir.Block) -> ir.Block:
        """A square at an end without the tests of its stores: a tile has room for what lies beyond, and nobody reads it."""
        slow, rows = self.names[0], self.shape.points[0]
        beyond = {numbered(slow, p): numbered(own(f"{slow}.at"), p) for p in range(rows)}
        tiles = {_tile(a) for a in self.stores}

        def placed(e: ir.Expression) -> ir.Expression:
            return replace(e, name=beyond[e.name]) if isinstance(e, ir.Local) and e.name in beyond else e

        def free(s: ir.Statement) -> ir.Block:
            match s:
                case ir.StoreElement() if s.array in tiles:
                    return (replace(s, indices=tuple(rewrite(i, placed) for i in s.indices)),)
                case ir.If(then=(ir.StoreElement(array=array),), otherwise=()) if array in tiles:
                    return s.then
                case _:
                    return (s,)

        return flat_map(block, free)

    def written(self, a: Access) -> ir.For:
        """The rows of an array that a tile writes, one after the other."""
        row, column = (i.name for i in a.statement.indices if isinstance(i, ir.Local))
        lane, kind, count = ir.Local(THREAD, self.kind), self.kind, self.shape.total
        at_row, at = ir.Local(own(f"{row}.row"), kind), ir.Local(own(f"{column}.piece"), kind)
        begin, end = self.begin(column), self.end(column)
        whole = build.add(begin, build.multiply(build.divide(build.subtract(end, begin), count), count))
        value = ir.Local(own(f"{a.array}.value"), self.reference.array(a.array).leaves[0].type)

        def moved(first: ir.Expression) -> ir.Block:
            place = (build.subtract(at_row, self.begin(row)), build.add(build.subtract(first, begin), lane))
            indices = (at_row, build.add(first, lane))
            return ir.LoadElement(_tile(a), place, value.name), ir.StoreElement(a.array, indices, value)

        last = ir.Local(own(f"{column}.whole"), kind)
        rest = ir.If(build.less(build.add(last, lane), end), moved(last))
        body: ir.Block = (
            ir.Assign(last.name, whole),
            ir.For(at.name, begin, last, ir.Literal(count, kind), moved(at)),
            ir.If(build.less(last, end), (rest,)),
        )
        return ir.For(at_row.name, build.maximum(self.begin(row), 0), self.end(row), ir.Literal(1, kind), body)


def _tile(a: Access) -> str:
    return own(f"tile.{a.array}")

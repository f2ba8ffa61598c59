"""LoadRecord the next tile of sources while this one is computed (Yang et al., PLDI 2010).

    for tile: staged = load source[tile * T + thread]; tile_source[thread] = staged; barrier;
    compute; barrier
registers
->  next = load source[thread]
    for tile: tile_source[thread] = next; barrier; next = load source[(tile + 1) * T + thread];
    compute; barrier
async
->  copy async tile_source[thread] <- source[thread]
    for tile: wait; barrier; copy async tile_source[other half + thread] <- source[(tile + 1) * T +
    thread]; compute this half
Nothing is loaded after the last source, or after the last tile of a part. `registers` costs as
many of them as a thread stages scalars; `async` costs a second tile of shared memory, and saves one
barrier a tile, since nothing writes into the half that is being read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of, own
from lanewise.ir.traverse import flat_map, rewrite_statement, statements
from lanewise.passes.base import refuse, source_loops

How = Literal["registers", "async"]
SMALLEST_COPY = 4  # bytes
HALF = own("half")  # where the half of the double tile begins that is computed


def legal(kernel: ir.Kernel, how: str) -> str | None:
    """Why the pass does not apply, or None."""
    if how in ("async3", "async4"):
        return f"its tile has two halves, which 'async' fills: {how!r} is for threadwise kernels"
    if how not in ("registers", "async"):
        return f"{how!r} is neither 'registers' nor 'async'"
    if not source_loops(kernel):
        return "it has no loop over sources"
    loops = [s for s in statements(kernel.body) if _is_tile_loop(s)]
    pieces = [piece for loop in loops for piece in _pieces(loop)]
    if not pieces:
        return "its sources are not staged in shared memory (Plan(tile=...))"
    if how == "async":
        tile = kernel.array(pieces[0].store.array)
        if small := next((x for x in tile.leaves if x.type.size < SMALLEST_COPY), None):
            return (
                f"an asynchronous copy moves 4, 8 or 16 bytes, and {small.name} of "
                f"{pieces[0].load.array} is "
                f"{small.type}, {small.type.size} byte"
            )
    return None


def apply(kernel: ir.Kernel, how: str) -> ir.Kernel:
    """Prefetch the tiles of a kernel that stages them; raises `PlanError` when there are none."""
    if reason := legal(kernel, how):
        raise refuse("prefetching", kernel, reason)
    loop = next(s for s in statements(kernel.body) if _is_tile_loop(s))
    tile = kernel.array(_pieces(loop)[0].store.array)
    rewritten = replace(
        kernel,
        body=_Prefetch("async" if how == "async" else "registers", tile.name, tile.length).block(
            kernel.body
        ),
    )
    if how == "registers":
        return rewritten
    arrays = tuple(
        replace(a, length=2 * a.length) if a.name == tile.name else a for a in kernel.arrays
    )
    return replace(rewritten, arrays=arrays)


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one thread stages of a tile: one source, loaded if `condition` holds, and its place in
    the tile.
    """

    load: ir.LoadRecord
    store: ir.StoreRecord
    condition: ir.Expression | None


def _is_tile_loop(s: ir.Statement) -> bool:
    return isinstance(s, ir.For) and s.role == "tiles"


def _pieces(loop: ir.Statement) -> list[_Piece]:
    """The pairs of load and store that stand before the first barrier of a loop over tiles."""
    assert isinstance(loop, ir.For)
    head = loop.body[: _first_barrier(loop)]
    pieces: list[_Piece] = []
    for s in head:
        match s:
            case ir.If(
                condition=condition, then=(ir.LoadRecord() as load, ir.StoreRecord() as store)
            ):
                pieces.append(_Piece(load, store, condition))
            case _:
                pass
    plain = [
        (f, c)
        for f, c in pairwise(head)
        if isinstance(f, ir.LoadRecord) and isinstance(c, ir.StoreRecord)
    ]
    return pieces + [_Piece(f, c, None) for f, c in plain]


def _first_barrier(loop: ir.For) -> int:
    return next((n for n, s in enumerate(loop.body) if isinstance(s, ir.Barrier)), 0)


class _Prefetch:
    """Rewrites the loops over tiles of one kernel."""

    def __init__(self, how: How, tile: str, length: int) -> None:
        self.how, self.tile, self.length = how, tile, length

    def block(self, block: ir.Block) -> ir.Block:
        loops = [s for s in block if isinstance(s, ir.For) and s.role == "tiles"]
        if not loops:
            return tuple(rewrite_statement(s, lambda e: e, self.block) for s in block)
        end, bound = self._end(loops[-1])
        first = block.index(loops[0])
        begin = self._load(loops[0], loops[0].start, end, self._half(loops[0].start))
        change = self._in_registers if self.how == "registers" else self._asynchronous

        def rewritten(s: ir.Statement) -> ir.Statement:
            if not (isinstance(s, ir.For) and s.role == "tiles"):
                return s
            # nothing comes after the tile that is not whole
            follows = s is not loops[-1] or len(loops) == 1
            after = build.add(ir.Local(s.variable, s.start.type), 1)
            return change(s, self._load(s, after, end, self._other_half(s)) if follows else ())

        rest = tuple(map(rewritten, block[first:]))
        return (*block[:first], *bound, *begin, *rest)

    def _end(self, last: ir.For) -> tuple[ir.Expression, ir.Block]:
        """The number of the first source that is not to be loaded: after the last one, or after
        the last tile of a part.
        """
        count = ir.Local(count_of(_pieces(last)[0].load.array), last.stop.type)
        match last.stop:
            case ir.Call(intrinsic="min", arguments=(_, stop)):
                end = ir.Local(own("end"), stop.type)
                return end, (
                    ir.Assign(end.name, build.minimum(count, build.multiply(stop, self.length))),
                )
            case _:
                return count, ()

    def _half(self, tile: ir.Expression) -> ir.Expression:
        """Where the half of the double tile begins that this tile lies in."""
        if isinstance(tile, ir.Literal):
            return ir.Literal(int(tile.value) % 2 * self.length, tile.type)
        return build.multiply(build.remainder(tile, 2), self.length)

    def _other_half(self, loop: ir.For) -> ir.Expression:
        return build.subtract(
            ir.Literal(self.length, loop.start.type), ir.Local(HALF, loop.start.type)
        )

    def _load(
        self, loop: ir.For, tile: ir.Expression, end: ir.Expression, half: ir.Expression
    ) -> ir.Block:
        """Begin to load what this thread stages of a tile, as far as there is something."""
        guarded: list[ir.Statement] = []
        for n, piece in enumerate(_pieces(loop)):
            place = piece.store.index
            index = build.add(build.multiply(tile, self.length), place)
            move: ir.Statement
            if self.how == "registers":
                reads = tuple((leaf, _next(n, leaf)) for leaf, _ in piece.load.reads)
                move = replace(piece.load, index=index, reads=reads)
            else:
                leaves = tuple(leaf for leaf, _ in piece.load.reads)
                move = ir.CopyAsync(
                    self.tile, build.add(half, place), piece.load.array, index, leaves
                )
            guarded.append(ir.If(build.less(index, end), (move,)))
        return tuple(guarded)

    def _in_registers(self, loop: ir.For, load: ir.Block) -> ir.For:
        stores: list[ir.Statement] = []
        for n, piece in enumerate(_pieces(loop)):
            values = tuple(
                (leaf, replace(v, name=_next(n, leaf)))
                for leaf, v in piece.store.writes
                if isinstance(v, ir.Local)
            )
            store = replace(piece.store, writes=values)
            stores.append(store if piece.condition is None else ir.If(piece.condition, (store,)))
        return replace(
            loop, body=(*stores, ir.Barrier(), *load, *loop.body[_first_barrier(loop) + 1 :])
        )

    def _asynchronous(self, loop: ir.For, load: ir.Block) -> ir.For:
        tile = ir.Local(loop.variable, loop.start.type)
        half = ir.Local(HALF, tile.type)

        def read(s: ir.Statement) -> ir.Block:
            if isinstance(s, ir.LoadRecord) and s.array == self.tile:
                return (replace(s, index=build.add(half, s.index)),)
            return (s,)

        compute = flat_map(loop.body[_first_barrier(loop) + 1 : -1], read)
        # of the single tile: it kept the next one from being stored too early
        assert isinstance(loop.body[-1], ir.Barrier)
        begin = (ir.Assign(half.name, self._half(tile)), ir.WaitAsync(), ir.Barrier())
        return replace(loop, body=(*begin, *load, *compute))


def _next(piece: int, leaf: str) -> str:
    """The register that holds a leaf of the next tile."""
    return own(f"next.{piece}.{leaf}")

"""Loops over tiles, around the loops over the rounds of a tile: of one loop, and of several.

Before the rounds of a tile what they read is brought to shared memory: all of it, or through
registers while the tile before is computed, or by asynchronous copies into a ring of tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lanewise.analysis.index_sums import IndexSum
from lanewise.analysis.multiples import is_multiple, starts_of_panels
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import flat_map
from lanewise.language.types import I64, Scalar
from lanewise.passes.points.bringing import Bringing
from lanewise.passes.points.tiles import Tile

HALF = own("half")  # of the double tile, or which one of the ring, that is computed
# tiles in shared memory, by Plan.prefetch
STAGES = {"none": 1, "registers": 2, "async": 2, "async3": 3, "async4": 4}
PLACE = own("place")  # in the ring, of a loop over the tiles of several loops


@dataclass(frozen=True, slots=True)
class TileLoops:
    """What writes loops over tiles of `tile` rounds. inside: for blocks in the inside of the index
    space.
    """

    kernel: ir.Kernel
    tile: int
    prefetch: str
    bringing: Bringing
    inside: bool

    @property
    def copies(self) -> bool:
        """Whether asynchronous copies bring the tiles."""
        return self.prefetch.startswith("async")

    def single(self, loop: ir.For, body: ir.Block, pieces: list[Tile]) -> ir.Block:
        """A loop over whole tiles, and one over the tile that is not whole, unless panels say that
        there is none.
        """
        kind = loop.start.type
        rounds = build.subtract(loop.stop, loop.start)
        is_whole = is_multiple(rounds, self.tile, starts_of_panels(self.kernel, self.tile), {})
        if not is_whole and not self._is_count(rounds):
            rounds = build.maximum(rounds, 0)  # a tile before the first would count as its last one
        tiles = ir.Local(_tiles(loop), kind)
        count = ir.Assign(tiles.name, build.divide(rounds, self.tile))
        half = ir.Local(HALF, kind) if self.prefetch != "none" else None
        compute = self._rounds(loop, body, pieces, ir.Literal(self.tile, kind), half)
        every = build.ceil_divide(rounds, self.tile)
        tail = () if is_whole else self._last(loop, body, pieces, every)
        guarded = [not (self.inside and p.box.always) for p in pieces]
        if half is None:
            stage = tuple(
                s
                for n, p in enumerate(pieces)
                for s in self.bringing.stage(p, n, guarded=guarded[n])
            )
            whole = (*self._begin(loop), *stage, ir.Barrier(), *compute, ir.Barrier())
            zero, one = ir.Literal(0, kind), ir.Literal(1, kind)
            return (count, ir.For(_tile(loop), zero, tiles, one, whole, role="tiles"), *tail)
        if self.copies:
            return (count, *self._ring(loop, pieces, guarded, compute), ir.Barrier(), *tail)
        return (count, *self._by_registers(loop, pieces, guarded, compute), *tail)

    def _is_count(self, rounds: ir.Expression) -> bool:
        """Whether a number of rounds is surely none below zero."""
        match rounds:
            case ir.Literal():
                return rounds.value >= 0
            case ir.Local():
                return any(p.name == rounds.name for p in self.kernel.counts)
            case _:
                return False

    def _begin(self, loop: ir.For) -> ir.Block:
        """Where the rounds of the tile at hand begin."""
        number = ir.Local(_tile(loop), loop.start.type)
        return (ir.Assign(start_of(loop), self._start_at(loop, number)),)

    def _last(
        self, loop: ir.For, body: ir.Block, pieces: list[Tile], every: ir.Expression
    ) -> ir.Block:
        """The tile that is not whole, if there is one. every: how many tiles there are."""
        kind = loop.start.type
        zero, one = ir.Literal(0, kind), ir.Literal(1, kind)
        half = zero if self.prefetch != "none" else None
        left = build.subtract(loop.stop, ir.Local(start_of(loop), kind))
        rest = self._rounds(loop, body, pieces, left, half)
        if self.copies:
            bring = [s for p in pieces for s in self.bringing.copies(p, guarded=True, half=zero)]
            bring.append(ir.WaitAsync())
        else:
            bring = [
                s
                for n, p in enumerate(pieces)
                for s in self.bringing.stage(p, n, guarded=True, half=half)
            ]
        inner = (*self._begin(loop), *bring, ir.Barrier(), *rest, ir.Barrier())
        return (ir.For(_tile(loop), ir.Local(_tiles(loop), kind), every, one, inner, role="tiles"),)

    def _by_registers(
        self, loop: ir.For, pieces: list[Tile], guarded: list[bool], compute: ir.Block
    ) -> ir.Block:
        """A loop over whole tiles, the next one of which is in registers while one is computed."""
        kind = loop.start.type
        number, tiles = ir.Local(_tile(loop), kind), ir.Local(_tiles(loop), kind)
        zero, one, half = ir.Literal(0, kind), ir.Literal(1, kind), ir.Local(HALF, kind)
        bring = self.bringing.part
        load = tuple(
            s for n, p in enumerate(pieces) for s in bring(p, n, "load", guarded=guarded[n])
        )

        def store(to: ir.Expression) -> ir.Block:
            stored = (bring(p, n, "store", guarded=False, half=to) for n, p in enumerate(pieces))
            return tuple(s for some in stored for s in some)

        first = (ir.Assign(start_of(loop), loop.start), *load, *store(zero))
        begin = ir.If(build.less(zero, tiles), first)
        following = build.less(build.add(number, 1), tiles)
        next_start = self._start_at(loop, build.add(number, 1))
        cycle = (
            ir.Assign(HALF, build.remainder(number, 2)),
            ir.If(following, (ir.Assign(start_of(loop), next_start), *load)),
            *self._begin(loop),
            *compute,
            ir.If(following, store(build.subtract(one, half))),
            ir.Barrier(),
        )
        whole = ir.For(_tile(loop), zero, tiles, one, cycle, role="tiles")
        return (*self._empty(pieces), begin, ir.Barrier(), whole)

    def _ring(
        self, loop: ir.For, pieces: list[Tile], guarded: list[bool], compute: ir.Block
    ) -> ir.Block:
        """A loop over whole tiles in a ring of several, the next ones of which are copied while one
        is computed.
        """
        kind = loop.start.type
        number = ir.Local(_tile(loop), kind)
        tiles = ir.Local(_tiles(loop), kind)

        def start(tile: ir.Expression) -> ir.Block:
            return (ir.Assign(start_of(loop), self._start_at(loop, tile)),)

        def copies(place: ir.Expression) -> ir.Block:
            members = zip(pieces, guarded, strict=True)
            return tuple(
                s for p, g in members for s in self.bringing.copies(p, guarded=g, half=place)
            )

        return self._turns(ir.Local(HALF, kind), number, tiles, start, copies, compute)

    def _turns(
        self,
        place: ir.Local,
        number: ir.Local,
        tiles: ir.Expression,
        start: Callable[[ir.Expression], ir.Block],
        copies: Callable[[ir.Expression], ir.Block],
        compute: ir.Block,
    ) -> ir.Block:
        """A ring of tiles, of which `place` says the one that is computed.

        start: says where the rounds of a tile begin; copies: of the tile that begins there, to a
        place in the ring.
        """
        kind, stages = number.type, STAGES[self.prefetch]
        # with one tile on its way all copies are waited for
        commit = (ir.CommitAsync(),) if stages > 2 else ()

        def bring(tile: ir.Expression) -> ir.Block:
            to = tile if isinstance(tile, ir.Literal) else build.remainder(tile, stages)
            there = ir.If(build.less(tile, tiles), (*start(tile), *copies(to)))
            return (there, *commit)  # its own group for each tile, there or not

        begin = (s for n in range(stages - 1) for s in bring(ir.Literal(n, kind)))
        cycle = (
            ir.WaitAsync(stages - 2), ir.Barrier(), *bring(build.add(number, stages - 1)),
            ir.Assign(place.name, build.remainder(number, stages)), *start(number), *compute,
        )  # fmt: skip
        zero, one = ir.Literal(0, kind), ir.Literal(1, kind)
        return (*begin, ir.For(number.name, zero, tiles, one, cycle, role="tiles"))

    def _empty(self, pieces: list[Tile]) -> ir.Block:
        """Registers have a value where nothing is loaded."""
        names = [(n, p.kind) for i, p in enumerate(pieces) for n in self.bringing.registers(p, i)]
        return tuple(ir.Assign(n, build.zero(k)) for n, k in names)

    def several(self, loops: list[ir.For], body: ir.Block, pieces: list[Tile]) -> ir.Block:
        """Loops over the tiles of all loops around the loops over their rounds."""
        kind = loops[0].start.type
        whole: ir.Expression | None = None
        for loop in loops:
            end = build.add(ir.Local(start_of(loop), kind), self.tile)
            test = ir.Compare("<=", end, loop.stop)
            whole = test if whole is None else ir.Logical("and", whole, test)
        assert whole is not None
        full, rest = body, body
        half = ir.Local(PLACE, I64) if self.copies else None
        for n, loop in enumerate(reversed(loops)):
            pieces_here = pieces if n == 0 else []
            full = self._rounds(loop, full, pieces_here, ir.Literal(self.tile, kind), half, loops)
            behind = build.subtract(loop.stop, ir.Local(start_of(loop), kind))
            left = build.minimum(behind, self.tile)
            rest = self._rounds(loop, rest, pieces_here, left, half, loops)
        if self.copies:
            return self._ring_of_several(loops, pieces, whole, (ir.If(whole, full, rest),))
        plain = tuple(
            s
            for n, p in enumerate(pieces)
            for s in self.bringing.stage(p, n, guarded=not (self.inside and p.box.always))
        )
        careful = tuple(
            s for n, p in enumerate(pieces) for s in self.bringing.stage(p, n, guarded=True)
        )
        inner: ir.Block = (
            ir.If(whole, plain, careful),
            ir.Barrier(),
            ir.If(whole, full, rest),
            ir.Barrier(),
        )
        for loop in reversed(loops):
            name = _tile(loop)
            tiles = build.ceil_divide(build.subtract(loop.stop, loop.start), self.tile)
            start = ir.Assign(start_of(loop), self._start_at(loop, ir.Local(name, kind)))
            inner = (
                ir.For(
                    name,
                    ir.Literal(0, kind),
                    tiles,
                    ir.Literal(1, kind),
                    (start, *inner),
                    role="tiles",
                ),
            )
        return inner

    def _ring_of_several(
        self, loops: list[ir.For], pieces: list[Tile], whole: ir.Expression, compute: ir.Block
    ) -> ir.Block:
        """One loop over the tiles of all loops, in their order: the next ones may be in the next
        round of a loop around.

        It counts in 64 bits, since each of the loops may have as many tiles as 32 bits count.
        """
        kind = loops[0].start.type
        counts: list[ir.Statement] = []
        total: ir.Expression = ir.Literal(1, I64)
        for loop in loops:
            tiles = build.ceil_divide(build.subtract(loop.stop, loop.start), self.tile)
            # of none two negative numbers would make a positive one
            least = build.maximum(tiles, 0)
            counts.append(ir.Assign(_tiles(loop), build.index_of(least, I64)))
            total = build.multiply(total, ir.Local(_tiles(loop), I64))
        every = ir.Local(own("tiles"), I64)

        def start(tile: ir.Expression) -> ir.Block:
            begin: list[ir.Statement] = []
            for loop in reversed(loops):
                last = loop is loops[0]
                here = tile if last else build.remainder(tile, ir.Local(_tiles(loop), I64))
                tile = tile if last else build.divide(tile, ir.Local(_tiles(loop), I64))
                begin.append(
                    ir.Assign(start_of(loop), self._start_at(loop, build.index_of(here, kind)))
                )
            return tuple(begin)

        def copies(place: ir.Expression) -> ir.Block:
            plain = (
                s
                for p in pieces
                for s in self.bringing.copies(
                    p, guarded=not (self.inside and p.box.always), half=place
                )
            )
            careful = (s for p in pieces for s in self.bringing.copies(p, guarded=True, half=place))
            return (ir.If(whole, tuple(plain), tuple(careful)),)

        number = ir.Local(_tile(loops[0]), I64)
        turns = self._turns(ir.Local(PLACE, I64), number, every, start, copies, compute)
        return (*counts, ir.Assign(every.name, total), *turns, ir.Barrier())

    def _start_at(self, loop: ir.For, tile: ir.Expression) -> ir.Expression:
        return build.add(loop.start, build.multiply(tile, self.tile))

    def _rounds(
        self,
        loop: ir.For,
        body: ir.Block,
        pieces: list[Tile],
        count: ir.Expression,
        half: ir.Expression | None,
        loops: list[ir.For] | None = None,
    ) -> ir.Block:
        """The rounds of a tile."""
        kind, name = loop.start.type, _round(loop)
        names = {x.variable: _round(x) for x in (loops or [loop])}
        place = ir.Assign(
            loop.variable, build.add(ir.Local(start_of(loop), kind), ir.Local(name, kind))
        )
        inner = read_from_tiles(body, pieces, names, self.bringing.ground.kind, half)
        zero, one = ir.Literal(0, kind), ir.Literal(1, kind)
        return (ir.For(name, zero, count, one, (place, *inner), role="sources"),)


def read_from_tiles(
    body: ir.Block,
    pieces: list[Tile],
    rounds: Mapping[str, str],
    kind: Scalar,
    half: ir.Expression | None,
) -> ir.Block:
    """The reads of a body from shared memory. rounds: names of the rounds of a tile, by the
    variables of loops. kind: of indices. half: of a tile that is there several times.
    """
    table = {s.load: (p, s) for p in pieces for s in p.box.sites}

    def change(s: ir.Statement) -> ir.Block:
        if not isinstance(s, ir.LoadElement) or (hit := table.get(s)) is None:
            return (s,)
        piece, site = hit
        sums = [piece.box.place(site, d) for d in range(len(s.indices))]
        indices = piece.read([_renamed(a, rounds) for a in sums], kind, half)
        return (replace(s, array=piece.array.name, indices=indices),)

    return flat_map(body, change)


def _tiles(loop: ir.For) -> str:
    return own(f"{loop.variable}.tiles")


def start_of(loop: ir.For) -> str:
    """The variable of the first round of the tile at hand."""
    return own(f"{loop.variable}.start")


def _round(loop: ir.For) -> str:
    return own(f"{loop.variable}.round")


def _tile(loop: ir.For) -> str:
    return own(f"{loop.variable}.tile")


def _renamed(a: IndexSum, names: Mapping[str, str]) -> IndexSum:
    terms = {
        replace(e, name=names.get(e.name, e.name)) if isinstance(e, ir.Local) else e: c
        for e, c in a.terms.items()
    }
    return IndexSum(a.constant, terms)

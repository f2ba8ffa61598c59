"""Bring what a block reads in a tile of rounds to shared memory, once for all of its threads.

    for k: load a[y#0, k]: u#0; ...
->  for $k.tile in range(0, n // 8):
      $k.start = $k.tile * 8 load a[$y.first + $thread // 8, $k.start + $thread % 8]: $next.0; store
      $tile.a[$thread % 8, $thread // 8] = $next.0; ...; barrier for $k.round in range(8): k =
      $k.start + $k.round; load $tile.a[$k.round, $y.thread * 8]: u#0; ... barrier
How threads bring them is in `bringing.py`, and where they lie there in `tiles.py`. Tiles of whole
rounds have no tests, in the inside of the index space.
`prefetch`: the elements of the next tile are loaded into registers while this one is computed, and
stored into a second half. Or asynchronous copies bring the next tiles past the registers, into a
ring of `STAGES`:
    copy tile 0; commit; ...; for $k.tile: wait async but $STAGES - 2; barrier; copy tile $k.tile +
    $STAGES - 1; commit; for $k.round: ...
The barrier says both that everybody's copies are there, and that nobody reads the tile any more
that the next copies go over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lanewise.analysis.index_sums import IndexSum, single_definitions
from lanewise.analysis.multiples import is_multiple, starts_of_panels
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.traverse import blocks, flat_map, reads, statements, writes
from lanewise.ir.verify import RANK
from lanewise.language.types import I64
from lanewise.passes.base import refuse
from lanewise.passes.points.boxes import WORD, ReadBox, Site, boxes, sums_of
from lanewise.passes.points.bringing import Bringing
from lanewise.passes.points.free_order import adds_up
from lanewise.passes.points.joining import raw_places
from lanewise.passes.points.merging import spread, steering
from lanewise.passes.points.shape import THREAD, Shape, thread_of
from lanewise.passes.points.tiles import Ground, Tile

HALF = own("half")  # of the double tile, or which one of the ring, that is computed
# tiles in shared memory, by Plan.prefetch
STAGES = {"none": 1, "registers": 2, "async": 2, "async3": 3, "async4": 4}
PLACE = own("place")  # in the ring, of a loop over the tiles of several loops
SMALLEST_COPY = 4  # bytes
REUSE = 2  # reads of an element from which on it is worth a place in shared memory


def legal(
    kernel: ir.Kernel, shape: Shape, indices: tuple[str, ...], tile: int, prefetch: str = "none"
) -> str | None:
    """Why the pass does not apply, or None."""
    done = _staged(kernel, shape, indices, tile, prefetch)
    return done if isinstance(done, str) else None


def apply(
    kernel: ir.Kernel, shape: Shape, indices: tuple[str, ...], tile: int, prefetch: str = "none"
) -> ir.Kernel:
    """Stage what is read several times, or apart in memory, in tiles of `tile` rounds; raises
    `PlanError` where nothing is.
    """
    done = _staged(kernel, shape, indices, tile, prefetch)
    if isinstance(done, str):
        raise refuse("shared-memory tiles", kernel, done)
    return done


def _staged(
    kernel: ir.Kernel, shape: Shape, indices: tuple[str, ...], tile: int, prefetch: str
) -> ir.Kernel | str:
    """The kernel with tiles, or why it has none."""
    if kernel.grid is None or not (kernel.body and isinstance(split := kernel.body[-1], ir.If)):
        return "its points are not mapped to blocks"
    if tile < 1:
        return f"a tile of {tile} rounds is empty"
    staged = _Staging(kernel, shape, indices, tile, prefetch)
    body = (*kernel.body[:-1], staged.split(split))
    if not staged.arrays:
        return (
            "no elements are read by several threads of a block in a loop that all threads share, "
            "or apart in memory"
        )
    if prefetch == "registers" and not staged.simple:
        return "only the tiles of a single loop are loaded ahead"
    if prefetch.startswith("async") and not staged.copied:
        return "only the tiles of loops are copied ahead"
    if any(len(a.shape) > RANK for a in staged.arrays.values()):
        return (
            f"a tile of {RANK} dimensions has no second half that could be loaded ahead: shared "
            f"memory has {RANK} dimensions at most"
        )
    for name in sorted(staged.copied):
        kind = kernel.array(name).leaves[0].type
        if kind.size < SMALLEST_COPY:
            bytes_ = "1 byte" if kind.size == 1 else f"{kind.size} bytes"
            return (
                f"an asynchronous copy moves 4, 8 or 16 bytes, and elements of {name} are {kind}, "
                f"{bytes_}"
            )
    sources = tuple(replace(a, once=a.name in staged.once) for a in kernel.arrays)
    return replace(kernel, body=body, arrays=(*sources, *staged.arrays.values()))


class _Staging:
    """Rewrites the two bodies of a kernel: that of blocks in the inside, and that of the others."""

    def __init__(
        self, kernel: ir.Kernel, shape: Shape, indices: tuple[str, ...], tile: int, prefetch: str
    ) -> None:
        self.kernel = kernel
        self.shape = shape
        self.indices = indices
        self.tile = tile
        self.prefetch = prefetch
        self.arrays: dict[str, ir.ArrayArgument] = {}
        self.simple = False  # whether a single loop was cut into tiles
        self.copied: set[str] = set()  # arrays whose tiles asynchronous copies bring
        self.once: set[str] = set()  # arrays no element of which is touched twice
        # numbers of the tiles of an array that the body at hand has
        self.taken: dict[str, set[int]] = {}
        self.inside = True
        self.definitions: dict[str, IndexSum] = {}
        self.varying: set[str] = set()
        self.deciding: set[str] = set()
        self.starts: dict[str, int] = {}  # of the loops that are cut, where a literal says so
        self.ground = Ground(kernel, shape, indices, tile, self.starts)
        self.bringing = Bringing(self.ground)
        self.kind = self.ground.kind
        self.written = {a.name for a in kernel.arrays if a.written}
        self._copies = prefetch.startswith("async")

    def split(self, s: ir.If) -> ir.If:
        """The statement that tells blocks in the inside from the others, with both bodies
        rewritten.
        """
        return replace(
            s,
            then=self.block_of(s.then, inside=True),
            otherwise=self.block_of(s.otherwise, inside=False),
        )

    def block_of(self, body: ir.Block, *, inside: bool) -> ir.Block:
        self.inside, self.deciding, self.taken = inside, steering(body), {}
        start: dict[str, IndexSum] = {}
        plain = single_definitions(body)
        # a point beyond the end reads where it would lie
        for name, raw in raw_places(body).items():
            start[name] = plain[raw]
        self.definitions = single_definitions(body, start)
        self.varying = spread(body, {THREAD, *(thread_of(i) for i in self.indices)})
        ends = self._definitions_end(body)
        return (*body[:ends], *self._apart(body[ends:]))

    def _definitions_end(self, body: ir.Block) -> int:
        return next(
            (
                n
                for n, s in enumerate(body)
                if not isinstance(s, ir.Assign) or s.name not in self.definitions
            ),
            len(body),
        )

    # -------------------------------------------------------- what is read

    def _sites(
        self, body: ir.Block, rounds: Mapping[str, int], changed: set[str], *, always: bool = True
    ) -> list[Site]:
        """The reads of a body that can be staged; `changed`: variables that it gives values."""
        sites: list[Site] = []
        moving = {*rounds, *(thread_of(i) for i in self.indices)}
        for s in body:
            if (
                isinstance(s, ir.LoadElement)
                and s.array not in self.written
                and not s.more
                and self._staged(s)
            ):
                sums = sums_of(s, self.definitions)
                names = {
                    n
                    for a in sums
                    for e in a.terms
                    for n in reads(e)
                    if not (isinstance(e, ir.Local) and n in moving)
                }
                if not names & (changed | self.varying | moving):
                    sites.append(Site(s, sums, always))
            for inner in blocks(s):
                sites += self._sites(inner, rounds, changed, always=False)
        return sites

    def _tile(self, box: ReadBox, *, ahead: bool) -> Tile:
        """A box with its memory: that of a tile of the other body where it has the same shape,
        since a block runs one of them.
        """
        copied, taken = ahead and self._copies, self.taken.setdefault(box.array, set())
        self.copied |= {box.array} if copied else set()
        number = 0
        while True:
            number += 1
            if number in taken:
                continue
            tile = self.ground.tile(
                box, number, stages=STAGES[self.prefetch] if ahead else 1, copied=copied
            )
            if self.arrays.setdefault(tile.array.name, tile.array) == tile.array:
                taken.add(number)
                return tile

    def _staged(self, s: ir.LoadElement) -> bool:
        there = s.array in self.arrays or self.kernel.array(s.array).space == "shared"
        return not there and s.name not in self.deciding

    def _worth(self, box: ReadBox) -> bool:
        return box.reads() >= REUSE * box.elements or self._strided(box)

    def _strided(self, box: ReadBox) -> bool:
        """Whether neighbouring threads read elements that lie apart in memory."""
        fast = thread_of(self.indices[self.shape.fast])
        return any(s.coefficient(fast) for s in box.sums) and not box.sums[-1].coefficient(fast)

    # -------------------------------------------------------- staging without a loop

    def _apart(self, body: ir.Block) -> ir.Block:
        """What neighbouring threads read apart in memory, outside of loops, is staged first of
        all.
        """
        sites = self._sites(body, {}, {n for s in statements(body) for n in writes(s)})
        pieces = [
            self._tile(b, ahead=False)
            for b in boxes(sites, self.shape, self.indices, {})
            if self._strided(b)
        ]
        if not pieces:
            return self._loops(body)
        stage = tuple(
            s
            for n, p in enumerate(pieces)
            for s in self.bringing.stage(p, n, guarded=not (self.inside and p.box.always))
        )
        replaced = self._replaced(body, pieces, {}, None)
        self.once |= self._touched_once(replaced, pieces)
        return (*stage, ir.Barrier(), *self._loops(replaced))

    def _touched_once(self, body: ir.Block, pieces: list[Tile]) -> set[str]:
        """The arrays no element of which is touched twice: what is staged and read by one thread
        each, and what is only written then.
        """
        if any(
            not isinstance(s, ir.Assign | ir.LoadElement | ir.StoreElement | ir.If)
            for s in statements(body)
        ):
            return set()
        threads = {thread_of(i) for i in self.indices}
        read = {s.array for s in statements(body) if isinstance(s, ir.LoadElement)}
        brought = [p.box.array for p in pieces]
        staged = {
            p.box.array
            for p in pieces
            if p.box.reads() == p.box.elements and brought.count(p.box.array) == 1
            and all(any(a.coefficient(n) for a in p.box.sums) for n in threads)
        } - read  # fmt: skip
        every = staged | (self.written - read) if staged else staged
        return {n for n in every if self.kernel.array(n).leaves[0].type.size >= WORD}

    def _replaced(
        self,
        body: ir.Block,
        pieces: list[Tile],
        rounds: Mapping[str, str],
        half: ir.Expression | None,
    ) -> ir.Block:
        """The reads of a body from shared memory."""
        table = {s.load: (p, s) for p in pieces for s in p.box.sites}

        def change(s: ir.Statement) -> ir.Block:
            if not isinstance(s, ir.LoadElement) or (hit := table.get(s)) is None:
                return (s,)
            piece, site = hit
            sums = [piece.box.place(site, d) for d in range(len(s.indices))]
            indices = piece.read([_renamed(a, rounds) for a in sums], self.kind, half)
            return (replace(s, array=piece.array.name, indices=indices),)

        return flat_map(body, change)

    # -------------------------------------------------------- loops

    def _loops(self, body: ir.Block) -> ir.Block:
        done: list[ir.Statement] = []
        for s in body:
            match s:
                case ir.For() if self._is_shared(s):
                    done += self._tiled(s) or (replace(s, body=self._loops(s.body)),)
                case ir.If() if not set(reads(s.condition)) & self.varying:
                    done.append(
                        replace(s, then=self._loops(s.then), otherwise=self._loops(s.otherwise))
                    )
                case _:
                    done.append(s)
        return tuple(done)

    def _is_shared(self, s: ir.For) -> bool:
        """Whether all threads of a block go through a loop together, round after round."""
        used = {n for e in (s.start, s.stop) for n in reads(e)}
        changed = {n for x in statements(s.body) for n in writes(x)}
        ends = any(isinstance(x, ir.Break | ir.Continue) for x in statements(s.body))
        return (
            s.step == ir.Literal(1, s.step.type)
            and not used & (self.varying | changed)
            and s.variable not in self.varying
            and not ends
        )

    def _nest(self, s: ir.For) -> tuple[list[ir.For], ir.Block]:
        """Loops with nothing but each other in them, the outermost first, and the body of the
        innermost.
        """
        loops, body = [s], s.body
        while True:
            heads = [x for x in body if _is_definition(x, self.definitions)]
            rest = [x for x in body if not _is_definition(x, self.definitions)]
            if (
                len(rest) != 1
                or not isinstance(inner := rest[0], ir.For)
                or not self._is_shared(inner)
            ):
                return loops, body
            if {n for e in (inner.start, inner.stop) for n in reads(e)} & {
                x.variable for x in loops
            } or not adds_up(inner.body):
                return loops, body
            loops.append(inner)
            body = (*heads, *inner.body)

    def _tiled(self, s: ir.For) -> ir.Block | None:
        loops, body = self._nest(s)
        rounds = {x.variable: self.tile for x in loops}
        changed = {n for x in statements(body) for n in writes(x)} - set(self.definitions)
        sites = self._sites(body, rounds, changed)
        # a variable of the body that stands for a sum is replaced by the sum
        chosen = [b for b in boxes(sites, self.shape, self.indices, rounds) if self._worth(b)]
        if not chosen:
            return None
        if len(loops) == 1:
            self.simple = True
        ahead = self._copies or (self.prefetch != "none" and len(loops) == 1)
        self.starts |= {
            _start(x): int(x.start.value) for x in loops if isinstance(x.start, ir.Literal)
        }
        starts = {x.variable: IndexSum(0, {ir.Local(_start(x), self.kind): 1}) for x in loops}
        moved = [replace(b, sums=tuple(_moved(a, starts) for a in b.sums)) for b in chosen]
        pieces = [self._tile(b, ahead=ahead) for b in moved]
        if len(loops) == 1:
            return self._single(loops[0], body, pieces)
        return self._several(loops, body, pieces)

    def _single(self, loop: ir.For, body: ir.Block, pieces: list[Tile]) -> ir.Block:
        """A loop over whole tiles, and one over the tile that is not whole, unless panels say that
        there is none.
        """
        kind = loop.start.type
        rounds = build.subtract(loop.stop, loop.start)
        whole, every = build.divide(rounds, self.tile), build.ceil_divide(rounds, self.tile)
        zero, one = ir.Literal(0, kind), ir.Literal(1, kind)
        name = own(f"{loop.variable}.tile")
        number = ir.Local(name, kind)
        tiles = ir.Local(own(f"{loop.variable}.tiles"), kind)
        start = (ir.Assign(_start(loop), self._start_at(loop, number)),)
        doubled, copied = self.prefetch != "none", self._copies
        half = ir.Local(HALF, kind) if doubled else None
        compute = self._rounds(loop, body, pieces, ir.Literal(self.tile, kind), half)
        left = build.subtract(loop.stop, ir.Local(_start(loop), kind))
        rest = self._rounds(loop, body, pieces, left, zero if doubled else None)
        guarded = [not (self.inside and p.box.always) for p in pieces]
        last: ir.Block
        if copied:
            last = (
                *(s for p in pieces for s in self.bringing.copies(p, guarded=True, half=zero)),
                ir.WaitAsync(),
            )
        else:
            last = tuple(
                s
                for n, p in enumerate(pieces)
                for s in self.bringing.stage(p, n, guarded=True, half=zero if doubled else None)
            )
        tail = (
            ir.For(
                name,
                tiles,
                every,
                one,
                (*start, *last, ir.Barrier(), *rest, ir.Barrier()),
                role="tiles",
            ),
        )
        if is_multiple(rounds, self.tile, starts_of_panels(self.kernel, self.tile), {}):
            tail = ()
        count = ir.Assign(tiles.name, whole)
        if not doubled:
            stage = tuple(
                s
                for n, p in enumerate(pieces)
                for s in self.bringing.stage(p, n, guarded=guarded[n])
            )
            full = ir.For(
                name,
                zero,
                tiles,
                one,
                (*start, *stage, ir.Barrier(), *compute, ir.Barrier()),
                role="tiles",
            )
            return (count, full, *tail)
        if copied:
            return (count, *self._ring(loop, pieces, guarded, compute), ir.Barrier(), *tail)
        bring = self.bringing.part
        load = tuple(
            s for n, p in enumerate(pieces) for s in bring(p, n, "load", guarded=guarded[n])
        )
        assert half is not None
        other = build.subtract(one, half)
        store = tuple(
            s for n, p in enumerate(pieces) for s in bring(p, n, "store", guarded=False, half=other)
        )
        first = tuple(
            s for n, p in enumerate(pieces) for s in bring(p, n, "store", guarded=False, half=zero)
        )
        begin = ir.If(build.less(zero, tiles), (ir.Assign(_start(loop), loop.start), *load, *first))
        following = build.less(build.add(number, 1), tiles)
        ahead = ir.If(
            following, (ir.Assign(_start(loop), self._start_at(loop, build.add(number, 1))), *load)
        )
        behind = ir.If(following, store)
        cycle = (
            ir.Assign(HALF, build.remainder(number, 2)),
            ahead,
            ir.Assign(_start(loop), self._start_at(loop, number)),
            *compute,
            behind,
            ir.Barrier(),
        )
        full = ir.For(name, zero, tiles, one, cycle, role="tiles")
        return (count, *self._empty(pieces), begin, ir.Barrier(), full, *tail)

    def _ring(
        self, loop: ir.For, pieces: list[Tile], guarded: list[bool], compute: ir.Block
    ) -> ir.Block:
        """A loop over whole tiles in a ring of several, the next ones of which are copied while one
        is computed.
        """
        kind = loop.start.type
        number = ir.Local(own(f"{loop.variable}.tile"), kind)
        tiles = ir.Local(own(f"{loop.variable}.tiles"), kind)

        def start(tile: ir.Expression) -> ir.Block:
            return (ir.Assign(_start(loop), self._start_at(loop, tile)),)

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
            return (there, *commit)  # a group of its own for each tile, there or not

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

    def _several(self, loops: list[ir.For], body: ir.Block, pieces: list[Tile]) -> ir.Block:
        """Loops over the tiles of all loops around the loops over their rounds."""
        kind = loops[0].start.type
        whole: ir.Expression | None = None
        for loop in loops:
            end = build.add(ir.Local(_start(loop), kind), self.tile)
            test = ir.Compare("<=", end, loop.stop)
            whole = test if whole is None else ir.Logical("and", whole, test)
        assert whole is not None
        full, rest = body, body
        half = ir.Local(PLACE, I64) if self._copies else None
        for n, loop in enumerate(reversed(loops)):
            pieces_here = pieces if n == 0 else []
            full = self._rounds(loop, full, pieces_here, ir.Literal(self.tile, kind), half, loops)
            left = build.minimum(build.subtract(loop.stop, ir.Local(_start(loop), kind)), self.tile)
            rest = self._rounds(loop, rest, pieces_here, left, half, loops)
        if self._copies:
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
            name = own(f"{loop.variable}.tile")
            tiles = build.ceil_divide(build.subtract(loop.stop, loop.start), self.tile)
            start = ir.Assign(_start(loop), self._start_at(loop, ir.Local(name, kind)))
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
                    ir.Assign(_start(loop), self._start_at(loop, build.index_of(here, kind)))
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

        number = ir.Local(own(f"{loops[0].variable}.tile"), I64)
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
            loop.variable, build.add(ir.Local(_start(loop), kind), ir.Local(name, kind))
        )
        inner = self._replaced(body, pieces, names, half)
        zero, one = ir.Literal(0, kind), ir.Literal(1, kind)
        return (ir.For(name, zero, count, one, (place, *inner), role="sources"),)


def _is_definition(s: ir.Statement, definitions: Mapping[str, IndexSum]) -> bool:
    return isinstance(s, ir.Assign) and s.name in definitions


def _tiles(loop: ir.For) -> str:
    return own(f"{loop.variable}.tiles")


def _start(loop: ir.For) -> str:
    return own(f"{loop.variable}.start")


def _round(loop: ir.For) -> str:
    return own(f"{loop.variable}.round")


def _moved(a: IndexSum, starts: Mapping[str, IndexSum]) -> IndexSum:
    """A sum over loop variables, each the start of its tile and its round: the start joins what all
    threads share.
    """
    for name, start in starts.items():
        a = a.plus(start, a.coefficient(name))
    return a


def _renamed(a: IndexSum, names: Mapping[str, str]) -> IndexSum:
    terms = {
        replace(e, name=names.get(e.name, e.name)) if isinstance(e, ir.Local) else e: c
        for e, c in a.terms.items()
    }
    return IndexSum(a.constant, terms)

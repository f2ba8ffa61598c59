"""Bring what a block reads in a tile of rounds to shared memory, once for all of its threads.

    for k: load a[y#0, k]: u#0; ...
->  for $k.tile in range(0, n // 8):
      $k.start = $k.tile * 8
      load a[$y.first + $thread // 8, $k.start + $thread % 8]: $next.0; store $tile.a[$thread % 8, $thread // 8] = $next.0; ...; barrier
      for $k.round in range(8): k = $k.start + $k.round; load $tile.a[$k.round, $y.thread * 8]: u#0; ...
      barrier
Threads bring elements in the order in which they lie in memory, whoever reads them. What lies outside of the array is not brought: no
point that exists reads it. Tiles of whole rounds have no tests, in the inside of the index space.
`prefetch`: the elements of the next tile are loaded into registers while this one is computed, and stored into a second half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from lanewise.analysis.index_sums import IndexSum, single_definitions
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import original, own
from lanewise.ir.traverse import blocks, expressions, flat_map, reads, statements, writes
from lanewise.ir.values import value_array
from lanewise.passes.base import refuse
from lanewise.passes.points.boxes import WIDEST, WORD, Box, Site, boxes, lanes_of, sums_of, value, wavefronts
from lanewise.passes.points.merging import spread, steering
from lanewise.passes.points.shape import THREAD, Shape, first_of, thread_of
from lanewise.types import Scalar

HALF = own("half")  # of the double tile, that is computed
BRING = own("bring")  # the number of a load of a thread
MANY, TURNS = 8, 4  # loads of a thread beyond which they are a loop, and how many of them are written out there
REUSE = 2  # reads of an element from which on it is worth a place in shared memory


def legal(kernel: ir.Kernel, shape: Shape, indices: tuple[str, ...], tile: int, prefetch: str = "none") -> str | None:
    """Why the pass does not apply, or None."""
    if kernel.grid is None or not (kernel.body and isinstance(kernel.body[-1], ir.If)):
        return "its points are not mapped to blocks"
    if tile < 1:
        return f"a tile of {tile} rounds is empty"
    if prefetch == "async":
        return "its tiles are turned round on the way to shared memory, which asynchronous copies cannot do"
    staged = _Staging(kernel, shape, indices, tile, "none")
    staged.split(kernel.body[-1])
    if not staged.arrays:
        return "no elements are read by several threads of a block in a loop that all threads share, or apart in memory"
    if prefetch != "none" and not staged.simple:
        return "only the tiles of a single loop are loaded ahead"
    return None


def apply(kernel: ir.Kernel, shape: Shape, indices: tuple[str, ...], tile: int, prefetch: str = "none") -> ir.Kernel:
    """Stage what is read several times, or apart in memory, in tiles of `tile` rounds; raises `PlanError` where nothing is."""
    if reason := legal(kernel, shape, indices, tile, prefetch):
        raise refuse("shared-memory tiles", kernel, reason)
    staged = _Staging(kernel, shape, indices, tile, prefetch)
    split = kernel.body[-1]
    assert isinstance(split, ir.If)
    body = (*kernel.body[:-1], staged.split(split))
    return replace(kernel, body=body, arrays=(*kernel.arrays, *staged.arrays.values()))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A box with its place in shared memory. across: elements that a thread brings at once."""

    box: Box
    array: ir.ArrayArgument
    kind: Scalar
    pitch: int
    across: int
    outer: tuple[int, ...]  # the dimensions but the inner one, in the order of the shape in shared memory
    doubled: bool

    def place(self, indices: list[ir.Expression], half: ir.Expression | None) -> tuple[ir.Expression, ...]:
        """The indices in shared memory of a place in the box."""
        front = () if half is None else (half,)
        return (*front, *(indices[d] for d in self.outer), indices[self.box.inner])


class _Staging:
    """Rewrites the two bodies of a kernel: that of blocks in the inside, and that of the others."""

    def __init__(self, kernel: ir.Kernel, shape: Shape, indices: tuple[str, ...], tile: int, prefetch: str) -> None:
        self.kernel, self.shape, self.indices, self.tile, self.prefetch = kernel, shape, indices, tile, prefetch
        self.arrays: dict[str, ir.ArrayArgument] = {}
        self.simple = False  # whether a single loop was cut into tiles
        self.taken: dict[str, int] = {}
        self.inside = True
        self.definitions: dict[str, IndexSum] = {}
        self.varying: set[str] = set()
        self.deciding: set[str] = set()
        self.starts: dict[str, int] = {}  # of the loops that are cut, where a literal says so
        self.kind = kernel.counts[0].type
        self.written = {a.name for a in kernel.arrays if a.written}

    def split(self, s: ir.If) -> ir.If:
        """The statement that tells blocks in the inside from the others, with both bodies rewritten."""
        return replace(s, then=self.block_of(s.then, inside=True), otherwise=self.block_of(s.otherwise, inside=False))

    def block_of(self, body: ir.Block, *, inside: bool) -> ir.Block:
        self.inside, self.deciding, self.taken = inside, steering(body), {}
        start: dict[str, IndexSum] = {}
        plain = single_definitions(body)
        for s in body:  # a point beyond the end reads where it would lie
            if isinstance(s, ir.Assign) and isinstance(s.value, ir.Call) and s.value.intrinsic == "min":
                raw = s.value.arguments[0]
                if isinstance(raw, ir.Local) and original(raw.name) == own(f"{original(s.name)}.at"):
                    start[s.name] = plain[raw.name]
        self.definitions = single_definitions(body, start)
        self.varying = spread(body, {THREAD, *(thread_of(i) for i in self.indices)})
        ends = self._definitions_end(body)
        return (*body[:ends], *self._apart(body[ends:]))

    def _definitions_end(self, body: ir.Block) -> int:
        return next(
            (n for n, s in enumerate(body) if not isinstance(s, ir.Assign) or s.name not in self.definitions), len(body)
        )

    # -------------------------------------------------------- what is read

    def _sites(
        self, body: ir.Block, rounds: Mapping[str, int], changed: set[str], *, always: bool = True
    ) -> list[Site]:
        """The reads of a body that can be staged; `changed`: variables that it gives values."""
        sites: list[Site] = []
        moving = {*rounds, *(thread_of(i) for i in self.indices)}
        for s in body:
            if isinstance(s, ir.LoadElement) and s.array not in self.written and not s.more and self._staged(s):
                sums = sums_of(s, self.definitions)
                names = {
                    n for a in sums for e in a.terms for n in reads(e) if not (isinstance(e, ir.Local) and n in moving)
                }
                if not names & (changed | self.varying | moving):
                    sites.append(Site(s, sums, always))
            for inner in blocks(s):
                sites += self._sites(inner, rounds, changed, always=False)
        return sites

    def _staged(self, s: ir.LoadElement) -> bool:
        return self.kernel.array(s.array).space != "shared" and s.name not in self.deciding

    def _worth(self, box: Box) -> bool:
        return box.reads() >= REUSE * box.elements or self._strided(box)

    def _strided(self, box: Box) -> bool:
        """Whether neighbouring threads read elements that lie apart in memory."""
        fast = thread_of(self.indices[self.shape.fast])
        return any(s.coefficient(fast) for s in box.sums) and not box.sums[-1].coefficient(fast)

    def _piece(self, box: Box, *, doubled: bool) -> _Piece:
        number = self.taken.get(box.array, 0) + 1
        self.taken[box.array] = number
        name = own(f"tile.{box.array}" + (f".{number}" if number > 1 else ""))
        source = self.kernel.array(box.array)
        kind, last = source.leaves[0].type, len(box.extents) - 1
        most = min(WIDEST // kind.size, source.multiple) if kind.size >= WORD else 1
        across = next(n for n in (4, 2, 1) if n <= most and self._is_multiple(box.origin(last), n))
        extents = list(box.extents)
        extents[last] = -(-extents[last] // across) * across
        outer = tuple(d for d in range(len(extents)) if d != box.inner)
        box = replace(box, extents=tuple(extents))
        pitch = self._pitch(box, outer, across)
        shape = (*((2,) if doubled else ()), *(extents[d] for d in outer), pitch)
        array = replace(value_array(name, kind, written=True), space="shared", shape=shape, length=prod(shape))
        assert self.arrays.setdefault(name, array) == array
        return _Piece(box, array, kind, pitch, across, outer, doubled)

    def _is_multiple(self, origin: IndexSum, n: int) -> bool:
        return origin.constant % n == 0 and all(c * self._factor(e) % n == 0 for e, c in origin.terms.items())

    def _factor(self, e: ir.Expression) -> int:
        """A number that a variable is a multiple of."""
        if isinstance(e, ir.Local):
            for d, i in enumerate(self.indices):
                if e.name == first_of(i):
                    return self.shape.side(d)
            if (start := self.starts.get(e.name)) is not None and start % self.tile == 0:
                return self.tile
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
        threads = self.shape.total
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
            read = [sum(value(box.place(box.sites[0], d), v) * strides[d] for d in strides) * words for v in lanes]
            cost = (
                wavefronts([r // wide * wide for r in read], wide)
                * len(box.sites)
                * max(1, prod(box.rounds.values()))
                // wide
            )
            stored: list[int] = []
            for lane in range(32):
                places, rest = {}, lane * across
                for d in reversed(range(len(box.extents))):
                    places[d], rest = rest % box.extents[d], rest // box.extents[d]
                stored.append(sum(places[d] * strides[d] for d in strides) * words)
            cost += wavefronts(stored, 1) * -(-box.elements // threads)
            best = min(best, (cost, pitch))
        return best[1]

    # -------------------------------------------------------- staging without a loop

    def _apart(self, body: ir.Block) -> ir.Block:
        """What neighbouring threads read apart in memory, outside of loops, is staged first of all."""
        sites = self._sites(body, {}, {n for s in statements(body) for n in writes(s)})
        pieces = [self._piece(b, doubled=False) for b in boxes(sites, self.shape, self.indices, {}) if self._strided(b)]
        if not pieces:
            return self._loops(body)
        stage = tuple(
            s for n, p in enumerate(pieces) for s in self._stage(p, n, guarded=not (self.inside and p.box.always))
        )
        replaced = self._replaced(body, pieces, {}, None)
        return (*stage, ir.Barrier(), *self._loops(replaced))

    def _replaced(
        self, body: ir.Block, pieces: list[_Piece], rounds: Mapping[str, str], half: ir.Expression | None
    ) -> ir.Block:
        """The reads of a body from shared memory."""
        table = {s.load: (p, s) for p in pieces for s in p.box.sites}

        def change(s: ir.Statement) -> ir.Block:
            if not isinstance(s, ir.LoadElement) or (hit := table.get(s)) is None:
                return (s,)
            piece, site = hit
            sums = [piece.box.place(site, d) for d in range(len(s.indices))]
            places = [_renamed(a, rounds).expression(self.kind) for a in sums]
            return (replace(s, array=piece.array.name, indices=piece.place(places, half)),)

        return flat_map(body, change)

    # -------------------------------------------------------- loops

    def _loops(self, body: ir.Block) -> ir.Block:
        done: list[ir.Statement] = []
        for s in body:
            match s:
                case ir.For() if self._is_shared(s):
                    done += self._tiled(s) or (replace(s, body=self._loops(s.body)),)
                case ir.If() if not set(reads(s.condition)) & self.varying:
                    done.append(replace(s, then=self._loops(s.then), otherwise=self._loops(s.otherwise)))
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
        """Loops with nothing but each other in them, the outermost first, and the body of the innermost."""
        loops, body = [s], s.body
        while True:
            heads, rest = (
                [x for x in body if _is_definition(x, self.definitions)],
                [x for x in body if not _is_definition(x, self.definitions)],
            )
            if len(rest) != 1 or not isinstance(inner := rest[0], ir.For) or not self._is_shared(inner):
                return loops, body
            if {n for e in (inner.start, inner.stop) for n in reads(e)} & {x.variable for x in loops} or not adds_up(
                inner.body
            ):
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
        doubled = self.prefetch == "registers" and len(loops) == 1
        self.starts |= {_start(x): int(x.start.value) for x in loops if isinstance(x.start, ir.Literal)}
        starts = {x.variable: IndexSum(0, {ir.Local(_start(x), self.kind): 1}) for x in loops}
        moved = [replace(b, sums=tuple(_moved(a, starts) for a in b.sums)) for b in chosen]
        pieces = [self._piece(b, doubled=doubled) for b in moved]
        if len(loops) == 1:
            return self._single(loops[0], body, pieces, doubled)
        return self._several(loops, body, pieces)

    def _single(self, loop: ir.For, body: ir.Block, pieces: list[_Piece], doubled: bool) -> ir.Block:
        """A loop over whole tiles, and one over the tile that is not whole."""
        kind = loop.start.type
        rounds = build.subtract(loop.stop, loop.start)
        whole, every = build.divide(rounds, self.tile), build.ceil_divide(rounds, self.tile)
        zero, one = ir.Literal(0, kind), ir.Literal(1, kind)
        name = own(f"{loop.variable}.tile")
        number = ir.Local(name, kind)
        tiles = ir.Local(own(f"{loop.variable}.tiles"), kind)
        start = (ir.Assign(_start(loop), self._start_at(loop, number)),)
        half: ir.Expression | None = None
        if doubled:
            half = ir.Local(HALF, kind)
        compute = self._rounds(loop, body, pieces, ir.Literal(self.tile, kind), half)
        left = build.subtract(loop.stop, ir.Local(_start(loop), kind))
        rest = self._rounds(loop, body, pieces, left, zero if doubled else None)
        guarded = [not (self.inside and p.box.always) for p in pieces]
        last = tuple(
            s for n, p in enumerate(pieces) for s in self._stage(p, n, guarded=True, half=zero if doubled else None)
        )
        tail = ir.For(name, tiles, every, one, (*start, *last, ir.Barrier(), *rest, ir.Barrier()), role="tiles")
        count = ir.Assign(tiles.name, whole)
        if not doubled:
            stage = tuple(s for n, p in enumerate(pieces) for s in self._stage(p, n, guarded=guarded[n]))
            full = ir.For(name, zero, tiles, one, (*start, *stage, ir.Barrier(), *compute, ir.Barrier()), role="tiles")
            return (count, full, tail)
        load = tuple(s for n, p in enumerate(pieces) for s in self._moves(p, n, guarded=guarded[n], part="load"))
        assert half is not None
        other = build.subtract(one, half)
        store = tuple(
            s for n, p in enumerate(pieces) for s in self._moves(p, n, guarded=False, part="store", half=other)
        )
        first = tuple(
            s for n, p in enumerate(pieces) for s in self._moves(p, n, guarded=False, part="store", half=zero)
        )
        begin = ir.If(build.less(zero, tiles), (ir.Assign(_start(loop), loop.start), *load, *first))
        following = build.less(build.add(number, 1), tiles)
        ahead = ir.If(following, (ir.Assign(_start(loop), self._start_at(loop, build.add(number, 1))), *load))
        behind = ir.If(following, store)
        cycle = (
            ir.Assign(HALF, build.remainder(number, 2)), ahead, ir.Assign(_start(loop), self._start_at(loop, number)),
            *compute, behind, ir.Barrier(),
        )  # fmt: skip
        full = ir.For(name, zero, tiles, one, cycle, role="tiles")
        return (count, *self._empty(pieces), begin, ir.Barrier(), full, tail)

    def _empty(self, pieces: list[_Piece]) -> ir.Block:
        """Registers have a value where nothing is loaded."""
        names = [
            (n, p.kind) for i, p in enumerate(pieces) for r in range(self._loads(p)) for n in _registers(i, r, p.across)
        ]
        return tuple(ir.Assign(n, ir.Literal(0.0 if k.is_float else 0, k)) for n, k in names)

    def _several(self, loops: list[ir.For], body: ir.Block, pieces: list[_Piece]) -> ir.Block:
        """Loops over the tiles of all loops around the loops over their rounds."""
        kind = loops[0].start.type
        whole: ir.Expression | None = None
        for loop in loops:
            end = build.add(ir.Local(_start(loop), kind), self.tile)
            test = ir.Compare("<=", end, loop.stop)
            whole = test if whole is None else ir.Logical("and", whole, test)
        assert whole is not None
        plain = tuple(
            s for n, p in enumerate(pieces) for s in self._stage(p, n, guarded=not (self.inside and p.box.always))
        )
        careful = tuple(s for n, p in enumerate(pieces) for s in self._stage(p, n, guarded=True))
        full, rest = body, body
        for n, loop in enumerate(reversed(loops)):
            pieces_here = pieces if n == 0 else []
            full = self._rounds(loop, full, pieces_here, ir.Literal(self.tile, kind), None, loops)
            left = build.minimum(build.subtract(loop.stop, ir.Local(_start(loop), kind)), self.tile)
            rest = self._rounds(loop, rest, pieces_here, left, None, loops)
        inner: ir.Block = (ir.If(whole, plain, careful), ir.Barrier(), ir.If(whole, full, rest), ir.Barrier())
        for loop in reversed(loops):
            name = own(f"{loop.variable}.tile")
            tiles = build.ceil_divide(build.subtract(loop.stop, loop.start), self.tile)
            start = ir.Assign(_start(loop), self._start_at(loop, ir.Local(name, kind)))
            inner = (ir.For(name, ir.Literal(0, kind), tiles, ir.Literal(1, kind), (start, *inner), role="tiles"),)
        return inner

    def _start_at(self, loop: ir.For, tile: ir.Expression) -> ir.Expression:
        return build.add(loop.start, build.multiply(tile, self.tile))

    def _rounds(
        self, loop: ir.For, body: ir.Block, pieces: list[_Piece], count: ir.Expression, half: ir.Expression | None,
        loops: list[ir.For] | None = None,
    ) -> ir.Block:  # fmt: skip
        """The rounds of a tile."""
        kind, name = loop.start.type, _round(loop)
        names = {x.variable: _round(x) for x in (loops or [loop])}
        place = ir.Assign(loop.variable, build.add(ir.Local(_start(loop), kind), ir.Local(name, kind)))
        inner = self._replaced(body, pieces, names, half)
        zero, one = ir.Literal(0, kind), ir.Literal(1, kind)
        return (ir.For(name, zero, count, one, (place, *inner), role="sources"),)

    # -------------------------------------------------------- moving elements

    def _loads(self, p: _Piece) -> int:
        """How often each thread loads."""
        return -(-p.box.elements // (p.across * self.shape.total))

    def _stage(self, p: _Piece, number: int, *, guarded: bool, half: ir.Expression | None = None) -> ir.Block:
        """Bring a box to shared memory: all loads first."""
        if self._loads(p) > MANY:
            return self._in_turns(p, number, guarded=guarded, half=half)
        if not guarded:
            both = (self._moves(p, number, guarded=False, part=part, half=half) for part in ("load", "store"))
            return tuple(s for part in both for s in part)
        done: list[ir.Statement] = []
        for r in range(self._loads(p)):
            load, store = (self._move(p, number, r, part, half) for part in ("load", "store"))
            done += self._under(p, r, (*load, *store), guarded=True)
        return tuple(done)

    def _in_turns(self, p: _Piece, number: int, *, guarded: bool, half: ir.Expression | None) -> ir.Block:
        """Many loads of each thread as a loop: written out they take registers for as many addresses."""
        turn = ir.Local(BRING, self.kind)
        load, store = (self._move(p, number, turn, part, half) for part in ("load", "store"))
        body = self._under(p, turn, (*load, *store), guarded=guarded)
        zero, one = ir.Literal(0, self.kind), ir.Literal(1, self.kind)
        return (ir.For(BRING, zero, ir.Literal(self._loads(p), self.kind), one, body, unroll=TURNS),)

    def _moves(
        self, p: _Piece, number: int, *, guarded: bool, part: str, half: ir.Expression | None = None
    ) -> ir.Block:
        """One half of the way: into registers, or from there into shared memory."""
        moves = ((r, self._move(p, number, r, part, half)) for r in range(self._loads(p)))
        return tuple(s for r, move in moves for s in self._under(p, r, move, guarded=guarded))

    def _under(self, p: _Piece, r: int | ir.Expression, body: ir.Block, *, guarded: bool) -> ir.Block:
        """Only where there is something to bring."""
        tests: list[ir.Expression] = []
        groups, thread = p.box.elements // p.across, ir.Local(THREAD, self.kind)
        if not isinstance(r, int):
            if groups % self.shape.total:
                tests.append(build.less(build.add(thread, build.multiply(r, self.shape.total)), groups))
        elif groups - r * self.shape.total < self.shape.total:
            tests.append(build.less(thread, groups - r * self.shape.total))
        if guarded:
            array, places = self.kernel.array(p.box.array), self._places(p, r)
            kinds = {c.name: c.type for c in self.kernel.counts + self.kernel.uniforms}
            for d, place in enumerate(places):
                origin = p.box.origin(d)
                index = build.add(origin.expression(self.kind), place)
                if not self._counts_up(origin):
                    tests.append(ir.Compare(">=", index, ir.Literal(0, self.kind)))
                length = array.shape[d]
                stop = ir.Literal(length, self.kind) if isinstance(length, int) else ir.Local(length, kinds[length])
                tests.append(build.less(index, stop))
        for test in reversed(tests):
            body = (ir.If(test, body),)
        return body

    def _counts_up(self, origin: IndexSum) -> bool:
        """Whether a place is surely not negative."""
        own_names = {first_of(i) for i in self.indices}
        return origin.constant >= 0 and all(
            c > 0 and isinstance(e, ir.Local) and (e.name in own_names or self.starts.get(e.name, -1) >= 0)
            for e, c in origin.terms.items()
        )

    def _places(self, p: _Piece, r: int | ir.Expression) -> list[ir.Expression]:
        """Where in the box this thread brings elements at its load `r`: in the order of memory."""
        extents, total = p.box.extents, self.shape.total
        thread, last = ir.Local(THREAD, self.kind), len(extents) - 1
        groups = extents[last] // p.across
        places: list[ir.Expression] = [thread] * len(extents)
        if total % groups == 0:
            rest = build.add(build.divide(thread, groups), _times(r, total // groups))
            places[last] = build.multiply(build.remainder(thread, groups), p.across)
        else:
            number = build.add(thread, _times(r, total))
            rest = build.divide(number, groups)
            places[last] = build.multiply(build.remainder(number, groups), p.across)
        for d in reversed(range(last)):
            places[d] = rest if d == 0 else build.remainder(rest, extents[d])
            rest = build.divide(rest, extents[d])
        return places

    def _move(self, p: _Piece, number: int, r: int | ir.Expression, part: str, half: ir.Expression | None) -> ir.Block:
        names, places = _registers(number, r if isinstance(r, int) else 0, p.across), self._places(p, r)
        if part == "load":
            indices = tuple(build.add(p.box.origin(d).expression(self.kind), place) for d, place in enumerate(places))
            return (ir.LoadElement(p.box.array, indices, names[0], more=names[1:]),)
        values, last = tuple(ir.Local(n, p.kind) for n in names), len(places) - 1
        if p.box.inner == last and p.array.shape[-1] % p.across == 0:  # pyright: ignore[reportOperatorIssue]
            return (ir.StoreElement(p.array.name, p.place(places, half), values[0], more=values[1:]),)
        stores: list[ir.Statement] = []
        for n, v in enumerate(values):
            shifted = [*places[:last], build.add(places[last], n)]
            stores.append(ir.StoreElement(p.array.name, p.place(shifted, half), v))
        return tuple(stores)


def _times(r: int | ir.Expression, factor: int) -> int | ir.Expression:
    return r * factor if isinstance(r, int) else build.multiply(r, factor)


def adds_up(body: ir.Block) -> bool:
    """Whether rounds may come in any order, but for rounding: variables that last are sums, products, minima or maxima."""
    every = list(statements(body))
    if any(isinstance(s, ir.StoreElement | ir.SetElement | ir.DeclareArray | ir.Apply | ir.While) for s in every):
        return False
    seen: set[str] = set()
    lasting: set[str] = set()
    for s in body:
        inside = [s, *(x for b in blocks(s) for x in statements(b))]
        used = {n for x in inside for e in expressions(x) for n in reads(e)}
        written = {n for x in inside for n in writes(x)}
        lasting |= (used & _written(every)) - seen
        if isinstance(s, ir.Assign | ir.LoadElement | ir.For):
            seen |= set(writes(s)) - lasting
        else:
            lasting |= written - seen
    return all(_accumulates(n, every) for n in lasting)


def _written(every: list[ir.Statement]) -> set[str]:
    return {n for s in every for n in writes(s)}


def _accumulates(name: str, every: list[ir.Statement]) -> bool:
    """Whether a variable is only added to, or multiplied, or compared, and not read otherwise."""
    operators: set[str] = set()
    for s in every:
        used = [n for e in expressions(s) for n in reads(e)]
        if name not in used and name not in writes(s):
            continue
        if not isinstance(s, ir.Assign) or s.name != name or used.count(name) != 1:
            return False
        match s.value:
            case ir.Binary(operator="+" | "*" as operator, left=ir.Local(name=n)) if n == name:
                operators.add(operator)
            case ir.Binary(operator="+" | "*" as operator, right=ir.Local(name=n)) if n == name:
                operators.add(operator)
            case ir.Binary(operator="-", left=ir.Local(name=n)) if n == name:
                operators.add("+")
            case ir.Call(intrinsic="min" | "max" as which, arguments=arguments) if any(
                isinstance(a, ir.Local) and a.name == name for a in arguments
            ):
                operators.add(which)
            case _:
                return False
    return len(operators) == 1


def _is_definition(s: ir.Statement, definitions: Mapping[str, IndexSum]) -> bool:
    return isinstance(s, ir.Assign) and s.name in definitions


def _start(loop: ir.For) -> str:
    return own(f"{loop.variable}.start")


def _round(loop: ir.For) -> str:
    return own(f"{loop.variable}.round")


def _registers(piece: int, load: int, across: int) -> tuple[str, ...]:
    return tuple(own(f"next.{piece}.{load}.{n}") for n in range(across))


def _moved(a: IndexSum, starts: Mapping[str, IndexSum]) -> IndexSum:
    """A sum over loop variables, each the start of its tile and its round: the start joins what all threads share."""
    for name, start in starts.items():
        a = a.plus(start, a.coefficient(name))
    return a


def _renamed(a: IndexSum, names: Mapping[str, str]) -> IndexSum:
    terms = {
        replace(e, name=names.get(e.name, e.name)) if isinstance(e, ir.Local) else e: c for e, c in a.terms.items()
    }
    return IndexSum(a.constant, terms)

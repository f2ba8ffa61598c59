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
The barrier says both that everybody's copies are there, and that nothing reads the tile any more
that the next copies go over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lanewise.analysis.index_sums import IndexSum, single_definitions
from lanewise.ir import nodes as ir
from lanewise.ir.shared import array_bytes
from lanewise.ir.traverse import blocks, reads, statements, written_in
from lanewise.ir.verify import RANK
from lanewise.passes.base import refuse
from lanewise.passes.points.boxes import WORD, ReadBox, Site, boxes, sums_of
from lanewise.passes.points.bringing import Bringing
from lanewise.passes.points.free_order import adds_up
from lanewise.passes.points.joining import raw_places
from lanewise.passes.points.merging import spread, steering
from lanewise.passes.points.shape import THREAD, Shape, thread_of
from lanewise.passes.points.tile_loops import STAGES, TileLoops, read_from_tiles, start_of
from lanewise.passes.points.tiles import Ground, Tile

SMALLEST_COPY = 4  # bytes
REUSE = 2  # reads of an element from which on it is worth a place in shared memory


def legal(
    kernel: ir.Kernel, shape: Shape, indices: tuple[str, ...], tile: int, prefetch: str = "none"
) -> str | None:
    """Why the pass does not apply, or None."""
    done = _staged(kernel, shape, indices, tile, prefetch)
    return done if isinstance(done, str) else None


def apply(
    kernel: ir.Kernel,
    shape: Shape,
    indices: tuple[str, ...],
    tile: int,
    prefetch: str = "none",
    most_bytes: int | None = None,
) -> ir.Kernel:
    """Stage what is read several times, or apart in memory, in tiles of `tile` rounds; raises
    `PlanError` where nothing is. most_bytes: of all tiles; more raise it as soon as they are met.
    """
    done = _staged(kernel, shape, indices, tile, prefetch, most_bytes)
    if isinstance(done, str):
        raise refuse("shared-memory tiles", kernel, done)
    return done


def _staged(
    kernel: ir.Kernel,
    shape: Shape,
    indices: tuple[str, ...],
    tile: int,
    prefetch: str,
    most_bytes: int | None = None,
) -> ir.Kernel | str:
    """The kernel with tiles, or why it has none."""
    if kernel.grid is None or not (kernel.body and isinstance(split := kernel.body[-1], ir.If)):
        return "its points are not mapped to blocks"
    if tile < 1:
        return f"a tile of {tile} rounds is empty"
    staged = _Staging(kernel, shape, indices, tile, prefetch, most_bytes)
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
        self,
        kernel: ir.Kernel,
        shape: Shape,
        indices: tuple[str, ...],
        tile: int,
        prefetch: str,
        most_bytes: int | None,
    ) -> None:
        self.kernel = kernel
        self.most_bytes = most_bytes
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
        self._loops_over_tiles = TileLoops(
            self.kernel, self.tile, self.prefetch, self.bringing, inside
        )
        start: dict[str, IndexSum] = {}
        plain = single_definitions(body)
        # a point beyond the end reads where it would lie
        for name, raw in raw_places(body).items():
            start[name] = plain[raw]
        self.definitions = single_definitions(body, start) if start else plain
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

    def _sites(self, body: ir.Block, rounds: Mapping[str, int], changed: set[str]) -> list[Site]:
        """The reads of a body that can be staged; `changed`: variables that it gives values."""
        moving = {*rounds, *(thread_of(i) for i in self.indices)}
        return self._sites_in(body, moving, changed | self.varying | moving, always=True)

    def _sites_in(
        self, body: ir.Block, moving: set[str], unfit: set[str], *, always: bool
    ) -> list[Site]:
        sites: list[Site] = []
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
                if names.isdisjoint(unfit):
                    sites.append(Site(s, sums, always))
            for inner in blocks(s):
                sites += self._sites_in(inner, moving, unfit, always=False)
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
                self._check_bytes()
                return tile

    def _check_bytes(self) -> None:
        taken = array_bytes(self.arrays.values())
        if self.most_bytes is not None and taken > self.most_bytes:
            reason = f"they take {taken:,} bytes; wanted at most {self.most_bytes:,}"
            raise refuse("shared-memory tiles", self.kernel, reason)

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
        sites = self._sites(body, {}, written_in(body))
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
        replaced = read_from_tiles(body, pieces, {}, self.kind, None)
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
        changed = written_in(s.body)
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
        changed = written_in(body)
        sites = self._sites(body, rounds, changed)
        # a variable of the body that stands for a sum is replaced by the sum
        chosen = [b for b in boxes(sites, self.shape, self.indices, rounds) if self._worth(b)]
        if not chosen:
            return None
        if len(loops) == 1:
            self.simple = True
        ahead = self._copies or (self.prefetch != "none" and len(loops) == 1)
        self.starts |= {
            start_of(x): int(x.start.value) for x in loops if isinstance(x.start, ir.Literal)
        }
        starts = {x.variable: IndexSum(0, {ir.Local(start_of(x), self.kind): 1}) for x in loops}
        moved = [replace(b, sums=tuple(_moved(a, starts) for a in b.sums)) for b in chosen]
        pieces = [self._tile(b, ahead=ahead) for b in moved]
        if len(loops) == 1:
            return self._loops_over_tiles.single(loops[0], body, pieces)
        return self._loops_over_tiles.several(loops, body, pieces)


def _is_definition(s: ir.Statement, definitions: Mapping[str, IndexSum]) -> bool:
    return isinstance(s, ir.Assign) and s.name in definitions


def _moved(a: IndexSum, starts: Mapping[str, IndexSum]) -> IndexSum:
    """A sum over loop variables, each the start of its tile and its round: the start joins what all
    threads share.
    """
    for name, start in starts.items():
        a = a.plus(start, a.coefficient(name))
    return a

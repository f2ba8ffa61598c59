"""What SIMD lanes ask for ahead of time, since a core asks no further than a page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanewise.analysis.index_sums import index_sum
from lanewise.analysis.lane_sums import first_round, lane_sums
from lanewise.analysis.sampling import value_of
from lanewise.emit.lane_choices import LaneChoices
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads, rewrite, statements
from lanewise.language.target import LINE
from lanewise.language.types import I64

AHEAD = 2048  # bytes: what is requested so far ahead has come from memory when it is loaded
# the same where rounds load from several arrays, each of which a core follows less well
AHEAD_OF_SEVERAL = 8192
# the same where blocks follow each other along a row: a core asks for what lies nearer, up to the
# end of a page
ALONG_ROWS = 6144
ALONG_PLANES = 4096  # and in planes that were read before, which are in the third cache
ALONG_SQUARES = 256  # and where as many rows as lanes are read side by side
ANY_EXTENT = 1009  # stands for all extents and indices where places are compared
NEIGHBOURS = 3  # elements of an array that a point reads where their lines come from several rows


class LanePrefetches:
    """Which memory loads ask for, besides their own."""

    def __init__(self, lanes: LaneChoices, threads: ir.Parallel) -> None:
        self.lanes = lanes
        self.sizes = {b.name: b.type.size for b in lanes.kernel.buffers}
        self.outside = {b.name for b in lanes.kernel.buffers if b.space == "global"}
        (outer,) = lanes.kernel.body
        assert isinstance(outer, ir.Parallel)
        block = ir.Local(outer.variable, outer.extent.type)
        assigned = [s for s in statements(outer.body) if isinstance(s, ir.Assign)]
        own_memory = any(b.space == "shared" for b in lanes.kernel.buffers)
        looks = bool(lanes.bodies) and not lanes.in_squares
        # bytes, by loads
        self.far = dict[int, int]()
        # At the edges as well: a gap of one line misleads what caches ask for themselves.
        for body in lanes.bodies if looks else ():
            self.far |= self._far_ahead(body, own_memory=own_memory)
        # Rows of this block, or of this point of it: the next one has the next.
        points = [s for s in statements(outer.body) if isinstance(s, ir.For) and s.role == "points"]
        numbers = {block, *(ir.Local(s.variable, block.type) for s in points)}
        self.by_block = {s.name for s in assigned if s.value in numbers}
        loops = {s.variable for s in statements(outer.body) if isinstance(s, ir.For)}
        self.moving = {s.name for s in assigned} | loops | {block.name}
        # bytes of each shared loop around; 0 where a core follows its rows by itself
        self.of_rounds: list[int] = []
        self.read_before = set[str]()
        self.read_later = self._read_later(points[0].body if points else threads.body)

    def begin_rounds(self, s: ir.For) -> None:
        """A loop begins whose rounds the lanes share."""
        loads = [x for x in statements(s.body) if isinstance(x, ir.Load)]
        arrays, sums = {x.buffer for x in loads}, self.lanes.sums
        rows = {(x.buffer, frozenset(index_sum(x.index, sums).terms.items())) for x in loads}
        self.of_rounds.append(
            0 if len(rows) > len(arrays) else AHEAD if len(arrays) == 1 else AHEAD_OF_SEVERAL
        )

    def end_rounds(self, s: ir.For) -> None:
        self.of_rounds.pop()
        self.read_before |= {x.buffer for x in statements(s.body) if isinstance(x, ir.Load)}

    def asked(self, s: ir.Load) -> tuple[ir.Expression | None, list[int]]:
        """In a loop whose rounds the lanes share: asks for what a later round or block loads, since
        a core asks no further than a page. Elements behind a place, or behind that of the load.

        A later loop over a row, which finds it in the caches, asks for the row of the next block;
        where there is no later one, the first asks for what lies `AHEAD` behind. What all blocks
        read is near already, and several rows side by side a core follows by itself. Of neighbours
        that points read in several rows those of the last row are new.
        """
        if id(s) in self.far:
            return None, [self.far[id(s)] // self.sizes[s.buffer]]
        if not self.lanes.sharing or s.buffer not in self.outside:
            return None, []
        total = index_sum(s.index, self.lanes.sums).without([self.lanes.thread])
        names = {n for e in total.terms for n in reads(e)} - {
            first_round(x.variable) for x in self.lanes.sharing
        }
        if names.isdisjoint(self.moving):
            return None, []
        index: ir.Expression | None = None
        if s.buffer in self.read_before and (row := names & self.by_block):
            index = rewrite(
                total.expression(I64),
                lambda x: build.add(x, 1) if isinstance(x, ir.Local) and x.name in row else x,
            )
            distance = 0
        else:
            if not self.of_rounds[-1] or s.buffer in self.read_later.get(
                id(self.lanes.sharing[0]), ()
            ):
                return None, []
            distance = self.of_rounds[-1] // self.sizes[s.buffer]
        line = LINE // self.sizes[s.buffer]
        return index, list(range(distance, distance + self.lanes.count, line))

    def _read_later(self, block: ir.Block) -> dict[int, set[str]]:
        """For each shared loop the arrays whose row a later loop reads again: that one asks for the
        next row.
        """

        def rows(s: ir.Statement) -> set[str]:
            loads = [x for x in statements((s,)) if isinstance(x, ir.Load)]
            return {
                x.buffer
                for x in loads
                if any(
                    self.by_block & set(reads(e)) for e in index_sum(x.index, self.lanes.sums).terms
                )
            }

        again, behind = dict[int, set[str]](), set[str]()
        for s in reversed(block):
            if isinstance(s, ir.For) and s.variable in self.lanes.loops:
                again[id(s)] = rows(s) & behind
            behind |= rows(s) if isinstance(s, ir.For | ir.If) else set()
        return again

    def _far_ahead(self, block: ir.Block, *, own_memory: bool) -> dict[int, int]:
        """How many bytes ahead of loads of a block's points memory is requested.

        Of squares that a tile gathers all rows: there are more than a core follows. Of neighbours
        those of the last row or plane, which come from memory: the others found their lines when
        they were the last. Of other planes the last of several rows as well.
        """
        ahead, sums = dict[int, int](), lane_sums(block, self.lanes.varying, self.lanes.around)
        straight = block if block is self.lanes.bodies[0] else tuple(_straight(block))
        for b in self.lanes.kernel.buffers:
            loads = [
                s
                for s in straight
                if isinstance(s, ir.Load) and s.buffer == b.name and self.lanes.differs(s.index)
            ]
            if b.space != "global" or len(loads) < NEIGHBOURS:
                continue
            if own_memory:
                ahead |= {id(s): ALONG_SQUARES for s in loads if len(loads) == self.lanes.count}
                continue
            places = [
                value_of(s.index, dict.fromkeys(reads(s.index), np.asarray(ANY_EXTENT)))
                for s in loads
            ]
            known = [(s, int(p)) for s, p in zip(loads, places, strict=True) if p is not None]
            distances = _last_rows([p for _, p in known])
            rows = dict[tuple[int, object], int]()
            for s, p in known:
                # one register of each row: a core continues with the lines behind it
                if p in distances:
                    rows.setdefault(
                        (distances[p], frozenset(index_sum(s.index, sums).terms.items())), id(s)
                    )
            ahead |= {number: distance for (distance, _), number in rows.items()}
        return ahead


def _last_rows(places: list[int]) -> dict[int, int]:
    """How far ahead memory is requested, by the place of the last neighbour of all and of those in
    other planes of several rows.

    Places are those in arrays whose extents are all `ANY_EXTENT`.
    """
    if not places:
        return {}
    last, planes = max(places), dict[int, list[int]]()
    for p in places:
        planes.setdefault(round((last - p) / ANY_EXTENT**2), []).append(p)
    several = [max(p) for away, p in planes.items() if away and max(p) - min(p) >= ANY_EXTENT // 2]
    return dict.fromkeys(several, ALONG_PLANES) | {last: ALONG_ROWS}


def _straight(block: ir.Block) -> Iterator[ir.Statement]:
    """The statements of a block and of branches in it, without those of loops."""
    for s in block:
        yield s
        if isinstance(s, ir.If):
            yield from _straight((*s.then, *s.otherwise))

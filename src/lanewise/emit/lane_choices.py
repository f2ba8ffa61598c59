"""What is decided about the threads of a block that are the lanes of SIMD registers: every
statement runs for all lanes at once.

    parallel for $thread in range(16): x = $x.first + $thread; load a[y * w + x]: a_1; store c[y * w
    + x] = 2.0 * a_1
->  sixteen elements of a from y * w + $x.first on; sixteen of c from there on = 2.0 * them
What does not depend on the lane stays a number. Conditions that do are masks: what stands under
them reads, writes and assigns in their lanes alone. Loops run the same rounds in all lanes
(passes/points/lanes.py sees to it), so that a barrier is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from lanewise.analysis.index_sums import IndexSum, index_sum, single_definitions
from lanewise.analysis.lane_sums import lane_sums, shared_loops
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.spreading import spread_in_lanes
from lanewise.ir.traverse import reads, rewrite, statements, subexpressions


class LaneChoices:
    """Which variables differ between lanes, which loops lanes share, what is written past the
    caches; and where the text is that is written: in which branches and loops.
    """

    def __init__(self, kernel: ir.Kernel, threads: ir.Parallel) -> None:
        assert isinstance(threads.extent, ir.Literal)
        self.kernel = kernel
        self.thread, self.kind, self.count = (
            threads.variable,
            threads.extent.type,
            int(threads.extent.value),
        )
        self.varying = spread_in_lanes(threads.body, {self.thread})
        self.bodies = _bodies(threads.body, self.varying)
        self.inside = next(
            (s.condition for s in statements(threads.body) if _is_split(s, self.bodies)), None
        )
        self.stored_in_bodies = {
            s.buffer for b in self.bodies for s in statements(b) if isinstance(s, ir.Store)
        }
        heads = [*threads.body, *(x for s in threads.body if isinstance(s, ir.For) for x in s.body)]
        self.loops = shared_loops(threads.body, self.varying, self.thread, self.count)
        self.around = lane_sums(tuple(s for s in heads if isinstance(s, ir.Assign)), self.varying)
        self.sums = (
            self.around if self.bodies else lane_sums(threads.body, self.varying, self.loops)
        )
        loaded = {s.buffer for s in statements(threads.body) if isinstance(s, ir.Load)}
        ordered = {b.name for b in kernel.buffers if b.ordered}
        kept = loaded | self._written_in_part(threads.body, 0) - ordered
        # Nothing reads them here: they need not stay in the caches.
        self.streamed = {
            b.name
            for b in kernel.buffers
            if b.written and b.space == "global" and b.name not in kept
        }
        # stored in the order of memory: parts of a line follow each other
        self.ordered = ordered & self.streamed
        # Squares that ask for what comes next themselves, and write pieces of many rows at once.
        self.in_squares = any(isinstance(s, ir.Prefetch) for s in statements(kernel.body))
        # integers that are assigned once, whatever they depend on
        self.whole: Mapping[str, IndexSum] = {}
        self.past = set[str]()  # buffers written past the caches
        self.in_rows = set[str]()  # of these: whose registers follow each other in memory
        self.sharing: list[ir.For] = []  # loops around whose rounds the lanes share
        # in the last rounds of such a loop, whose rows are stored past the caches as a whole
        self.in_late = False
        self.masks: list[str] = []  # of the branches around
        self.assigned = set[str]()

    def enter(self, block: ir.Block) -> None:
        """The points of a block are written twice, with tests and without: variables have one
        meaning in each.
        """
        if any(block is b for b in self.bodies):
            self.whole = single_definitions(block)
            self.sums = lane_sums(block, self.varying, self.around)

    def is_walked(self, s: ir.For) -> bool:
        """Whether a loop goes along blocks each of which tests whether it is inside."""
        return bool(s.body) and _is_split(s.body[-1], self.bodies)

    def _written_in_part(self, block: ir.Block, depth: int) -> set[str]:
        """Buffers that a condition within the test of an edge writes: lines of them are in a cache,
        and streams would drive them out.
        """
        buffers: set[str] = set()
        for s in block:
            match s:
                case ir.Store() if depth > 1:
                    buffers.add(s.buffer)
                case ir.If():
                    deeper = depth + self.differs(s.condition)
                    buffers |= self._written_in_part(s.then, deeper) | self._written_in_part(
                        s.otherwise, deeper
                    )
                case ir.For():
                    buffers |= self._written_in_part(s.body, depth)
                case _:
                    pass
        return buffers

    def differs(self, e: ir.Expression) -> bool:
        """Whether lanes have their own values."""
        return any(n in self.varying for n in reads(e))

    def is_beside(self, index: ir.Expression) -> bool:
        """Whether neighbouring lanes touch neighbouring elements."""
        return self.is_next(index_sum(index, self.sums))

    def is_next(self, total: IndexSum) -> bool:
        rest = total.without([self.thread])
        return total.coefficient(self.thread) == 1 and not any(self.differs(e) for e in rest.terms)

    def at_lane(self, e: ir.Expression, lane: ir.Expression) -> ir.Expression:
        """A place in the words of one lane."""

        def change(x: ir.Expression) -> ir.Expression:
            if not isinstance(x, ir.Local) or x.name not in self.varying:
                return x
            if x.name not in self.sums:
                return replace(x, name=own(f"lane.{x.name.lstrip(MARK)}"))
            total = self.sums[x.name]
            number = (
                build.index_of(lane, x.type)
                if not isinstance(lane, ir.Literal)
                else replace(lane, type=x.type)
            )
            rest = total.without([self.thread]).expression(x.type)
            return build.add(rest, build.multiply(number, total.coefficient(self.thread)))

        return rewrite(e, change)

    def is_square(self, moves: Sequence[ir.Load | ir.Store]) -> bool:
        """Whether what each lane moves lies next to what it moves next."""
        first = moves[0]
        if not self.differs(first.index) or self.is_beside(first.index):
            return False
        sums = [
            index_sum(self.at_lane(s.index, ir.Literal(0, self.kind)), self.whole) for s in moves
        ]
        return all(s.buffer == first.buffer for s in moves) and all(
            (t.key(), t.constant) == (sums[0].key(), sums[0].constant + n)
            for n, t in enumerate(sums)
        )

    def edge(
        self, run: list[ir.Statement]
    ) -> tuple[list[ir.Store], ir.Expression, ir.Expression] | None:
        """Stores of a square some of which are left out: in which lanes they are made, and which of
        them, as a mask.

        if y#0 < h: if x < w: store ...; if y#1 < h: if x < w: store ...   ->   the stores; x < w;
        y#0 + $thread < h
        """
        stores, tests, masks = list[ir.Store](), list[ir.Expression](), list[ir.Expression]()
        for s in run:
            match s:
                case ir.If(
                    then=(ir.If(then=(ir.Store() as store,), otherwise=()) as inner,), otherwise=()
                ):
                    stores.append(store)
                    tests.append(s.condition)
                    masks.append(inner.condition)
                case _:
                    return None
        names = [set(reads(t)) for t in tests]
        # what a test asks that others do not
        places = [n - names[1 - bool(p)] for p, n in enumerate(names)]
        if (
            any(m != masks[0] for m in masks)
            or any(map(self.differs, tests))
            or any(len(p) != 1 for p in places)
        ):
            return None
        own_places = [place for (place,) in places]
        (kind,) = {
            e.type
            for e in subexpressions(tests[0])
            if isinstance(e, ir.Local) and e.name == own_places[0]
        }
        first = ir.Local(own_places[0], kind)

        def asks(place: ir.Expression) -> ir.Expression:
            return rewrite(tests[0], lambda e: place if e == first else e)

        for n, (place, test) in enumerate(zip(own_places, tests, strict=True)):
            here = ir.Local(place, kind)
            apart = index_sum(here, self.whole).plus(index_sum(first, self.whole), -1)
            if asks(here) != test or apart.terms or apart.constant != n:
                return None
        return stores, masks[0], asks(build.add(first, ir.Local(self.thread, kind)))


def _bodies(block: ir.Block, varying: set[str]) -> tuple[ir.Block, ...]:
    """The two sides of the branch that a thread ends with, within the loop that it ends with, or
    within those over the blocks of tiles.
    """
    tiles = [s for s in statements(block) if isinstance(s, ir.For) and s.role == "tiles"]
    if tiles:
        return tuple(side for s in tiles for side in _sides(s.body, varying))
    match block[-1] if block else None:  # nothing is left of a function that returns at once
        case ir.For(body=body):
            return _bodies(body, varying)
        case _:
            return _sides(block, varying)


def _is_split(s: ir.Statement, bodies: tuple[ir.Block, ...]) -> TypeGuard[ir.If]:
    """Whether a statement is the branch between blocks in the inside and at the end of the
    points.
    """
    return isinstance(s, ir.If) and bool(bodies) and s.then is bodies[0]


def _sides(block: ir.Block, varying: set[str]) -> tuple[ir.Block, ...]:
    match block[-1] if block else None:  # nothing is left of a function that returns at once
        case ir.If(condition=test, then=then, otherwise=otherwise) if varying.isdisjoint(
            reads(test)
        ):
            # blocks at an edge that load before its test
            early = _sides(otherwise, varying) if len(otherwise) == 1 else ()
            return then, *(early or (otherwise,))
        case _:
            return ()

"""Python text for the threads of a block that are the lanes of SIMD registers: every statement runs
for all lanes at once.

    parallel for $thread in range(16): x = $x.first + $thread; load a[y * w + x]: a_1; store c[y * w
    + x] = 2.0 * a_1
->  a_1 = lw_v_load(a_array, y * w + x_first); lw_v_store(c_array, y * w + x_first,
lw_v_mul(f32(2.0), a_1)) What does not depend on the lane stays a number. Conditions that do are
masks: what stands under them reads, writes and assigns in their lanes alone. Loops run the same
rounds in all lanes (passes/points/lanes.py sees to it), so that a barrier is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard, assert_never

import numpy as np

from lanewise.analysis import simd_operations
from lanewise.analysis.index_sums import IndexSum, index_sum, single_definitions
from lanewise.analysis.lane_sums import UNBROKEN, first_round, lane_sums, shared_loops
from lanewise.analysis.sampling import value_of
from lanewise.emit.numba_expressions import numba_expression
from lanewise.emit.numba_prelude import SIMD, TYPES
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.spreading import spread_in_lanes
from lanewise.ir.traverse import reads, rewrite, statements, subexpressions
from lanewise.language.target import LINE, LONG_IN_ORDER, PAGE
from lanewise.language.types import BOOL, I64, Scalar

LANE = own("this.lane")
AHEAD = 2048  # bytes: what is asked for so far ahead has come from memory when it is loaded
# the same where rounds load from several arrays, each of which a core follows less well
AHEAD_OF_SEVERAL = 8192
# the same where blocks follow each other along a row: a core asks for what lies nearer, up to the
# end of a page
ALONG_ROWS = 6144
ALONG_PLANES = 4096  # and in planes that were read before, which are in the third cache
ALONG_SQUARES = 256  # and where as many rows as lanes are read side by side
ANY_EXTENT = 1009  # stands for all extents and indices where places are compared
NEIGHBOURS = 3  # elements of an array that a point reads where their lines come from several rows
# bytes: as far from a row in a page as the second half of what is kept is from it on the other side
ELSEWHERE = 1280
# bytes of a row from which on it matters little that its ends are not written as streams
LONG = 1 << 13
_BINARY = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "shl",
    ">>": "shr",
}
_COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_UNARY = {"-": "neg", "not": "not", "~": "not"}


class Simd:
    """The text of what differs between lanes.

    `scalar` and `names` write what does not, `buffer` names memory.
    """

    def __init__(
        self,
        kernel: ir.Kernel,
        threads: ir.Parallel,
        scalar: Callable[[ir.Expression], str],
        names: Callable[[str], str],
        buffer: Callable[[str], str],
    ) -> None:
        assert isinstance(threads.extent, ir.Literal)
        self.kernel, self.scalar, self.names, self.buffer = kernel, scalar, names, buffer
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
        # of what is written past the caches: whose registers follow each other in memory
        self.in_rows = set[str]()
        heads = [*threads.body, *(x for s in threads.body if isinstance(s, ir.For) for x in s.body)]
        self.loops = shared_loops(threads.body, self.varying, self.thread, self.count)
        self.around = lane_sums(tuple(s for s in heads if isinstance(s, ir.Assign)), self.varying)
        self.sums = (
            self.around if self.bodies else lane_sums(threads.body, self.varying, self.loops)
        )
        loaded = {s.buffer for s in statements(threads.body) if isinstance(s, ir.Load)}
        ordered = {b.name for b in kernel.buffers if b.ordered}
        kept = loaded | self._written_in_part(threads.body, 0) - ordered
        # Nobody reads them here: they need not stay in the caches.
        self.streamed = {
            b.name
            for b in kernel.buffers
            if b.written and b.space == "global" and b.name not in kept
        }
        self.past: set[str] = set()
        # stored in the order of memory: parts of a line follow each other
        self.ordered = ordered & self.streamed
        # whole numbers that are assigned once, whatever they hang on
        self.whole: Mapping[str, IndexSum] = {}
        (outer,) = kernel.body
        assert isinstance(outer, ir.Parallel)
        block = ir.Local(outer.variable, outer.extent.type)
        assigned = [s for s in statements(outer.body) if isinstance(s, ir.Assign)]
        own_memory = any(b.space == "shared" for b in kernel.buffers)
        # Squares that ask for what comes next themselves, and write pieces of many rows at once.
        self.in_squares = any(isinstance(s, ir.Prefetch) for s in statements(outer.body))
        looks = bool(self.bodies) and not self.in_squares
        self.far_ahead = dict[int, int]()
        # At the edges, too: a gap of one line misleads what caches ask for themselves.
        for body in self.bodies if looks else ():
            self.far_ahead |= self._far_ahead(body, own_memory=own_memory)
        # Rows of this block, or of this point of it: the next one has the next.
        points = [s for s in statements(outer.body) if isinstance(s, ir.For) and s.role == "points"]
        numbers = {block, *(ir.Local(s.variable, block.type) for s in points)}
        self.by_block = {s.name for s in assigned if s.value in numbers}
        loops = {s.variable for s in statements(outer.body) if isinstance(s, ir.For)}
        self.moving = {s.name for s in assigned} | loops | {block.name}
        self.outside = {b.name for b in kernel.buffers if b.space == "global"}
        self.sharing: list[ir.For] = []  # loops around whose rounds the lanes share
        # in the last rounds of such a loop, whose rows are stored past the caches as a whole
        self.in_late = False
        # bytes of each of them; 0 where a core follows its rows by itself
        self.ahead_of_rounds: list[int] = []
        self.read_before: set[str] = set()
        self.read_later = self._read_later(points[0].body if points else threads.body)
        self.masks: list[str] = []
        self.used: set[str] = set()
        self.assigned: set[str] = set()
        self.turned_types: dict[Scalar, int] = {}  # of the squares so far
        self.temporaries = 0

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

    # ------------------------------------------------------------ statements

    def head(self) -> list[str]:
        """What stands before all elements: which arrays are so large that they are written past the
        caches.
        """
        return [
            f"{self.far(b)} = {self.call('far', self.buffer(b))}{self.unbroken(b)}"
            for b in sorted(self.past)
        ]

    def unbroken(self, buffer: str) -> str:
        """That rows are whole registers, or long: a stream into a line of memory that a masked
        store writes, too, waits for it.

        Where registers are stored in the order of memory masked ones are streams, too, but for
        short rows.
        """
        if self.inside is None or buffer not in self.stored_in_bodies & self.in_rows:
            return ""
        ends: dict[
            str, tuple[ir.Literal, ir.Expression]
        ] = {}  # of the indices, the last one last; a user's tests come behind
        for test in build.conjuncts(self.inside):
            match test:
                case ir.Compare("<=", ir.Binary("+", ir.Local(first), ir.Literal() as side), end):
                    ends.setdefault(first, (side, end))
                case _:
                    pass
        side, end = list(ends.values())[-1]
        kind, extent = TYPES[side.type], self.scalar(end)
        if buffer in self.ordered:
            return f" and {extent} >= {kind}({LONG_IN_ORDER * LINE // self._type(buffer).size})"
        return (
            f" and ({extent} % {kind}({side.value}) == 0 or {extent} >= "
            f"{kind}({LONG // self._type(buffer).size}))"
        )

    def tail(self) -> list[str]:
        return [self.call("fence")] if self.past else []

    def memory(self, buffer: ir.BufferArgument) -> list[str]:
        """What makes memory of a core's own.

        It begins with a line, or registers that are stored there would lie in two lines each.

        What lanes keep of their rounds begins elsewhere in a page than the array that is written,
        and mostly the one that is read: a load from where another page was stored to shortly before
        waits for it.
        """
        name, line = self.buffer(buffer.name), LINE // buffer.type.size
        written = [b for b in self.kernel.buffers if b.written and b.space == "global"]
        if not self.loops or not written:
            place, room = f"-{self.call('phase', name)} & i64({line - 1})", line
        else:
            room, written_at = (
                PAGE // buffer.type.size,
                self.call("place_in_page", self.buffer(written[0].name)),
            )
            begin = f"({written_at} & i64({-line})) + i64({ELSEWHERE // buffer.type.size})"
            place = f"({begin} - {self.call('place_in_page', name)}) & i64({room - 1})"
        return [
            f"{name} = np.empty({buffer.length + room}, np.{buffer.type.dtype.name})",
            f"{name} = {name}[{place}:]",
        ]

    def far(self, buffer: str) -> str:
        return self.names(own(f"far.{buffer}"))

    def imports(self, *, fast_math: bool) -> str:
        """The line that brings the operations that were used."""
        used = sorted(self.used)
        left, right = "".join(f"{SIMD}{n}, " for n in used), ", ".join(map(repr, used))
        fast = ", fast=True" if fast_math else ""
        return (
            f"from lanewise.runtime.simd import lanes\n\n({left.rstrip()}) = lanes({self.count}, "
            f"{right}{fast})\n\n"
        )

    def call(self, operation: str, *arguments: str) -> str:
        self.used.add(operation)
        return f"{SIMD}{operation}({', '.join(arguments)})"

    def statement(self, s: ir.Statement) -> list[str] | None:
        """The lines of a statement whose effect differs between lanes; None for one that is the
        same for all of them.
        """
        match s:
            case ir.Barrier():
                return []
            case ir.Assign(value=ir.Builtin(name="phase" | "read_phase" as phase)):
                written = phase == "phase"
                buffers = (
                    b.name
                    for b in self.kernel.buffers
                    if b.written == written and b.space == "global"
                )
                text = self.call("phase", self.buffer(next(buffers)))
                return [f"{self.names(s.name)} = {TYPES[s.value.type]}({text})"]
            case ir.Assign(value=ir.Builtin(name="far")):
                (written,) = self.ordered
                self.past.add(written)
                return [f"{self.names(s.name)} = {self.far(written)}"]
            case ir.Assign() if s.name in self.varying:
                return [self.assigned_to(s.name, self.register(s.value))]
            case ir.Load() if s.names[0] in self.varying:
                return self.load(s)
            case ir.Store():
                return self.store(s)
            case ir.Prefetch():
                return [self.call("prefetch", self.buffer(s.buffer), self.scalar(s.index))]
            case ir.Least():
                return [f"{self.names(s.name)} = {self.call('least', self.register(s.value))}"]
            case ir.Shuffle():
                operation = f"shuffle_{s.distance}_{s.group}"
                return [self.assigned_to(s.name, self.call(operation, self.register(s.value)))]
            case _:
                return None

    def differs(self, e: ir.Expression) -> bool:
        """Whether lanes have values of their own."""
        return any(n in self.varying for n in reads(e))

    def mask(self, condition: ir.Expression) -> tuple[str, str]:
        """The name of the lanes in which a condition holds, and the line that makes it."""
        self.temporaries += 1
        name = self.names(own(f"mask.{self.temporaries}"))
        text = self.register(condition)
        if self.masks:
            text = self.call("and", self.masks[-1], text)
        return name, f"{name} = {text}"

    def opposite(self, mask: str) -> tuple[str, str]:
        """The other lanes of those that are here."""
        self.temporaries += 1
        name = self.names(own(f"mask.{self.temporaries}"))
        text = self.call("not", mask)
        return name, f"{name} = {self.call('and', self.masks[-1], text) if self.masks else text}"

    def assigned_to(self, name: str, value: str) -> str:
        text = self.names(name)
        if self.masks and name in self.assigned:
            value = self.call("choose", self.masks[-1], value, text)
        self.assigned.add(name)
        return f"{text} = {value}"

    def load(self, s: ir.Load) -> list[str]:
        name, kind = s.names[0], self._type(s.buffer)
        buffer, text = self.buffer(s.buffer), self.names(name)
        if not self.differs(s.index):  # one element for all lanes that are here
            value = f"{buffer}[u64({self.scalar(s.index)})]"
            if self.masks:
                value = f"({value} if {self.call('any', self.masks[-1])} else {TYPES[kind]}(0))"
            return [self.assigned_to(name, self.call("splat", value))]
        if not self.is_beside(s.index):
            return self.gathered(s, buffer, kind)
        place = self.place(s.index)
        if not self.masks:
            self.assigned.add(name)
            return [f"{text} = {self.call('load', buffer, place)}", *self.ahead(s, buffer, place)]
        other = text if name in self.assigned else f"{TYPES[kind]}(0)"
        self.assigned.add(name)
        some = f"{text} = {self.call('load_some', buffer, place, self.masks[-1], other)}"
        return [some, *(self.ahead(s, buffer, place) if id(s) in self.far_ahead else ())]

    def ahead(self, s: ir.Load, buffer: str, place: str) -> list[str]:
        """The lines that ask for what `asked_ahead` says."""
        index, distances = self.asked_ahead(s)
        at = place if index is None else self.scalar(index)
        return [
            self.call(
                "prefetch", buffer, f"{at} + i64({n})" if n or id(s) in self.far_ahead else at
            )
            for n in distances
        ]

    def asked_ahead(self, s: ir.Load) -> tuple[ir.Expression | None, list[int]]:
        """In a loop whose rounds the lanes share: asks for what a later round or block loads, since
        a core asks no further than a page. Elements behind a place, or behind that of the load.

        A later loop over a row, which finds it in the caches, asks for the row of the next block;
        where there is no later one, the first asks for what lies `AHEAD` behind. What all blocks
        read is near already, and several rows side by side a core follows by itself. Of neighbours
        that points read in several rows those of the last row are new.
        """
        if id(s) in self.far_ahead:
            return None, [self.far_ahead[id(s)] // self._type(s.buffer).size]
        if not self.sharing or s.buffer not in self.outside:
            return None, []
        total = index_sum(s.index, self.sums).without([self.thread])
        names = {n for e in total.terms for n in reads(e)} - {
            first_round(x.variable) for x in self.sharing
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
            if not self.ahead_of_rounds[-1] or s.buffer in self.read_later.get(
                id(self.sharing[0]), ()
            ):
                return None, []
            distance = self.ahead_of_rounds[-1] // self._type(s.buffer).size
        line = LINE // self._type(s.buffer).size
        return index, list(range(distance, distance + self.count, line))

    def _read_later(self, block: ir.Block) -> dict[int, set[str]]:
        """For each shared loop the arrays whose row a later loop reads again: that one asks for the
        next row.
        """

        def rows(s: ir.Statement) -> set[str]:
            loads = [x for x in statements((s,)) if isinstance(x, ir.Load)]
            return {
                x.buffer
                for x in loads
                if any(self.by_block & set(reads(e)) for e in index_sum(x.index, self.sums).terms)
            }

        again, behind = dict[int, set[str]](), set[str]()
        for s in reversed(block):
            if isinstance(s, ir.For) and s.variable in self.loops:
                again[id(s)] = rows(s) & behind
            behind |= rows(s) if isinstance(s, ir.For | ir.If) else set()
        return again

    def _far_ahead(self, block: ir.Block, *, own_memory: bool) -> dict[int, int]:
        """How many bytes ahead of loads of a block's points memory is asked for.

        Of squares that a tile gathers all rows: there are more than a core follows. Of neighbours
        those of the last row or plane, which come from memory: the others found their lines when
        they were the last. Of other planes the last of several rows, too.
        """
        ahead, sums = dict[int, int](), lane_sums(block, self.varying, self.around)
        straight = block if block is self.bodies[0] else tuple(_straight(block))
        for b in self.kernel.buffers:
            loads = [
                s
                for s in straight
                if isinstance(s, ir.Load) and s.buffer == b.name and self.differs(s.index)
            ]
            if b.space != "global" or len(loads) < NEIGHBOURS:
                continue
            if own_memory:
                ahead |= {id(s): ALONG_SQUARES for s in loads if len(loads) == self.count}
                continue
            places = [
                value_of(s.index, dict.fromkeys(reads(s.index), np.asarray(ANY_EXTENT)))
                for s in loads
            ]
            known = [(s, int(p)) for s, p in zip(loads, places, strict=True) if p is not None]
            distances = _last_rows([p for _, p in known])
            rows = dict[tuple[int, object], int]()
            for s, p in known:
                # one register of each row: a core goes on with the lines behind it
                if p in distances:
                    rows.setdefault(
                        (distances[p], frozenset(index_sum(s.index, sums).terms.items())), id(s)
                    )
            ahead |= {number: distance for (distance, _), number in rows.items()}
        return ahead

    def gathered(self, s: ir.Load, buffer: str, kind: Scalar) -> list[str]:
        """Elements apart in memory, one lane after the other."""
        name, lane = self.names(s.names[0]), self.names(LANE)
        value = f"{buffer}[u64({self.scalar(self.at_lane(s.index, ir.Local(LANE, self.kind)))})]"
        lines = (
            []
            if s.names[0] in self.assigned
            else [f"{name} = {self.call('splat', f'{TYPES[kind]}(0)')}"]
        )
        self.assigned.add(s.names[0])
        put = f"{name} = {self.call('put', name, lane, value)}"
        return [*lines, *self.each_lane(*self.numbers_of_lane(s.index), put)]

    def each_lane(self, *lines: str) -> list[str]:
        head = f"for {self.names(LANE)} in range({self.count}):"
        if not self.masks:
            return [head, *(f"    {line}" for line in lines)]
        return [
            head,
            f"    if {self.call('lane', self.masks[-1], self.names(LANE))}:",
            *(f"        {line}" for line in lines),
        ]

    def numbers_of_lane(self, index: ir.Expression) -> list[str]:
        """The numbers that a lane read from memory, which a place of its own is made of."""
        return [
            f"{self.names(own(f'lane.{n.lstrip(MARK)}'))} = "
            f"{self.call('lane', self.names(n), self.names(LANE))}"
            for n in dict.fromkeys(reads(index))
            if n in self.varying and n not in self.sums
        ]

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

    def turned(self, run: list[ir.Statement]) -> list[str] | None:
        """A square of elements whose rows are the lanes: whole rows are moved, and turned in
        registers. None for other statements.
        """
        if self.masks or len(run) != self.count:
            return None
        edge = self.edge(run)
        loads = [s for s in run if isinstance(s, ir.Load)]
        stores = [s for s in run if isinstance(s, ir.Store)] if edge is None else edge[0]
        moves = loads or stores
        if len(moves) != self.count or not self.is_square(moves):
            return None
        first, buffer, rows = moves[0], self.buffer(moves[0].buffer), self.rows(moves[0].buffer)
        places = [
            self.scalar(self.at_lane(first.index, ir.Literal(n, self.kind)))
            for n in range(self.count)
        ]
        listed = ", ".join(rows)
        if loads:
            names = [s.names[0] for s in loads]
            self.assigned |= set(names)
            lines = [
                f"{r} = {self.call('load', buffer, p)}" for r, p in zip(rows, places, strict=True)
            ]
            return [
                *lines,
                f"{', '.join(map(self.names, names))} = {self.call('turn', f'({listed})')}",
            ]
        values = ", ".join(self.register(s.values[0]) for s in stores)
        turned = f"{listed} = {self.call('turn', f'({values})')}"
        if edge is not None:
            return [turned, *self.edge_stores(buffer, places, rows, *edge[1:])]
        if first.buffer not in self.streamed:
            return [
                turned,
                *(self.call("store", buffer, p, r) for p, r in zip(places, rows, strict=True)),
            ]
        self.past.add(first.buffer)
        far = self.far(first.buffer)
        return [
            turned,
            *(
                self.call("stream_lines", buffer, p, r, far)
                for p, r in zip(places, rows, strict=True)
            ),
        ]

    def is_square(self, moves: Sequence[ir.Load | ir.Store]) -> bool:
        """Whether what each lane moves lies beside what it moves next."""
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

    def edge_stores(
        self,
        buffer: str,
        places: list[str],
        rows: list[str],
        mask: ir.Expression,
        there: ir.Expression,
    ) -> list[str]:
        """A row for each lane of `mask`, of it the elements of `there`."""
        (lanes, lanes_line), (elements, elements_line) = self.mask(mask), self.mask(there)
        lines = [lanes_line, elements_line]
        for n, (place, row) in enumerate(zip(places, rows, strict=True)):
            lines += [f"if {self.call('lane', lanes, str(n))}:"]
            lines += [f"    {self.call('store_some', buffer, place, elements, row)}"]
        return lines

    def rows(self, buffer: str) -> list[str]:
        """The variables of a square's rows.

        A variable of Numba has one type, so squares of another one have variables of their own.
        """
        kind = next(b.type for b in self.kernel.buffers if b.name == buffer)
        number = self.turned_types.setdefault(kind, len(self.turned_types))
        name = f"row.{number}" if number else "row"
        return [self.names(own(f"{name}.{n}")) for n in range(self.count)]

    def store(self, s: ir.Store) -> list[str]:
        buffer = self.buffer(s.buffer)
        if not self.differs(s.index):  # one element, written by the last lane that is here
            return self.store_once(s, buffer)
        if not self.is_beside(s.index):
            lane = self.names(LANE)
            place = self.scalar(self.at_lane(s.index, ir.Local(LANE, self.kind)))
            value = self.call("lane", self.register(s.values[0]), lane)
            store = f"{buffer}[u64({place})] = {value}"
            return self.each_lane(*self.numbers_of_lane(s.index), store)
        place, value = self.place(s.index), self.any(s.values[0])
        if self.masks and s.buffer in self.ordered:
            self.past.add(s.buffer)
            return [
                self.call("stream_some", buffer, place, self.masks[-1], value, self.far(s.buffer))
            ]
        if self.in_late and len(self.masks) == 1 and s.buffer in self.streamed:
            self.past.add(s.buffer)
            past = f"{self.far(s.buffer)} and {self.names(UNBROKEN)}"
            return [self.call("stream_some", buffer, place, self.masks[-1], value, past)]
        if self.masks:
            return [self.call("store_some", buffer, place, self.masks[-1], value)]
        if s.buffer in self.streamed:
            self.past.add(s.buffer)
            if not self.in_squares:
                self.in_rows.add(s.buffer)
            past = (
                f"{self.far(s.buffer)} and {self.unbroken_rounds(self.sharing[-1])}"
                if self.sharing
                else self.far(s.buffer)
            )
            return [
                self.call(
                    "stream_lines" if self.in_squares else "stream", buffer, place, value, past
                )
            ]
        return [self.call("store", buffer, place, value)]

    def store_once(self, s: ir.Store, buffer: str) -> list[str]:
        value, place = s.values[0], f"{buffer}[u64({self.scalar(s.index)})]"
        mask = self.masks[-1] if self.masks else self.call("splat", "True")
        text = (
            self.call("last", mask, self.vector(value))
            if self.differs(value)
            else self.scalar(value)
        )
        if not self.masks:
            return [f"{place} = {text}"]
        return [f"if {self.call('any', mask)}:", f"    {place} = {text}"]

    def rounds(self, s: ir.For) -> tuple[list[str], str, tuple[str, str] | None]:
        """A loop whose rounds the lanes share: the lines before it, and its head.

        Then, unless there are but whole registers of rounds, where the last ones begin, and whether
        there are any.
        """
        start = index_sum(s.start, self.sums).without([self.thread])
        first, begin, whole = (
            self.names(own(f"{s.variable.lstrip('$')}.{n}")) for n in ("", "begin", "whole")
        )
        first = self.names(first_round(s.variable))
        stop = f"i64({self.scalar(s.stop)})"
        length = index_sum(s.stop).plus(start, -1)
        even = not any(n % self.count for n in (length.constant, *length.terms.values()))
        last = (
            stop
            if even
            else f"{begin} + max({stop} - {begin}, i64(0)) // i64({self.count}) * i64({self.count})"
        )
        lines = [f"{begin} = i64({self.scalar(start.expression(I64))})", f"{whole} = {last}"]
        sizes = [
            self._type(x.buffer).size
            for x in statements(s.body)
            if isinstance(x, ir.Store) and x.buffer in self.streamed
        ]
        if sizes and s.role != "late":  # as rows of points: see `unbroken`
            long = f"{whole} - {begin} >= i64({LONG // min(sizes)})"
            lines.append(f"{self.unbroken_rounds(s)} = {whole} == {stop} or {long}")
        head = f"for {first} in range({begin}, {whole}, i64({self.count})):"
        return lines, head, None if even else (f"{first} = {whole}", f"{first} < {stop}")

    def unbroken_rounds(self, s: ir.For) -> str:
        """The name of whether the rounds of a loop are whole registers, or many."""
        return self.names(
            UNBROKEN if s.role == "late" else own(f"{s.variable.lstrip('$')}.unbroken")
        )

    def round(self, s: ir.For) -> str:
        """The variable of such a loop, in each lane."""
        kind = TYPES[s.start.type]
        numbers = self.call(f"numbers_{kind}")
        return (
            f"{self.names(s.variable)} = "
            f"{self.call('add', f'{kind}({self.names(first_round(s.variable))})', numbers)}"
        )

    def begin_rounds(self, s: ir.For) -> None:
        self.sharing.append(s)
        loads = [x for x in statements(s.body) if isinstance(x, ir.Load)]
        arrays = {x.buffer for x in loads}
        rows = {(x.buffer, frozenset(index_sum(x.index, self.sums).terms.items())) for x in loads}
        self.ahead_of_rounds.append(
            0 if len(rows) > len(arrays) else AHEAD if len(arrays) == 1 else AHEAD_OF_SEVERAL
        )

    def end_rounds(self, s: ir.For) -> None:
        self.sharing.pop()
        self.ahead_of_rounds.pop()
        self.read_before |= {x.buffer for x in statements(s.body) if isinstance(x, ir.Load)}

    def place(self, index: ir.Expression) -> str:
        """Of the first lane; the others lie behind it."""
        total = index_sum(index, self.sums)
        assert self.is_next(total), "neighbouring lanes do not touch neighbouring elements"
        return self.scalar(total.without([self.thread]).expression(I64))

    def is_beside(self, index: ir.Expression) -> bool:
        """Whether neighbouring lanes touch neighbouring elements."""
        return self.is_next(index_sum(index, self.sums))

    def is_next(self, total: IndexSum) -> bool:
        rest = total.without([self.thread])
        return total.coefficient(self.thread) == 1 and not any(self.differs(e) for e in rest.terms)

    def _type(self, buffer: str) -> Scalar:
        return next(b.type for b in self.kernel.buffers if b.name == buffer)

    # ------------------------------------------------------------ expressions

    def register(self, e: ir.Expression) -> str:
        """The text of a value of which each lane has one."""
        if self.differs(e):
            return self.vector(e)
        text = self.scalar(e)
        is_wide = e.type.is_integer and not isinstance(e, ir.Literal)  # Numba computes with 64 bits
        return self.call("splat", f"{TYPES[e.type]}({text})" if is_wide else text)

    def any(self, e: ir.Expression) -> str:
        """The text of a value, as one number where all lanes have the same one."""
        return self.vector(e) if self.differs(e) else self.scalar(e)

    def vector(self, e: ir.Expression) -> str:
        match e:
            case ir.Call() | ir.Binary() if (
                self.loops and not self.sharing and simd_operations.no_instruction(e) is not None
            ):
                return self.once(e)
            case ir.Local():
                if e.name == self.thread:
                    return self.call(f"numbers_{TYPES[self.kind]}")
                return self.names(e.name)
            case ir.Unary():
                return self.call(_UNARY[e.operator], self.vector(e.operand))
            case ir.Binary():
                return self.binary(e)
            case ir.Compare():
                return self.call(_COMPARE[e.operator], self.any(e.left), self.any(e.right))
            case ir.Logical():
                return self.call(e.operator, self.any(e.left), self.any(e.right))
            case ir.Select():
                if not self.differs(e.condition):
                    return (
                        f"({self.register(e.if_true)} if {self.scalar(e.condition)} else "
                        f"{self.register(e.if_false)})"
                    )
                return self.call(
                    "choose", self.vector(e.condition), self.any(e.if_true), self.any(e.if_false)
                )
            case ir.Cast():
                if e.type == BOOL:
                    return self.call("ne", self.vector(e.operand), f"{TYPES[e.operand.type]}(0)")
                return self.call(f"to_{TYPES[e.type]}", self.vector(e.operand))
            case ir.Call():
                return self.function(e)
            case ir.Literal() | ir.Element() | ir.Builtin():
                raise AssertionError(
                    f"{type(e).__name__} is the same in all lanes, or has no lanes"
                )
            case _:
                assert_never(e)

    def once(self, e: ir.Call | ir.Binary) -> str:
        """The value of an operation without SIMD instructions, which is the same in all lanes:
        computed from the first lane's operands.

        Between shared loops all lanes have the same values (passes/points/hosting.py), so that a
        mask here has all of them or none; masks of a single lane, which stores for all, have the
        first one.
        """
        operands = e.arguments if isinstance(e, ir.Call) else (e.left, e.right)
        texts = {own(f"operand.{n}"): self.first_lane(x) for n, x in enumerate(operands)}
        given = [ir.Local(name, x.type) for name, x in zip(texts, operands, strict=True)]
        plain = (
            replace(e, arguments=tuple(given))
            if isinstance(e, ir.Call)
            else replace(e, left=given[0], right=given[1])
        )
        text = f"{TYPES[e.type]}({numba_expression(plain, texts.__getitem__)})"
        if self.masks:
            text = f"({text} if {self.call('any', self.masks[-1])} else {TYPES[e.type]}(0))"
        return self.call("splat", text)

    def first_lane(self, e: ir.Expression) -> str:
        """The value of an expression in the first lane."""
        return self.call("lane", self.vector(e), "0") if self.differs(e) else f"({self.scalar(e)})"

    def binary(self, e: ir.Binary) -> str:
        left, right = self.any(e.left), self.any(e.right)
        match e.operator:
            case "+" | "*" if e.free and e.type.is_float:
                return self.call("free_sum" if e.operator == "+" else "free_product", left, right)
            case "//" | "%":
                # by a power of two (passes/points/lanes.py): both round down, as these do
                assert isinstance(e.right, ir.Literal)
                by = int(e.right.value)
                operation, number = (
                    ("shr", by.bit_length() - 1) if e.operator == "//" else ("and", by - 1)
                )
                return self.call(operation, left, f"{TYPES[e.type]}({number})")
            case operator:
                return self.call(_BINARY[operator], left, right)

    def function(self, e: ir.Call) -> str:
        a = [self.any(x) for x in e.arguments]
        match e.intrinsic:
            case "clamp":
                return self.call("min", self.call("max", a[0], a[1]), a[2])
            case "mix":
                return self.call("fma", self.call("sub", a[1], a[0]), a[2], a[0])
            case name:
                return self.call(name, *a)


def _last_rows(places: list[int]) -> dict[int, int]:
    """How far ahead memory is asked for, by the place of the last neighbour of all and of those in
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


def _straight(block: ir.Block) -> Iterator[ir.Statement]:
    """The statements of a block and of branches in it, without those of loops."""
    for s in block:
        yield s
        if isinstance(s, ir.If):
            yield from _straight((*s.then, *s.otherwise))


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

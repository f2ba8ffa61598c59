"""Statements for the lanes of SIMD registers in LLVM's language: each runs for all lanes at once.

What is asked of a kernel, and decided, is that of the text for Numba (`emit/numba_simd.py`): which
variables differ between lanes, which loops lanes share, what is written past the caches and asked
for ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from lanewise.analysis import simd_operations
from lanewise.analysis.index_sums import index_sum
from lanewise.analysis.lane_sums import UNBROKEN, first_round
from lanewise.analysis.rounds import given_in_rounds
from lanewise.emit.llvm_instructions import TYPES, in_memory
from lanewise.emit.llvm_vectors import Vectors
from lanewise.emit.numba_simd import ELSEWHERE, LONG, Simd
from lanewise.emit.numba_walks import SplitWalk, walk_of
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.traverse import statements, subexpressions
from lanewise.language.target import LINE, LONG_IN_ORDER, PAGE
from lanewise.language.types import BOOL, I64, Scalar

if TYPE_CHECKING:
    from lanewise.emit.llvm_statements import Writer


class LaneWriter:
    """Writes, with the writer of a kernel, what differs between lanes."""

    def __init__(self, writer: Writer, threads: ir.Parallel, fast: bool, bits: int) -> None:
        self.writer, self.code = writer, writer.code
        self.simd = Simd(writer.kernel, threads, lambda e: "", writer.names, writer.names)
        self.vectors = Vectors(self.code, self.simd.count, fast, bits)

    # ------------------------------------------------------------ around all elements

    def past(self, buffer: str) -> str:
        """Whether a buffer is written past the caches."""
        self.simd.past.add(buffer)
        room = f"%far.{buffer_number(self.simd, buffer)}"
        return self.code.give(f"load i1, ptr {room}")

    def rooms(self) -> None:
        """Where the answers lie until it is known what they hang on, see `settle`."""
        for b in sorted(self.simd.streamed):
            self.code.room(f"%far.{buffer_number(self.simd, b)}", "i1")

    def settle(self) -> list[str]:
        """The lines before all elements: `unbroken` is known when everything is written."""
        before, self.code.lines = self.code.lines, list[str]()
        for b in sorted(self.simd.past):
            answer, extra = self.far_of(b), self.unbroken(b)
            if extra is not None:
                answer = self.code.give(f"and i1 {answer}, {self.scalar(extra)}")
            self.code.do(f"store i1 {answer}, ptr %far.{buffer_number(self.simd, b)}")
        made, self.code.lines = self.code.lines, before
        return made

    def far_of(self, buffer: str) -> str:
        return self.vectors.is_far(self.writer.size(buffer), self.type_of(buffer))

    def unbroken(self, buffer: str) -> ir.Expression | None:
        """That rows are whole registers, or long: see `Simd.unbroken`."""
        simd = self.simd
        if simd.inside is None or buffer not in simd.stored_in_bodies & simd.in_rows:
            return None
        ends: dict[str, tuple[ir.Literal, ir.Expression]] = {}
        for test in build.conjuncts(simd.inside):
            match test:
                case ir.Compare("<=", ir.Binary("+", ir.Local(first), ir.Literal() as side), end):
                    ends.setdefault(first, (side, end))
                case _:
                    pass
        side, end = list(ends.values())[-1]
        size = self.type_of(buffer).size
        if buffer in simd.ordered:
            return ir.Compare(">=", end, ir.Literal(LONG_IN_ORDER * LINE // size, end.type))
        rest = ir.Binary("%", end, ir.Literal(side.value, end.type), end.type)
        even = ir.Compare("==", rest, ir.Literal(0, end.type))
        return ir.Logical("or", even, ir.Compare(">=", end, ir.Literal(LONG // size, end.type)))

    def tail(self) -> None:
        if self.simd.past:
            self.code.do("fence seq_cst")

    def memory(self, b: ir.BufferArgument, name: str) -> None:
        """Where in memory of a core's own a buffer begins, see `Simd.memory`: with a line, or
        elsewhere in a page than what is written.
        """
        give, kind, line = self.code.give, b.type, LINE // b.type.size
        written = [x for x in self.writer.kernel.buffers if x.written and x.space == "global"]
        at = self.vectors.begins(f"{name}.room", kind, PAGE)
        if not self.simd.loops or not written:
            minus = give(f"sub i64 0, {at}")
            place = give(f"and i64 {minus}, {line - 1}")
        else:
            other = self.writer.buffer(written[0].name)
            there = self.vectors.begins(other, self.type_of(written[0].name), PAGE)
            begin = give(f"and i64 {there}, {-line}")
            moved = give(f"add i64 {begin}, {ELSEWHERE // kind.size}")
            apart = give(f"sub i64 {moved}, {at}")
            place = give(f"and i64 {apart}, {PAGE // kind.size - 1}")
        self.code.do(f"{name} = getelementptr {in_memory(kind)}, ptr {name}.room, i64 {place}")

    def room_of(self, b: ir.BufferArgument) -> int:
        """How many elements of room memory of a core's own needs."""
        written = any(x.written and x.space == "global" for x in self.writer.kernel.buffers)
        return b.length + (PAGE if self.simd.loops and written else LINE) // b.type.size

    # ------------------------------------------------------------ statements

    def statement(self, s: ir.Statement) -> bool:
        """Write a statement whose effect differs between lanes; False for one that is the same for
        all of them.
        """
        simd = self.simd
        match s:
            case ir.Barrier():
                return True
            case ir.Assign(value=ir.Builtin(name="phase" | "read_phase" as phase)):
                written = phase == "phase"
                buffer = next(
                    b for b in simd.kernel.buffers if b.written == written and b.space == "global"
                )
                place = self.vectors.begins(self.writer.buffer(buffer.name), buffer.type)
                kind = s.value.type
                self.writer.assign(s.name, self.vectors.whole(place, kind), kind)
            case ir.Assign(value=ir.Builtin(name="far")):
                (written_in_order,) = simd.ordered
                self.writer.assign(s.name, self.past(written_in_order), BOOL)
            case ir.Assign() if s.name in simd.varying:
                self.assigned_to(s.name, self.register(s.value), s.value.type)
            case ir.Load() if s.names[0] in simd.varying:
                self.load(s)
            case ir.Store():
                self.store(s)
            case ir.Prefetch():
                self.vectors.prefetch(self.pointer(s.buffer, s.index))
            case ir.Least():
                value = self.vectors.least(self.register(s.value), s.value.type)
                self.writer.assign(s.name, value, s.value.type)
            case ir.Shuffle():
                value, kind = self.register(s.value), s.value.type
                moved = self.vectors.shuffle(value, kind, s.distance, s.group)
                self.assigned_to(s.name, moved, kind)
            case ir.If() if simd.differs(s.condition):
                self.masked(s)
            case ir.For() if s.variable in simd.loops:
                self.shared_rounds(s)
            case ir.For() if simd.is_walked(s) and (w := walk_of(s)) is not None:
                self.walk(w, s)
            case _:
                return False
        return True

    def assigned_to(self, name: str, value: str, kind: Scalar) -> None:
        if self.simd.masks and name in self.simd.assigned:
            value = self.vectors.choose(self.simd.masks[-1], kind, value, self.read(name, kind))
        self.simd.assigned.add(name)
        self.put(name, value, kind)

    def put(self, name: str, value: str, kind: Scalar) -> None:
        place = self.writer.lying[name]
        self.code.do(f"store {self.vectors.kind(kind)} {value}, ptr {place}")

    def read(self, name: str, kind: Scalar) -> str:
        place = self.writer.lying[name]
        return self.code.give(f"load {self.vectors.kind(kind)}, ptr {place}", place)

    def mask(self, condition: ir.Expression) -> str:
        """The lanes in which a condition holds, of those that are here."""
        made = self.register(condition)
        if not self.simd.masks:
            return made
        return self.both(self.simd.masks[-1], made)

    def both(self, a: str, b: str) -> str:
        return self.vectors.binary("and", BOOL, a, b)

    def masked(self, s: ir.If) -> None:
        """Both sides of a branch, each for the lanes that take it; a test that all lanes share
        leaves out all of it.
        """
        simd, tests = self.simd, build.conjuncts(s.condition)
        shared = [t for t in tests if not simd.differs(t)]
        if shared and not s.otherwise:
            assigned = set(simd.assigned)
            rest = replace(s, condition=build.all_of(*(t for t in tests if simd.differs(t))))
            self.writer.statement(replace(s, condition=build.all_of(*shared), then=(rest,)))
            simd.assigned = assigned  # code behind it reads nothing that may not have been computed
            return
        mask = self.mask(s.condition)
        sides = [(mask, s.then)]
        if s.otherwise:
            other = self.vectors.opposite(BOOL, mask)
            sides.append((self.both(simd.masks[-1], other) if simd.masks else other, s.otherwise))
        for lanes, block in sides:
            if block:
                simd.masks.append(lanes)
                self.writer.block(block)
                simd.masks.pop()

    def shared_rounds(self, s: ir.For) -> None:
        """A loop whose rounds lanes share: whole registers of rounds, and the rest in some
        lanes.
        """
        simd, assign = self.simd, self.set_whole
        start = index_sum(s.start, simd.sums).without([simd.thread])
        bare = s.variable.lstrip(MARK)
        first, begin, whole = (
            ir.Local(n, I64)
            for n in (first_round(s.variable), own(f"{bare}.begin"), own(f"{bare}.whole"))
        )
        stop = _wide(s.stop)
        length = index_sum(s.stop).plus(start, -1)
        even = not any(n % simd.count for n in (length.constant, *length.terms.values()))
        assign(begin, start.expression(I64))
        rounds = build.multiply(
            build.divide(
                build.maximum(build.subtract(stop, begin), ir.Literal(0, I64)), simd.count
            ),
            simd.count,
        )
        assign(whole, stop if even else build.add(begin, rounds))
        sizes = [
            self.type_of(x.buffer).size
            for x in statements(s.body)
            if isinstance(x, ir.Store) and x.buffer in simd.streamed
        ]
        if sizes and s.role != "late":
            far = ir.Literal(LONG // min(sizes), I64)
            long = ir.Compare(">=", build.subtract(whole, begin), far)
            self.set_truth(self.name_of_unbroken(s), ir.Logical("or", _equal(whole, stop), long))
        assigned = simd.assigned - given_in_rounds(s.body)
        self.room(first.name, I64)

        def one(where: Callable[[], None]) -> None:
            kind = s.start.type
            place = self.vectors.whole(self.scalar(first), kind)
            spread = self.vectors.spread(place, kind)
            numbers = self.vectors.numbers(kind)
            self.put(s.variable, self.vectors.binary("+", kind, spread, numbers), kind)
            where()

        simd.begin_rounds(s)
        step = ir.Literal(simd.count, I64)
        loop = ir.For(first.name, begin, whole, step, s.body, role=s.role)
        self.writer.loop(loop, lambda: one(lambda: self.writer.block(s.body)))
        simd.end_rounds(s)
        simd.assigned = assigned  # the last rounds give what rounds begin with anew
        if even:
            return

        def rest() -> None:
            variable = ir.Local(s.variable, s.start.type)
            simd.masks.append(self.mask(ir.Compare("<", variable, s.stop)))
            simd.in_late = s.role == "late"
            self.writer.block(s.body)
            simd.in_late = False
            simd.masks.pop()

        assign(first, whole)
        some, behind = self.code.label("rest"), self.code.label("behind")
        self.code.branch(self.scalar(ir.Compare("<", first, stop)), some, behind)
        self.code.begin(some)
        one(rest)
        self.code.jump(behind)
        self.code.begin(behind)

    def walk(self, w: SplitWalk, s: ir.For) -> None:
        """The blocks before, those inside and those behind, in this order: caches ask for what
        comes next in memory.
        """
        along, kind = s.variable.removesuffix(".number"), s.start.type
        begin, end, inner, outer = (
            ir.Local(own(f"{along}.{n}"), kind) for n in ("begin", "end", "inner", "outer")
        )
        number, assign = ir.Local(s.variable, kind), self.set_whole
        assign(begin, s.start)
        assign(end, s.stop)
        assign(inner, build.minimum(_extreme("max", begin, w.bounds.least), end))
        last = build.maximum(_extreme("min", end, w.bounds.most), inner)
        if w.bounds.gate is not None:
            last = ir.Select(w.bounds.gate, last, inner, kind)
        assign(outer, last)
        assigned = set(self.simd.assigned)

        def part(block: ir.Block) -> None:
            # what one part assigns has no value in the others
            self.simd.assigned = set(assigned)
            for statement in w.head:
                self.writer.statement(statement)
            self.writer.block(block)

        def over(start: ir.Expression, stop: ir.Expression, block: ir.Block) -> None:
            loop = replace(s, start=start, stop=stop, step=ir.Literal(1, kind))
            self.writer.loop(loop, lambda: part(block))

        def one(condition: ir.Expression, at: ir.Expression, block: ir.Block) -> None:
            def run() -> None:
                assign(number, at)
                part(block)

            self.when(condition, run)

        def parts() -> None:
            side = ir.Local(own(f"{along}.side"), I64)
            self.room(side.name, I64)
            behind = ir.Compare("!=", side, ir.Literal(0, I64))
            two = ir.For(side.name, ir.Literal(0, I64), ir.Literal(2, I64), ir.Literal(1, I64), ())

            def each() -> None:
                over(
                    ir.Select(behind, outer, begin, kind),
                    ir.Select(behind, end, inner, kind),
                    w.edges,
                )
                over(inner, ir.Select(behind, inner, outer, kind), w.inside)

            self.writer.loop(two, each)

        if w.early is None:
            parts()
        else:
            bounds, block = w.early.bounds, w.early.block
            short = ir.Literal(1, kind)
            tests = [] if bounds.gate is None else [bounds.gate]
            tests += [
                ir.Compare("<=", build.subtract(inner, begin), short),
                ir.Compare("<=", build.subtract(end, outer), short),
            ]
            tests += [ir.Compare("<=", x, begin) for x in bounds.least]
            tests += [ir.Compare("<=", end, x) for x in bounds.most]

            def early() -> None:
                one(ir.Compare("<", begin, inner), begin, block)
                over(inner, outer, w.inside)
                one(ir.Compare("<", outer, end), outer, block)

            self.when(build.all_of(*tests), early, parts)
        self.simd.assigned = assigned

    def when(
        self,
        condition: ir.Expression,
        then: Callable[[], None],
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        code = self.code
        yes, no, behind = (code.label(n) for n in ("then", "else", "behind"))
        code.branch(self.scalar(condition), yes, no if otherwise else behind)
        code.begin(yes)
        then()
        code.jump(behind)
        if otherwise:
            code.begin(no)
            otherwise()
            code.jump(behind)
        code.begin(behind)

    # ------------------------------------------------------------ variables that are the same

    def room(self, name: str, kind: Scalar) -> None:
        if name not in self.writer.lying:
            place = self.code.room(self.writer.local(name), TYPES[kind])
            self.writer.lying[name] = place

    def set_whole(self, variable: ir.Local, value: ir.Expression) -> None:
        self.room(variable.name, variable.type)
        number = self.writer.expressions.cast(self.scalar(value), value.type, variable.type)
        self.writer.assign(variable.name, number, variable.type)

    def set_truth(self, name: str, value: ir.Expression) -> None:
        self.room(name, BOOL)
        self.writer.assign(name, self.scalar(value), BOOL)

    def name_of_unbroken(self, s: ir.For) -> str:
        """The name of whether the rounds of a loop are whole registers, or many."""
        return UNBROKEN if s.role == "late" else own(f"{s.variable.lstrip('$')}.unbroken")

    def scalar(self, e: ir.Expression) -> str:
        return self.writer.expressions.value(e)

    def type_of(self, buffer: str) -> Scalar:
        return self.writer.kinds[buffer]

    # ------------------------------------------------------------ memory

    def pointer(self, buffer: str, index: ir.Expression, more: int = 0) -> str:
        """An element's place, which may be outside of the array."""
        place = self.writer.expressions.index(index)
        if more:
            place = self.code.give(f"add i64 {place}, {more}")
        kind = in_memory(self.type_of(buffer))
        return self.code.give(
            f"getelementptr {kind}, ptr {self.writer.buffer(buffer)}, i64 {place}"
        )

    def first_place(self, buffer: str, index: ir.Expression) -> str:
        """Of the first lane; the others lie behind it."""
        total = index_sum(index, self.simd.sums)
        assert self.simd.is_next(total), "neighbouring lanes do not touch neighbouring elements"
        return self.pointer(buffer, total.without([self.simd.thread]).expression(I64))

    def single(self, buffer: str, index: ir.Expression) -> str:
        kind = self.type_of(buffer)
        return self.writer.expressions.loaded(self.pointer(buffer, index), kind)

    def load(self, s: ir.Load) -> None:
        simd, name, kind = self.simd, s.names[0], self.type_of(s.buffer)
        if not simd.differs(s.index):  # one element for all lanes that are here
            if simd.masks:
                some = self.vectors.any(simd.masks[-1])
                value = self.code.either(
                    some,
                    TYPES[kind],
                    lambda: self.single(s.buffer, s.index),
                    lambda: "false" if kind == BOOL else "zeroinitializer",
                )
            else:
                value = self.single(s.buffer, s.index)
            self.assigned_to(name, self.vectors.spread(value, kind), kind)
            return
        if not simd.is_beside(s.index):
            self.gathered(s, kind)
            return
        place = self.first_place(s.buffer, s.index)
        if not simd.masks:
            simd.assigned.add(name)
            self.put(name, self.vectors.load(place, kind, self.writer.lying[name]), kind)
            self.ahead(s)
            return
        other = self.read(name, kind) if name in simd.assigned else "zeroinitializer"
        simd.assigned.add(name)
        self.put(name, self.vectors.load_some(place, kind, simd.masks[-1], other), kind)
        if id(s) in simd.far_ahead:
            self.ahead(s)

    def ahead(self, s: ir.Load) -> None:
        index, distances = self.simd.asked_ahead(s)
        if index is None and distances:
            total = index_sum(s.index, self.simd.sums).without([self.simd.thread])
            index = total.expression(I64)
        for n in distances:
            assert index is not None
            self.vectors.prefetch(self.pointer(s.buffer, index, n))

    def gathered(self, s: ir.Load, kind: Scalar) -> None:
        """Elements apart in memory, one lane after the other."""
        name = s.names[0]
        if name not in self.simd.assigned:
            self.put(name, "zeroinitializer", kind)
        self.simd.assigned.add(name)

        def one(lane: int) -> None:
            index = self.simd.at_lane(s.index, ir.Literal(lane, self.simd.kind))
            value = self.single(s.buffer, index)
            self.put(name, self.vectors.put(self.read(name, kind), kind, str(lane), value), kind)

        self.each_lane(s.index, one)

    def each_lane(self, index: ir.Expression, one: Callable[[int], None]) -> None:
        """One lane after the other, of those that are here."""
        simd, given = self.simd, self.writer.given
        varying = {
            e.name: e.type
            for e in _locals(index)
            if e.name in simd.varying and e.name not in simd.sums
        }
        for lane in range(simd.count):
            behind = ""
            if simd.masks:
                here, behind = self.code.label("lane"), self.code.label("next")
                bit = self.vectors.lane(simd.masks[-1], BOOL, str(lane))
                self.code.branch(bit, here, behind)
                self.code.begin(here)
            for n, kind in varying.items():  # what a lane read from memory
                value = self.vectors.lane(self.read(n, kind), kind, str(lane))
                given[own(f"lane.{n.lstrip(MARK)}")] = value
            one(lane)
            if behind:
                self.code.jump(behind)
                self.code.begin(behind)

    def store(self, s: ir.Store) -> None:
        simd, kind = self.simd, self.type_of(s.buffer)
        if not simd.differs(s.index):  # one element, written by the last lane that is here
            self.store_once(s, kind)
            return
        value = self.register(s.values[0])
        if not simd.is_beside(s.index):

            def one(lane: int) -> None:
                index = simd.at_lane(s.index, ir.Literal(lane, simd.kind))
                number = self.vectors.lane(value, kind, str(lane))
                self.writer.expressions.store(number, self.pointer(s.buffer, index), kind)

            self.each_lane(s.index, one)
            return
        place = self.first_place(s.buffer, s.index)
        if simd.masks and s.buffer in simd.ordered:
            far = self.past(s.buffer)
            self.vectors.stream_some(place, kind, simd.masks[-1], value, far)
        elif simd.in_late and len(simd.masks) == 1 and s.buffer in simd.streamed:
            whole = self.scalar(ir.Local(UNBROKEN, BOOL))
            far = self.code.give(f"and i1 {self.past(s.buffer)}, {whole}")
            self.vectors.stream_some(place, kind, simd.masks[-1], value, far)
        elif simd.masks:
            self.vectors.store_some(place, kind, simd.masks[-1], value)
        elif s.buffer in simd.streamed:
            if not simd.in_squares:
                simd.in_rows.add(s.buffer)
            far = self.past(s.buffer)
            if simd.sharing:
                whole = self.scalar(ir.Local(self.name_of_unbroken(simd.sharing[-1]), BOOL))
                far = self.code.give(f"and i1 {far}, {whole}")
            self.vectors.stream(place, kind, value, far, parts=not simd.in_squares)
        else:
            self.vectors.store(place, kind, value)

    def store_once(self, s: ir.Store, kind: Scalar) -> None:
        simd, value = self.simd, s.values[0]
        mask = simd.masks[-1] if simd.masks else "splat (i1 true)"
        vector = self.register(value) if simd.differs(value) else ""
        behind = ""
        if simd.masks:
            here, behind = self.code.label("some"), self.code.label("none")
            self.code.branch(self.vectors.any(mask), here, behind)
            self.code.begin(here)
        number = self.vectors.last(mask, vector, kind) if vector else self.scalar(value)
        self.writer.expressions.store(number, self.pointer(s.buffer, s.index), kind)
        if behind:
            self.code.jump(behind)
            self.code.begin(behind)

    def turned(self, run: list[ir.Statement]) -> bool:
        """Write a square of elements whose rows are the lanes: whole rows are moved, and turned in
        registers. False for other statements.
        """
        simd = self.simd
        if simd.masks or len(run) != simd.count:
            return False
        edge = simd.edge(run)
        loads = [s for s in run if isinstance(s, ir.Load)]
        stores = [s for s in run if isinstance(s, ir.Store)] if edge is None else edge[0]
        moves = loads or stores
        if len(moves) != simd.count or not simd.is_square(moves):
            return False
        first, kind = moves[0], self.type_of(moves[0].buffer)
        places = [
            self.pointer(first.buffer, simd.at_lane(first.index, ir.Literal(n, simd.kind)))
            for n in range(simd.count)
        ]
        if loads:
            rows = [self.vectors.load(p, kind, "") for p in places]
            for s, column in zip(loads, self.vectors.turn(rows, kind), strict=True):
                simd.assigned.add(s.names[0])
                self.put(s.names[0], column, kind)
            return True
        rows = self.vectors.turn([self.register(s.values[0]) for s in stores], kind)
        if edge is not None:
            self.edge_stores(kind, places, rows, *edge[1:])
        elif first.buffer not in simd.streamed:
            for place, row in zip(places, rows, strict=True):
                self.vectors.store(place, kind, row)
        else:
            far = self.past(first.buffer)
            for place, row in zip(places, rows, strict=True):
                self.vectors.stream(place, kind, row, far, parts=False)
        return True

    def edge_stores(
        self,
        kind: Scalar,
        places: list[str],
        rows: list[str],
        mask: ir.Expression,
        there: ir.Expression,
    ) -> None:
        """A row for each lane of `mask`, of it the elements of `there`."""
        lanes, elements = self.mask(mask), self.mask(there)
        for n, (place, row) in enumerate(zip(places, rows, strict=True)):
            here, behind = self.code.label("row"), self.code.label("next")
            self.code.branch(self.vectors.lane(lanes, BOOL, str(n)), here, behind)
            self.code.begin(here)
            self.vectors.store_some(place, kind, elements, row)
            self.code.jump(behind)
            self.code.begin(behind)

    # ------------------------------------------------------------ expressions

    def register(self, e: ir.Expression) -> str:
        """A value of which each lane has one."""
        if self.simd.differs(e):
            return self.vector(e)
        return self.vectors.spread(self.scalar(e), e.type)

    def vector(self, e: ir.Expression) -> str:
        simd, vectors = self.simd, self.vectors
        match e:
            case ir.Call() | ir.Binary() if (
                simd.loops and not simd.sharing and simd_operations.no_instruction(e) is not None
            ):
                return self.once(e)
            case ir.Local():
                if e.name == simd.thread:
                    return vectors.numbers(simd.kind)
                return self.read(e.name, e.type)
            case ir.Unary(operator="-"):
                return vectors.negative(e.type, self.vector(e.operand))
            case ir.Unary():
                return vectors.opposite(e.type, self.vector(e.operand))
            case ir.Binary():
                return self.binary(e)
            case ir.Compare():
                left, right = self.register(e.left), self.register(e.right)
                return vectors.compare(e.operator, e.left.type, left, right)
            case ir.Logical():
                left, right = self.register(e.left), self.register(e.right)
                return vectors.binary(e.operator, BOOL, left, right)
            case ir.Select():
                if not simd.differs(e.condition):
                    return self.code.either(
                        self.scalar(e.condition),
                        vectors.kind(e.type),
                        lambda: self.register(e.if_true),
                        lambda: self.register(e.if_false),
                    )
                mask = self.vector(e.condition)
                yes, no = self.register(e.if_true), self.register(e.if_false)
                return vectors.choose(mask, e.type, yes, no)
            case ir.Cast():
                return vectors.cast(self.vector(e.operand), e.operand.type, e.type)
            case ir.Call():
                operands = [self.register(x) for x in e.arguments]
                return vectors.function(e.intrinsic, e.arguments[0].type, operands)
            case ir.Literal() | ir.Element() | ir.Builtin():
                raise AssertionError(f"{type(e).__name__} is the same in all lanes, or has none")
            case _:
                assert_never(e)

    def once(self, e: ir.Call | ir.Binary) -> str:
        """The value of an operation without SIMD instructions, which is the same in all lanes:
        computed from the first lane's operands, see `Simd.once`.
        """
        operands = e.arguments if isinstance(e, ir.Call) else (e.left, e.right)
        given = [ir.Local(own(f"operand.{n}"), x.type) for n, x in enumerate(operands)]
        values = [
            self.vectors.lane(self.vector(x), x.type, "0")
            if self.simd.differs(x)
            else self.scalar(x)
            for x in operands
        ]
        # not before: an operand may have such operations
        self.writer.given |= {n.name: v for n, v in zip(given, values, strict=True)}
        plain = (
            replace(e, arguments=tuple(given))
            if isinstance(e, ir.Call)
            else replace(e, left=given[0], right=given[1])
        )
        if not self.simd.masks:
            return self.vectors.spread(self.scalar(plain), e.type)
        some = self.vectors.any(self.simd.masks[-1])
        value = self.code.either(
            some, TYPES[e.type], lambda: self.scalar(plain), lambda: "zeroinitializer"
        )
        return self.vectors.spread(value, e.type)

    def binary(self, e: ir.Binary) -> str:
        left = self.register(e.left)
        if e.operator in ("//", "%") and e.type.is_integer:
            # by a power of two (passes/points/lanes.py): both round down, as these do
            assert isinstance(e.right, ir.Literal)
            by = int(e.right.value)
            operator, number = (">>", by.bit_length() - 1) if e.operator == "//" else ("&", by - 1)
            right = self.vectors.spread(str(number), e.type)
            return self.vectors.binary(operator, e.type, left, right)
        return self.vectors.binary(e.operator, e.type, left, self.register(e.right), free=e.free)


def buffer_number(simd: Simd, buffer: str) -> int:
    """The place of a buffer among those of its kernel."""
    return next(n for n, b in enumerate(simd.kernel.buffers) if b.name == buffer)


def _wide(e: ir.Expression) -> ir.Expression:
    return e if e.type == I64 else ir.Cast(e, I64)


def _equal(a: ir.Expression, b: ir.Expression) -> ir.Expression:
    return ir.Compare("==", a, b)


def _extreme(name: str, first: ir.Expression, others: tuple[ir.Expression, ...]) -> ir.Expression:
    value = first
    for other in others:
        value = build.maximum(value, other) if name == "max" else build.minimum(value, other)
    return value


def _locals(e: ir.Expression) -> list[ir.Local]:
    return [x for x in subexpressions(e) if isinstance(x, ir.Local)]

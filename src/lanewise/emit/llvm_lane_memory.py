"""Loads and stores of SIMD lanes in LLVM's language: registers of neighbours, elements apart,
squares that are turned, and what is written past the caches.
"""

from __future__ import annotations

from collections.abc import Callable

from lanewise.analysis.index_sums import index_sum
from lanewise.analysis.lane_sums import UNBROKEN
from lanewise.emit.lane_prefetches import LanePrefetches
from lanewise.emit.llvm_instructions import TYPES
from lanewise.emit.llvm_lane_values import LaneValues
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.traverse import locals_in
from lanewise.language.target import LINE, LONG_IN_ORDER
from lanewise.language.types import BOOL, I64, Scalar

# bytes of a row from which on it matters little that its ends are not written as streams
LONG = 1 << 13


class LaneMemory:
    """Writes what lanes load and store."""

    def __init__(self, values: LaneValues, ahead: LanePrefetches) -> None:
        self.values, self.asking = values, ahead
        self.writer, self.code = values.writer, values.code
        self.lanes, self.vectors = values.lanes, values.vectors

    def rooms(self) -> None:
        """Where the answers lie until it is known what they depend on, see `settle`."""
        for b in sorted(self.lanes.streamed):
            self.code.room(self.far_room(b), "i1")

    def far_room(self, buffer: str) -> str:
        """Where it lies whether a buffer is written past the caches."""
        return self.writer.local(own(f"far.{buffer}"))

    def past(self, buffer: str) -> str:
        """Whether a buffer is written past the caches."""
        self.lanes.past.add(buffer)
        return self.code.give(f"load i1, ptr {self.far_room(buffer)}")

    def load(self, s: ir.Load) -> None:
        lanes, name, kind = self.lanes, s.names[0], self.values.type_of(s.buffer)
        if not lanes.differs(s.index):  # one element for all lanes that are here
            if lanes.masks:
                some = self.vectors.any(lanes.masks[-1])
                value = self.code.either(
                    some,
                    TYPES[kind],
                    lambda: self.single(s.buffer, s.index),
                    lambda: "false" if kind == BOOL else "zeroinitializer",
                )
            else:
                value = self.single(s.buffer, s.index)
            self.values.assigned_to(name, self.vectors.spread(value, kind), kind)
            return
        if not lanes.is_beside(s.index):
            self.gathered(s, kind)
            return
        place = self.values.first_place(s.buffer, s.index)
        if not lanes.masks:
            lanes.assigned.add(name)
            self.values.put(name, self.vectors.load(place, kind, self.writer.lying[name]), kind)
            self.ahead(s)
            return
        self.writer.note("in some lanes")
        other = self.values.read(name, kind) if name in lanes.assigned else "zeroinitializer"
        lanes.assigned.add(name)
        self.values.put(name, self.vectors.load_some(place, kind, lanes.masks[-1], other), kind)
        if id(s) in self.asking.far:
            self.ahead(s)

    def single(self, buffer: str, index: ir.Expression) -> str:
        kind = self.values.type_of(buffer)
        return self.writer.expressions.loaded(self.values.pointer(buffer, index), kind)

    def ahead(self, s: ir.Load) -> None:
        index, distances = self.asking.asked(s)
        if index is None and distances:
            total = index_sum(s.index, self.lanes.sums).without([self.lanes.thread])
            index = total.expression(I64)
        for n in distances:
            assert index is not None
            place = f"{self.writer.written(index)}{f' + {n}' if n else ''}"
            self.writer.note(f"prefetch {self.writer.buffer(s.buffer)[1:]}[{place}]")
            self.vectors.prefetch(self.values.pointer(s.buffer, index, n))

    def gathered(self, s: ir.Load, kind: Scalar) -> None:
        """Elements apart in memory, one lane after the other."""
        self.writer.note("one lane after the other")
        name = s.names[0]
        if name not in self.lanes.assigned:
            self.values.put(name, "zeroinitializer", kind)
        self.lanes.assigned.add(name)

        def one(lane: int) -> None:
            index = self.lanes.at_lane(s.index, ir.Literal(lane, self.lanes.kind))
            value = self.single(s.buffer, index)
            self.values.put(
                name, self.vectors.put(self.values.read(name, kind), kind, str(lane), value), kind
            )

        self.each_lane(s.index, one)

    def each_lane(self, index: ir.Expression, one: Callable[[int], None]) -> None:
        """One lane after the other, of those that are here."""
        lanes, given = self.lanes, self.writer.given
        varying = {
            e.name: e.type
            for e in locals_in(index)
            if e.name in lanes.varying and e.name not in lanes.sums
        }
        for lane in range(lanes.count):
            behind = ""
            if lanes.masks:
                here, behind = self.code.label("lane"), self.code.label("next")
                bit = self.vectors.lane(lanes.masks[-1], BOOL, str(lane))
                self.code.branch(bit, here, behind)
                self.code.begin(here)
            for n, kind in varying.items():  # what a lane read from memory
                value = self.vectors.lane(self.values.read(n, kind), kind, str(lane))
                given[own(f"lane.{n.lstrip(MARK)}")] = value
            one(lane)
            if behind:
                self.code.jump(behind)
                self.code.begin(behind)

    def store(self, s: ir.Store) -> None:
        lanes, kind = self.lanes, self.values.type_of(s.buffer)
        if not lanes.differs(s.index):  # one element, written by the last lane that is here
            self.store_once(s, kind)
            return
        value = self.values.register(s.values[0])
        if not lanes.is_beside(s.index):
            self.writer.note("one lane after the other")

            def one(lane: int) -> None:
                index = lanes.at_lane(s.index, ir.Literal(lane, lanes.kind))
                number = self.vectors.lane(value, kind, str(lane))
                self.writer.expressions.store(number, self.values.pointer(s.buffer, index), kind)

            self.each_lane(s.index, one)
            return
        place = self.values.first_place(s.buffer, s.index)
        if lanes.masks and s.buffer in lanes.ordered:
            self.note_past(s.buffer, "in some lanes, ")
            far = self.past(s.buffer)
            self.vectors.stream_some(place, kind, lanes.masks[-1], value, far)
        elif lanes.in_late and len(lanes.masks) == 1 and s.buffer in lanes.streamed:
            self.note_past(s.buffer, "in some lanes, ", UNBROKEN)
            whole = self.values.scalar(ir.Local(UNBROKEN, BOOL))
            far = self.code.give(f"and i1 {self.past(s.buffer)}, {whole}")
            self.vectors.stream_some(place, kind, lanes.masks[-1], value, far)
        elif lanes.masks:
            self.writer.note("in some lanes")
            self.vectors.store_some(place, kind, lanes.masks[-1], value)
        elif s.buffer in lanes.streamed:
            if not lanes.in_squares:
                lanes.in_rows.add(s.buffer)
            unbroken = name_of_unbroken(lanes.sharing[-1]) if lanes.sharing else ""
            self.note_past(s.buffer, "", unbroken)
            far = self.past(s.buffer)
            if unbroken:
                whole = self.values.scalar(ir.Local(unbroken, BOOL))
                far = self.code.give(f"and i1 {far}, {whole}")
            self.vectors.stream(place, kind, value, far, parts=not lanes.in_squares)
        else:
            self.vectors.store(place, kind, value)

    def note_past(self, buffer: str, where: str, unbroken: str = "") -> None:
        """For people, of a store."""
        far = self.far_room(buffer)[1:]
        also = f" and {self.writer.names(unbroken)}" if unbroken else ""
        self.writer.note(f"{where}past the caches if {far}{also}")

    def store_once(self, s: ir.Store, kind: Scalar) -> None:
        lanes, value = self.lanes, s.values[0]
        mask = lanes.masks[-1] if lanes.masks else "splat (i1 true)"
        vector = self.values.register(value) if lanes.differs(value) else ""
        behind = ""
        if lanes.masks:
            here, behind = self.code.label("some"), self.code.label("none")
            self.code.branch(self.vectors.any(mask), here, behind)
            self.code.begin(here)
        number = self.vectors.last(mask, vector, kind) if vector else self.values.scalar(value)
        self.writer.expressions.store(number, self.values.pointer(s.buffer, s.index), kind)
        if behind:
            self.code.jump(behind)
            self.code.begin(behind)

    def turned(self, run: list[ir.Statement]) -> bool:
        """Write a square of elements whose rows are the lanes: whole rows are moved, and turned in
        registers. False for other statements.
        """
        lanes = self.lanes
        if lanes.masks or len(run) != lanes.count:
            return False
        edge = lanes.edge(run)
        loads = [s for s in run if isinstance(s, ir.Load)]
        stores = [s for s in run if isinstance(s, ir.Store)] if edge is None else edge[0]
        moves = loads or stores
        if len(moves) != lanes.count or not lanes.is_square(moves):
            return False
        first, kind = moves[0], self.values.type_of(moves[0].buffer)
        places = [
            self.values.pointer(first.buffer, lanes.at_lane(first.index, ir.Literal(n, lanes.kind)))
            for n in range(lanes.count)
        ]
        self.writer.note(f"{lanes.count} rows of as many elements, turned in registers")
        if loads:
            rows = [self.vectors.load(p, kind, "") for p in places]
            for s, column in zip(loads, self.vectors.turn(rows, kind), strict=True):
                lanes.assigned.add(s.names[0])
                self.values.put(s.names[0], column, kind)
            return True
        rows = self.vectors.turn([self.values.register(s.values[0]) for s in stores], kind)
        if edge is not None:
            self.edge_stores(kind, places, rows, *edge[1:])
        elif first.buffer not in lanes.streamed:
            for place, row in zip(places, rows, strict=True):
                self.vectors.store(place, kind, row)
        else:
            self.note_past(first.buffer, "")
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
        self.writer.note(
            f"of rows {self.writer.written(mask)} elements {self.writer.written(there)}"
        )
        filled, elements = self.values.mask(mask), self.values.mask(there)
        for n, (place, row) in enumerate(zip(places, rows, strict=True)):
            here, behind = self.code.label("row"), self.code.label("next")
            self.code.branch(self.vectors.lane(filled, BOOL, str(n)), here, behind)
            self.code.begin(here)
            self.vectors.store_some(place, kind, elements, row)
            self.code.jump(behind)
            self.code.begin(behind)

    def settle(self) -> list[str]:
        """The lines before all elements: `unbroken` is known when everything is written."""
        before, self.code.lines = self.code.lines, list[str]()
        for b in sorted(self.lanes.past):
            far, extra = self.far_room(b), self.unbroken(b)
            also = "" if extra is None else f" and ({self.writer.written(extra)})"
            buffer, most = self.writer.buffer(b)[1:], self.vectors.most_near(self.values.type_of(b))
            self.writer.note(f"{far[1:]} = len({buffer}) > {most}{also}")
            answer = self.far_of(b)
            if extra is not None:
                answer = self.code.give(f"and i1 {answer}, {self.values.scalar(extra)}")
            self.code.do(f"store i1 {answer}, ptr {far}")
        made, self.code.lines = self.code.lines, before
        return made

    def far_of(self, buffer: str) -> str:
        return self.vectors.is_far(self.writer.size(buffer), self.values.type_of(buffer))

    def unbroken(self, buffer: str) -> ir.Expression | None:
        """That rows are whole registers, or long: a stream into a line of memory that a masked
        store writes waits for it as well.

        Where registers are stored in the order of memory masked ones are streams as well, but for
        short rows.
        """
        lanes = self.lanes
        if lanes.inside is None or buffer not in lanes.stored_in_bodies & lanes.in_rows:
            return None
        ends: dict[str, tuple[ir.Literal, ir.Expression]] = {}
        for test in build.conjuncts(lanes.inside):
            match test:
                case ir.Compare("<=", ir.Binary("+", ir.Local(first), ir.Literal() as side), end):
                    ends.setdefault(first, (side, end))
                case _:
                    pass
        side, end = list(ends.values())[-1]
        size = self.values.type_of(buffer).size
        if buffer in lanes.ordered:
            return ir.Compare(">=", end, ir.Literal(LONG_IN_ORDER * LINE // size, end.type))
        rest = ir.Binary("%", end, ir.Literal(side.value, end.type), end.type)
        even = ir.Compare("==", rest, ir.Literal(0, end.type))
        return ir.Logical("or", even, ir.Compare(">=", end, ir.Literal(LONG // size, end.type)))


def name_of_unbroken(s: ir.For) -> str:
    """The name of whether the rounds of a loop are whole registers, or many."""
    return UNBROKEN if s.role == "late" else own(f"{s.variable.lstrip('$')}.unbroken")

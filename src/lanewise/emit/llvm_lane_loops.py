"""Loops of SIMD lanes in LLVM's language: those whose rounds lanes share, and walks along rows of
blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lanewise.analysis.index_sums import index_sum
from lanewise.analysis.lane_sums import first_round
from lanewise.analysis.rounds import given_in_rounds
from lanewise.emit.lane_prefetches import LanePrefetches
from lanewise.emit.llvm_instructions import TYPES
from lanewise.emit.llvm_lane_memory import LONG, name_of_unbroken
from lanewise.emit.llvm_lane_values import LaneValues
from lanewise.emit.walks import Bounds, SplitWalk
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import MARK, own
from lanewise.ir.traverse import statements
from lanewise.language.types import BOOL, I64, Scalar

Ends = tuple[ir.Local, ir.Local, ir.Local, ir.Local]
"""Where a walk begins, where its inside begins and ends, and where it ends."""


class LaneLoops:
    """Writes loops whose rounds differ from those of a kernel without lanes."""

    def __init__(self, values: LaneValues, ahead: LanePrefetches) -> None:
        self.values, self.asking = values, ahead
        self.writer, self.code = values.writer, values.code
        self.lanes, self.vectors = values.lanes, values.vectors

    def shared_rounds(self, s: ir.For) -> None:
        """A loop whose rounds lanes share: whole registers of rounds, and the rest in some
        lanes.
        """
        lanes, assign = self.lanes, self.set_whole
        start = index_sum(s.start, lanes.sums).without([lanes.thread])
        bare = s.variable.lstrip(MARK)
        first, begin, whole = (
            ir.Local(n, I64)
            for n in (first_round(s.variable), own(f"{bare}.begin"), own(f"{bare}.whole"))
        )
        stop = _wide(s.stop)
        length = index_sum(s.stop).plus(start, -1)
        even = not any(n % lanes.count for n in (length.constant, *length.terms.values()))
        assign(begin, start.expression(I64))
        rounds = build.multiply(
            build.divide(
                build.maximum(build.subtract(stop, begin), ir.Literal(0, I64)), lanes.count
            ),
            lanes.count,
        )
        assign(whole, stop if even else build.add(begin, rounds))
        self._tell_unbroken(s, begin, whole, stop)
        assigned = lanes.assigned - given_in_rounds(s.body)
        self.room(first.name, I64)

        def one(where: Callable[[], None]) -> None:
            kind, written = s.start.type, self.writer.names
            last = lanes.count - 1
            self.writer.note(f"  {written(s.variable)} = {written(first.name)} + [0 ... {last}]")
            place = self.vectors.whole(self.values.scalar(first), kind)
            spread = self.vectors.spread(place, kind)
            numbers = self.vectors.numbers(kind)
            self.values.put(s.variable, self.vectors.binary("+", kind, spread, numbers), kind)
            where()

        lanes.sharing.append(s)
        self.asking.begin_rounds(s)
        step = ir.Literal(lanes.count, I64)
        loop = ir.For(first.name, begin, whole, step, s.body, role=s.role)
        self.writer.say(loop)
        self.writer.loop(loop, lambda: one(lambda: self.writer.block(s.body)))
        lanes.sharing.pop()
        self.asking.end_rounds(s)
        lanes.assigned = assigned  # the last rounds give what rounds begin with anew
        if even:
            return

        assign(first, whole)
        self._in_some_lanes(s, first, stop, one)

    def _tell_unbroken(
        self, s: ir.For, begin: ir.Local, whole: ir.Local, stop: ir.Expression
    ) -> None:
        """Whether rows that are written past the caches have no end that matters."""
        sizes = [
            self.values.type_of(x.buffer).size
            for x in statements(s.body)
            if isinstance(x, ir.Store) and x.buffer in self.lanes.streamed
        ]
        if sizes and s.role != "late":
            far = ir.Literal(LONG // min(sizes), I64)
            long = ir.Compare(">=", build.subtract(whole, begin), far)
            self.set_truth(name_of_unbroken(s), ir.Logical("or", _equal(whole, stop), long))

    def _in_some_lanes(
        self,
        s: ir.For,
        first: ir.Local,
        stop: ir.Expression,
        one: Callable[[Callable[[], None]], None],
    ) -> None:
        """The rounds that do not fill a register, if there are any. one: does a round."""
        lanes = self.lanes

        def rest() -> None:
            variable = ir.Local(s.variable, s.start.type)
            lanes.masks.append(self.values.mask(ir.Compare("<", variable, s.stop)))
            lanes.in_late = s.role == "late"
            self.writer.block(s.body)
            lanes.in_late = False
            lanes.masks.pop()

        some, behind = self.code.label("rest"), self.code.label("behind")
        self.writer.note(
            f"if {self.writer.written(ir.Compare('<', first, stop))}:  # in some lanes"
        )
        self.code.branch(self.values.scalar(ir.Compare("<", first, stop)), some, behind)
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
        assigned = set(self.lanes.assigned)

        def part(block: ir.Block) -> None:
            # what one part assigns has no value in the others
            self.lanes.assigned = set(assigned)
            for statement in w.head:
                self.writer.depth += 1
                self.writer.say(statement)
                self.writer.depth -= 1
                self.writer.statement(statement)
            self.writer.block(block)

        def over(start: ir.Expression, stop: ir.Expression, block: ir.Block) -> None:
            loop = replace(s, start=start, stop=stop, step=ir.Literal(1, kind))
            self.writer.say(loop)
            self.writer.loop(loop, lambda: part(block))

        def one(condition: ir.Expression, at: ir.Expression, block: ir.Block) -> None:
            def run() -> None:
                assign(number, at)
                part(block)

            self.when(condition, run)

        ends = begin, inner, outer, end
        if w.early is None:
            self._in_turn(along, w, ends, over)
        else:
            block = w.early.block

            def early() -> None:
                one(ir.Compare("<", begin, inner), begin, block)
                over(inner, outer, w.inside)
                one(ir.Compare("<", outer, end), outer, block)

            short = build.all_of(*_short(w.early.bounds, ends))
            self.when(short, early, lambda: self._in_turn(along, w, ends, over))
        self.lanes.assigned = assigned

    def _in_turn(
        self,
        along: str,
        w: SplitWalk,
        ends: Ends,
        over: Callable[[ir.Expression, ir.Expression, ir.Block], None],
    ) -> None:
        """The edges before and the inside, then the edges behind: two rounds of one loop."""
        begin, inner, outer, end = ends
        kind, side = begin.type, ir.Local(own(f"{along}.side"), I64)
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

        self.writer.say(two)
        self.writer.depth += 1
        self.writer.loop(two, each)
        self.writer.depth -= 1

    def when(
        self,
        condition: ir.Expression,
        then: Callable[[], None],
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        code, writer = self.code, self.writer
        yes, no, behind = (code.label(n) for n in ("then", "else", "behind"))
        writer.note(f"if {writer.written(condition)}:")
        code.branch(self.values.scalar(condition), yes, no if otherwise else behind)
        code.begin(yes)
        writer.depth += 1
        then()
        writer.depth -= 1
        code.jump(behind)
        if otherwise:
            code.begin(no)
            writer.note("else:")
            writer.depth += 1
            otherwise()
            writer.depth -= 1
            code.jump(behind)
        code.begin(behind)

    def room(self, name: str, kind: Scalar) -> None:
        if name not in self.writer.lying:
            place = self.code.room(self.writer.local(name), TYPES[kind])
            self.writer.lying[name] = place

    def set_whole(self, variable: ir.Local, value: ir.Expression) -> None:
        self.room(variable.name, variable.type)
        self.writer.note(f"{self.writer.names(variable.name)} = {self.writer.written(value)}")
        number = self.writer.expressions.cast(self.values.scalar(value), value.type, variable.type)
        self.writer.assign(variable.name, number, variable.type)

    def set_truth(self, name: str, value: ir.Expression) -> None:
        self.room(name, BOOL)
        self.writer.note(f"{self.writer.names(name)} = {self.writer.written(value)}")
        self.writer.assign(name, self.values.scalar(value), BOOL)


def _short(bounds: Bounds, ends: Ends) -> list[ir.Expression]:
    """Whether one block at most lies on either side of the inside."""
    begin, inner, outer, end = ends
    one = ir.Literal(1, begin.type)
    tests = [] if bounds.gate is None else [bounds.gate]
    tests += [
        ir.Compare("<=", build.subtract(inner, begin), one),
        ir.Compare("<=", build.subtract(end, outer), one),
    ]
    tests += [ir.Compare("<=", x, begin) for x in bounds.least]
    return [*tests, *(ir.Compare("<=", end, x) for x in bounds.most)]


def _wide(e: ir.Expression) -> ir.Expression:
    return e if e.type == I64 else ir.Cast(e, I64)


def _equal(a: ir.Expression, b: ir.Expression) -> ir.Expression:
    return ir.Compare("==", a, b)


def _extreme(name: str, first: ir.Expression, others: tuple[ir.Expression, ...]) -> ir.Expression:
    value = first
    for other in others:
        value = build.maximum(value, other) if name == "max" else build.minimum(value, other)
    return value

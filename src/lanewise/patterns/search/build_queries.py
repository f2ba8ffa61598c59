"""Queries: which sources are near, as lists, without a function of pairs.

nearest: parallel for i: load target; walk: the k best;  for m: store indices[number k + m],
distances[number k + m] count:   parallel for i: load target; walk: count them;  store
counts[number] fill:    parallel for i: load target; at = offsets[number]; walk: store rows[at], at
+= 1 `number` is the target's index in the caller's order. Neighbouring threads have neighbouring
targets: those that are the sources themselves run in sorted places, others in another
order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import count_of, own
from lanewise.ir.values import record_array, value_array, value_leaves
from lanewise.language import types as t
from lanewise.language.types import I32, I64, Scalar
from lanewise.layouts import SoAoAS
from lanewise.patterns.search.base import ORDER, RADIUS2, Visit, Walk
from lanewise.patterns.search.build import SEARCH
from lanewise.patterns.search.candidates import Candidates, Nearest

Wanted = Literal["nearest", "count", "fill"]
POINTS, QUERIES = "points", "queries"
TURNS = own("turns")  # the order in which targets are looked at that are not the sources
INDICES, DISTANCES = own("indices"), own("distances")
COUNTS, OFFSETS, ROWS = own("counts"), own("offsets"), own("rows")
NOBODY = -1


@dataclass(frozen=True, slots=True)
class QueryArguments:
    """What a query kernel is specialised to.

    identical: the targets are the sources, and none is a neighbour of itself. ordered: sources
    lie in sorted places (`$order`).
    turned: other targets are looked at in the order of `$turns`. limited: there is a radius.
    numbered: rows are filled with 64-bit keys, the target's number above the source's, for those
    who sort them all at once; else with the source's numbers.
    """

    what: Wanted
    precision: Scalar
    axes: int
    walk: Walk
    identical: bool
    ordered: bool
    turned: bool
    limited: bool
    periodic: bool
    k: int | None = None
    numbered: bool = False


def row_type(arguments: QueryArguments) -> Scalar:
    """The type of what `fill` writes."""
    return I64 if arguments.numbered else I32


def build_query(arguments: QueryArguments, index: Scalar) -> ir.Kernel:
    """The reference kernel."""
    return _QueryBuilder(arguments, index).kernel()


class _QueryBuilder:
    def __init__(self, a: QueryArguments, index: Scalar) -> None:
        self.a, self.index = a, index
        self.i, self.number = ir.Local(own("i"), index), ir.Local(own("number"), index)
        self.limit = ir.Local(RADIUS2, a.precision)
        kind = t.Vector(a.precision, a.axes)
        self.leaves = value_leaves(kind)
        names = tuple(x.name for x in self.leaves)
        place = tuple(ir.Local(own(f"place.{n}"), a.precision) for n in names)
        self.candidates = Candidates(POINTS, names, place, a.precision, a.periodic)
        self.targets = POINTS if a.identical else QUERIES

    def kernel(self) -> ir.Kernel:
        a, count = self.a, ir.Parameter(count_of(self.targets), self.index)
        layout = record_array(POINTS, self.leaves, SoAoAS(), written=False)
        points = layout if a.ordered else value_array(POINTS, self.vector, written=False)
        queries = [] if a.identical else [value_array(QUERIES, self.vector, written=False)]
        numbers = [
            value_array(name, I32, written=False)
            for name, there in (
                (ORDER, a.ordered and (a.identical or a.what != "count")),
                (TURNS, a.turned),
            )
            if there
        ]
        arrays = (points, *queries, *self.outputs(), *numbers, *a.walk.arguments())
        uniforms = (
            ir.Parameter(RADIUS2, a.precision),
            *self.candidates.uniforms(),
            *a.walk.uniforms(),
        )
        loop = ir.Parallel(
            self.i.name, ir.Local(count.name, self.index), (*self.target(), *self.body())
        )
        name = "nearest" if a.what == "nearest" else f"neighbors_{a.what}"
        return ir.Kernel(name, SEARCH, arrays, uniforms, (count,), (loop,), identical=a.identical)

    @property
    def vector(self) -> t.Vector:
        return t.Vector(self.a.precision, self.a.axes)

    def outputs(self) -> tuple[ir.ArrayArgument, ...]:
        a = self.a
        match a.what:
            case "nearest":
                return value_array(INDICES, I32, written=True), value_array(
                    DISTANCES, a.precision, written=True
                )
            case "count":
                return (value_array(COUNTS, I32, written=True),)
            case "fill":
                rows = value_array(ROWS, row_type(a), written=True)
                return rows, value_array(OFFSETS, self.index, written=False)
            case _:
                assert_never(a.what)

    # ------------------------------------------------------------ targets

    def target(self) -> ir.Block:
        """The target's place, and its number in the caller's order."""
        a, turn = self.a, ir.Local(own("turn"), I32)
        table = TURNS if a.turned else ORDER if a.identical and a.ordered else None
        number: ir.Block = (ir.Assign(self.number.name, self.i),)
        if table is not None:
            number = (
                ir.LoadRecord(table, self.i, (("value", turn.name),)),
                ir.Assign(self.number.name, build.cast(turn, self.index)),
            )
        at = self.i if a.identical else self.number
        names = zip(self.leaves, self.candidates.place, strict=True)
        return (*number, ir.LoadRecord(self.targets, at, tuple((x.name, p.name) for x, p in names)))

    # ------------------------------------------------------------ what is done with the sources

    def body(self) -> ir.Block:
        match self.a.what:
            case "nearest":
                return self.nearest()
            case "count":
                total = ir.Local(own("total"), I32)
                add = ir.Assign(total.name, build.add(total, 1))
                start = ir.Assign(total.name, ir.Literal(0, I32))
                store = ir.StoreRecord(COUNTS, self.number, (("value", total),))
                return (start, *self.met(lambda j: (add,)), store)
            case "fill":
                at = ir.Local(own("at"), self.index)
                return (
                    ir.LoadRecord(OFFSETS, self.number, (("value", at.name),)),
                    *self.met(lambda j: self.write(j, at)),
                )
            case _:
                assert_never(self.a.what)

    def met(self, visit: Visit) -> ir.Block:
        """Visit all sources nearer than the radius."""

        def keep(j: ir.Local) -> ir.Expression:
            return self.but_itself(j, ir.Compare("<", self.candidates.d2, self.limit))

        return self.candidates.met(self.a.walk, self.limit, keep, visit)

    def but_itself(self, j: ir.Local, near: ir.Expression) -> ir.Expression:
        return ir.Logical("and", near, ir.Compare("!=", self.i, j)) if self.a.identical else near

    def write(self, j: ir.Local, at: ir.Local) -> ir.Block:
        """One entry of a row."""
        source = ir.Local(own("found"), I32)
        read = (
            ir.LoadRecord(ORDER, j, (("value", source.name),))
            if self.a.ordered
            else ir.Assign(source.name, ir.Cast(j, I32))
        )
        value: ir.Expression = source
        if self.a.numbered:
            row = build.shift_left(ir.Cast(self.number, I64), 32)
            value = ir.Binary("|", row, ir.Cast(source, I64), I64)
        return (
            read,
            ir.StoreRecord(ROWS, at, (("value", value),)),
            ir.Assign(at.name, build.add(at, 1)),
        )

    # ------------------------------------------------------------ the k nearest

    def nearest(self) -> ir.Block:
        a, c = self.a, self.candidates
        assert a.k is not None
        best = Nearest(a.k, a.precision, self.index, a.ordered)

        def keep(j: ir.Local) -> ir.Expression:
            return self.but_itself(j, best.enters(c.d2))

        search = c.met(a.walk, best.bound2, keep, lambda j: best.insert(c.d2, j))
        first = ir.Local(own("first"), self.index)
        stores = (s for m in range(a.k) for s in self.store(best, m, first))
        return (
            *best.start(self.limit),
            *search,
            ir.Assign(first.name, build.multiply(self.number, a.k)),
            *stores,
        )

    def store(self, best: Nearest, m: int, first: ir.Local) -> ir.Block:
        """The m-th nearest, or none, infinitely far."""
        place, kind, index = best.place(m), self.a.precision, self.index
        taken, source = ir.Compare(">=", place, ir.Literal(0, index)), ir.Local(own("found"), I32)
        read: ir.Statement = ir.Assign(source.name, ir.Cast(place, I32))
        if self.a.ordered:
            read = ir.LoadRecord(ORDER, build.maximum(place, 0), (("value", source.name),))
        far = ir.Literal(float("inf"), kind)
        distance = ir.Select(taken, ir.Call("sqrt", (best.d2(m),), kind), far, kind)
        at = build.add(first, m)
        return (
            read,
            ir.StoreRecord(
                INDICES, at, (("value", ir.Select(taken, source, ir.Literal(NOBODY, I32), I32)),)
            ),
            ir.StoreRecord(DISTANCES, at, (("value", distance),)),
        )

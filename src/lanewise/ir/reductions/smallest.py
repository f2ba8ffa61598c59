"""The k smallest values, the smallest first, or the sources that have them.

A sorted list in registers that is never addressed, only shifted. Equal values stand in the order of
their sources' indices; NaN and infinity do not enter. Empty places hold infinity (or the limit of a
integer), and -1 for the source.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.reductions.base import Place, Reduction, State, StatePart
from lanewise.ir.reductions.extremes import plain_zero, worst
from lanewise.ir.reductions.places import NOBODY
from lanewise.language import types as t
from lanewise.language.types import BOOL, I32, Scalar

MOST_SMALLEST = 32  # of a list that is kept in registers


@dataclass(frozen=True, slots=True)
class Smallest(Reduction):
    """The first `k` of the sorted values: the state is their values, and behind them, where it is
    `indexed`, their sources.
    """

    k: int = 1

    def parts(self, kind: Scalar) -> tuple[StatePart, ...]:
        values = tuple(
            StatePart(str(m) if m else "", kind, worst(kind, "<")) for m in range(self.k)
        )
        places = tuple(
            StatePart(f"index{m}", I32, ir.Literal(NOBODY, I32))
            for m in range(self.k if self.indexed else 0)
        )
        return (*values, *places)

    def take(self, state: State, value: ir.Local, place: Place) -> ir.Block:
        last = state[self.k - 1]
        ties = self.indexed and not place.in_order
        enters: ir.Expression = ir.Compare("<=" if ties else "<", value, last)
        if self.indexed and not value.type.is_float:
            enters = ir.Logical("or", enters, build.less(state[2 * self.k - 1], 0))
        load = place.load if self.indexed else ()
        return (ir.If(enters, (*load, *self._insert(state, value, place.index, ties=ties))),)

    def merge(self, state: State, other: State) -> ir.Block:
        body: list[ir.Statement] = []
        for m in range(self.k):
            value, place = other[m], other[self.k + m] if self.indexed else ir.Literal(NOBODY, I32)
            insert = self._insert(state, value, place, ties=self.indexed)
            here = ir.Compare(">=", place, ir.Literal(0, I32)) if self.indexed else None
            body += [ir.If(here, insert)] if here is not None else insert
        return tuple(body)

    def _insert(
        self, state: State, value: ir.Expression, place: ir.Expression, *, ties: bool
    ) -> ir.Block:
        """Put a value where it belongs; the last one falls out."""
        values, places = state[: self.k], state[self.k :]
        base = values[0].name.removeprefix(own(""))
        before = [ir.Local(own(f"{base}.before{m}"), BOOL) for m in range(self.k)]
        body: list[ir.Statement] = []
        for m, b in enumerate(before):
            first: ir.Expression = ir.Compare("<", value, values[m])
            if ties:
                tie = ir.Logical(
                    "and", build.equal(value, values[m]), ir.Compare("<", place, places[m])
                )
                first = ir.Logical("or", first, tie)
            if places and not value.type.is_float:  # the limit of an integer is a value too
                first = ir.Logical("or", first, build.less(places[m], 0))
            body.append(ir.Assign(b.name, first))
        for m in reversed(range(self.k)):
            for column, new in ((values, value), (places, place)):
                if not column:
                    continue
                e: ir.Expression = ir.Select(before[m], new, column[m], new.type)
                if m:
                    e = ir.Select(before[m - 1], column[m - 1], e, new.type)
                body.append(ir.Assign(column[m].name, e))
        return tuple(body)

    def finish(self, state: State) -> tuple[ir.Expression, ...]:
        return state[self.k :] if self.indexed else tuple(map(plain_zero, state))

    def gives(self, kind: t.ValueType) -> t.ValueType:
        return t.Vector(I32 if self.indexed else t.scalar_of(kind), self.k)

    def refuses(self, kind: t.ValueType) -> str | None:
        if not isinstance(kind, t.Scalar) or kind == t.BOOL:
            return "one number per pair, such as lw.f32"
        return None


def k_min(k: int) -> Smallest:
    """The k smallest values."""
    return Smallest("kmin", exact=True, k=k)


def arg_k_min(k: int) -> Smallest:
    """The sources with the k smallest values."""
    return Smallest("argkmin", exact=True, indexed=True, k=k)

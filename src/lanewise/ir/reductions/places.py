"""Which source has the smallest or the largest value: its index, as the caller counts; of equal
values the smallest index.

(value, index) is the order of pairs, and no two sources have one index: whatever the order in which
they come, one of them is the first. Sources in the order of their indices need no comparison of
indices, because the first of equals is already there. No source is -1.

For floats a source counts when its value is better than the worst one: infinity (of ArgMin, minus
infinity of ArgMax) and NaN are no candidates, which makes them a way to leave sources out. Every
integer counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.reductions.base import Place, Reduction, State, StatePart
from lanewise.ir.reductions.extremes import Better, worst
from lanewise.language import types as t
from lanewise.language.types import BOOL, I32, Scalar

NOBODY = -1


@dataclass(frozen=True, slots=True)
class ArgExtreme(Reduction):
    """`better`: how the value of the source that stays compares with the others."""

    better: Better = "<"

    def parts(self, kind: Scalar) -> tuple[StatePart, ...]:
        return StatePart("", kind, worst(kind, self.better)), StatePart(
            "index", I32, ir.Literal(NOBODY, I32)
        )

    def take(self, state: State, value: ir.Local, place: Place) -> ir.Block:
        best, index = state
        better: ir.Expression = ir.Compare(self.better, value, best)
        nobody = build.less(index, 0)
        if place.in_order:
            wins = better if value.type.is_float else ir.Logical("or", better, nobody)
            return (*place.load, *_replace(state, wins, value, place.index))
        near = ir.Compare("<=" if self.better == "<" else ">=", value, best)
        tie = ir.Logical("and", build.equal(value, best), build.less(place.index, index))
        wins = ir.Logical("or", better, tie)
        if not value.type.is_float:
            wins = ir.Logical("or", nobody, wins)
        return (ir.If(near, (*place.load, *_replace(state, wins, value, place.index))),)

    def merge(self, state: State, other: State) -> ir.Block:
        (best, index), (value, place) = state, other
        tie = ir.Logical("and", build.equal(value, best), build.less(place, index))
        wins = ir.Logical("or", ir.Compare(self.better, value, best), tie)
        somebody = ir.Compare(">=", place, ir.Literal(0, I32))
        wins = ir.Logical("and", somebody, ir.Logical("or", build.less(index, 0), wins))
        return _replace(state, wins, value, place)

    def finish(self, state: State) -> tuple[ir.Expression, ...]:
        return state[1:]

    def gives(self, kind: t.ValueType) -> t.ValueType:
        return t.Vector(I32, kind.length) if isinstance(kind, t.Vector) else I32


def _replace(
    state: State, wins: ir.Expression, value: ir.Expression, place: ir.Expression
) -> ir.Block:
    best, index = state
    test = ir.Local(own(f"{best.name.removeprefix(own(''))}.wins"), BOOL)
    return (
        ir.Assign(test.name, wins),
        ir.Assign(best.name, ir.Select(test, value, best, best.type)),
        ir.Assign(index.name, ir.Select(test, place, index, I32)),
    )


ARG_MIN = ArgExtreme("argmin", exact=True, indexed=True)
ARG_MAX = ArgExtreme("argmax", exact=True, indexed=True, better=">")

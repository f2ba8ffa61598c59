"""Sums, and counts of the sources for which something holds.

A sum of floats is rounded in the order that a plan fixes.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.ir import nodes as ir
from lanewise.ir.reductions.base import Place, Reduction, State, StatePart
from lanewise.language import types as t
from lanewise.language.types import I32, Scalar


@dataclass(frozen=True, slots=True)
class Sum(Reduction):
    """The sum; 0 of no source. NaN of one source is NaN of the sum."""

    def parts(self, kind: Scalar) -> tuple[StatePart, ...]:
        return (StatePart("", kind, ir.Literal(0.0 if kind.is_float else 0, kind)),)

    def take(self, state: State, value: ir.Local, place: Place) -> ir.Block:
        (total,) = state
        return (ir.Assign(total.name, ir.Binary("+", total, value, total.type)),)

    def merge(self, state: State, other: State) -> ir.Block:
        (total,), (more,) = state, other
        return (ir.Assign(total.name, ir.Binary("+", total, more, total.type)),)


@dataclass(frozen=True, slots=True)
class Count(Reduction):
    """How many sources the function says True of; 0 of no source."""

    @property
    def numbered(self) -> bool:
        return True

    def parts(self, kind: Scalar) -> tuple[StatePart, ...]:
        return (StatePart("", I32, ir.Literal(0, I32)),)

    def take(self, state: State, value: ir.Local, place: Place) -> ir.Block:
        (count,) = state
        one = ir.Select(value, ir.Literal(1, I32), ir.Literal(0, I32), I32)
        return (ir.Assign(count.name, ir.Binary("+", count, one, I32, bounded=True)),)

    def merge(self, state: State, other: State) -> ir.Block:
        (count,), (more,) = state, other
        return (ir.Assign(count.name, ir.Binary("+", count, more, I32, bounded=True)),)

    def gives(self, kind: t.ValueType) -> t.ValueType:
        return I32


SUM = Sum("sum", zero_is_identity=True, reorders=True, widens=True, adds=True)
COUNT_TRUE = Count("count", exact=True, zero_is_identity=True, reorders=True, of_truths=True)

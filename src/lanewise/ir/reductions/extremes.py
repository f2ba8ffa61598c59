"""The smallest and the largest value.

A value enters only when it compares as better, so NaN, which compares as nothing, is left out. Of
no source (or of NaN alone) the result is the worst value there is: infinity with a sign, or the
limit of an integer. Zeros of both signs are equal: which one came first would depend on the
order, so a zero comes out as +0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.reductions.base import Place, Reduction, State, StatePart
from lanewise.language.types import Scalar, limits

Better = Literal["<", ">"]


def worst(kind: Scalar, better: Better) -> ir.Literal:
    """What every other value is better than."""
    if kind.is_float:
        return ir.Literal(math.inf if better == "<" else -math.inf, kind)
    low, high = limits(kind)
    return ir.Literal(int(high if better == "<" else low), kind)


def plain_zero(e: ir.Expression) -> ir.Expression:
    """The value, with +0 for a zero of either sign."""
    if not e.type.is_float:
        return e
    zero = ir.Literal(0.0, e.type)
    return ir.Select(build.equal(e, zero), zero, e, e.type)


@dataclass(frozen=True, slots=True)
class Extreme(Reduction):
    """`better`: how the value that stays compares with the others."""

    better: Better = "<"

    def parts(self, kind: Scalar) -> tuple[StatePart, ...]:
        return (StatePart("", kind, worst(kind, self.better)),)

    def take(self, state: State, value: ir.Local, place: Place) -> ir.Block:
        return self.merge(state, (value,))

    def merge(self, state: State, other: State) -> ir.Block:
        (best,), (value,) = state, other
        return (
            ir.Assign(
                best.name, ir.Select(ir.Compare(self.better, value, best), value, best, best.type)
            ),
        )

    def finish(self, state: State) -> tuple[ir.Expression, ...]:
        return (plain_zero(state[0]),)


MIN = Extreme("min", exact=True)
MAX = Extreme("max", exact=True, better=">")

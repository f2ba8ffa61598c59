"""The logarithm of a sum of exponentials, without overflow: the largest value so far, and the sum
of exp(value - largest).

    take v:   scale = exp(-|v - largest|);  sum = sum * scale + 1, largest = v  if v > largest,
    else  sum = sum + scale
(M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018.) Equal values have
the scale 1, infinite ones too, whose difference is no number. Of no source it is minus infinity;
NaN of one source is NaN of the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.reductions.base import Place, Reduction, State, StatePart
from lanewise.language import types as t
from lanewise.language.types import BOOL, Scalar


@dataclass(frozen=True, slots=True)
class LogSumExp(Reduction):
    """log(sum of exp(value))."""

    def parts(self, kind: Scalar) -> tuple[StatePart, ...]:
        return StatePart("", kind, ir.Literal(-math.inf, kind)), StatePart(
            "total", kind, ir.Literal(0.0, kind)
        )

    def take(self, state: State, value: ir.Local, place: Place) -> ir.Block:
        return self.merge(state, (value, ir.Literal(1.0, value.type)))

    def merge(self, state: State, other: tuple[ir.Expression, ...]) -> ir.Block:
        (largest, total), (value, more) = state, other
        kind, base = largest.type, largest.name.removeprefix(own(""))
        scale, grows = ir.Local(own(f"{base}.scale"), kind), ir.Local(own(f"{base}.grows"), BOOL)
        gap = ir.Unary("-", ir.Call("abs", (ir.Binary("-", value, largest, kind),), kind), kind)
        one = ir.Literal(1.0, kind)
        equal = ir.Select(build.equal(value, largest), one, ir.Call("exp", (gap,), kind), kind)

        def scaled(e: ir.Expression) -> ir.Expression:
            return scale if e == one else ir.Binary("*", e, scale, kind)

        up = ir.Binary("+", scaled(total), more, kind)
        down = ir.Binary("+", total, scaled(more), kind)
        return (
            ir.Assign(scale.name, equal),
            ir.Assign(grows.name, ir.Compare(">", value, largest)),
            ir.Assign(total.name, ir.Select(grows, up, down, kind)),
            ir.Assign(largest.name, ir.Select(grows, value, largest, kind)),
        )

    def finish(self, state: State) -> tuple[ir.Expression, ...]:
        largest, total = state
        return (ir.Binary("+", largest, ir.Call("log", (total,), total.type), total.type),)

    def refuses(self, kind: t.ValueType) -> str | None:
        return None if t.scalar_of(kind).is_float else "floats: lw.f32, lw.f64, or vectors of them"


LOG_SUM_EXP = LogSumExp("logsumexp")

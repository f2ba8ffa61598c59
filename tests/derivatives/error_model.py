"""The whole error model that `sizes` of lanewise's estimates are a part of: sums of powers of lengths, and what follows."""

from __future__ import annotations

from math import comb

from lanewise.analysis.value_numbering import Value
from lanewise.derivatives.expansions.estimates import ErrorModel
from lanewise.derivatives.expansions.operators import OperatorBuilder
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import F64


def powers_of_source(e: ErrorModel) -> ir.Function:
    """What one source adds to the P_k of its group, by weight: `$power0.0`, ..."""
    b = OperatorBuilder(e.operators, "powers", F64)
    u = b.scaled(e.operators.place("source"), b.place("centre"), b.one)
    length = b.call("sqrt", b.sum([b.algebra.times(x, x) for x in u]))
    for w in range(len(e.shape.weights)):
        size = b.call("abs", b.weight(w))
        for k in range(e.operators.order + 2):
            b.result(own(f"power{w}.{k}"), b.algebra.times(size, b.power(length, k)))
    return b.function()


def powers_of_parent(e: ErrorModel) -> ir.Function:
    """What the P_k of a group add to those of a larger one: at least what its sources would."""
    b = OperatorBuilder(e.operators, "parent_powers", F64)
    u = b.scaled(b.place("child"), b.place("parent"), b.one)
    shift = b.call("sqrt", b.sum([b.algebra.times(x, x) for x in u]))
    for w in range(len(e.shape.weights)):
        known = [b.parameter(own(f"power{w}.{k}")) for k in range(e.operators.order + 2)]
        for k in range(e.operators.order + 2):
            terms = [
                b.algebra.times(b.algebra.times(b.number(comb(k, x)), b.power(shift, k - x)), known[x])
                for x in range(k + 1)
            ]
            b.result(own(f"power{w}.{k}"), b.sum(terms))
    return b.function()


def error(e: ErrorModel, *, to_points: bool) -> ir.Function:
    """E of all interactions, from their sizes, the P_k and the radius of the targets."""
    b = OperatorBuilder(e.operators, "error", F64)
    radius = b.number(0) if to_points else b.parameter(own("radius"))
    total: list[Value] = []
    for n, i in enumerate(e.shape.interactions):
        q = e.first_left_out(i, to_points=to_points)
        terms = [
            b.algebra.times(
                b.algebra.times(b.number(comb(q, k)), b.power(radius, q - k)),
                b.parameter(own(f"power{i.weight}.{k}")),
            )
            for k in range(q + 1)
        ]
        total.append(b.algebra.times(b.parameter(own(f"size{n}")), b.sum(terms)))
    b.result(own("error"), b.sum(total))
    return b.function()

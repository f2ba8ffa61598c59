"""Conditions that leave a whole box of values: each of its values is that of some thread.

if x > 0 and y == 2: load a[x + 1]     x < 8, y < 4  ->  x from 1 to 7 and y = 2, all of them
if x != 3, if x + y < 5, if flag[x]                  ->  not known, or not a box
"""

from __future__ import annotations

from collections.abc import Container

from lanewise.analysis.known_bounds import (
    KnownBounds,
    assume,
    difference,
    evaluate,
    with_truth,
)
from lanewise.ir import nodes as ir


def leaves_a_box(
    e: ir.Expression, state: KnownBounds, sparse: Container[str], *, true: bool
) -> bool:
    """Whether a condition holds (or does not, unless `true`) for all values of the box that
    `assume` leaves of this one, which are all there.

    sparse: the variables that do not have all values between their least and their greatest.
    """
    if assume(e, state.copy(), true=not true) is None:
        return True
    match e:
        case ir.Local(name=name) if name in state.truths:
            truth = state.truths[name]
            return leaves_a_box(truth.condition, with_truth(state.copy(), truth), sparse, true=true)
        case ir.Unary(operator="not", operand=operand):
            return leaves_a_box(operand, state, sparse, true=not true)
        case ir.Logical(operator=operator, left=left, right=right) if (operator == "and") is true:
            if not leaves_a_box(left, state, sparse, true=true):
                return False
            first = assume(left, state.copy(), true=true)
            return first is None or leaves_a_box(right, first, sparse, true=true)
        case ir.Compare() if e.left.type.is_integer and e.right.type.is_integer:
            between = difference(evaluate(e.left, state), evaluate(e.right, state))
            if not between.is_sum or len(between.coefficients) != 1:
                return False
            if between.coefficients[0][0] in sparse:
                return False
            # a value that is left out leaves a box where it is the least or the greatest
            unequal = e.operator == ("!=" if true else "==")
            return not unequal or 0 in state.span(between)
        case _:
            return False

"""The value of an expression of literals, and identities that are exact for every value.

Float identities are used only where they are: `x * 1` is exact, `x + 0` (minus zero) and `x * 0`
(NaN) are not.
"""

from __future__ import annotations

import math

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.traverse import children
from lanewise.language.types import BOOL, U32


def fold(e: ir.Expression) -> ir.Expression:
    """One node whose children are folded already."""
    match e:
        case ir.Literal() | ir.Local() | ir.Builtin() | ir.Element():
            return e
        case ir.Select(condition=ir.Literal(value=value)):
            return e.if_true if value else e.if_false
        case ir.Logical(left=ir.Literal(value=value)):
            return e.right if bool(value) == (e.operator == "and") else e.left
        case (
            ir.Binary(operator="*", left=ir.Literal(value=1), right=x)
            | ir.Binary(operator="*" | "/" | "//", left=x, right=ir.Literal(value=1))
        ) if e.operator != "//" or e.type.is_integer:
            return x
        case (
            ir.Binary(operator="+" | "-", left=x, right=ir.Literal(value=0))
            | ir.Binary(operator="+", left=ir.Literal(value=0), right=x)
        ) if e.type.is_integer:
            return x
        case ir.Binary(operator="/", left=x, right=ir.Literal(value=0) as zero) if not isinstance(
            x, ir.Literal
        ):
            infinite = ir.Literal(math.copysign(math.inf, zero.value), e.type, zero.location)
            return ir.Binary("*", x, infinite, e.type, e.location)  # which compilers do not warn of
        case (
            ir.Compare(operator="<" | ">=", left=x, right=ir.Literal(value=0))
            | ir.Compare(operator=">" | "<=", left=ir.Literal(value=0), right=x)
        ) if x.type == U32:
            return ir.Literal(e.operator in (">=", "<="), BOOL, e.location)
        case _ if all(isinstance(c, ir.Literal) for c in children(e)) and not _undefined(e):
            with np.errstate(all="ignore"):
                return ir.Literal(evaluate(e, {}).item(), e.type, e.location)
        case _:
            return e


def _undefined(e: ir.Expression) -> bool:
    """Whole-number division by zero is left for run time, where the user's own guard may never
    reach it.
    """
    match e:
        case ir.Binary(operator="//" | "%", right=ir.Literal(value=value)):
            return e.type.is_integer and value == 0
        case _:
            return False

"""The derivative of every intrinsic, as IR over its operands `$0`, `$1`, `$2` and its result
`$out`.

Where a function has a kink, one of its subgradients is taken, as PyTorch does: 0 for abs at 0, a
half for each side where min or max are of equal numbers, 1 at the ends of clamp. The derivative of
sqrt at 0, which is infinite, is 0, as for PyTorch's norm: so the distance of an element from itself
adds nothing. Where the function of a number is no number, such as sqrt or log of a negative one, no
derivative of it is one, and no derivative of that: logarithms test their argument, without
computing themselves once more. Steps (floor, ceil, trunc, comparisons) have the derivative 0.
"""

from __future__ import annotations

import math
from functools import cache

from lanewise.ir import nodes as ir
from lanewise.ir.interpret import INTRINSICS
from lanewise.ir.names import own
from lanewise.language.types import Scalar
from lanewise.support.errors import ArgumentError, VerificationError

OUT = own("out")


def operand(n: int) -> str:
    """The name that operand n has in a rule."""
    return own(str(n))


@cache
def partials(intrinsic: str, kind: Scalar) -> tuple[ir.Expression, ...]:
    """The derivative with respect to each operand: a table, a row for each function.

    Raises `VerificationError` for a function that has no rule.
    """
    r = _Rules(kind)
    x = ir.Local(operand(0), kind)
    y = ir.Local(operand(1), kind)
    z = ir.Local(operand(2), kind)
    out = ir.Local(OUT, kind)
    one, zero = r.number(1), r.number(0)
    # one row for each function: a table, which is read as one
    match intrinsic:
        case "sqrt":
            return (r.times(r.number(0.5), r.where("!=", out, zero, r.divide(one, out), zero)),)
        case "rsqrt":
            return (r.times(r.number(-0.5), r.times(r.times(out, out), out)),)
        case "cbrt":
            return (r.divide(one, r.times(r.number(3), r.times(out, out))),)
        case "exp":
            return (out,)
        case "exp2":
            return (r.times(r.number(math.log(2)), out),)
        case "expm1":
            return (r.plus(out, one),)
        case "erf" | "erfc":
            slope = 2 / math.sqrt(math.pi) * (1 if intrinsic == "erf" else -1)
            return (r.times(r.number(slope), r.call("exp", r.minus(r.times(x, x)))),)
        case "log":
            return (r.above_zero(x, r.divide(one, x)),)
        case "log2":
            return (r.above_zero(x, r.divide(r.number(1 / math.log(2)), x)),)
        case "log10":
            return (r.above_zero(x, r.divide(r.number(1 / math.log(10)), x)),)
        case "log1p":
            more = r.plus(one, x)
            return (r.above_zero(more, r.divide(one, more)),)
        case "sin":
            return (r.call("cos", x),)
        case "cos":
            return (r.minus(r.call("sin", x)),)
        case "tan":
            return (r.plus(one, r.times(out, out)),)
        case "asin":
            return (r.call("rsqrt", r.less(one, r.times(x, x))),)
        case "acos":
            return (r.minus(r.call("rsqrt", r.less(one, r.times(x, x)))),)
        case "atan":
            return (r.divide(one, r.plus(one, r.times(x, x))),)
        case "sinh":
            return (r.call("cosh", x),)
        case "cosh":
            return (r.call("sinh", x),)
        case "tanh":
            return (r.less(one, r.times(out, out)),)
        case "abs":
            return (r.where(">", x, zero, one, r.where("<", x, zero, r.number(-1), zero)),)
        case "floor" | "ceil" | "trunc" | "round":
            return (zero,)
        case "min" | "max":
            sign: ir.CompareOperator = "<" if intrinsic == "min" else ">"
            half = r.where("==", x, y, r.number(0.5), zero)
            return r.where(sign, x, y, one, half), r.where(sign, y, x, one, half)
        case "clamp":  # min(max(x, low), high)
            inside = r.where("<", x, y, zero, r.where(">", x, z, zero, one))
            return (
                inside,
                r.where("<", x, y, r.where("<=", y, z, one, zero), zero),
                r.where(">", r.call("max", x, y), z, one, zero),
            )
        case "atan2":
            square = r.plus(r.times(x, x), r.times(y, y))
            return r.divide(y, square), r.minus(r.divide(x, square))
        case "hypot":
            return tuple(r.where("!=", out, zero, r.divide(a, out), zero) for a in (x, y))
        case "pow":
            base = r.times(y, r.call("pow", x, r.less(y, one)))
            slope = r.times(out, r.call("log", x))
            at_zero = r.where(">=", y, zero, zero, slope)
            return r.where("==", y, zero, zero, base), r.where("==", x, zero, at_zero, slope)
        case "mix":  # x + (y - x) * z
            return r.less(one, z), z, r.less(y, x)
        case "fma":
            return y, x, one
        case "gamma":
            raise ArgumentError(
                "lw.gamma has no gradient: its slope has the digamma function, which kernels lack; "
                "compute what depends on it in a separate kernel"
            )
        case _:
            raise VerificationError(f"{intrinsic} has no derivative")


DIFFERENTIABLE = frozenset(n for n, i in INTRINSICS.items() if not i.predicate)


class _Rules:
    """Short names for expressions of one type."""

    def __init__(self, kind: Scalar) -> None:
        self.kind = kind

    def number(self, value: float) -> ir.Expression:
        return ir.Literal(float(value), self.kind)

    def call(self, name: str, *arguments: ir.Expression) -> ir.Expression:
        return ir.Call(name, arguments, self.kind)

    def plus(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return ir.Binary("+", a, b, self.kind)

    def less(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return ir.Binary("-", a, b, self.kind)

    def times(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return ir.Binary("*", a, b, self.kind)

    def divide(self, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        return ir.Binary("/", a, b, self.kind)

    def minus(self, a: ir.Expression) -> ir.Expression:
        return ir.Unary("-", a, self.kind)

    def where(
        self,
        operator: ir.CompareOperator,
        a: ir.Expression,
        b: ir.Expression,
        if_true: ir.Expression,
        if_false: ir.Expression,
    ) -> ir.Expression:
        return ir.Select(ir.Compare(operator, a, b), if_true, if_false, self.kind)

    def above_zero(self, x: ir.Expression, slope: ir.Expression) -> ir.Expression:
        """A slope of what has no value where x is below zero.

        It is multiplied by NaN there: a constant instead of the slope would have the derivative 0.
        """
        defined = self.where("<", x, self.number(0), self.number(math.nan), self.number(1))
        return self.times(defined, slope)

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
from collections.abc import Callable
from dataclasses import dataclass
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
    """The derivative with respect to each operand.

    Raises `VerificationError` for a function that has no rule.
    """
    if intrinsic == "gamma":
        raise ArgumentError(
            "lw.gamma has no gradient: its slope has the digamma function, which kernels lack; "
            "compute what depends on it in a separate kernel"
        )
    x, y, z, out = (_Term(ir.Local(name, kind)) for name in (*map(operand, range(3)), OUT))
    if intrinsic in _OF_ONE:
        slopes = (_OF_ONE[intrinsic](x, out),)
    elif intrinsic in _OF_TWO:
        slopes = _OF_TWO[intrinsic](x, y, out)
    elif intrinsic in _OF_THREE:
        slopes = _OF_THREE[intrinsic](x, y, z, out)
    else:
        raise VerificationError(f"{intrinsic} has no derivative")
    return tuple(slope.expression for slope in slopes)


DIFFERENTIABLE = frozenset(n for n, i in INTRINSICS.items() if not i.predicate)


@dataclass(frozen=True, slots=True)
class _Term:
    """An expression that operators of Python are applied to; numbers get its type."""

    expression: ir.Expression

    def number(self, value: _Term | float) -> _Term:
        """A number as a term of the type of this one; a term as it is."""
        if isinstance(value, _Term):
            return value
        return _Term(ir.Literal(float(value), self._kind))

    def call(self, name: str, *more: _Term) -> _Term:
        """A function of this term, and of more of them."""
        arguments = tuple(t.expression for t in (self, *more))
        return _Term(ir.Call(name, arguments, self._kind))

    def where(
        self,
        operator: ir.CompareOperator,
        other: _Term | float,
        if_true: _Term | float,
        if_false: _Term | float,
    ) -> _Term:
        """One of two terms, by a comparison of this one with another."""
        condition = ir.Compare(operator, self.expression, self.number(other).expression)
        first, second = self.number(if_true).expression, self.number(if_false).expression
        return _Term(ir.Select(condition, first, second, self._kind))

    @property
    def _kind(self) -> Scalar:
        kind = self.expression.type
        assert isinstance(kind, Scalar)
        return kind

    def _binary(self, operator: ir.BinaryOperator, other: _Term | float) -> _Term:
        right = self.number(other).expression
        return _Term(ir.Binary(operator, self.expression, right, self._kind))

    def __neg__(self) -> _Term:
        return _Term(ir.Unary("-", self.expression, self._kind))

    def __add__(self, other: _Term | float) -> _Term:
        return self._binary("+", other)

    def __radd__(self, other: float) -> _Term:
        return self.number(other) + self

    def __sub__(self, other: _Term | float) -> _Term:
        return self._binary("-", other)

    def __rsub__(self, other: float) -> _Term:
        return self.number(other) - self

    def __mul__(self, other: _Term | float) -> _Term:
        return self._binary("*", other)

    def __rmul__(self, other: float) -> _Term:
        return self.number(other) * self

    def __truediv__(self, other: _Term | float) -> _Term:
        return self._binary("/", other)

    def __rtruediv__(self, other: float) -> _Term:
        return self.number(other) / self


def _logarithm(x: _Term, scale: float) -> _Term:
    """The slope scale / x of what has no value where x is below zero.

    It is multiplied by NaN there: a constant instead of the slope would have the derivative 0.
    """
    return x.where("<", 0, math.nan, 1) * (scale / x)


def _extreme(first: ir.CompareOperator, x: _Term, y: _Term) -> tuple[_Term, _Term]:
    """The slopes of what is x where this comparison of x with y holds."""
    half = x.where("==", y, 0.5, 0)
    return x.where(first, y, 1, half), y.where(first, x, 1, half)


def _clamp(x: _Term, low: _Term, high: _Term) -> tuple[_Term, _Term, _Term]:
    """Those of min(max(x, low), high)."""
    return (
        x.where("<", low, 0, x.where(">", high, 0, 1)),
        x.where("<", low, low.where("<=", high, 1, 0), 0),
        x.call("max", low).where(">", high, 1, 0),
    )


def _pow(x: _Term, y: _Term, out: _Term) -> tuple[_Term, _Term]:
    base = y * x.call("pow", y - 1)
    slope = out * x.call("log")
    at_zero = y.where(">=", 0, 0, slope)
    return y.where("==", 0, 0, base), x.where("==", 0, at_zero, slope)


_ERF_SLOPE = 2 / math.sqrt(math.pi)  # at 0

# the slope of a function of x, whose value is f
_OF_ONE: dict[str, Callable[[_Term, _Term], _Term]] = {
    "sqrt": lambda x, f: 0.5 * f.where("!=", 0, 1 / f, 0),
    "rsqrt": lambda x, f: -0.5 * (f * f * f),
    "cbrt": lambda x, f: 1 / (3 * (f * f)),
    "exp": lambda x, f: f,
    "exp2": lambda x, f: math.log(2) * f,
    "expm1": lambda x, f: f + 1,
    "erf": lambda x, f: _ERF_SLOPE * (-(x * x)).call("exp"),
    "erfc": lambda x, f: -_ERF_SLOPE * (-(x * x)).call("exp"),
    "log": lambda x, f: _logarithm(x, 1),
    "log2": lambda x, f: _logarithm(x, 1 / math.log(2)),
    "log10": lambda x, f: _logarithm(x, 1 / math.log(10)),
    "log1p": lambda x, f: _logarithm(1 + x, 1),
    "sin": lambda x, f: x.call("cos"),
    "cos": lambda x, f: -x.call("sin"),
    "tan": lambda x, f: 1 + f * f,
    "asin": lambda x, f: (1 - x * x).call("rsqrt"),
    "acos": lambda x, f: -(1 - x * x).call("rsqrt"),
    "atan": lambda x, f: 1 / (1 + x * x),
    "sinh": lambda x, f: x.call("cosh"),
    "cosh": lambda x, f: x.call("sinh"),
    "tanh": lambda x, f: 1 - f * f,
    "abs": lambda x, f: x.where(">", 0, 1, x.where("<", 0, -1, 0)),
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), lambda x, f: x.number(0)),
}
# those of a function of several operands, with its value last
_OF_TWO: dict[str, Callable[[_Term, _Term, _Term], tuple[_Term, ...]]] = {
    "min": lambda x, y, f: _extreme("<", x, y),
    "max": lambda x, y, f: _extreme(">", x, y),
    "atan2": lambda y, x, f: (x / (y * y + x * x), -(y / (y * y + x * x))),
    "hypot": lambda x, y, f: tuple(f.where("!=", 0, side / f, 0) for side in (x, y)),
    "pow": _pow,
}
_OF_THREE: dict[str, Callable[[_Term, _Term, _Term, _Term], tuple[_Term, ...]]] = {
    "clamp": lambda x, low, high, f: _clamp(x, low, high),
    "mix": lambda x, y, weight, f: (1 - weight, weight, y - x),
    "fma": lambda x, y, z, f: (y, x, z.number(1)),
}

"""Taylor coefficients of the values of a table in one of them, as values of the same table.

    h = (s + e)^(-3/2)      h_0 = h    h_1 = -3/2 h_0 / (s + e)    h_2 = -5/4 h_1 / (s + e)    ...
with h(s + t) = h_0 + h_1 t + h_2 t^2 + ... Sums, products, quotients and selections have their
own rules, and so have powers: c_n = sum over k = 1..n of (alpha k - n + k) a_k c_(n-k) / (n a_0),
which of a linear argument has one term. All other functions have those of `rules`: where the
derivative of f with respect to its operand a is q, n c_n = sum over k of k a_k q_(n-k), and q is
made of a and of lower coefficients of f itself. Selections, min, max and abs take the side that the
value is on; what steps has no coefficients.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import factorial

from lanewise.analysis.algebra import Algebra
from lanewise.analysis.value_numbering import Node, Value
from lanewise.derivatives.rules import DIFFERENTIABLE, OUT, operand, partials
from lanewise.language.types import Scalar

STEPS = frozenset({"floor", "ceil", "trunc", "round"})
SMOOTH = frozenset({"+", "-", "*", "/", "negate", "cast", "select", "fma"})
HAVE_JETS = SMOOTH | (DIFFERENTIABLE - STEPS - {"gamma"})


class NoJet(Exception):
    """An operation that has no Taylor coefficients; the message says which."""


class Jets:
    """Coefficients in the value number `variable`, which changes by `slope` (None: 1)."""

    def __init__(self, algebra: Algebra, variable: int, slope: Value | None = None) -> None:
        self.algebra, self.table, self.variable = algebra, algebra.table, variable
        one = algebra.number(1, self.table.nodes[variable].type)
        self.slope = one if slope is None else slope
        self._depends: dict[int, bool] = {}
        self._powers: dict[int, tuple[int, Fraction]] = {}
        self._coefficients: dict[tuple[int, int], Value] = {}

    def coefficient(self, value: Value, n: int) -> Value:
        """The coefficient of t^n. Raises `NoJet`."""
        if n == 0:
            return value
        if not self.depends(value.number):
            return self._number(0, self.algebra.kind(value))
        key = (value.number, n)
        if key not in self._coefficients:
            self._coefficients[key] = self._coefficient(value.number, n)
        found = self._coefficients[key]
        return self.algebra.negative(found) if value.negative else found

    def scaled_derivative(self, value: Value, n: int) -> Value:
        """(2 d/ds)^n of a value: 2^n n! times its coefficient."""
        return self._times(2.0**n * factorial(n), self.coefficient(value, n))

    def depends(self, number: int) -> bool:
        """Whether a value depends on the variable."""
        if number not in self._depends:
            for n in sorted(self.table.below({number}) - self._depends.keys()):
                below = any(self._depends[o] for o in self.table.nodes[n].operands)
                self._depends[n] = n == self.variable or (below and self._smooth(n))
        return self._depends[number]

    def _smooth(self, number: int) -> bool:
        """Conditions choose, and change nothing else."""
        return self.table.nodes[number].type.is_float

    # ------------------------------------------------------------ powers

    def power(self, number: int) -> tuple[int, Fraction]:
        """A value f as a power of another one a: the number of a, and alpha.

        What is meant is f' a = alpha f a', which holds for multiples and for both signs.
        """
        if number not in self._powers:
            found = None if number == self.variable else self._power(self.table.nodes[number])
            self._powers[number] = found or (number, Fraction(1))
        return self._powers[number]

    def _power(self, node: Node) -> tuple[int, Fraction] | None:
        match node.operation, node.operands:
            case "sqrt", (x,):
                return self._raised(x, Fraction(1, 2))
            case "rsqrt", (x,):
                return self._raised(x, Fraction(-1, 2))
            case "cbrt", (x,):
                return self._raised(x, Fraction(1, 3))
            case "negate", (x,):
                return self.power(x)
            case "*", (x, y) if not (self.depends(x) and self.depends(y)):
                return self.power(x if self.depends(x) else y)
            case "*", (x, y):
                (a, m), (b, n) = self.power(x), self.power(y)
                return (a, m + n) if a == b else None
            case "/", (x, y) if not self.depends(y):
                return self.power(x)
            case "/", (x, y):
                a, m = self.power(x) if self.depends(x) else (self.power(y)[0], Fraction(0))
                b, n = self.power(y)
                return (a, m - n) if a == b else None
            case _:
                return None

    def _raised(self, number: int, exponent: Fraction) -> tuple[int, Fraction]:
        base, inner = self.power(number)
        return base, inner * exponent

    def _reciprocal(self, number: int) -> Value:
        """One over a value, made of what is there already."""
        kind = self.table.nodes[number].type
        if (root := self.table.known("rsqrt", (number,), kind)) is not None:
            return self.algebra.times(Value(root), Value(root))
        one = self._number(1, kind)
        if (root := self.table.known("sqrt", (number,), kind)) is not None:
            inverse = self.table.known("/", (one.number, root), kind)
            if inverse is not None:
                return self.algebra.times(Value(inverse), Value(inverse))
        return self.algebra.divide(one, Value(number))

    def _of_power(self, number: int, base: int, exponent: Fraction, n: int) -> Value:
        inverse = self._reciprocal(base)
        terms: list[Value] = []
        for k in range(1, n + 1):
            factor = (exponent * k - n + k) / n
            ratio = self.algebra.times(self.coefficient(Value(base), k), inverse)
            lower = self.coefficient(Value(number), n - k)
            terms.append(self._times(float(factor), self.algebra.times(ratio, lower)))
        return self._sum(terms)

    # ------------------------------------------------------------ operations

    def _coefficient(self, number: int, n: int) -> Value:
        node = self.table.nodes[number]
        if number == self.variable:
            return self.slope if n == 1 else self._number(0, node.type)
        base, exponent = self.power(number)
        whole = exponent.denominator == 1 and exponent >= 0
        if base != number and not whole:
            return self._of_power(number, base, exponent, n)
        x = [Value(o) for o in node.operands]
        a, c = self.algebra, self.coefficient
        match node.operation:
            case "+":
                return a.add(c(x[0], n), c(x[1], n))
            case "-" if len(x) == 2:
                return a.add(c(x[0], n), a.negative(c(x[1], n)))
            case "negate" | "-":
                return a.negative(c(x[0], n))
            case "*":
                return self._of_product(x[0], x[1], n)
            case "fma":
                product = self._of_product(x[0], x[1], n)
                turned = a.negative(product) if node.payload == "difference" else product
                return a.add(turned, c(x[2], n))
            case "/":
                return self._of_quotient(number, x[0], x[1], n)
            case "cast" if self.table.nodes[node.operands[0]].type.is_float:
                return a.cast(c(x[0], n), node.type)
            case "select":
                return a.select(x[0], c(x[1], n), c(x[2], n))
            case "pow" if not self.depends(node.operands[1]):
                return self._of_general_power(number, x[0], x[1], n)
            case intrinsic if intrinsic in HAVE_JETS:
                return self._of_rule(number, node, n)
            case operation:
                raise NoJet(operation)

    def _of_product(self, x: Value, y: Value, n: int) -> Value:
        return self._sum(
            [
                self.algebra.times(self.coefficient(x, k), self.coefficient(y, n - k))
                for k in range(n + 1)
            ]
        )

    def _of_quotient(self, number: int, x: Value, y: Value, n: int) -> Value:
        terms = [self.coefficient(x, n)]
        for k in range(1, n + 1):
            product = self.algebra.times(
                self.coefficient(y, k), self.coefficient(Value(number), n - k)
            )
            terms.append(self.algebra.negative(product))
        return self.algebra.divide(self._sum(terms), y)

    def _of_general_power(self, number: int, x: Value, y: Value, n: int) -> Value:
        """x^y, where y does not depend on the variable.

        Small whole powers are finite where x is 0, and are products here.
        """
        exponent = self.algebra.literal(y)
        if exponent is not None and exponent == exponent // 1 and 1 <= exponent <= n + 8:
            product = reduce(self.algebra.times, [x] * int(exponent))
            return self.coefficient(product, n)
        inverse, kind = self._reciprocal(x.number), self.algebra.kind(y)
        if x.negative:
            inverse = self.algebra.negative(inverse)
        terms: list[Value] = []
        for k in range(1, n + 1):
            factor = self.algebra.add(self._times(k / n, y), self._number((k - n) / n, kind))
            ratio = self.algebra.times(self.coefficient(x, k), inverse)
            lower = self.coefficient(Value(number), n - k)
            terms.append(self.algebra.times(factor, self.algebra.times(ratio, lower)))
        return self._sum(terms)

    def _of_rule(self, number: int, node: Node, n: int) -> Value:
        known = {operand(i): Value(o) for i, o in enumerate(node.operands)} | {OUT: Value(number)}
        terms: list[Value] = []
        for o, expression in zip(node.operands, partials(node.operation, node.type), strict=True):
            if not self.depends(o):
                continue
            slope = self.algebra.rule(expression, known)
            for k in range(1, n + 1):
                product = self.algebra.times(
                    self.coefficient(Value(o), k), self.coefficient(slope, n - k)
                )
                terms.append(self._times(k / n, product))
        return self._sum(terms) if terms else self._number(0, node.type)

    # ------------------------------------------------------------ numbers

    def _number(self, value: float, kind: Scalar) -> Value:
        return self.algebra.number(value, kind)

    def _times(self, number: float, value: Value) -> Value:
        return self.algebra.times(self._number(number, self.algebra.kind(value)), value)

    def _sum(self, terms: list[Value]) -> Value:
        return reduce(self.algebra.add, terms)

"""The derivatives of functions of d: all of them up to an order, each once.

Of f(d) = F(s), s = d.d, with G_n = (2 d/ds)^n F:
    D(m, 0) = G_m        D(m, k + e_a) = d_a D(m + 1, k) + k_a D(m + 1, k - e_a)
and D(0, k) is the derivative k of f (J. Tausch, "The fast multipole method for arbitrary Green's
functions", 2003). A potential whose gradient is d h(s) has G_n = (2 d/ds)^(n-1) h, so nothing is
integrated; its value, which no gradient needs, is left at 0. Of products with components of d:
    derivative k of d_a f = d_a * derivative k of f + k_a * derivative k - e_a of f
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lanewise.analysis.algebra import Algebra
from lanewise.analysis.value_numbering import Value
from lanewise.derivatives.expansions.shape import Index, lowered
from lanewise.derivatives.jets import Jets
from lanewise.language.types import Scalar


class Tensors:
    """The derivatives of a function of d, or of the potential whose gradient is d times it."""

    def __init__(
        self,
        jets: Jets,
        d: Sequence[Value],
        radial: Value,
        powers: Index,
        *,
        potential: bool = False,
    ) -> None:
        self.jets, self.algebra, self.d, self.radial = jets, jets.algebra, tuple(d), radial
        self.powers, self.shift = powers, int(potential)
        self._scaled: list[Value] = []
        self._known: dict[tuple[int, Index], Value] = {}
        self._products: dict[tuple[Index, Index], Value] = {}

    def derivative(self, k: Index) -> Value:
        """The derivative k."""
        return self._of_product(self.powers, k)

    def _number(self, value: float) -> Value:
        return self.algebra.number(value, self.algebra.kind(self.radial))

    def _g(self, n: int) -> Value:
        """G_n."""
        if n < self.shift:
            return self._number(0)
        while len(self._scaled) <= n - self.shift:
            self._scaled.append(self.jets.scaled_derivative(self.radial, len(self._scaled)))
        return self._scaled[n - self.shift]

    def _of_radial(self, m: int, k: Index) -> Value:
        if not any(k):
            return self._g(m)
        if (m, k) not in self._known:
            axis = max(a for a, n in enumerate(k) if n)
            rest = lowered(k, axis)
            value = self.algebra.product(self.d[axis], self._of_radial(m + 1, rest))
            if rest[axis]:
                twice = self._of_radial(m + 1, lowered(rest, axis))
                value = self.algebra.add(
                    value, self.algebra.product(self._number(rest[axis]), twice)
                )
            self._known[m, k] = value
        return self._known[m, k]

    def _of_product(self, powers: Index, k: Index) -> Value:
        if not any(powers):
            return self._of_radial(0, k)
        if (powers, k) not in self._products:
            axis = next(a for a, n in enumerate(powers) if n)
            rest = lowered(powers, axis)
            value = self.algebra.product(self.d[axis], self._of_product(rest, k))
            if k[axis]:
                less = self._of_product(rest, lowered(k, axis))
                value = self.algebra.add(value, self.algebra.times(self._number(k[axis]), less))
            self._products[powers, k] = value
        return self._products[powers, k]


def carried(
    radial: Algebra,
    numbers: Sequence[int],
    algebra: Algebra,
    known: dict[int, Value],
    kind_of: Callable[[Scalar], Scalar],
) -> None:
    """Write values of one table, and what they are made of, in another one.

    known: what leaves are there, by their numbers here; all that is written is added to it.
    kind_of: the types there.
    """
    old, table = radial.table, algebra.table
    for number in sorted(old.below(set(numbers)) - known.keys()):
        node = old.nodes[number]
        x, kind = [known[n] for n in node.operands], kind_of(node.type)
        match node.operation:
            case "cast" if kind.is_float and algebra.kind(x[0]) == kind:
                value = x[0]
            case "leaf":
                raise AssertionError(f"{node.payload} is not known")
            case "+" if node.type.is_float:
                value = algebra.add(x[0], x[1])
            case "-" if node.type.is_float:
                value = algebra.add(x[0], algebra.negative(x[1]))
            case "*" if node.type.is_float:
                value = algebra.times(x[0], x[1])
            case "/" if node.type.is_float:
                value = algebra.divide(x[0], x[1])
            case "negate" if node.type.is_float:
                value = algebra.negative(x[0])
            case "select" if node.type.is_float:
                value = algebra.select(x[0], x[1], x[2])
            case operation:
                operands = tuple(table.plain(v) for v in x)
                value = Value(table.add(operation, operands, kind, node.payload))
        known[number] = value

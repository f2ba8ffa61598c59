"""How large the error of an expansion is likely to be, as an IR function of the distance.

    T_n(R) = largest |n-th derivative along a line of the function, at the distance R|
    E = T_q(R) / q! * sum of |w| |x - z|^q
with q the first order that is left out, the sum over the sources of a group around its centre z,
whose expansion is met by a target at the distance R (M2P). Along a line at an angle of cosine mu to
d
    derivative n of F(d.d) = sum over j of n! / (2^j j! (n - 2j)!) G_(n-j) (R mu)^(n-2j)
and the largest value at 17 angles is taken. All of it is float64: high powers of lengths are beyond
float32. It is an estimate, which measurements bear out, and no bound: bounds of this kind are too
large by factors of thousands.

Here are the sizes T_q(R) / q!; a walk has the sums of its groups
(`patterns/search/tree/estimates.py`).
"""

from __future__ import annotations

from math import comb, cos, factorial, perm, pi

from lanewise.analysis.value_numbering import Value
from lanewise.derivatives.expansions.operators import OperatorBuilder, Operators
from lanewise.derivatives.expansions.shape import Interaction
from lanewise.derivatives.jets import Jets
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language.types import F64

ANGLES = 17
DISTANCE = own("distance")


def sizes_of_errors(operators: Operators) -> ir.Function:
    """T_q(R) / q! of every interaction, in the order of the shape's: `$size0`, ... They are those
    of all results together, before they are multiplied by values of the target.
    """
    b, q = OperatorBuilder(operators, "sizes", F64), operators.order + 1
    distance = b.parameter(DISTANCE)
    s = b.algebra.times(distance, distance)
    known = b.carried_radials(s)
    jets = Jets(b.algebra, s.number)
    for n, i in enumerate(operators.shape.interactions):
        potential = operators.shape.locals[i.local].potential
        radial = known[i.radial.number]
        largest = _largest(b, jets, distance, radial, i, q, potential=potential)
        inverse = b.algebra.number(1 / factorial(q), b.kind)
        b.result(own(f"size{n}"), b.algebra.times(inverse, largest))
    return b.function()


def _largest(
    b: OperatorBuilder,
    jets: Jets,
    distance: Value,
    radial: Value,
    i: Interaction,
    q: int,
    *,
    potential: bool,
) -> Value:
    if not any(i.powers):
        return _along(b, jets, distance, radial, q + potential, int(potential))
    # of a product with components of d: no derivative of these is larger than along them
    degree = sum(i.powers)
    terms = [
        b.algebra.times(
            b.number(comb(q, j) * perm(degree, j)),
            b.algebra.times(
                b.power(distance, degree - j), _along(b, jets, distance, radial, q - j, 0)
            ),
        )
        for j in range(min(degree, q) + 1)
    ]
    return b.sum(terms)


def _along(
    b: OperatorBuilder, jets: Jets, distance: Value, radial: Value, n: int, shift: int
) -> Value:
    """The largest n-th derivative along a line of a function of s; shift: 1 of a potential whose
    gradient is d times it.
    """
    sizes: list[Value] = []
    for angle in range(ANGLES):
        mu = (1 + cos(pi * angle / (ANGLES - 1))) / 2
        terms: list[Value] = []
        for j in range(n // 2 + 1):
            if n - j < shift:
                continue
            factor = factorial(n) / (2**j * factorial(j) * factorial(n - 2 * j))
            g = jets.scaled_derivative(radial, n - j - shift)
            along = b.number(factor * mu ** (n - 2 * j))
            power = b.power(distance, n - 2 * j)
            terms.append(b.algebra.times(along, b.algebra.product(power, g)))
        sizes.append(b.call("abs", b.sum(terms)))
    largest = sizes[0]
    for size in sizes[1:]:
        largest = b.call("max", largest, size)
    return largest

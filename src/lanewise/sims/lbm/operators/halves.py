"""The even and odd halves of a pair of opposite directions: equilibrium, and what is missing to it, as helpers of the operators.

A pair has the halves (g_q +- g_opposite) / 2. With v = 3 u, base = density - 1 - density u . u 3/2 and c = c_q . v the equilibrium
has the even half w (base + density c^2 / 2) and the odd half w density c. Of a body force n of `guo` takes the place of
g - g_eq: S / 2 is added to the halves of g.
"""

from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.operators.assembly import specialise


@lw.function
def equilibrium_halves(q, density, base, v):  # type: ignore[no-untyped-def]
    """(even, odd) of the equilibrium, and c_q . v."""
    c = q.along(v)
    odd = q.weight * density * c
    even = q.weight * base + 0.5 * odd * c
    return even, odd, c


@cache
def make_missing(forced: bool) -> Any:
    """A helper `missing(f, q, density, base, v[, impulse, power])`: the halves (even, odd) of g_eq - g.

    With `forced` those of g_eq - g - S / 2, and then the halves of S; impulse is 3 F and power v . F.
    """

    def missing(f, q, density, base, v, impulse, power):  # type: ignore[no-untyped-def]
        even, odd, c = equilibrium_halves(q, density, base, v)
        if forced:
            push = q.weight * q.along(impulse)
            stretch = push * c - q.weight * power
            less_even = even - 0.5 * (f[q] + f[q.opposite] + stretch)
            less_odd = odd - 0.5 * (f[q] - f[q.opposite] + push)
            return less_even, less_odd, stretch, push
        else:
            return even - 0.5 * (f[q] + f[q.opposite]), odd - 0.5 * (f[q] - f[q.opposite])

    return lw.function(specialise(missing))

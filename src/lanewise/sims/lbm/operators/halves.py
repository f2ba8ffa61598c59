"""The even and odd halves of a pair of opposite directions: equilibrium, and what is missing to it, as helpers of the operators.

A pair has the halves (g_q +- g_opposite) / 2. With v = 3 u, base = density - 1 - density u . u 3/2 and c = c_q . v the equilibrium
has the even half w (base + density c^2 / 2) and the odd half w density c. Of a body force n of `moments` takes the place of
g - g_eq: S / 2 is added to the halves of g.
For operators that need them more than once: a helper is a function of its own for every pair, and bgk, trt and mrt, which write
them out, compile on a CPU in 0.7 to 0.8 of the time that they would take with it.
"""

from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.operators.assembly import specialise


@cache
def make_missing(forced: bool) -> Any:
    """A helper `missing(f, q, density, base, v[, impulse, power])`: the halves (even, odd) of g_eq - g.

    With `forced` those of g_eq - g - S / 2, and then the halves of S; impulse is 3 F and power v . F.
    """

    def missing(f, q, density, base, v, impulse, power):  # type: ignore[no-untyped-def]
        c = q.along(v)
        odd = q.weight * density * c
        even = q.weight * base + 0.5 * odd * c
        if forced:
            push = q.weight * q.along(impulse)
            stretch = push * c - q.weight * power
            less_even = even - 0.5 * (f[q] + f[q.opposite] + stretch)
            less_odd = odd - 0.5 * (f[q] - f[q.opposite] + push)
            return less_even, less_odd, stretch, push
        else:
            return even - 0.5 * (f[q] + f[q.opposite]), odd - 0.5 * (f[q] - f[q.opposite])

    return lw.function(specialise(missing))

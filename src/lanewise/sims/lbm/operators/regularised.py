"""The regularised collision: only the stress survives of the deviation from equilibrium (Latt &
Chopard 2006).

Latt & Chopard, Math. Comput. Simul. 72, 165: n is projected onto the second-order Hermite
polynomials, n_q -> (9/2) w_q (c c - I / 3) : N with N = sum c c n. The weights of D2Q9, D3Q19 and
D3Q27 are isotropic to fourth order, so these polynomials are orthogonal to density and momentum,
and the projection has the same form on all three. After the collision everything is a polynomial:
with T = density u u + (1 - omega) N + (u F + F u) / 2 and m = density u + F / 2, g'_q = w_q
[deviation + 3 c . m + (9/2) (c c - I / 3) : T].
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.operators.assembly import specialise
from lanewise.sims.lbm.operators.moments import make_moments, make_stress
from lanewise.sims.lbm.operators.numbers import axes_of, number_types, pairs_of
from lanewise.sims.lbm.operators.smagorinsky import eddy_rate


@cache
def make_regularised(
    lattice: lw.Lattice, precision: str, forced: bool = False, eddies: bool = False
) -> Callable[..., Any]:
    """A function `regularised(f, omega[, force][, smagorinsky])` of one site's deviations g = f -
    w; see `make_bgk`.
    """
    types = number_types(lattice, precision)
    real, vector, populations = types.real, types.vector, types.populations
    pairs, axes = pairs_of(lattice), axes_of(lattice)
    moments, stress = make_moments(lattice, precision), make_stress(lattice, precision, forced)

    def regularised(f: populations, omega: real, force: vector, smagorinsky: real):  # type: ignore[valid-type]
        deviation, momentum = moments(f)
        if forced:
            momentum += 0.5 * force
        inverse = 1 / (1 + deviation)
        u = momentum * inverse
        x, y, z = (
            stress(f, deviation, momentum, u, force)
            if forced
            else stress(f, deviation, momentum, u)
        )
        rate = eddy_rate(omega, smagorinsky, inverse, x, y, z) if eddies else omega
        keep = 4.5 * (1 - rate)
        x *= keep
        y *= keep
        z *= keep
        trace = real(0)
        for a in axes:  # x, y and z become the rows of T, times 9/2
            row = 4.5 * a.along(momentum) * u
            if forced:
                row += 2.25 * (a.along(u) * force + a.along(force) * u)
            x += a.x * row
            y += a.y * row
            z += a.z * row
            trace += a.x * a.along(x) + a.y * a.along(y) + a.z * a.along(z)
        base = deviation - trace * (1 / 3)
        m = (3 * momentum + 1.5 * force) if forced else 3 * momentum
        others = real(0)
        for q in pairs:
            even = q.weight * (base + (q.x * q.along(x) + q.y * q.along(y) + q.z * q.along(z)))
            odd = q.weight * q.along(m)
            f[q] = even + odd
            f[q.opposite] = even - odd
            others += even
        f[0] = deviation - 2 * others

    return specialise(regularised)

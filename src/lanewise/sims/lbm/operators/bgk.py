"""BGK: every deviation from equilibrium decays with one rate (Qian, d'Humières & Lallemand 1992,
Europhys. Lett. 17, 479).
"""

# pyright: reportPossiblyUnboundVariable=false
# `specialise` decides the switches `forced` and `eddies`, each of them everywhere in the same way.

from collections.abc import Callable
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.operators.assembly import specialise
from lanewise.sims.lbm.operators.moments import make_moments, make_stress
from lanewise.sims.lbm.operators.numbers import number_types, pairs_of
from lanewise.sims.lbm.operators.smagorinsky import eddy_rate


@cache
def make_bgk(
    lattice: lw.Lattice, precision: str, forced: bool = False, eddies: bool = False
) -> Callable[..., Any]:
    """A function `bgk(f, omega[, force][, smagorinsky])` of one site's deviations g = f - w.

    omega: 1 / tau, the viscosity is (1 / omega - 1/2) / 3; force: a vector, with `forced`;
    smagorinsky: the constant of Smagorinsky's model, with `eddies`. Mass is conserved whatever the
    weights round to: the population at rest takes what the others give.
    """
    types = number_types(lattice, precision)
    real, vector, populations = types.real, types.vector, types.populations
    pairs = pairs_of(lattice)
    moments, stress = make_moments(lattice, precision), make_stress(lattice, precision, forced)

    def bgk(f: populations, omega: real, force: vector, smagorinsky: real):  # type: ignore[valid-type]
        deviation, momentum = moments(f)
        if forced:
            momentum += 0.5 * force
            impulse = 3 * force
        density = 1 + deviation
        inverse = 1 / density
        if eddies:
            u = momentum * inverse
            x, y, z = (
                stress(f, deviation, momentum, u, force)
                if forced
                else stress(f, deviation, momentum, u)
            )
            rate = eddy_rate(omega, smagorinsky, inverse, x, y, z)
        else:
            rate = omega
        v = momentum * (3 * inverse)
        base = deviation - 0.5 * lw.dot(momentum, v)
        if forced:
            power = lw.dot(v, force)
        given = real(0)
        for q in pairs:
            c = q.along(v)
            odd = q.weight * density * c
            even = q.weight * base + 0.5 * odd * c
            if forced:
                push = q.weight * q.along(impulse)
                stretch = push * c - q.weight * power
                change_even = rate * (even - 0.5 * (f[q] + f[q.opposite] + stretch)) + stretch
                change_odd = rate * (odd - 0.5 * (f[q] - f[q.opposite] + push)) + push
            else:
                change_even = rate * (even - 0.5 * (f[q] + f[q.opposite]))
                change_odd = rate * (odd - 0.5 * (f[q] - f[q.opposite]))
            f[q] += change_even + change_odd
            f[q.opposite] += change_even - change_odd
            given += change_even
        f[0] -= 2 * given

    return specialise(bgk)

"""Two relaxation times: even parts decay with omega, odd parts so that walls stay where they are.

Ginzburg, Verhaeghe & d'Humières (2008), Commun. Comput. Phys. 3, 427: the magic parameter (1 /
omega - 1/2) (1 / omega_odd - 1/2), not the viscosity, decides where half-way walls lie: exactly
half-way in a straight channel for 3/16; 1/4 is the most stable.
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


@lw.function
def odd_rate(omega, magic):  # type: ignore[no-untyped-def]
    """The rate of the odd parts: 1 / omega_odd = 1/2 + magic / (1 / omega - 1/2), rearranged for
    one division.
    """
    slack = 2 - omega
    return 2 * slack / (slack + 4 * magic * omega)


@cache
def make_trt(
    lattice: lw.Lattice, precision: str, forced: bool = False, eddies: bool = False
) -> Callable[..., Any]:
    """A function `trt(f, omega, magic[, force][, smagorinsky])` of one site's deviations g = f - w;
    see `make_bgk`.
    """
    types = number_types(lattice, precision)
    real, vector, populations = types.real, types.vector, types.populations
    pairs = pairs_of(lattice)
    moments, stress = make_moments(lattice, precision), make_stress(lattice, precision, forced)

    def trt(f: populations, omega: real, magic: real, force: vector, smagorinsky: real):  # type: ignore[valid-type]
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
        rate_odd = odd_rate(rate, magic)
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
                change_odd = rate_odd * (odd - 0.5 * (f[q] - f[q.opposite] + push)) + push
            else:
                change_even = rate * (even - 0.5 * (f[q] + f[q.opposite]))
                change_odd = rate_odd * (odd - 0.5 * (f[q] - f[q.opposite]))
            f[q] += change_even + change_odd
            f[q.opposite] += change_even - change_odd
            given += change_even
        f[0] -= 2 * given

    return specialise(trt)

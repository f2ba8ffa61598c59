"""The local eddy viscosity of Smagorinsky's model, from the non-equilibrium stress of the site
alone.

Hou, Sterling, Chen & Doolen (1996), Fields Inst. Commun. 6, 151: nu_t = C^2 |S| with a filter of
one site, |S| = sqrt(2 S:S), and S = -(3 / (2 density tau)) N with the relaxation time
tau = 1 / omega of nu + nu_t. That is quadratic in tau:
tau = (tau_0 + sqrt(tau_0^2 + 18 sqrt(2) C^2 |N| / density)) / 2, |N| = sqrt(N:N).
"""

from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.operators.assembly import specialise
from lanewise.sims.lbm.operators.moments import make_moments, make_stress
from lanewise.sims.lbm.operators.numbers import number_types

HOU = 18 * sqrt(2)
STRAIN = 1.5 * sqrt(2)


@lw.function
def eddy_rate(omega, smagorinsky, inverse, x, y, z):  # type: ignore[no-untyped-def]
    """The relaxation rate of molecular and eddy viscosity.

    omega: the rate of the molecular one; smagorinsky: the constant C; inverse: one over the
    density; x, y, z: the rows of the non-equilibrium stress.
    """
    magnitude = lw.sqrt(lw.dot(x, x) + lw.dot(y, y) + lw.dot(z, z))
    scaled = omega * smagorinsky
    return 2 * omega / (1 + lw.sqrt(1 + HOU * scaled * scaled * inverse * magnitude))


@cache
def make_shear_rate(
    lattice: lw.Lattice, precision: str, forced: bool = False, eddies: bool = False
) -> Callable[..., Any]:
    """An observer `shear_rate(f, omega[, force][, smagorinsky])`: |S| = sqrt(2 S:S) a step, S the
    rate of strain.
    """
    types = number_types(lattice, precision)
    real, vector, populations = types.real, types.vector, types.populations
    moments, stress = make_moments(lattice, precision), make_stress(lattice, precision, forced)

    def shear_rate(f: populations, omega: real, force: vector, smagorinsky: real) -> real:  # type: ignore[valid-type]
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
        return STRAIN * rate * inverse * lw.sqrt(lw.dot(x, x) + lw.dot(y, y) + lw.dot(z, z))

    return specialise(shear_rate)

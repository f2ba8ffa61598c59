"""Multiple relaxation times in the moment space of Hermite polynomials: rates of shear, bulk and
their own ghosts.

The moments are orthogonal under the weights of the lattice (Dellar 2003, J. Comput. Phys. 190, 351;
the method: d'Humières et al. 2002, Phil. Trans. R. Soc. A 360, 437). What is neither density,
momentum nor stress is a ghost, even or odd. With N the non-equilibrium stress of n (see `moments`),
in D dimensions: g' = g + S - even_omega n_even - odd_omega n_odd + (9/2) w (c c - I / 3) : A, A =
(even_omega - omega) N + (omega - bulk_omega) (tr N / D) I. Equal rates are BGK; even_omega =
odd_omega = 1 and bulk_omega = omega is the regularised collision.
"""

# Types that a function makes are annotations of the kernels in it.
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

# pyright: reportPossiblyUnboundVariable=false
# `specialise` decides the switches `forced` and `eddies`, each of them everywhere in the same way.

from collections.abc import Callable
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.operators.assembly import specialise
from lanewise.sims.lbm.operators.moments import make_moments, make_stress, make_trace
from lanewise.sims.lbm.operators.numbers import number_types, pairs_of


@cache
def make_mrt(lattice: lw.Lattice, precision: str, forced: bool = False) -> Callable[..., Any]:
    """A function `mrt(f, omega, bulk_omega, even_omega, odd_omega[, force])` of one site's
    deviations g = f - w.

    omega: the rate of shear, as in `make_bgk`; bulk_omega: of compression, the bulk viscosity is
    (2 / D) (1 / bulk_omega - 1/2) / 3; even_omega, odd_omega: of the ghosts.
    """
    types = number_types(lattice, precision)
    real, vector, populations = types.real, types.vector, types.populations
    pairs, dimension = pairs_of(lattice), lattice.dimension
    moments, stress = make_moments(lattice, precision), make_stress(lattice, precision, forced)
    traced = make_trace(lattice, precision)

    def mrt(
        f: populations,
        omega: real,
        bulk_omega: real,
        even_omega: real,
        odd_omega: real,
        force: vector,
    ):  # type: ignore[valid-type]
        deviation, momentum = moments(f)
        if forced:
            momentum += 0.5 * force
            impulse = 3 * force
        density = 1 + deviation
        inverse = 1 / density
        u = momentum * inverse
        x, y, z = (
            stress(f, deviation, momentum, u, force)
            if forced
            else stress(f, deviation, momentum, u)
        )
        trace = traced(x, y, z)
        shear = 4.5 * (even_omega - omega)
        bulk = (4.5 / dimension) * (omega - bulk_omega) * trace
        ghosts = (shear * trace + dimension * bulk) * (1 / 3)
        x *= shear
        y *= shear
        z *= shear
        v = 3 * u
        base = deviation - 0.5 * lw.dot(momentum, v)
        if forced:
            power = lw.dot(v, force)
        given = real(0)
        for q in pairs:
            c = q.along(v)
            odd = q.weight * density * c
            even = q.weight * base + 0.5 * odd * c
            length = q.x * q.x + q.y * q.y + q.z * q.z
            tensor = (
                q.x * q.along(x) + q.y * q.along(y) + q.z * q.along(z) + (length * bulk - ghosts)
            )
            if forced:
                push = q.weight * q.along(impulse)
                stretch = push * c - q.weight * power
                change_even = even_omega * (even - 0.5 * (f[q] + f[q.opposite] + stretch)) + (
                    stretch + q.weight * tensor
                )
                change_odd = odd_omega * (odd - 0.5 * (f[q] - f[q.opposite] + push)) + push
            else:
                change_even = even_omega * (even - 0.5 * (f[q] + f[q.opposite])) + q.weight * tensor
                change_odd = odd_omega * (odd - 0.5 * (f[q] - f[q.opposite]))
            f[q] += change_even + change_odd
            f[q.opposite] += change_even - change_odd
            given += change_even
        f[0] -= 2 * given

    return specialise(mrt)

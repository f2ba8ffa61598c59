"""Velocity and pressure boundaries that keep only the stress of the site (Latt et al.

2008), the more stable ones.

Latt, Chopard, Malaspinas, Deville & Michler (2008), Phys. Rev. E 77, 056703 (their BC4): the
deviation from equilibrium of unknown populations is bounced back, its stress N is computed, and
every population becomes the equilibrium plus the second-order Hermite polynomial of N. With T =
density u u + N - (u F + F u) / 2 and m = density u - F / 2, g_q = w_q [deviation + 3 c . m + (9/2)
(c c - I / 3) : T]: density and momentum are exactly those wanted.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.boundaries.faces import make_face
from lanewise.sims.lbm.boundaries.nodes import make_pressure_node, make_velocity_node
from lanewise.sims.lbm.operators.assembly import specialise
from lanewise.sims.lbm.operators.moments import make_stress
from lanewise.sims.lbm.operators.numbers import axes_of, number_types, pairs_of


@cache
def make_regular_node(
    lattice: lw.Lattice, precision: str, face: str, pressure: bool, forced: bool = False
) -> Callable[..., Any]:
    """A function `regular_node(f, velocity, profile)`, with `pressure` `regular_node(f, density)`;
    with `forced` also `force`.
    """
    types, unknown = number_types(lattice, precision), make_face(lattice, face).unknown
    real, vector, populations = types.real, types.vector, types.populations
    pairs, axes = pairs_of(lattice), axes_of(lattice)
    velocity_node = make_velocity_node(lattice, precision, face, forced)
    pressure_node = make_pressure_node(lattice, precision, face, forced)
    stress = make_stress(lattice, precision, forced)

    def regular_node(f: populations, velocity: vector, profile: real, density: real, force: vector):  # type: ignore[valid-type]
        if pressure:
            deviation, u = pressure_node(f, density, force) if forced else pressure_node(f, density)
        else:
            deviation, u = (
                velocity_node(f, velocity, profile, force)
                if forced
                else velocity_node(f, velocity, profile)
            )
        momentum = (1 + deviation) * u
        m = momentum - 0.5 * force if forced else momentum
        for q in unknown:
            f[q] = f[q.opposite] + (6 * q.weight) * q.along(m)
        x, y, z = (
            stress(f, deviation, momentum, u, force)
            if forced
            else stress(f, deviation, momentum, u)
        )
        trace = real(0)
        for a in axes:  # x, y and z become the rows of T
            row = a.along(momentum) * u
            if forced:
                row -= 0.5 * (a.along(u) * force + a.along(force) * u)
            x += a.x * row
            y += a.y * row
            z += a.z * row
            trace += a.x * a.along(x) + a.y * a.along(y) + a.z * a.along(z)
        base = deviation - 1.5 * trace
        others = real(0)
        for q in pairs:
            even = q.weight * (
                base + 4.5 * (q.x * q.along(x) + q.y * q.along(y) + q.z * q.along(z))
            )
            odd = (3 * q.weight) * q.along(m)
            f[q] = even + odd
            f[q.opposite] = even - odd
            others += even
        f[0] = deviation - 2 * others

    return specialise(regular_node)

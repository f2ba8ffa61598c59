"""Moments of a site's populations, as helpers of the operators and as observers.

Populations are deviations g = f - w, so sum g is the density less one. The force F of a step counts
half before it and half after it: the velocity is u = (sum c g + F / 2) / density (Guo, Zheng & Shi
2002, Phys. Rev. E 65, 046308, eq. 11).

The source of the force, of every collision operator: S_q = w_q [3 (c_q - u) . F + 9 (c_q . u) (c_q
. F)], with this velocity. With n = g + S / 2 - g_eq, which carries neither mass nor momentum, a
collision that relaxes with the operator L is g' = g + S - L n: for BGK the source enters with 1 -
omega / 2, and every moment of it with its own rate (Guo & Zheng 2008, Int. J. Mod. Phys. C 19,
585). All operators of this package are written in that way. With v = 3 u a pair of opposite
directions has w (c.v c.(3F) - v.F) as the even part and w c.(3F) as the odd part of S.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.operators.assembly import specialise
from lanewise.sims.lbm.operators.numbers import axes_of, number_types, pairs_of


@cache
def make_moments(lattice: lw.Lattice, precision: str) -> Any:
    """A helper `moments(f)`: the deviation of the density, sum g, and the momentum of the
    populations, sum c g.
    """
    types, pairs = number_types(lattice, precision), pairs_of(lattice)
    real, vector = types.real, types.vector

    @lw.function
    def moments(f):  # type: ignore[no-untyped-def]
        deviation = real(0)
        momentum = vector(0)
        for q in pairs:
            deviation += f[q] + f[q.opposite]
            momentum += (f[q] - f[q.opposite]) * q.velocity
        return deviation + f[0], momentum

    return moments


@cache
def make_stress(lattice: lw.Lattice, precision: str, forced: bool) -> Any:
    """A helper `stress(f, deviation, momentum, u, force)`: the rows x, y, z of the non-equilibrium
    stress.

    N = sum c c n with n = g + S / 2 - g_eq, S the source of the force: N = sum c c g - deviation I
    / 3 - density u u (+ (u F + F u) / 2), which is -(2 density / (3 omega)) times the rate of
    strain. `momentum` is density times u. In two dimensions the row z is zero. Without `forced` the
    helper has no parameter `force`.
    """
    vector = number_types(lattice, precision).vector
    pairs, axes = pairs_of(lattice), axes_of(lattice)

    def stress(f, deviation, momentum, u, force):  # type: ignore[no-untyped-def]
        x, y, z = vector(0), vector(0), vector(0)
        for q in pairs:
            both = f[q] + f[q.opposite]
            x += both * (q.x * q.velocity)
            y += both * (q.y * q.velocity)
            z += both * (q.z * q.velocity)
        for a in axes:
            row = a.along(momentum) * u + (deviation * (1 / 3)) * a.velocity
            if forced:
                row -= 0.5 * (a.along(u) * force + a.along(force) * u)
            x -= a.x * row
            y -= a.y * row
            z -= a.z * row
        return x, y, z

    return lw.function(specialise(stress))


@cache
def make_trace(lattice: lw.Lattice, precision: str) -> Any:
    """A helper `trace(x, y, z)`: the trace of a tensor of these rows."""
    real, axes = number_types(lattice, precision).real, axes_of(lattice)

    @lw.function
    def trace(x, y, z):  # type: ignore[no-untyped-def]
        total = real(0)
        for a in axes:
            total += a.x * a.along(x) + a.y * a.along(y) + a.z * a.along(z)
        return total

    return trace


@cache
def make_macroscopic(
    lattice: lw.Lattice, precision: str, forced: bool = False
) -> Callable[..., Any]:
    """An observer `macroscopic(f[, force])`: the density less one, and the velocity."""
    types = number_types(lattice, precision)
    real, vector, populations = types.real, types.vector, types.populations
    moments = make_moments(lattice, precision)

    def macroscopic(f: populations, force: vector) -> tuple[real, vector]:  # type: ignore[valid-type]
        deviation, momentum = moments(f)
        if forced:
            momentum += 0.5 * force
        return deviation, momentum / (1 + deviation)

    return specialise(macroscopic)

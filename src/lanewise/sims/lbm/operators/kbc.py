"""KBC: entropic multi-relaxation, whose ghosts decay as the entropy of the site wants (no parameter
but the viscosity).

Karlin, Boesch & Chikatamarla (2014), Phys. Rev. E 90, 031302: populations are split into conserved,
shear (s) and higher (h) parts, and g' = g - beta (2 s + gamma h) of the parts of the deviation from
equilibrium, beta = omega / 2. The stabiliser gamma = 1 / beta - (2 - 1 / beta) <s|h> / <h|h>, <a|b>
= sum a b / f_eq, estimates the state of highest entropy. s is the traceless stress in the basis of
natural moments: half of its diagonal entries on the directions along axes, a quarter of the others,
with their signs, on those across edges; h is all the rest, the trace included.

That estimate has no bound where h is small compared with s, and then h grows: with beta gamma above
2 it changes its sign in every step and comes back larger, so that a steady flow alternates for
good, by some 1e-4 of its speed about corners at an opening. Here beta gamma stays between 0 and 2,
where no collision lets h grow. This limit is lanewise's own.

Populations are taken in pairs of opposite directions. A pair has the halves (g_q +- g_opposite) /
2. With v = 3 u, base = density - 1 - density u . u 3/2 and c = c_q . v the equilibrium has the even
half w (base + density c^2 / 2) and the odd half w density c. Of a body force n of `moments` takes
the place of g - g_eq: S / 2 is added to the halves of g. For operators that need them more than
once: a helper is its own function for every pair, and bgk, trt and mrt, which write them out,
compile on a CPU in 0.7 to 0.8 of the time that they would take with it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.operators.assembly import specialise
from lanewise.sims.lbm.operators.moments import make_moments, make_stress, make_trace
from lanewise.sims.lbm.operators.numbers import axes_of, number_types, pairs_of

# pyright: reportPossiblyUnboundVariable=false
# `specialise` decides the switches `forced` and `eddies`, each of them everywhere in the same way.


NOTHING = {"f32": 1e-30, "f64": 1e-200}
"""What <h|h> is at least: at equilibrium it is 0 / 0, and h needs no rate."""


@cache
def make_kbc(lattice: lw.Lattice, precision: str, forced: bool = False) -> Callable[..., Any]:
    """A function `kbc(f, omega[, force])` of one site's deviations g = f - w; omega as in
    `make_bgk`.
    """
    types = number_types(lattice, precision)
    real, vector, populations = types.real, types.vector, types.populations
    pairs, axes, dimension = pairs_of(lattice), axes_of(lattice), lattice.dimension
    nothing, rest = NOTHING[precision], lattice[0].weight
    moments, stress = make_moments(lattice, precision), make_stress(lattice, precision, forced)
    missing, traced = make_missing(forced), make_trace(lattice, precision)
    first, second, shares = zip(*(_entry(q) for q in lattice), strict=True)

    @lw.function
    def shear_part(q, x, y, z):  # type: ignore[no-untyped-def]
        left = first[q.index]
        right = second[q.index]
        return shares[q.index] * (
            left.x * right.along(x) + left.y * right.along(y) + left.z * right.along(z)
        )

    def kbc(f: populations, omega: real, force: vector):  # type: ignore[valid-type]
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
        mean = traced(x, y, z) * (1 / dimension)
        for a in axes:
            x -= (a.x * mean) * a.velocity
            y -= (a.y * mean) * a.velocity
            z -= (a.z * mean) * a.velocity
        v = 3 * u
        base = deviation - 0.5 * lw.dot(momentum, v)
        if forced:
            power = lw.dot(v, force)
        still = f[0] - rest * (base + 0.5 * power) if forced else f[0] - rest * base
        overlap = real(0)
        size = nothing + still * still / (rest * (1 + base))
        for q in pairs:
            shear = shear_part(q, x, y, z)
            c = q.along(v)
            odd = q.weight * density * c
            even = q.weight * base + 0.5 * odd * c
            if forced:
                less, skew, _, _ = missing(f, q, density, base, v, impulse, power)
            else:
                less, skew = missing(f, q, density, base, v)
            high = less + shear
            # -h is high + skew on q and high - skew on its opposite: one division for both.
            whole = q.weight + even
            share = 2 / (whole * whole - odd * odd)
            overlap -= shear * share * (high * whole - skew * odd)
            size += share * ((high * high + skew * skew) * whole - 2 * high * skew * odd)
        ghosts = lw.max(lw.min(1 - (omega - 1) * overlap / size, real(2)), real(0))  # beta gamma
        given = real(0)
        for q in pairs:
            shear = shear_part(q, x, y, z)
            if forced:
                less, skew, stretch, push = missing(f, q, density, base, v, impulse, power)
                change_even = stretch - omega * shear + ghosts * (less + shear)
                change_odd = push + ghosts * skew
            else:
                less, skew = missing(f, q, density, base, v)
                change_even = ghosts * (less + shear) - omega * shear
                change_odd = ghosts * skew
            f[q] += change_even + change_odd
            f[q.opposite] += change_even - change_odd
            given += change_even
        f[0] -= 2 * given

    return specialise(kbc)


def _entry(q: lw.Direction) -> tuple[lw.Direction, lw.Direction, float]:
    """The entry a . N . b of the stress that direction q carries in the basis of natural moments,
    and its share of it.

    Of the directions along axes it is a diagonal entry, of those across edges the one of their two
    axes; the direction at rest and those across corners carry none.
    """
    lattice, velocity = q.lattice, q.lattice.velocities[q.index]
    parts = [
        tuple(v if a == b else 0 for b in range(lattice.dimension))
        for a, v in enumerate(velocity)
        if v
    ]
    units = [lattice[lattice.velocities.index(e)] for e in parts]
    match units:
        case [a]:
            return a, a, 0.5
        case [a, b]:
            return a, b, 0.25
        case _:
            return lattice[0], lattice[0], 0.0


@cache
def make_missing(forced: bool) -> Any:
    """A helper `missing(f, q, density, base, v[, impulse, power])`: the halves (even, odd) of g_eq
    - g.

    With `forced` those of g_eq - g - S / 2, and then the halves of S; impulse is 3 F and power v .
    F.
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

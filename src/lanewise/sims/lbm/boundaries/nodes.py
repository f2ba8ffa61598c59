"""What is known at a site on an open face: the density from the velocity, or the velocity from the
density.

Populations are deviations g = f - w. With n the inward normal, K0 the sum of those along the face
and K- of those that leave, the unknown ones sum to K+ = K- + m . n, where m = sum c g = density u -
F / 2. So density - 1 = K0 + 2 K- + m . n: of velocity and density along the normal one gives the
other (Zou & He 1997, Phys. Fluids 9, 1591).

Where the fluid leaves through a pressure boundary that relation is unstable: K0 stays at the face
and tells the momentum flux density u u of the step BEFORE, so a disturbance of u comes back with
the opposite sign in every step, 2 omega |u| / (2 - omega) of it, until it alternates for good.
There the velocity follows from the flux through the face instead, in which K0 does not occur: 2 K-
+ m . n = (density - 1) / 3 + density (u . n)^2 - (u . n)(F . n), the stress along the normal being
that of equilibrium. So what flows through the face is that of a fluid at the wanted density, p - 2
nu d u_n / d n = p_out. This closure is lanewise's own. (The usual outflow without traction,
Heywood, Rannacher & Turek 1996, Int. J. Numer. Meth. Fluids 22, 325, has all of d u / d n and
leaves the velocity along the face free, which is none here.) It changes the speed by half of it at
most, and not at all where the fluid comes in, where the first relation damps. The density of a
regularised node is that wanted in any case; Zou and He's is that in a steady flow.
"""

# Types that a function makes are annotations of the kernels in it.
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

from collections.abc import Callable
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.boundaries.faces import make_face
from lanewise.sims.lbm.operators.assembly import specialise
from lanewise.sims.lbm.operators.numbers import number_types


@cache
def make_velocity_node(lattice: lw.Lattice, precision: str, face: str, forced: bool) -> Any:
    """A helper `velocity_node(f, velocity, profile[, force])`: the density less one, and the
    velocity times the profile.
    """
    real, sides = number_types(lattice, precision).real, make_face(lattice, face)
    inward, grazing, leaving = sides.inward, sides.grazing, sides.leaving

    def velocity_node(f, velocity, profile, force):  # type: ignore[no-untyped-def]
        grazed, left = real(0), real(0)
        for q in grazing:
            grazed += f[q]
        for q in leaving:
            left += f[q]
        known = grazed + 2 * left
        u = profile * velocity
        normal = inward.along(u)
        if forced:
            known -= 0.5 * inward.along(force)
        return (known + normal) / (1 - normal), u

    return lw.function(specialise(velocity_node))


@cache
def make_pressure_node(lattice: lw.Lattice, precision: str, face: str, forced: bool) -> Any:
    """A helper `pressure_node(f, density[, force])`: the density less one, and the velocity, which
    is along the normal.
    """
    real, sides = number_types(lattice, precision).real, make_face(lattice, face)
    inward, grazing, leaving = sides.inward, sides.grazing, sides.leaving

    def pressure_node(f, density, force):  # type: ignore[no-untyped-def]
        grazed, left = real(0), real(0)
        for q in grazing:
            grazed += f[q]
        for q in leaving:
            left += f[q]
        deviation = density - 1
        known = grazed + 2 * left
        flux = 2 * left - deviation * (1 / 3)
        linear = real(1)
        if forced:
            pull = inward.along(force)
            known -= 0.5 * pull
            flux -= 0.5 * pull
            linear += pull / density
        outward = (known - deviation) / density
        # The root of speed^2 + linear speed = flux / density that is small with the flux, without
        # cancellation.
        square = lw.max(real(0), linear * linear + 4 * (flux / density))
        speed = 2 * (flux / density) / (linear + lw.sqrt(square))
        most = 0.5 * lw.max(real(0), outward)
        outward += lw.max(-most, lw.min(most, speed - outward))
        return deviation, -outward * inward.velocity

    return lw.function(specialise(pressure_node))


@cache
def make_node_observer(
    lattice: lw.Lattice, precision: str, face: str, pressure: bool, forced: bool
) -> Callable[..., Any]:
    """An observer of sites on an open face: the density less one, and the velocity.

    What arrives there through the face is no flow's, so the observer of other sites
    (`make_macroscopic`) is wrong there. Its parameters are those of the boundary: velocity and
    profile, or density; and force, with `forced`.
    """
    types = number_types(lattice, precision)
    real, vector, populations = types.real, types.vector, types.populations
    velocity_node = make_velocity_node(lattice, precision, face, forced)
    pressure_node = make_pressure_node(lattice, precision, face, forced)

    def node(
        f: populations, velocity: vector, profile: real, density: real, force: vector
    ) -> tuple[real, vector]:  # type: ignore[valid-type]
        if pressure:
            deviation, u = pressure_node(f, density, force) if forced else pressure_node(f, density)
        else:
            deviation, u = (
                velocity_node(f, velocity, profile, force)
                if forced
                else velocity_node(f, velocity, profile)
            )
        return deviation, u

    return specialise(node)

"""Zou and He's velocity and pressure boundaries: the deviation from equilibrium is bounced back.

Zou & He (1997), Phys. Fluids 9, 1591, in three dimensions Hecht & Harting (2010), J. Stat. Mech.
P01018: an unknown population is f_q = f_opposite(q) + 6 w_q c_q . m with m = density u - F / 2; the
momentum along the face that is then missing is given to the oblique ones among them, in proportion
to their weights, which leaves mass and the normal momentum as they are. Density and momentum are
then exactly those wanted.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.boundaries.faces import Face, make_face
from lanewise.sims.lbm.boundaries.nodes import make_pressure_node, make_velocity_node
from lanewise.sims.lbm.operators.assembly import specialise
from lanewise.sims.lbm.operators.numbers import number_types


@cache
def make_zou_he(
    lattice: lw.Lattice, precision: str, face: str, pressure: bool, forced: bool = False
) -> Callable[..., Any]:
    """A function `zou_he(f, velocity, profile)`, with `pressure` `zou_he(f, density)`; with
    `forced` also `force`.
    """
    types, sides = number_types(lattice, precision), make_face(lattice, face)
    real, vector, populations = types.real, types.vector, types.populations
    unknown, tangents, share = sides.unknown, sides.tangents, 1 / oblique_weight(sides)
    grazing, along = sides.grazing, 1 / sum(q.weight for q in sides.grazing)
    velocity_node = make_velocity_node(lattice, precision, face, forced)
    pressure_node = make_pressure_node(lattice, precision, face, forced)

    def zou_he(f: populations, velocity: vector, profile: real, density: real, force: vector):  # type: ignore[valid-type]
        if pressure:
            deviation, u = pressure_node(f, density, force) if forced else pressure_node(f, density)
        else:
            deviation, u = (
                velocity_node(f, velocity, profile, force)
                if forced
                else velocity_node(f, velocity, profile)
            )
        m = (1 + deviation) * u - 0.5 * force if forced else (1 + deviation) * u
        for q in unknown:
            f[q] = f[q.opposite] + (6 * q.weight) * q.along(m)
        if pressure:
            filled = deviation
            for q in lattice:
                filled -= f[q]
            for q in grazing:
                f[q] += (along * q.weight) * filled
        missing = m
        for q in lattice:
            missing -= f[q] * q.velocity
        for q in unknown:
            f[q] += (share * q.weight) * tangents[q.index].along(missing)

    return specialise(zou_he)


def oblique_weight(face: Face) -> float:
    """The sum of w c_t^2 over the unknown directions, c_t a component along the face: the same for
    every such component.
    """
    dimension = face.inward.lattice.dimension
    return sum(
        q.weight * sum(c * c for c in q.lattice.velocities[face.tangents[q.index].index])
        for q in face.unknown
    ) / (dimension - 1)

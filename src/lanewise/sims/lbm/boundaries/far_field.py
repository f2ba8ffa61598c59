"""The far field: sites that always send out the equilibrium of a given density and velocity, as if
the fluid went on.

Simple and very stable; waves that meet it are reflected in part, so it belongs far from what is
studied.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import lanewise as lw
from lanewise.sims.lbm.operators.assembly import specialise
from lanewise.sims.lbm.operators.numbers import number_types


@cache
def make_far_field(lattice: lw.Lattice, precision: str, forced: bool = False) -> Callable[..., Any]:
    """A function `far_field(f, velocity, profile, density[, force])`; nothing collides behind it.

    With a force the populations are those after a collision at equilibrium, g_eq + S / 2 (see
    `operators.moments`).
    """
    types = number_types(lattice, precision)
    real, vector, populations = types.real, types.vector, types.populations

    def far_field(f: populations, velocity: vector, profile: real, density: real, force: vector):  # type: ignore[valid-type]
        v = (3 * profile) * velocity
        base = (density - 1) - (density * lw.dot(v, v)) * (1 / 6)
        for q in lattice:
            c = q.along(v)
            f[q] = q.weight * (base + density * (c + 0.5 * c * c))
            if forced:
                f[q] += (0.5 * q.weight) * (3 * q.along(force) * (1 + c) - lw.dot(v, force))

    return specialise(far_field)

"""Burrau's problem: masses 3, 4 and 5 at rest at the corners of a right triangle of sides 3, 4 and
5.

Burrau, Astronomische Nachrichten 195, 113 (1913); Szebehely and Peters, Astronomical Journal 72,
876 (1967). Energy -769/60; closest approach 4.14e-4 at t = 15.82992; two bodies pair off and the
third escapes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lanewise.io.particles import Particles
from lanewise.sims.gravity.initial.registry import InitialCondition

METHOD: Mapping[str, float | str] = {"dt": 2e-5, "integrator": "yoshida4", "precision": "f64"}
"""Holds the energy to 1e-10 up to t = 15.8, through every encounter before the closest one."""


def pythagorean(bodies: int = 3, seed: int = 0) -> Particles:
    """At rest in the x-y plane, centre of mass at the origin, without softening.

    Raises InputError unless bodies == 3. Not random.

    Bodies pass at 0.01 at t = 1.88, so a run takes the steps of `METHOD`. The closest approach
    wants much shorter ones.
    """
    CONDITION.checked_count(bodies)
    del seed
    position = [[1.0, 3.0, 0.0], [-2.0, -1.0, 0.0], [1.0, -1.0, 0.0]]
    return Particles.of(position, np.zeros((3, 3)), [3.0, 4.0, 5.0])


CONDITION = InitialCondition(
    "pythagorean",
    "masses 3, 4, 5 at rest on a right triangle",
    pythagorean,
    bodies=3,
    random=False,
    method=METHOD,
)

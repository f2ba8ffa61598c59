"""Burrau's problem: masses 3, 4 and 5 at rest at the corners of a right triangle of sides 3, 4 and 5.

Burrau, Astronomische Nachrichten 195, 113 (1913); Szebehely and Peters, Astronomical Journal 72, 876 (1967).
Energy -769/60; closest approach 4.14e-4 at t = 15.82992; two bodies pair off and the third escapes.
"""

from __future__ import annotations

import numpy as np

from lanewise.io.particles import Particles
from lanewise.sims.gravity.initial.registry import InitialCondition

SOFTENING = 0.05


def pythagorean(bodies: int = 3, seed: int = 0) -> Particles:
    """At rest in the x-y plane, centre of mass at the origin. Raises InputError unless bodies == 3. Not random.

    It brings a softening of 0.05, with which steps of 0.001 hold its energy to 1e-3 up to t = 60; Burrau's own bodies have none, and
    their closest approach needs steps below 1e-6.
    """
    CONDITION.checked_count(bodies)
    del seed
    position = [[1.0, 3.0, 0.0], [-2.0, -1.0, 0.0], [1.0, -1.0, 0.0]]
    return Particles.of(position, np.zeros((3, 3)), [3.0, 4.0, 5.0], softening=SOFTENING)


CONDITION = InitialCondition("pythagorean", "masses 3, 4, 5 at rest on a right triangle", pythagorean, bodies=3)

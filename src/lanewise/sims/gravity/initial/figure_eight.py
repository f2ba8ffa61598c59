"""Three equal masses that chase each other along a figure eight.

Chenciner and Montgomery, Annals of Mathematics 152, 881 (2000); initial values by C. Simo, therein.
Period 6.32591398, energy -1.28714199.
"""

from __future__ import annotations

import numpy as np

from lanewise.io.particles import Particles
from lanewise.sims.gravity.initial.registry import InitialCondition

PERIOD = 6.32591398


def figure_eight(bodies: int = 3, seed: int = 0) -> Particles:
    """Masses 1, in the x-y plane. Raises InputError unless bodies == 3. Nothing is random."""
    CONDITION.checked_count(bodies)
    del seed
    outer = np.array([0.97000436, -0.24308753, 0.0])
    middle_velocity = np.array([-0.93240737, -0.86473146, 0.0])
    position = np.stack([outer, -outer, np.zeros(3)])
    velocity = np.stack([-middle_velocity / 2.0, -middle_velocity / 2.0, middle_velocity])
    return Particles.of(position, velocity, 1.0)


CONDITION = InitialCondition(
    "figure-eight", "three equal masses on a figure eight", figure_eight, bodies=3, random=False
)

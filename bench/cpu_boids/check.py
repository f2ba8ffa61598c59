"""Is a step of a flock right? A sample of its agents against the float64 reference of the tests,
which is plain NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.sims.boids.options import DT
from lanewise.sims.boids.state import State
from tests.boids import reference

TOLERANCE = 1e-3  # of a position or a velocity in float32, in worlds of some hundred
# of a sample: rounding decides who is seen at the edge of an angle, and who of two is the nearer
# one
WANTED = 0.99


def check_step(
    before: State, after: State | dict[str, Any], rules: reference.Rules, sample: int = 200
) -> str:
    """The steps of a sample of agents compared, in words.

    Raises:
        ValueError: too many of them differ from the reference.
    """
    now, there = (
        as_reference(before),
        np.linspace(0, len(before) - 1, min(sample, len(before))).astype(int),
    )
    forces = [reference.steering(now, rules, int(i)) for i in there]
    for i, force in zip(there, forces, strict=True):
        reference.updated(now, int(i), force, rules, DT)
    found = {
        n: np.asarray(after[n] if isinstance(after, dict) else getattr(after, n)) for n in FIELDS
    }
    off = [np.abs(found["position"] - now.position)[there].max(axis=1)]
    velocities = (found["forward"] * found["speed"][:, None], now.forward * now.speed[:, None])
    off.append(np.abs(velocities[0] - velocities[1])[there].max(axis=1))
    worst = np.maximum(*off)
    share = float((worst < TOLERANCE).mean())
    if share < WANTED:
        raise ValueError(
            f"only {share:.1%} of {len(there)} agents move as in the float64 reference"
        )
    return (
        f"{share:.1%} of {len(there)} agents within {TOLERANCE:g} of float64, half of them within "
        f"{np.median(worst):.1e}"
    )


FIELDS = ("position", "forward", "speed")


def as_reference(state: State) -> reference.State:
    """The same agents for the reference, in float64."""
    names = ("position", "forward", "up", "speed", "acceleration")
    fields = {n: np.array(getattr(state, n), np.float64) for n in names}
    return reference.State(**fields, side=np.array(state.side, np.float64))

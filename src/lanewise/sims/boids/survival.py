"""Agents that stay in the world: looked for on the device when steps are done. Who is lost stays lost, so none is missed in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.errors import InputError
from lanewise.runtime.memory import to_host
from lanewise.sims.boids.semantics import rules_of

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock


def check_survival(flock: Flock, before: int) -> None:
    """Raise `InputError` when an agent has left a bounded world or the finite numbers since step `before`; it names the first one."""
    s, unsound = flock.settings, rules_of(flock.settings).unsound
    lost = int(unsound.sum(flock.boids, s.world))
    if not lost:
        return
    rows = flock.rows
    places = np.flatnonzero(to_host(unsound(flock.boids, s.world)))
    place = int(places[np.argmin(rows[places])])
    agent: Any = flock.boids[place]
    position = np.array([*agent.position], np.float64)
    who = f"between step {before:,} and step {flock.step:,} agent {flock.ids[rows[place]]}"
    others = f" ({lost:,} agents did)" if lost > 1 else ""
    if not np.isfinite([*position, float(agent.speed)]).all():
        raise InputError(f"{who} lost its finite position or velocity{others}; a smaller dt or smaller weights keep it")
    distance = float(np.linalg.norm(position))
    raise InputError(
        f"{who} left the world of radius {s.world:g}, and is {distance:g} from its centre{others}; a larger --world, --boundary wrap, or "
        "an obstacle that is seen from inside keeps it"
    )

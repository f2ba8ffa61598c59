"""Small flocks for tests, and how they are compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.sims.boids import Flock, State
from tests.boids.reference import State as ReferenceState

FIELDS = ("position", "forward", "up", "speed", "acceleration")


def random_state(count: int, seed: int = 0, radius: float = 8.0) -> State:
    """Agents close enough to see each other, at all speeds and with accelerations."""
    random = np.random.default_rng(seed)
    forward, up = (_unit(random.normal(size=(count, 3))) for _ in range(2))
    up = _unit(up - (up * forward).sum(axis=1, keepdims=True) * forward)
    return State(
        random.uniform(-radius, radius, (count, 3)), forward, up, random.uniform(0, 9, count),
        random.normal(size=(count, 3)) * 5, np.arange(count),
    )  # fmt: skip


def _unit(v: Any) -> Any:
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def as_reference(state: State) -> ReferenceState:
    return ReferenceState(
        state.position.copy(),
        state.forward.copy(),
        state.up.copy(),
        state.side,
        state.speed.copy(),
        state.acceleration.copy(),
    )


def difference(found: State, wanted: Any) -> float:
    """The largest difference of any number."""
    return max(float(np.abs(getattr(found, n) - getattr(wanted, n)).max()) for n in (*FIELDS, "side"))


def bits(flock: Flock) -> dict[str, Any]:
    """What decides how a flock goes on."""
    state = flock.state
    return {n: (getattr(state, n).dtype.str, getattr(state, n).tobytes()) for n in (*FIELDS, "ids")} | {
        "step": flock.step, "time": flock.time,
    }  # fmt: skip

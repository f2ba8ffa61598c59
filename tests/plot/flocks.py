"""Small flocks to paint."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.sims.boids.view.flock import Moment, View

SIZE = (180, 320)


def moment(count: int = 200, radius: float = 20.0, time: float = 1.0, seed: int = 0) -> Moment:
    """Agents in a ball, at random headings."""
    random = np.random.default_rng(seed)
    forward, up = (unit(random.normal(size=(count, 3))) for _ in range(2))
    up = unit(up - (up * forward).sum(axis=1, keepdims=True) * forward)
    position = unit(random.normal(size=(count, 3))) * radius * np.cbrt(random.random((count, 1)))
    speed = random.uniform(0, 9, count)
    p, f, u, s = (a.astype(np.float32) for a in (position, forward, up, speed))
    return Moment(time, p, f, u, s, np.arange(count))


def view(**changed: Any) -> View:
    given: dict[str, Any] = {"title": "a flock", "world": 50.0, "size": SIZE, **changed}
    return View(**given)


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def alone(position: Any = (0, 0, 0), forward: Any = (1, 0, 0), up: Any = (0, 1, 0)) -> Moment:
    """One agent."""
    p, f, u = (np.array([v], np.float32) for v in (position, forward, up))
    return Moment(0.0, p, f, u, np.ones(1, np.float32), np.zeros(1, np.int64))

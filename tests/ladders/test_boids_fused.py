"""Search and steering of a flock apart, by a second kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.ladders.boids_fused import neighbours, search_alone
from lanewise.sims.boids import Flock, make_state


@pytest.mark.parametrize("search", ["all-pairs", "static-grid", "dynamic-grid"])
def test_the_second_kernel_finds_what_the_flock_steers_by(search: str) -> None:
    """Neighbours within the radius, k at most: counted by NumPy."""
    state = make_state(300, start="world", world=15.0, seed=1)
    flock = Flock(semantics="thesis", k=7, state=state, world=15.0, boundary="wrap", device="cpu", search=search)
    found: Any = neighbours.using(flock.search)(flock.boids, flock.boids)
    positions = np.asarray(flock.boids.position, np.float64)
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    near = (distances <= flock.search.radius).sum(axis=1) - 1  # type: ignore[attr-defined]
    assert np.asarray(found).tolist() == np.minimum(near, 7).tolist()


def test_its_time_is_that_of_a_step() -> None:
    state = make_state(500, start="world", world=20.0, seed=1)
    flock = Flock(semantics="thesis", k=7, state=state, world=20.0, boundary="wrap", device="cpu", search="static-grid")
    before = np.array(flock.boids.position)
    assert 0 < search_alone(flock, 3) < 1
    assert np.array_equal(before, flock.boids.position)  # the flock stays as it is

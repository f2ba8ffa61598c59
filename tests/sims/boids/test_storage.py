"""Agents are brought into the order of their search now and then: nobody can tell from results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lanewise.runtime.memory import to_host
from lanewise.sims.boids import Flock
from lanewise.sims.boids.storage import REORDER
from tests.sims.boids.flocks import bits

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
SEARCHES = ["static-grid", "dynamic-grid"]


def flock(search: str, device: str, precision: str = "f64") -> Flock:
    return Flock(400, world=30, seed=5, start="world", search=search, precision=precision, device=device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("search", SEARCHES)
def test_results_are_in_the_order_of_the_caller(search: str, device: str) -> None:
    moved, plain = flock(search, device).run(10, 0.02), flock("all-pairs", device).run(10, 0.02)
    assert sorted(moved.rows) == list(range(400))
    assert (moved.rows != np.arange(400)).any()
    assert (plain.rows == np.arange(400)).all()
    for name in ("position", "forward", "speed"):
        found, wanted = (to_host(getattr(f, name)) for f in (moved, plain))
        assert np.allclose(found, wanted, rtol=0, atol=1e-10), name
        assert np.array_equal(found, getattr(moved.state, name))
    for found, wanted in zip(moved.urges, plain.urges, strict=True):
        assert np.allclose(to_host(found), to_host(wanted), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("search", SEARCHES)
def test_neighbours_lie_side_by_side(search: str, device: str) -> None:
    f = flock(search, device).run(1)
    stored = to_host(f.boids.position)
    apart, before = (float(np.linalg.norm(np.diff(x, axis=0), axis=1).mean()) for x in (stored, to_host(f.position)))
    assert apart < before / 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("search", SEARCHES)
def test_runs_may_be_divided(search: str, device: str, tmp_path: Path) -> None:
    steps = 2 * REORDER + 7
    whole, pieces = (flock(search, device, "f32") for _ in range(2))
    whole.run(steps)
    for n in (1, REORDER - 1, 5, steps - REORDER - 5):
        pieces.run(n)
    assert bits(pieces) == bits(whole)
    half = flock(search, device, "f32").run(REORDER + 3)
    half.checkpoint(tmp_path / "a.h5")
    again = Flock.resume(tmp_path / "a.h5")
    assert np.array_equal(again.rows, half.rows)
    assert bits(again) == bits(half)
    assert bits(again.run(REORDER + 4)) == bits(whole)


def test_thinkers_stay_where_they_are() -> None:
    f = Flock(400, world=30, seed=5, search="static-grid", think_every=3).run(4)
    assert (f.rows == np.arange(400)).all()

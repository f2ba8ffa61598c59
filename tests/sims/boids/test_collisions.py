"""Agents that touch are moved apart: as float64 has it, the same for every search, and never out of the world."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.launch.executable import build_executable
from lanewise.sims import boids
from lanewise.sims.boids.collisions import make_collisions
from lanewise.sims.boids.rules import BOUNDED, BOX, OPEN, Boid64
from lanewise.support.errors import InputError
from tests.search.kernels import cuda_program

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


def pushed(x: np.ndarray, reach: float, size: float | None = None) -> np.ndarray:
    """Every agent by the mean of half of its overlaps."""
    off = x[:, None] - x[None]
    if size is not None:
        off -= size * np.round(off / size)
    d = np.linalg.norm(off, axis=2)
    touches = (d < reach) & (d > 0)
    with np.errstate(all="ignore"):
        each = np.where(touches[..., None], off / d[..., None] * ((reach - d) / 2)[..., None], 0)
    return x + each.sum(axis=1) / np.maximum(touches.sum(axis=1), 1)[:, None]


def moved(x: np.ndarray, reach: float, end: int, world: float, search: lw.Search, device: str) -> np.ndarray:
    kernels = make_collisions("f64", end)
    flock: Any = Boid64.array(position=x, device=device)  # type: ignore[attr-defined]
    kernels.apart(flock, *kernels.bump.using(search)(flock, flock, reach=reach), world=world)
    return np.asarray(flock.position.get() if device == "cuda" else flock.position)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.floats(0.1, 3.0), st.integers(0, 99), st.booleans())
def test_as_in_float64(device: str, count: int, reach: float, seed: int, periodic: bool) -> None:
    x = np.random.default_rng(seed).random((count, 3)) * 4 - 2
    x[count // 2] = x[0]  # at one place
    world = 5.0
    if periodic:
        box = lw.Periodic((10.0,) * 3, origin=-5.0)
        x *= 2.4
        found = moved(x, reach, BOX, world, lw.StaticGrid(radius=reach, world=box), device)
        wanted = pushed(x, reach, 10.0)
        wanted -= 10 * np.floor((wanted + 5) / 10)
        near = np.abs(found - wanted)
        assert np.minimum(near, 10 - near).max() < 1e-9
        return
    for search in (lw.AllPairs(radius=reach), lw.DynamicGrid(radius=reach)):
        np.testing.assert_allclose(moved(x, reach, OPEN, world, search, device), pushed(x, reach), atol=1e-9)


def test_two_touch_afterwards() -> None:
    x = np.array([[0, 0, 0], [0.4, 0, 0], [9, 0, 0]])
    found = moved(x, 1.0, OPEN, 50.0, lw.AllPairs(radius=1.0), "cpu")
    np.testing.assert_allclose(found[:, 0], [-0.3, 0.7, 9], atol=1e-12)


def test_nobody_is_pushed_out_of_a_bounded_world() -> None:
    x = np.array([[4.9, 0, 0], [4.6, 0, 0]])
    found = moved(x, 1.0, BOUNDED, 5.0, lw.AllPairs(radius=1.0), "cpu")
    np.testing.assert_allclose(found[:, 0], [4.9, 4.25], atol=1e-12)


@pytest.mark.slow_cases("{'boundary': 'periodic'}-cpu", "{'k': 5}-cpu")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "more", [{}, {"boundary": "periodic"}, {"think_every": 3}, {"dimension": 2}, {"k": 5}], ids=str
)
def test_a_flock_keeps_its_distance(more: dict[str, Any], device: str) -> None:
    def nearest(collide: bool) -> float:
        flock = boids.Flock(400, world=20.0, seed=1, start="clusters", collide=collide, device=device, **more)
        flock.advance(30)
        x = flock.state.position.astype(np.float64)
        d = np.linalg.norm(x[:, None] - x[None], axis=2) + 1e9 * np.eye(len(x))
        return float(np.median(d.min(axis=1)))

    assert nearest(True) > max(0.8, nearest(False))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("search", [lw.AllPairs, lw.StaticGrid])
@pytest.mark.parametrize("k", [None, 5])
def test_agents_collide_with_those_that_they_do_not_see(search: Any, k: int | None, device: str) -> None:
    def flown(sight: lw.Sight | None) -> np.ndarray:
        flock = boids.Flock(
            300, world=30.0, boundary="open", seed=3, start="clusters", collide=True, device=device, agent_radius=0.5, k=k,
            search=search(radius=9.0, k=k, sight=sight), separation_weight=0, cohesion_weight=0, alignment_weight=0,
        )  # fmt: skip
        flock.advance(2)
        return flock.state.position

    found = flown(lw.Sight(heading="forward", cosine=0.5))
    np.testing.assert_allclose(found, flown(None), rtol=1e-5, atol=1e-5)


def test_it_compiles_for_a_gpu() -> None:
    records = Boid64.array(position=np.zeros((4, 3)))  # type: ignore[attr-defined]
    program = cuda_program(make_collisions("f64", OPEN).bump, lw.DynamicGrid(radius=1.0), records, records, reach=1.0)
    (cubin,) = build_executable(program, "cuda", "sm_90").cubins
    assert cubin.resources.spill_stores <= 16


def test_steps_may_be_cut_anywhere() -> None:
    whole, cut = (boids.Flock(200, world=15.0, collide=True, seed=2, boundary="open", device="cpu") for _ in range(2))
    whole.advance(12)
    for steps in (5, 1, 6):
        cut.advance(steps)
    assert whole.state.position.tobytes() == cut.state.position.tobytes()


def test_refusals() -> None:
    with pytest.raises(InputError, match="those that touch are moved apart all at once"):
        boids.Flock(10, collide=True, semantics="seq", device="cpu")
    with pytest.raises(InputError, match="agents that collide are on one device, found cpu"):
        boids.Flock(10, collide=True, device=lw.Mesh("cpu*2"))

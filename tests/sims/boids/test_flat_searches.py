"""Searches of flocks in a plane that repeats: skins and collisions that the world is wide enough for, whatever its
height.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.boids import Flock
from lanewise.sims.boids.choice import search_world
from lanewise.sims.boids.rules import BOX
from lanewise.sims.boids.state import State
from lanewise.support.errors import InputError
from tests.sims.boids.flocks import bits

FLAT: dict[str, Any] = {"agents": 80, "dimension": 2, "boundary": "periodic", "world": 30.0, "seed": 1, "device": "cpu"}


def lists(skin: float, high: float = 30.0) -> lw.NeighborLists:
    return lw.NeighborLists(radius=9.0, skin=skin, world=search_world(BOX, 30.0, high))


@pytest.mark.parametrize("skin", [0.5, 9.0, 21.0])
def test_lists_with_any_skin(skin: float, tmp_path: Path) -> None:
    flock = Flock(**FLAT, search=lists(skin), precision="f64").run(5)
    everyone = Flock(**FLAT, search="all-pairs", precision="f64").run(5)
    np.testing.assert_allclose(flock.state.position, everyone.state.position, rtol=1e-9, atol=1e-9)
    flock.checkpoint(tmp_path / "a.h5")
    again = Flock.resume(tmp_path / "a.h5")
    assert again.search == flock.search
    assert bits(again.run(5)) == bits(flock.run(5))


def test_any_height_will_do() -> None:
    found = [Flock(**FLAT, search=lists(2.0, high)) for high in (11.0, 15.0, 30.0, 100.0)]
    assert {f.search.world for f in found} == {search_world(BOX, 30.0, 11.0)}
    low = lw.StaticGrid(radius=9.0, world=search_world(BOX, 30.0, 9.0))
    assert Flock(**FLAT, search=low).search == Flock(**FLAT, search="static-grid").search == low
    with pytest.raises(InputError, match=r"^the search has world .*, and the flock "):
        Flock(**FLAT, search=lw.StaticGrid(radius=9.0, world=search_world(BOX, 31.0, 9.0)))


@pytest.mark.parametrize("search", ["auto", "all-pairs", "static-grid", "dynamic-grid", lists(2.0)], ids=str)
@pytest.mark.parametrize("dimension", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_agents_that_collide_from_farther_than_they_see(search: Any, dimension: int, tmp_path: Path) -> None:
    how = {**FLAT, "dimension": dimension, "collide": True, "precision": "f64"}
    if dimension == 3 and not isinstance(search, str):
        search = lw.NeighborLists(radius=9.0, skin=2.0, world=search_world(BOX, 30.0))
    flock = Flock(**how, agent_radius=8.0, search=search).run(3)
    everyone = Flock(**how, agent_radius=8.0, search="all-pairs").run(3)
    np.testing.assert_allclose(flock.state.position, everyone.state.position, rtol=1e-9, atol=1e-9)
    flock.agent_radius = 4.0
    flock.run(2).agent_radius = 13.0
    flock.checkpoint(tmp_path / "a.h5")
    again = Flock.resume(tmp_path / "a.h5")
    assert again.search == flock.search
    assert bits(again.run(2)) == bits(flock.run(2))


@pytest.mark.parametrize("dimension", [2, 3])
def test_agents_that_touch_their_images(dimension: int) -> None:
    how = {**FLAT, "dimension": dimension}
    refused = pytest.raises(InputError, match=(
        r"^agents of radius 15.5 collide up to 31 from each other; in a periodic world of 60 that is at most half of it, "
        "30: wanted a smaller agent_radius, or a larger world$"
    ))  # fmt: skip
    with refused:
        Flock(**how, collide=True, agent_radius=15.5)
    flock = Flock(**how, collide=True, agent_radius=15.0)
    with refused:
        flock.agent_radius = 15.5
    Flock(**how, agent_radius=15.5)


def test_a_skin_that_is_too_narrow_for_collisions() -> None:
    with pytest.raises(InputError, match=r"^NeighborLists\(skin=0.1\): wanted a length of at least 0.01 radii, 0.16"):
        Flock(**FLAT, collide=True, agent_radius=8.0, search=lists(0.1))


@pytest.mark.parametrize("cls", [lw.AllPairs, lw.StaticGrid])
def test_agents_collide_with_those_behind(cls: Any) -> None:
    """Who touches an agent that it does not see moves it, too."""
    along = np.array([[0, 0, 1.0]] * 2)
    state = State(
        np.array([[0, 0, 0], [0, 0, 0.6]]), along, along[:, [0, 2, 1]], np.zeros(2), np.zeros((2, 3)), np.arange(2)
    )
    search = cls(radius=9.0, sight=lw.Sight(heading="forward", cosine=0.0))
    idle = {f"{n}_weight": 0.0 for n in ("separation", "cohesion", "alignment")}
    flock = Flock(state=state, collide=True, boundary="open", search=search, device="cpu", **idle).run(1, dt=1e-9)
    np.testing.assert_allclose(flock.state.position[:, 2], [-0.2, 0.8], rtol=1e-6)

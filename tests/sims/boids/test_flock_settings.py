"""Settings of a flock act or refuse, and what is written to its agents acts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.profiling import Profile
from lanewise.runtime.memory import to_host
from lanewise.sims.boids import Flock
from lanewise.sims.boids.choice import Chosen
from lanewise.sims.boids.engine import FlockEngine
from lanewise.sims.boids.obstacles import Sphere
from lanewise.sims.boids.parameters import NUMBERS, make_parameters
from lanewise.support.errors import InputError

OTHERS: dict[str, float] = {
    "radius": 6.0, "near_radius": 2.0, "separation_radius": 3.0, "separation_cosine": 0.2, "separation_weight": 2.0,
    "alignment_radius": 4.0, "alignment_cosine": -0.5, "alignment_weight": 1.0, "cohesion_radius": 4.0, "cohesion_cosine": 0.9,
    "cohesion_weight": 0.0, "max_force": 5.0, "max_speed": 4.0, "mass": 2.0, "agent_radius": 2.0, "avoid_time": 3.0,
}  # fmt: skip
WORLD: dict[str, Any] = {"world": 20.0, "seed": 3, "obstacles": (Sphere((5.0, 0.0, 0.0), 3.0),)}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def bits(flock: Flock) -> list[bytes]:
    s = flock.state
    return [np.ascontiguousarray(a).tobytes() for a in (s.position, s.forward, s.up, s.speed, s.acceleration)]


def resumed(flock: Flock, search: Any = None, **settings: Any) -> Flock:
    """The flock that a checkpoint of this one would give with these settings."""
    chosen = Chosen(search or flock.search, "")
    engine = FlockEngine(replace(flock.settings, **settings), flock.state, chosen, None, flock.rows)
    engine.follow([to_host(u) for u in flock.urges])
    return Flock._restored(engine, flock.clock, None)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_constant_acts_from_the_next_step_on(name: str, device: str) -> None:
    """To the bit as a new flock of these agents; there and back."""
    flock = Flock(60, **WORLD, search="all-pairs", device=device).run(5)
    before = getattr(flock, name)
    for value in (OTHERS[name], before):
        fresh = Flock(
            state=flock.state, world=20.0, obstacles=WORLD["obstacles"], search="all-pairs", device=device, **{name: value}
        )  # fmt: skip
        setattr(flock, name, value)
        assert getattr(flock, name) == getattr(flock.settings.parameters, name) == value
        assert bits(flock.run(5)) == bits(fresh.run(5))
    assert flock.step == 15


def test_a_behaviour_never_looks_beyond_the_search() -> None:
    """What was chosen acts, or is refused; usual radii give way to a smaller search."""
    flock = Flock(10, radius=4.0)
    with pytest.raises(InputError, match=r"^the cohesion radius is 5, and flockmates are seen up to the radius 4;"):
        flock.cohesion_radius = 5.0
    assert (flock.radius, flock.cohesion_radius) == (4.0, 9.0)
    flock.radius = 12.0
    flock.cohesion_radius = 12.0
    flock.run(1)


def test_every_constant_has_another_value_here() -> None:
    plain = make_parameters("sync")
    assert OTHERS.keys() == set(NUMBERS)
    assert all(getattr(plain, n) != v for n, v in OTHERS.items())


@pytest.mark.parametrize("search", ["static-grid", "dynamic-grid"])
def test_agents_stay_in_their_order_in_memory(search: str, device: str) -> None:
    """With a search that brings them into an order of its own; what a checkpoint would go on with."""
    flock = Flock(300, world=20.0, seed=3, search=search, device=device).run(40)
    assert flock.rows.tolist() != list(range(300))
    fresh = resumed(flock, parameters=make_parameters("sync", {"cohesion_weight": 1.0}))
    flock.cohesion_weight = 1.0
    assert bits(flock) == bits(fresh)
    assert bits(flock.run(40)) == bits(fresh.run(40))
    before = bits(flock)
    flock.search = "all-pairs"
    assert bits(flock) == before
    assert flock.rows.tolist() == list(range(300))
    fresh = Flock(state=flock.state, world=20.0, search="all-pairs", cohesion_weight=1.0, device=device)
    assert bits(flock.run(10)) == bits(fresh.run(10))
    flock.search = search
    assert type(flock.search).__name__.lower() == search.replace("-", "")
    assert np.allclose(to_host(flock.run(3).position), to_host(fresh.run(3).position), atol=1e-3)


@pytest.mark.parametrize(
    ("name", "value"), [("world", 30.0), ("boundary", "open"), ("boundary", "inside-sphere"), ("obstacles", ()), ("k", 5)]
)  # fmt: skip
def test_the_world_and_the_neighbours_too(name: str, value: Any, device: str) -> None:
    flock = Flock(60, **WORLD, search="all-pairs", device=device).run(5)
    placed = {n: v for n, v in WORLD.items() if n != "seed"}  # the state says where agents are
    fresh = Flock(state=flock.state, search="all-pairs", device=device, **{**placed, name: value})
    setattr(flock, name, value)
    assert getattr(flock, name) == value
    assert bits(flock.run(5)) == bits(fresh.run(5))


def test_who_thinks_now_and_then_keeps_the_last_wish() -> None:
    flock = Flock(60, world=20.0, seed=3, think_every=3).run(7)
    fresh = resumed(flock, parameters=make_parameters("sync", {"alignment_weight": 1.0}))
    flock.alignment_weight = 1.0
    assert bits(flock.run(5)) == bits(fresh.run(5))


def test_a_profile_may_come_later() -> None:
    flock = Flock(60, world=20.0, seed=3).run(4)
    profile = flock.profile = Profile()
    flock.run(6)
    assert profile.summary()["steps"]["count"] == 6
    assert bits(flock) == bits(Flock(60, world=20.0, seed=3).run(10))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cohesion_cosine", 2.0, "the cohesion cosine is 2; wanted a cosine, from -1 to 1"),
        ("mass", 0.0, "the mass is 0; wanted a finite number above zero"),
        ("world", -1.0, "the radius of the world is -1"),
        ("world", 0.5, "agent "),
        ("boundary", "wal", "unknown boundary 'wal'"),
        ("k", 61, "k is 61; there are only 60 agents"),
        ("search", "grid", "unknown search 'grid'"),
        ("search", lw.StaticGrid(radius=3.0), "the search has radius 3.0, and the flock 9.0"),
    ],
)
def test_a_refused_setting_changes_nothing(name: str, value: Any, message: str) -> None:
    flock = Flock(60, world=20.0, seed=3).run(4)
    before = flock.settings
    with pytest.raises(InputError) as error:
        setattr(flock, name, value)
    assert str(error.value).startswith(message)
    assert flock.settings is before
    assert bits(flock.run(4)) == bits(Flock(60, world=20.0, seed=3).run(8))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cohesion_wait", "Flock has no attribute 'cohesion_wait'; did you mean 'cohesion_weight'?"),
        ("foo", "Flock has no attribute 'foo'; what can be set is agent_radius, "),
        ("time", "Flock.time cannot be assigned: it follows from the steps"),
        ("position", "Flock.position cannot be assigned: write to flock.boids.position (rows in the order of flock.rows)"),
        ("structure", "Flock.structure cannot be assigned: it is chosen when a flock is made: Flock(state=flock.state, ...)"),
    ],
)  # fmt: skip
def test_no_other_attribute_is_assigned(name: str, message: str) -> None:
    with pytest.raises(AttributeError) as error:
        setattr(Flock(10, world=20.0), name, 1)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("search", ["all-pairs", "static-grid", "dynamic-grid"])
def test_agents_that_were_written_to_are_noticed(search: str, device: str) -> None:
    """Between runs and by a callback; everything that a search needs is built from the positions of each step."""
    flock = Flock(80, world=40.0, seed=3, search=search, device=device).run(5)

    def change(f: Flock) -> None:
        f.boids.position = f.boids.position * 0.75
        f.boids.speed = f.boids.speed * 0.5

    change(flock)
    other = resumed(flock)
    assert bits(flock.run(4)) == bits(other.run(4))
    seen: list[int] = []

    def callback(f: Flock) -> None:
        seen.append(f.step)
        if len(seen) == 1:
            change(f)

    flock.run(4, callback=callback, every=2)
    other.run(2)
    change(other)
    assert bits(flock) == bits(resumed(other).run(2))


def test_what_is_seen_of_a_flock_is_read_only() -> None:
    flock = Flock(10, world=20.0)
    for field in (flock.position, flock.forward, flock.speed, flock.ids):
        with pytest.raises(ValueError, match="read-only"):
            field[...] = 0

"""The Python interface: measures, refusals, and the ways to go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.boids import Flock, State
from lanewise.sims.boids.statistics import cell_populations
from lanewise.support.errors import InputError
from tests.sims.boids.flocks import bits, random_state


def test_statistics_against_numpy() -> None:
    state = random_state(250, 2, radius=30.0)
    found = Flock(state=state, precision="f64", world=60).statistics()
    assert found.polarisation == pytest.approx(np.linalg.norm(state.forward.mean(axis=0)))
    KDTree = pytest.importorskip("scipy.spatial").KDTree
    nearest = KDTree(state.position).query(state.position, 2)[0][:, 1]
    assert (found.nearest_min, found.nearest_mean) == pytest.approx((nearest.min(), nearest.mean()))
    assert (found.speed_min, found.speed_mean, found.speed_max) == pytest.approx(
        (state.speed.min(), state.speed.mean(), state.speed.max())
    )
    assert found.cells * found.cell_mean == pytest.approx(250)
    assert found.cell_min >= 1


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_who_has_nobody_near_counts_for_no_distance(precision: str) -> None:
    """In a periodic world nobody looks farther than the radius; across a face two are near."""
    at = np.zeros((5, 3))
    at[:, 0] = [-19, 19, -5, -8, 7]  # 2 apart across the face, 3 apart, and one alone
    state = replace(random_state(5, 1), position=at)
    found = Flock(state=state, precision=precision, world=20, boundary="periodic", radius=9.0).statistics()
    assert (found.nearest_min, found.nearest_mean) == pytest.approx((2, 2.5))
    alone = Flock(state=replace(random_state(2, 1), position=at[3:]), world=20, boundary="periodic").statistics()
    assert np.isnan([alone.nearest_min, alone.nearest_mean]).all()


def test_cells_count_every_agent_once() -> None:
    position = np.random.default_rng(0).normal(size=(1000, 3)) * 10
    populations = cell_populations(position, 3.0)
    assert populations.sum() == 1000
    cells = np.floor((position - position.min(axis=0)) / 3.0).astype(int)
    assert sorted(populations) == sorted(np.unique(cells, axis=0, return_counts=True)[1])
    assert cell_populations(position, 1e-8).sum() == 1000  # more cells an axis than a key of 20 bits holds


def test_pieces_and_callbacks_change_nothing() -> None:
    def make() -> Flock:
        return Flock(50, world=20, search="all-pairs")

    seen: list[int] = []
    whole, pieces, called = make().run(10), make(), make().run(10, callback=lambda f: seen.append(f.step), every=4)
    for count in (3, 1, 6):
        pieces.advance(count)
    assert bits(whole) == bits(pieces) == bits(called)
    assert seen == [4, 8, 10]
    assert next(iter(whole.steps(every=5))).step == 15
    assert whole.time == pytest.approx(15 / 60)


def test_a_search_of_ones_own() -> None:
    edge = 50 * (1 + 1e-5)
    world = lw.Bounded((-edge,) * 3, (edge,) * 3)
    own = Flock(100, search=lw.AllPairs(radius=9.0, world=world)).run(5)
    assert bits(own) == bits(Flock(100, search="all-pairs").run(5))
    with pytest.raises(InputError) as error:
        Flock(100, search=lw.AllPairs(radius=5.0, world=world))
    assert str(error.value) == (
        "the search has radius 5.0, and the flock 9.0; build it with the flock's, or name it: auto, all-pairs, static-grid, cell-array, dynamic-grid"
    )


def test_profiles_change_no_bits() -> None:
    profile = lw.Profile()
    found = Flock(60, search="all-pairs", profile=profile).run(4)
    assert bits(found) == bits(Flock(60, search="all-pairs").run(4))
    assert {"search", "update"} <= set(profile.summary()["stages"])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "agents": ({"agents": -1}, "-1 agents requested; wanted 0 or more"),
    "world": ({"world": 0}, "the radius of the world is 0; wanted a finite length above zero"),
    "small world": ({"world": 1e-30}, "the radius of the world is 1e-30; wanted at least 1e-15: distances are squared"),
    "small radius": ({"radius": 1e-31}, "the radius is 1e-31; wanted 1e-15 to 1e+15: distances are squared"),
    "large radius": ({"radius": 1e20}, "the radius is 1e+20; wanted 1e-15 to 1e+15: distances are squared"),
    "unseen": (
        {"cohesion_radius": 12},
        "the cohesion radius is 12, and flockmates are seen up to the radius 9; wanted at most that, or a larger radius",
    ),
    "unseen in the thesis": (
        {"semantics": "thesis", "alignment_radius": 7},
        "the alignment radius is 7, and flockmates are seen up to the radius 4.24264; wanted at most that, or a larger radius",
    ),
    "semantics": ({"semantics": "x"}, "unknown semantics 'x'; wanted one of sync, seq, thesis"),
    "boundary": (
        {"boundary": "x"},
        "unknown boundary 'x'; wanted one of wrap, open, periodic, bounded, inside-sphere, outside-sphere, outside-spheres, "
        "outside-spheres-wrap, rectangle, rectangle-wrap, outside-box, inside-box",
    ),
    "search": (
        {"search": "x"},
        "unknown search 'x'; wanted one of auto, all-pairs, static-grid, cell-array, dynamic-grid",
    ),
    "k of 0": ({"k": 0}, "k is 0; wanted at least 1 neighbour"),
    "k beyond agents": ({"agents": 10, "k": 20}, "k is 20; there are only 10 agents"),
    "k beyond registers": ({"k": 33}, "k is 33; wanted at most 32, the longest list that is kept in registers"),
    "radius": ({"radius": 0}, "the radius is 0; wanted a finite number above zero"),
    "negative radius": ({"cohesion_radius": -1}, "the cohesion radius is -1; wanted zero or more"),
    "nan": ({"mass": float("nan")}, "the mass is nan; wanted a finite number"),
    "cosine": ({"alignment_cosine": 2}, "the alignment cosine is 2; wanted a cosine, from -1 to 1"),
    "parameter": (
        {"colour": 1},
        "Flock has no setting 'colour'; wanted some of agents, state, world, semantics, k, search, boundary, obstacles, think_every, "
        "precision, layout, device, start, start_radius, seed, dimension, collide, profile, radius, near_radius, separation_radius, separation_cosine, "
        "separation_weight, alignment_radius, alignment_cosine, alignment_weight, cohesion_radius, cohesion_cosine, cohesion_weight, "
        "max_force, max_speed, mass, agent_radius, avoid_time",
    ),
    "a name like a setting's": (
        {"agens": 3},
        "Flock has no setting 'agens'; did you mean 'agents'? wanted some of agents, state, world, semantics, k, search, boundary, "
        "obstacles, think_every, precision, layout, device, start, start_radius, seed, dimension, collide, profile, radius, near_radius, separation_radius, "
        "separation_cosine, separation_weight, alignment_radius, alignment_cosine, alignment_weight, cohesion_radius, cohesion_cosine, "
        "cohesion_weight, max_force, max_speed, mass, agent_radius, avoid_time",
    ),
    "precision": ({"precision": "f16"}, "unknown precision 'f16'; did you mean 'f64'? wanted one of f32, f64"),
    "start": ({"start": "x"}, "unknown start 'x'; wanted one of ball, world, cube, shell, disc, clusters"),
    "start radius": ({"start_radius": -1}, "the start radius is -1; wanted a finite length above zero"),
    "seed": ({"seed": -1}, "the seed is -1; wanted zero or more"),
    "think": ({"think_every": 0}, "think-every is 0; wanted a whole number of steps from 1 on"),
    "seldom": ({"think_every": 10**9}, "think-every is 1000000000; wanted at most 1024 steps"),
    "periodic radius": (
        {"boundary": "periodic", "world": 5},
        "the radius is 9; in a periodic world of 10 it is at most half of that, 5",
    ),
    "seq with k": (
        {"semantics": "seq", "k": 3},
        "semantics seq sees all flockmates within the radius, as OpenSteer does; leave k out, or use semantics sync",
    ),
    "seq with a grid": (
        {"semantics": "seq", "search": "static-grid"},
        "semantics seq looks at all pairs, because a structure would be out of date after every agent; found search static-grid",
    ),
    "seq in a periodic world": (
        {"semantics": "seq", "boundary": "periodic"},
        "semantics seq does not see across the faces of a periodic world; wanted another boundary, or semantics sync",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    chosen: dict[str, Any]
    chosen, message = REFUSED[name]
    with pytest.raises(InputError) as error:
        Flock(**cast("dict[str, Any]", {"agents": 40, **chosen}))
    assert str(error.value) == message


def test_agents_outside_of_the_world() -> None:
    state = replace(random_state(1), position=np.array([[60.0, 0, 0]]))
    with pytest.raises(InputError) as error:
        Flock(state=state)
    assert str(error.value) == (
        "agent 0 starts 60 from the centre, outside of the world of radius 50; a larger --world holds it, or --boundary open"
    )


@pytest.mark.parametrize("dt", [0.0, -1.0, float("nan"), float("inf")])
def test_time_steps_that_are_none(dt: float) -> None:
    with pytest.raises(InputError) as error:
        Flock(10, search="all-pairs").run(1, dt)
    assert str(error.value) == f"the time step dt is {dt}; wanted a finite time above zero"


def test_one_after_another_is_not_for_gpus() -> None:
    from lanewise.sims.boids.settings import check_fit

    flock = Flock(10, semantics="seq")
    with pytest.raises(InputError) as error:
        check_fit(replace(flock.settings, device="cuda"))
    assert str(error.value) == (
        "semantics seq moves one agent after another, which cuda cannot do; wanted --device cpu, or --semantics sync"
    )


def test_agents_that_leave_a_bounded_world() -> None:
    state = replace(
        random_state(2), position=np.array([[0, 0, 0], [9.9, 0, 0]]), forward=np.array([[0, 1.0, 0], [1.0, 0, 0]]),
        up=np.array([[0, 0, 1.0], [0, 1.0, 0]]), speed=np.array([1.0, 9.0]), acceleration=np.zeros((2, 3)), ids=np.array([7, 5]),
    )  # fmt: skip
    with pytest.raises(InputError) as error:
        Flock(state=state, world=10, boundary="bounded", precision="f64", search="all-pairs").run(10, 0.1)
    assert str(error.value) == (
        "between step 0 and step 10 agent 5 left the world of radius 10, and is 10.8 from its centre; a larger --world, "
        "--boundary wrap, or an obstacle that is seen from inside keeps it"
    )


def test_agents_that_leave_the_numbers() -> None:
    flock = Flock(5, search="all-pairs", precision="f64")
    flock.boids.acceleration[3] = np.inf
    with pytest.raises(InputError) as error:
        flock.run(1)
    assert str(error.value) == (
        "between step 0 and step 1 agent 3 lost its finite position or velocity; a smaller dt or smaller weights keep it"
    )


def _state() -> State:
    return Flock(3, world=20.0).state


SILLY: dict[str, tuple[Callable[[], Any], str]] = {
    "a world smaller than what is seen": (
        lambda: Flock(3, world=3),
        "the radius of the world is 3, and flockmates are seen up to the radius 9; wanted a world at least as large, or a smaller radius",
    ),
    "a bounded one": (
        lambda: Flock(3, world=10.0, boundary="bounded", radius=11.0),
        "the radius of the world is 10, and flockmates are seen up to the radius 11; wanted a world at least as large, or a smaller radius",
    ),
    "a world made smaller": (
        lambda: setattr(Flock(3, start_radius=1.0), "world", 5.0),
        "the radius of the world is 5, and flockmates are seen up to the radius 9; wanted a world at least as large, or a smaller radius",
    ),
    "near, but not seen": (
        lambda: Flock(3, near_radius=10.0),
        "the near radius is 10, and flockmates are seen up to the radius 9; wanted at most that, or a larger radius",
    ),
    "a start beside a state": (
        lambda: Flock(state=_state(), start="cube"),
        "start='cube' places agents, and the state says where they are; leave start out",
    ),
    "a start radius beside a state": (
        lambda: Flock(state=_state(), start_radius=4.0),
        "start_radius=4.0 places agents, and the state says where they are; leave start_radius out",
    ),
    "a seed beside a state": (
        lambda: Flock(state=_state(), seed=4),
        "seed=4 places agents, and the state says where they are; leave seed out",
    ),
    "steps through the whole world": (
        lambda: Flock(3, world=10.0).run(1, 2.5),
        "the time step is 2.5, in which an agent flies 22.5, more than the world's diameter of 20; wanted a smaller one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SILLY)
def test_arguments_without_a_meaning_are_refused(case: str) -> None:
    make, text = SILLY[case]
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == text


def test_a_small_open_world_is_only_where_agents_start() -> None:
    assert np.linalg.norm(Flock(3, world=3, boundary="open").position, axis=1).max() < 3


@pytest.mark.parametrize("heading", ["forward", "up"])
def test_thinkers_see_what_they_see_among_all(heading: str) -> None:
    sight = lw.Sight(heading=heading, cosine=0.5)

    def steered(think_every: int) -> State:
        search = lw.StaticGrid(radius=9.0, sight=sight)
        flock = Flock(300, world=30.0, boundary="open", seed=3, think_every=think_every, search=search, device="cpu")
        flock.advance(1)
        return flock.state

    every, third = steered(1), steered(3)
    np.testing.assert_array_equal(third.forward[::3], every.forward[::3])
    assert (third.forward != every.forward).any()

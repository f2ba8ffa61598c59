"""The reference of the ladder of flocks against flocks in float64, and its model against what grids hold."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ladders.boids_meetings import met, own_cells, predicted_seconds
from lanewise.ladders.boids_run import make_start
from lanewise.ladders.boids_truth import FEW, IN_TURN, LARGE, MANY, ROUNDINGS, TOLERANCE, make_truth, make_truth_in_turn
from lanewise.ladders.boids_versions import (
    ALL,
    AROUND,
    AUTOMATIC,
    BOUNDARY,
    CONSTANT,
    CURVE,
    HOST,
    ONE,
    OWN_CELLS,
    SORT,
    THREE,
    versions,
)
from lanewise.models.devices import device_model, table_model
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import search_world
from lanewise.sims.boids.flock import Flock
from lanewise.sims.boids.initial import make_state
from lanewise.sims.boids.parameters import THESIS, THESIS_K, make_parameters
from lanewise.sims.boids.state import State

AGENTS, WORLD = 700, 18.0


@pytest.fixture(scope="module")
def state() -> State:
    return make_start(AGENTS, WORLD, 4)


def test_one_step_in_float64(state: State) -> None:
    truth = make_truth(state, THESIS, THESIS_K, 0)
    flock = Flock(state=state, semantics="thesis", world=WORLD, search="all-pairs", precision="f64")
    assert len(truth.rows) > 0.9 * AGENTS
    assert truth.neighbours > 3 * AGENTS
    assert truth.error(flock.run(1)) < 1e-10


@pytest.mark.slow_cases("-0.6")
@pytest.mark.parametrize("cosine", [-0.6, 0.0, 0.4])
def test_one_step_of_agents_that_do_not_see_behind_them(state: State, cosine: float) -> None:
    """Right for the cosine of its flock, and wrong for one that is a little different and for who sees all."""
    sight = lw.Sight(heading="forward", cosine=cosine, near=THESIS.near_radius)
    truth = make_truth(state, THESIS, THESIS_K, 0, sight)
    assert len(truth.rows) > 0.9 * AGENTS

    def error(seen: lw.Sight | None) -> float:
        world = search_world(find_boundary(BOUNDARY).end, WORLD)
        search = lw.StaticGrid(radius=THESIS.radius, k=THESIS_K, world=world, sight=seen)
        flock = Flock(
            state=state, semantics="thesis", k=THESIS_K, world=WORLD, boundary=BOUNDARY, search=search, precision="f64"
        )
        return truth.error(flock.run(1))

    assert error(sight) < 1e-10
    assert error(None) > 1e-3
    assert error(lw.Sight(heading="forward", cosine=cosine + 0.05, near=THESIS.near_radius)) > 1e-3


def test_one_step_in_turn_in_float64(state: State) -> None:
    parameters = make_parameters("seq")
    truth = make_truth_in_turn(state, parameters, WORLD)
    flock = Flock(state=state, semantics="seq", world=WORLD, precision="f64")
    assert IN_TURN / 2 < len(truth.rows) <= IN_TURN
    assert truth.error(flock.run(1)) < 1e-10


@pytest.mark.parametrize("changed", [{"radius": 4.2}, {"cohesion_weight": 8.1}, {"separation_cosine": -0.6}])
def test_other_rules_are_found(state: State, changed: dict[str, Any]) -> None:
    truth = make_truth(state, THESIS, THESIS_K, 0)
    flock = Flock(state=state, semantics="thesis", world=WORLD, search="all-pairs", **changed)
    assert truth.error(flock.run(1)) > 1e-3


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_agents_that_nobody_is_near_are_right(precision: Any) -> None:
    """Nothing changes but by rounding, which is no difference."""
    state = make_start(40, 500.0, 1)
    truth = make_truth(state, THESIS, THESIS_K, 0)
    flock = Flock(state=state, semantics="thesis", world=500.0, search="all-pairs", precision=precision)
    assert truth.neighbours == 0
    assert truth.error(flock.run(1)) < TOLERANCE


@settings(max_examples=12, deadline=None)
@given(
    agents=st.integers(9, 120),
    world=st.floats(0.7, 3.5).map(lambda x: 10**x),
    seed=st.integers(0, 99),
    precision=st.sampled_from(["f32", "f64"]),
    in_turn=st.booleans(),
)
def test_flocks_of_any_density_are_right(agents: int, world: float, seed: int, precision: Any, in_turn: bool) -> None:
    """Rounding of a step is no difference, however little the step changes; three times what is allowed is one."""
    state = make_start(agents, world, seed)
    if in_turn:
        truth, semantics = make_truth_in_turn(state, make_parameters("seq"), world), "seq"
    else:
        truth, semantics = make_truth(state, THESIS, THESIS_K, 0), "thesis"
    assume(len(truth.rows))
    flock = Flock(state=state, semantics=semantics, world=world, search="all-pairs", precision=precision).run(1)
    assert truth.error(flock) < TOLERANCE
    speed, forward = np.array(flock.speed, np.float64), np.array(flock.forward, np.float64)
    largest = max(float(np.abs(truth.change).max()), ROUNDINGS / TOLERANCE * float(np.abs(truth.before).max()))
    row = int(truth.rows[0])
    velocity = forward[row] * speed[row] + [3 * TOLERANCE * largest, 0, 0]
    speed[row] = np.linalg.norm(velocity)
    forward[row] = velocity / speed[row]
    wrong: Any = SimpleNamespace(speed=speed, forward=forward)
    assert truth.error(wrong) > TOLERANCE


def test_some_agents_stand_for_many() -> None:
    state = make_start(MANY + 500, 30.0, 1)
    truth = make_truth(state, THESIS, THESIS_K, 2)
    assert MANY * 0.9 < len(truth.rows) <= MANY
    assert truth.rows.max() >= MANY
    assert (np.diff(truth.rows) > 0).all()
    assert make_truth(make_start(LARGE + 1, 200.0, 1), THESIS, THESIS_K, 2).rows.size <= FEW


def test_slow_agents_are_beyond_the_reference(state: State) -> None:
    slow = make_state(AGENTS, world=WORLD, max_speed=1.0)
    with pytest.raises(ValueError, match="too slow for this reference"):
        make_truth(slow, THESIS, THESIS_K, 0)


def searches(world: float) -> dict[str, Any]:
    return {v.name: v.search for v in versions(world, "cuda")}


def test_sources_that_a_target_meets() -> None:
    """The model's numbers against those of cells that targets far from the border touch."""
    agents, world = 2**15, 50.0
    place = make_start(agents, world, 3).position.astype(np.float64)
    inner = np.flatnonzero(np.linalg.norm(place, axis=1) < world / 2)[:300]
    cells, side = 23, 2 * world / 23
    cell = np.floor((place + world) / side).clip(0, cells - 1)
    counts = []
    for row in inner:
        low, high = (np.floor((place[row] + world + s * THESIS.radius) / side) for s in (-1, 1))
        counts.append(np.count_nonzero(((cell >= low) & (cell <= high)).all(axis=1)))
    looked = met(searches(world)[HOST], agents, world)
    assert looked is not None
    assert looked.sources == pytest.approx(np.mean(counts), rel=0.1)


def test_sources_in_slices() -> None:
    agents, world = 2**15, 50.0
    x = np.sort(make_start(agents, world, 3).position[:, 0].astype(np.float64))
    within = np.searchsorted(x, x + THESIS.radius) - np.searchsorted(x, x - THESIS.radius)
    looked = met(searches(world)[SORT], agents, world)
    assert looked is not None
    assert looked.sources == pytest.approx(within.mean() + 256, rel=0.05)


def test_predictions() -> None:
    agents, world, model = 2**16, 200.0, table_model("sm_90")
    known = {n: predicted_seconds(s, agents, world, 1e-12, model) for n, s in searches(world).items()}
    assert known.pop(AUTOMATIC) is None
    assert set(known) >= {ALL, HOST, CONSTANT, SORT, ONE, THREE, AROUND, CURVE, OWN_CELLS}
    assert max(known, key=lambda n: known[n] or 0.0) == ALL
    assert known[ALL] == pytest.approx(agents**2 * 1e-12, rel=0.01)
    assert (known[AROUND] or 0) < (known[THREE] or 0)
    assert predicted_seconds(lw.AllPairs(k=7), 10, 1.0, 1e-9, device_model("cpu")) is not None
    assert own_cells(2**30, 50.0) == 23
    assert own_cells(1000, 200.0) == math.floor(2000 ** (1 / 3) + 0.5)
    assert own_cells(1, 0.1) == 1

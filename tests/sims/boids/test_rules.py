"""The rules against the reference, for any numbers of theirs, any agents, and near every edge of the definitions."""

from __future__ import annotations

import platform
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.runtime import llvm
from lanewise.sims.boids import Boid, Flock
from lanewise.sims.boids.parameters import make_parameters, move_values
from lanewise.sims.boids.rules import OPEN, make_rules
from tests.boids.reference import OPENSTEER, RUNS, THESIS, Rules, one_after_another, steering, synchronous
from tests.sims.boids.flocks import as_reference, difference, random_state

RULES = {"sync": OPENSTEER, "thesis": THESIS, "seq": OPENSTEER}


def of_reference(rules: Rules) -> dict[str, Any]:
    """The constants of a flock with these rules."""
    behaviours = {
        f"{name}_{part}": value
        for name in ("separation", "alignment", "cohesion")
        for part, value in zip(("radius", "cosine", "weight"), getattr(rules, name), strict=True)
    }
    return {
        "radius": rules.radius, "near_radius": rules.near2**0.5, "max_force": rules.most_force, "max_speed": rules.most_speed,
        "mass": rules.mass, **behaviours,
    }  # fmt: skip


@pytest.mark.parametrize("semantics", RUNS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_one_step_with_any_numbers(semantics: str, seed: int, data: st.DataObject) -> None:
    def behaviour() -> tuple[float, float, float]:
        return tuple(data.draw(st.floats(low, high)) for low, high in ((0, radius), (-1, 1), (-20, 20)))  # type: ignore[return-value]

    radius = data.draw(st.floats(1, 12))
    rules = replace(
        RULES[semantics], radius=radius, near2=data.draw(st.floats(0, min(9.0, 0.999 * radius**2))), separation=behaviour(),
        alignment=behaviour(), cohesion=behaviour(), most_force=data.draw(st.floats(1, 50)), mass=data.draw(st.floats(0.1, 10)),
        world=20.0,
    )  # fmt: skip
    state, dt = random_state(24, seed), data.draw(st.floats(1e-3, 0.5))
    flock = Flock(
        state=state,
        semantics=semantics,
        k=rules.k,
        precision="f64",
        world=rules.world,
        search="all-pairs",
        **of_reference(rules),
    )
    run = one_after_another if semantics == "seq" else synchronous
    wanted = run(as_reference(state), rules, dt)
    assert difference(flock.run(1, dt).state, wanted) < 1e-9


@pytest.mark.quick("f32-dynamic-grid", "f64-all-pairs", "f32-static-grid")
@pytest.mark.parametrize("search", ["all-pairs", "static-grid", "dynamic-grid"])
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_who_is_exactly_at_the_edge_of_an_angle_or_a_radius(precision: str, search: str) -> None:
    """None is seen at the angle, nor at the radius of the flock; at that of a behaviour one is, as in OpenSteer."""
    forward, up, offsets = np.zeros((5, 3)), np.zeros((5, 3)), np.zeros((5, 3))
    forward[:, 2] = up[:, 1] = 1.0
    offsets[1:] = [[4, 0, 0], [0, 0, 4], [0, 4, 3], [0, 0, 6]]  # at right angles; ahead at 4; ahead at 5; ahead at 6
    state = replace(
        random_state(5), position=offsets, forward=forward, up=up, speed=np.ones(5), acceleration=np.zeros((5, 3))
    )
    angle = {"separation_cosine": 0.0, "alignment_cosine": 0.0, "cohesion_cosine": 0.0}
    reach = {
        "radius": 6.0,
        "separation_radius": 4.0,
        "cohesion_radius": 5.0,
        "alignment_radius": 5.0,
        "near_radius": 0.5,
    }
    flock = Flock(state=state, precision=precision, search=search, **angle, **reach)
    flock.advance(1)
    separation, _, cohesion = (np.asarray(u)[0] for u in flock.urges)
    np.testing.assert_allclose(separation, [0, 0, -0.25], atol=1e-6)
    np.testing.assert_allclose(cohesion, [0, 4, 7], atol=1e-6)


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_a_periodic_box_takes_in_at_its_other_side_who_leaves_it_and_nobody_else(precision: str) -> None:
    world, count = 20.0, 200
    state = random_state(count, 3)
    axis, sign = np.arange(count) % 3, np.where(np.arange(count) % 2, 1.0, -1.0)
    place, forward = np.zeros((count, 3)), np.zeros((count, 3))
    place[np.arange(count), axis] = sign * (world - np.linspace(0.001, 0.2, count))
    forward[np.arange(count), axis] = sign
    place[:, :] += np.where(forward == 0, np.linspace(-15, 15, count)[:, None], 0)
    up = np.roll(forward, 1, axis=1)
    speed = np.full(count, 6.0)
    given = replace(state, position=place, forward=forward, up=up, speed=speed, acceleration=np.zeros((count, 3)))
    constants = {"separation_weight": 0.0, "alignment_weight": 0.0, "cohesion_weight": 0.0}
    flock = Flock(state=given, world=world, boundary="periodic", precision=precision, search="all-pairs", **constants)
    after = flock.run(1, 1 / 60).state.position
    moved = place + forward * 0.1
    wanted = np.where(moved >= world, moved - 2 * world, np.where(moved < -world, moved + 2 * world, moved))
    assert 0 < (moved != wanted).any(axis=1).sum() < count
    np.testing.assert_allclose(after, wanted, rtol=0, atol=1e-5)


def test_periodic_flockmates_are_seen_across_the_faces() -> None:
    state, world = random_state(40, 1, radius=10.0), 10.0
    flock = Flock(state=state, precision="f64", world=world, boundary="periodic", search="all-pairs", k=5)
    flock.advance(1)
    rules, found = replace(OPENSTEER, k=5), np.zeros((40, 3))
    for urge, weight in zip(flock.urges, (12, 8, 8), strict=True):
        size = np.linalg.norm(urge, axis=1, keepdims=True)
        found += weight * np.divide(urge, size, out=np.zeros_like(urge), where=size > 0)
    wanted = [steering(as_reference(state), rules, i, box=2 * world) for i in range(40)]
    assert np.abs(found - wanted).max() < 1e-9


def test_agents_at_one_place_stay_finite() -> None:
    state = replace(random_state(6), position=np.zeros((6, 3)))
    for semantics in RUNS:
        search = "auto" if semantics == "seq" else "all-pairs"
        flock = Flock(state=state, semantics=semantics, search=search, k=6 if semantics == "thesis" else None).run(10)
        assert np.isfinite(flock.state.position).all()


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_agents_almost_at_one_place_stay_finite(precision: str) -> None:
    """However small an offset is, its inverse square is a number."""
    state = random_state(6)
    for size in (1e-12, 1e-19, 1e-30, 1e-42):
        offsets = np.zeros((6, 3))
        offsets[:, 0] = size * np.arange(6)
        flock = Flock(state=replace(state, position=offsets), semantics="sync", search="all-pairs", precision=precision)
        flock.advance(1)
        assert all(np.isfinite(u).all() for u in flock.urges)
        assert np.isfinite(flock.state.position).all()


@pytest.mark.parametrize("semantics", ["sync", "thesis"])
def test_crowds_longer_than_the_list_of_the_near(semantics: str) -> None:
    """A CPU sets near agents aside in a list of 32; here there are up to 149 of them."""
    state, rules = random_state(150, 11, radius=2.0), replace(RULES[semantics], world=20.0)
    flock = Flock(state=state, semantics=semantics, k=rules.k, precision="f64", world=20.0, search="all-pairs")
    assert difference(flock.run(1, 1 / 60).state, synchronous(as_reference(state), rules, 1 / 60)) < 1e-9


def test_an_agent_at_rest_keeps_its_heading() -> None:
    state = replace(random_state(1), speed=np.zeros(1), acceleration=np.zeros((1, 3)))
    after = Flock(state=state, precision="f64").run(5).state
    assert (after.forward == state.forward).all()
    assert (after.position == state.position).all()


def test_an_agent_alone_flies_on() -> None:
    state = replace(random_state(1, radius=1), acceleration=np.zeros((1, 3)))
    after = Flock(state=state, precision="f64").run(60).state
    assert np.allclose(after.position, state.position + state.velocity, atol=1e-12)


def test_who_leaves_the_sphere_comes_back_opposite() -> None:
    state = replace(
        random_state(1), position=np.array([[9.99, 0, 0]]), forward=np.array([[1.0, 0, 0]]), up=np.array([[0, 1.0, 0]]),
        speed=np.array([6.0]), acceleration=np.zeros((1, 3)),
    )  # fmt: skip
    after = Flock(state=state, precision="f64", world=10).run(1, 0.01).state
    assert after.position[0] == pytest.approx([9.99 + 0.06 - 20, 0, 0])
    assert Flock(state=state, precision="f64", world=10, boundary="open").run(1, 0.01).state.position[0, 0] > 10


def test_translations_by_a_whole_box_change_nothing() -> None:
    state = random_state(30, 3, radius=5.0)
    moved = replace(state, position=state.position + np.array([20.0, 0, -20.0]))
    flocks = [Flock(state=s, world=10, boundary="periodic", precision="f64", k=4).run(20) for s in (state, moved)]
    assert difference(flocks[0].state, flocks[1].state) < 1e-9


@pytest.mark.parametrize("every", [2, 3, 7])
def test_agents_think_in_turn(every: int) -> None:
    """Who thinks does so as in a flock that always thinks; who does not keeps its urges."""
    state = random_state(25, 5)
    flock = Flock(state=state, think_every=every, precision="f64", k=4, search="all-pairs")
    before = [np.array(u) for u in flock.urges]
    assert not any(u.any() for u in before)
    for step in range(2 * every):
        always = Flock(state=flock.state, precision="f64", k=4, search="all-pairs").run(1)
        flock.advance(1)
        thinks = np.arange(25) % every == step % every
        for old, new, full in zip(before, flock.urges, always.urges, strict=True):
            assert (new[thinks] == full[thinks]).all()
            assert (new[~thinks] == old[~thinks]).all()
        before = [np.array(u) for u in flock.urges]


def test_thinking_in_turn_in_one_go_or_many() -> None:
    one, many = (
        Flock(state=random_state(25, 5), think_every=3, search="all-pairs", k=4, precision="f64") for _ in range(2)
    )
    one.advance(11)
    for piece in (1, 4, 2, 4):
        many.advance(piece)
    assert (one.state.position == many.state.position).all()


def _has_avx() -> bool:
    from llvmlite import binding

    return platform.machine() == "x86_64" and bool(binding.get_host_cpu_features().get("avx"))


@pytest.mark.skipif(not _has_avx(), reason="the host has no AVX")
def test_agents_move_in_simd_lanes() -> None:
    """The update holds packed square roots of many agents: nothing in it is a branch."""
    boids: Any = Boid.zeros(64, device="cpu")  # type: ignore[attr-defined]
    urges = [np.zeros((64, 3), np.float32) for _ in range(3)]
    move = make_rules("f32", OPEN, False).move  # rules that no other test compiles
    call = move.bind(boids, *urges, **move_values(make_parameters("thesis", {}), 0.01), world=50.0)
    call.launch()
    executable = call.compiled.executable
    (kernel,) = executable.kernels
    text = llvm.assembly(kernel.written())
    assert re.search(r"vsqrtps\s[^\n]*[yz]mm", text)

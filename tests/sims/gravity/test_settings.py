"""Settings of a gravity simulation act or refuse, and what is written to its bodies is noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.layouts import AoSoA, SoA
from lanewise.profiling import Profile
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.support.errors import InputError

LAYOUTS = (SoA(), AoSoA(8))
FIRST = {"softening": 0.05, "integrator": "leapfrog", "gravitational_constant": 1.0}
CHANGES = {"softening": (0.3, 0.0), "integrator": ("yoshida4", "euler"), "gravitational_constant": (2.5, 0.5)}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def bodies(device: str = "cpu", **options: Any) -> Any:
    return make_bodies(make_initial_conditions("plummer", 30, 2), device=device, **options)


def assert_same(a: Simulation, b: Simulation) -> None:
    mine, others = a.bodies.numpy(), b.bodies.numpy()
    for name in mine:
        np.testing.assert_array_equal(mine[name], others[name])
    assert a.energy() == b.energy()
    assert a.plans == b.plans


@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_acts_from_the_next_step_on(name: str, device: str) -> None:
    """To the bit as a new simulation of the same bodies, also back and forth."""
    simulation = Simulation(bodies(device), **FIRST)  # type: ignore[arg-type]
    simulation.run(3, 1e-3)
    for value in CHANGES[name]:
        fresh = Simulation(
            simulation.bodies.copy(), **{**FIRST, name: value}, step=simulation.step, time=simulation.time  # type: ignore[arg-type]
        )  # fmt: skip
        setattr(simulation, name, value)
        assert (simulation.integrator.name if name == "integrator" else getattr(simulation, name)) == value
        assert_same(simulation, fresh)
        simulation.run(3, 1e-3)
        fresh.run(3, 1e-3)
        assert_same(simulation, fresh)
        assert simulation.step == fresh.step


def test_a_setting_may_change_in_a_callback() -> None:
    simulation = Simulation(bodies(), **FIRST)  # type: ignore[arg-type]

    def soften(s: Simulation) -> None:
        s.softening = 0.3

    simulation.run(4, 1e-3, soften, every=2)
    other = Simulation(bodies(), **FIRST).run(2, 1e-3)  # type: ignore[arg-type]
    other.softening = 0.3
    assert_same(simulation, other.run(2, 1e-3))


def test_a_profile_may_come_later() -> None:
    simulation = Simulation(bodies(), **FIRST).run(2, 1e-3)  # type: ignore[arg-type]
    profile = simulation.profile = Profile()
    simulation.run(3, 1e-3)
    assert profile.summary()["steps"]["count"] == 3
    assert_same(simulation, Simulation(bodies(), **FIRST).run(5, 1e-3))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("softening", -1.0, "the softening is -1.0; wanted a finite length of zero or more"),
        ("integrator", "leepfrog", "unknown integrator 'leepfrog'"),
        ("gravitational_constant", 0.0, "the gravitational constant is 0.0"),
    ],
)
def test_a_refused_setting_changes_nothing(name: str, value: Any, message: str) -> None:
    simulation = Simulation(bodies(), **FIRST)  # type: ignore[arg-type]
    simulation.run(2, 1e-3)
    before = getattr(simulation, name)
    with pytest.raises(InputError, match=message):
        setattr(simulation, name, value)
    assert getattr(simulation, name) == before
    assert_same(simulation.run(2, 1e-3), Simulation(bodies(), **FIRST).run(4, 1e-3))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sofening", "Simulation has no attribute 'sofening'; did you mean 'softening'?"),
        (
            "foo",
            "Simulation has no attribute 'foo'; what can be set is gravitational_constant, integrator, profile, softening",
        ),
        ("_foo", "Simulation has no attribute '_foo'; what can be set is "),
        ("step", "Simulation.step cannot be assigned: it counts the steps that were taken; a new Simulation takes step=..."),
        ("time", "Simulation.time cannot be assigned: it follows from the steps; a new Simulation takes time=..."),
        (
            "bodies",
            "Simulation.bodies cannot be assigned: write to its fields, simulation.bodies.position[...] = ..., or make a new "
            "Simulation of other bodies",
        ),
        ("plan", "Simulation.plan cannot be assigned: make a new Simulation with plan=..."),
        ("precision", "Simulation.precision cannot be assigned: it is that of the bodies"),
        ("run", "Simulation.run cannot be assigned"),
    ],
)  # fmt: skip
def test_no_other_attribute_is_assigned(name: str, message: str) -> None:
    simulation = Simulation(bodies(), **FIRST)  # type: ignore[arg-type]
    with pytest.raises(AttributeError) as error:
        setattr(simulation, name, 1)
    assert str(error.value).startswith(message)
    with pytest.raises(AttributeError, match="attributes of Simulation cannot be deleted, found 'step'"):
        del simulation.step  # type: ignore[misc]


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("field", ["position", "mass", "velocity"])
def test_bodies_that_were_written_to_are_noticed(field: str, layout: Any, device: str) -> None:
    """Before the first run, between runs, and by a callback: the next kick has the forces of what is there now."""
    simulation = Simulation(bodies(device, layout=layout), **FIRST)  # type: ignore[arg-type]

    def change(s: Simulation) -> Simulation:
        setattr(s.bodies, field, getattr(s.bodies, field) * 1.25)
        return s

    def fresh(s: Simulation) -> Simulation:
        return Simulation(s.bodies.copy(), **FIRST)  # type: ignore[arg-type]

    other = fresh(change(simulation)).run(2, 1e-2)
    assert_same(simulation.run(2, 1e-2), other)
    other = fresh(change(simulation)).run(2, 1e-2)
    assert_same(simulation.run(2, 1e-2), other)
    other = fresh(simulation).run(2, 1e-2)
    other = fresh(change(other)).run(2, 1e-2)
    seen: list[int] = []

    def first_time(s: Simulation) -> None:
        seen.append(s.step)
        if len(seen) == 1:
            change(s)

    assert_same(simulation.run(4, 1e-2, first_time, every=2), other)


def test_accelerations_are_those_of_the_present_positions(device: str) -> None:
    simulation = Simulation(bodies(device), **FIRST)  # type: ignore[arg-type]
    before = simulation.acceleration
    simulation.bodies.position = simulation.bodies.position * 2
    after = simulation.acceleration
    fresh = Simulation(simulation.bodies.copy(), **FIRST).acceleration  # type: ignore[arg-type]
    assert bool((after == fresh).all())
    assert bool((after != before).any())


def test_what_is_written_is_checked_when_the_next_step_begins() -> None:
    simulation = Simulation(bodies(), **FIRST)  # type: ignore[arg-type]
    simulation.run(2, 1e-3)
    simulation.bodies.position[3, 1] = np.nan
    with pytest.raises(InputError, match="position of body 3 is"):
        simulation.run(2, 1e-3)
    assert simulation.step == 2
    simulation.bodies.position[3, 1] = 0.5
    assert simulation.run(2, 1e-3).step == 4

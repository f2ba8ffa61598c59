"""The Python interface of gravity: `lw.sims.gravity.Simulation`, as the README shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.io.particles import Particles
from lanewise.layouts import AoS
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.support.errors import InputError


def bodies(count: int = 40, **options: Any) -> Any:
    return make_bodies(make_initial_conditions("plummer", count, 2), device="cpu", **options)


def test_run_and_energy() -> None:
    simulation = lw.sims.gravity.Simulation(bodies(), softening=0.05, integrator="yoshida4")
    start = simulation.energy()
    assert simulation.run(steps=20, dt=1e-3) is simulation
    assert (simulation.step, simulation.time) == (20, 20 * 1e-3)
    assert simulation.energy() == pytest.approx(start, rel=1e-5)
    assert simulation.diagnostics().step == 20


def test_callbacks_come_every_so_many_steps_and_at_the_end() -> None:
    seen: list[int] = []
    Simulation(bodies(), softening=0.05).run(10, 1e-3, lambda s: seen.append(s.step), every=4)
    assert seen == [4, 8, 10]


def test_iteration() -> None:
    seen: list[int] = []
    for state in Simulation(bodies(), softening=0.05).steps(1e-3, every=3):
        seen.append(state.step)
        if state.step >= 9:
            break
    assert seen == [3, 6, 9]


def test_bodies_move_in_place_and_any_division_gives_the_same_bits() -> None:
    whole, parts = bodies(layout=AoS()), bodies(layout=AoS())
    Simulation(whole, softening=0.05).run(9, 1e-3)
    simulation = Simulation(parts, softening=0.05)
    for count in (1, 3, 5):
        simulation.run(count, 1e-3)
    np.testing.assert_array_equal(parts.position, whole.position)
    np.testing.assert_array_equal(parts.velocity, whole.velocity)


def test_time_adds_up_when_dt_changes() -> None:
    simulation = Simulation(bodies(), softening=0.05, time=2.0)
    simulation.run(4, 0.5e-3).run(2, 1e-3)
    assert simulation.step == 6
    assert simulation.time == pytest.approx(2.004, rel=1e-15)


def test_a_resumed_simulation_tells_the_same_time() -> None:
    whole = Simulation(bodies(), softening=0.05, time=0.1).run(17, 0.003)
    resumed = Simulation(bodies(), softening=0.05, time=0.1)
    resumed.continue_from(10, 0.003)
    assert resumed.time == 0.1 + 10 * 0.003
    assert resumed.run(7, 0.003).time == whole.time


@lw.record
class Star:
    """An own record with a field that gravity does not know."""

    name: lw.i32
    velocity: lw.vec3
    position: lw.vec3
    temperature: lw.f32
    mass: lw.f32


def test_own_records_with_more_fields() -> None:
    p = make_initial_conditions("plummer", 40, 2)
    names, heat = np.arange(40, dtype=np.int32), np.linspace(0, 1, 40, dtype=np.float32)
    stars = Star.array(  # pyright: ignore[reportAttributeAccessIssue]
        name=names, temperature=heat, position=p.position, velocity=p.velocity, mass=p.mass
    )
    plain = bodies()
    Simulation(stars, softening=0.05).run(5, 1e-3)
    Simulation(plain, softening=0.05).run(5, 1e-3)
    np.testing.assert_array_equal(stars.name, names)
    np.testing.assert_array_equal(stars.temperature, heat)
    np.testing.assert_allclose(stars.position, plain.position, rtol=1e-6)


@lw.record
class Half:
    """No body: a vector in float32 with a mass in float64."""

    position: lw.vec3
    mass: lw.f64
    velocity: lw.vec3


def two() -> Any:
    return Particles.of([[1.0, 0, 0], [-1.0, 0, 0]], np.zeros((2, 3)), 1.0)


def broken(field: str, value: float) -> Any:
    found = make_bodies(two(), device="cpu")
    getattr(found, field)[1] = value
    return found


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "softening": (
        lambda: Simulation(bodies(), softening=-0.1),
        "the softening is -0.1; wanted a finite length of zero or more",
    ),
    "long softening": (
        lambda: Simulation(bodies(), softening=1e20),
        "the softening is 1e+20; forces in f32 hold lengths up to 7e+12: use precision f64 or another unit of length",
    ),
    "integrator": (
        lambda: Simulation(bodies(), integrator="rk4"),
        "unknown integrator 'rk4'; wanted one of euler, leapfrog, yoshida4",
    ),
    "G": (
        lambda: Simulation(bodies(), gravitational_constant=-1.0),
        "the gravitational constant is -1.0; wanted a finite number above zero",
    ),
    "nan": (
        lambda: Simulation(broken("position", np.nan)),
        "position of body 1 is (nan, nan, nan); wanted finite numbers",
    ),
    "inf": (lambda: Simulation(broken("mass", np.inf)), "mass of body 1 is inf; wanted finite numbers"),
    "far": (
        lambda: Simulation(broken("position", 1e15)),
        "position of body 1 is (1e+15, 1e+15, 1e+15); forces in f32 reach 1.7e+12: "
        "use precision f64 or another unit of length",
    ),
    "dt": (lambda: Simulation(bodies()).run(1, 0.0), "the time step dt is 0.0; wanted a finite time above zero"),
    "steps": (
        lambda: Simulation(bodies()).run(0, 1.0),
        "the number of steps is 0; wanted an integer from 1 to 1,000,000,000,000",
    ),
    "every": (
        lambda: Simulation(bodies()).run(1, 1.0, print, every=0),
        "every=0: wanted a whole number of steps from 1 on",
    ),
    "iteration": (
        lambda: next(Simulation(bodies()).steps(1.0, every=0)),
        "every=0: wanted a whole number of steps from 1 on",
    ),
    "precision": (
        lambda: bodies(precision="f16"),
        "unknown precision 'f16'; did you mean 'f64'? wanted one of f32, f64, mixed",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == message


def test_a_record_that_is_no_body() -> None:
    halves = Half.array(  # pyright: ignore[reportAttributeAccessIssue]
        position=np.zeros((2, 3)), mass=np.ones(2), velocity=np.zeros((2, 3))
    )
    with pytest.raises(InputError, match="is no body: gravity needs position, mass and velocity as vec3, f32, vec3 or"):
        Simulation(halves)

"""Forces of one's own in the simulation of gravity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims import gravity
from lanewise.sims.gravity import Force

DT = 0.005
V2, CORE2 = 0.5, 0.1  # of the halo: squares of its speed and of its core's radius
REACH = 0.7  # of the pairs' own force


@lw.elementwise
def halo(b: gravity.Body64, v2: lw.f64, core2: lw.f64) -> lw.dvec3:
    return -v2 / (lw.dot(b.position, b.position) + core2) * b.position


@lw.elementwise
def halo_energy(b: gravity.Body64, v2: lw.f64, core2: lw.f64) -> lw.f64:
    return b.mass * 0.5 * v2 * lw.log(lw.dot(b.position, b.position) + core2)


@lw.pairwise
def push_apart(a: gravity.Body64, b: gravity.Body64, reach: lw.f64) -> lw.dvec3:
    d = b.position - a.position
    return -b.mass * lw.exp(-lw.dot(d, d) / reach**2) * d


@lw.pairwise
def push_apart_energy(a: gravity.Body64, b: gravity.Body64, reach: lw.f64) -> lw.f64:
    d = b.position - a.position
    return 0.25 * a.mass * b.mass * reach**2 * lw.exp(-lw.dot(d, d) / reach**2)


def bodies(count: int = 60, device: str = "cpu", layout: lw.Layout | None = None) -> lw.RecordArray:
    particles = gravity.make_initial_conditions("plummer", count, 3)
    return gravity.make_bodies(particles, precision="f64", device=device, layout=layout)


def own_forces(b: lw.RecordArray) -> list[Force]:
    return [
        Force(halo.bind(b, V2, CORE2), halo_energy.bind(b, V2, CORE2)),
        Force(push_apart.bind(b, b, REACH), push_apart_energy.bind(b, b, REACH)),
    ]


def expected(b: lw.RecordArray, softening: float, g: float) -> Any:
    x, m = np.asarray(b.position), np.asarray(b.mass)
    d = x[None, :] - x[:, None]
    r2 = (d**2).sum(-1)
    attraction = g * (m[None, :, None] * d / (r2 + softening**2)[..., None] ** 1.5).sum(1)
    field = -V2 * x / ((x**2).sum(-1) + CORE2)[:, None]
    pairs = (m[None, :, None] * -d * np.exp(-r2 / REACH**2)[..., None]).sum(1)
    return attraction + field + pairs


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_all_forces_add_up(device: str) -> None:
    b = bodies(device=device)
    s = gravity.Simulation(b, softening=0.1, gravitational_constant=2.0, forces=own_forces(b))
    host = bodies()
    np.testing.assert_allclose(lw_host(s.acceleration), expected(host, 0.1, 2.0), rtol=1e-12)
    b.position[...] = 2 * b.position
    host.position[...] = 2 * host.position
    np.testing.assert_allclose(lw_host(s.acceleration), expected(host, 0.1, 2.0), rtol=1e-12)


def lw_host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("leapfrog", 2), ("yoshida4", 4)])
def test_integrators_keep_their_order(integrator: str, order: int, device: str) -> None:
    """The energy error, to which all forces contribute, falls with the order of the method."""

    def error(steps: int) -> float:
        b = bodies(12, device)
        s = gravity.Simulation(b, softening=0.3, integrator=integrator, forces=own_forces(b))
        start = s.diagnostics()
        s.run(steps, 0.8 / steps)
        return s.diagnostics().energy_error(start)

    errors = [error(n) for n in (20, 40)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)
    assert errors[1] > 1e-13  # else rounding would decide


def test_steps_are_those_of_plain_arithmetic() -> None:
    """Leapfrog gives the numbers of NumPy, and the bits do not depend on pieces."""
    one, two = bodies(), bodies()
    a = gravity.Simulation(one, softening=0.1, forces=own_forces(one)).run(9, DT)
    b = gravity.Simulation(two, softening=0.1, forces=own_forces(two))
    for _ in b.steps(DT, every=3):
        if b.step == 9:
            break
    assert one.position.tobytes() == two.position.tobytes()
    assert a.time == b.time
    x, v = np.asarray(bodies().position), np.asarray(bodies().velocity)
    free = bodies()
    for _ in range(9):
        v = v + 0.5 * DT * expected(free, 0.1, 1.0)
        x = x + DT * v
        free.position[...] = x
        v = v + 0.5 * DT * expected(free, 0.1, 1.0)
    np.testing.assert_allclose(one.position, x, rtol=1e-11)
    np.testing.assert_allclose(one.velocity, v, rtol=1e-10)


def test_a_force_of_nothing_changes_no_bit(device: str) -> None:
    with_it, without = bodies(device=device), bodies(device=device)
    nothing = Force(halo.bind(with_it, 0.0, 1.0))
    s = gravity.Simulation(with_it, softening=0.1, forces=(nothing,)).run(7, DT)
    t = gravity.Simulation(without, softening=0.1).run(7, DT)
    assert lw_host(with_it.data).tobytes() == lw_host(without.data).tobytes()
    assert (s.energy(), s.forces, t.forces) == (t.energy(), (nothing,), ())


@pytest.mark.parametrize("search", [False, True])
def test_settings_act_on_a_simulation_with_forces(search: bool, device: str) -> None:
    """Also of a force over a search, whose structure is filled anew in every step."""
    kernel = push_apart.using(search=lw.Neighbors(radius=1.0)) if search else push_apart

    def make(softening: float) -> gravity.Simulation:
        b = bodies(device=device)
        return gravity.Simulation(b, softening=softening, forces=[Force(kernel.bind(b, b, REACH))])

    changed, new = make(0.2), make(0.1)
    changed.softening = 0.1
    profile = lw.Profile()
    changed.profile = profile
    changed.run(5, DT)
    new.run(5, DT)
    assert lw_host(changed.bodies.data).tobytes() == lw_host(new.bodies.data).tobytes()
    assert "push_apart" in profile.summary()["stages"]["forces"]["parts"]


def test_what_is_refused() -> None:
    b, other = bodies(), bodies(5)
    wanted = "wanted one array of shape (60, 3) and float64, on cpu"
    with pytest.raises(lw.InputError) as error:
        gravity.Simulation(b, forces=[Force(halo.bind(other, V2, CORE2))])
    assert str(error.value) == (
        f"forces[0].acceleration: halo gives an array of shape (5, 3) and float64, on cpu; {wanted}"
    )
    good = Force(halo.bind(b, V2, CORE2))
    with pytest.raises(lw.InputError) as error:
        gravity.Simulation(b, forces=[good, Force(halo_energy.bind(b, V2, CORE2))])
    assert str(error.value) == (
        f"forces[1].acceleration: halo_energy gives an array of shape (60,) and float64, on cpu; {wanted}"
    )
    with pytest.raises(lw.InputError) as error:
        gravity.Simulation(b, forces=[Force(halo.bind(b, V2, CORE2), halo.bind(b, V2, CORE2))])
    assert str(error.value) == (
        "forces[0].energy: halo gives an array of shape (60, 3) and float64, on cpu; "
        "wanted one array of shape (60,) and float32 or float64, on cpu"
    )
    with pytest.raises(lw.InputError, match=r"Force\(acceleration=.*\): wanted a Call"):
        Force(halo)  # type: ignore[arg-type]
    with pytest.raises(lw.InputError, match=r"Simulation\(forces=.*\): wanted a list of Force"):
        gravity.Simulation(b, forces=[halo])  # type: ignore[list-item]
    with pytest.raises(AttributeError, match="make a new Simulation with forces="):
        gravity.Simulation(b).forces = ()  # type: ignore[misc]

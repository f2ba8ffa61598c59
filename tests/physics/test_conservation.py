"""What gravity and symplectic integrators keep, and how errors shrink with the time step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lanewise.sims.gravity import make_initial_conditions
from lanewise.sims.gravity.initial.two_body import two_body
from tests.physics.systems import cluster, positions, reference_energy, simulate, velocities

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("leapfrog", 2), ("yoshida4", 4)])
def test_the_order_of_an_integrator_is_the_slope_of_its_error(integrator: str, order: int) -> None:
    steps = np.array([250, 500, 1000])
    exact = simulate(two_body(eccentricity=0.3), integrator="yoshida4").run(steps=16_000, dt=2.0 / 16_000)
    errors = []
    for count in steps:
        run = simulate(two_body(eccentricity=0.3), integrator=integrator).run(steps=int(count), dt=2.0 / count)
        errors.append(np.abs(positions(run) - positions(exact)).max())
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("softening", [0.0, 0.05])
@pytest.mark.parametrize(("precision", "tolerance"), [("f64", 1e-12), ("mixed", 1e-6), ("f32", 1e-5)])
def test_energy_is_that_of_numpy(precision: str, tolerance: float, softening: float) -> None:
    start = cluster()
    energy = simulate(start, precision=precision, softening=softening, gravitational_constant=2.0).energy()
    assert energy == pytest.approx(reference_energy(start, softening, 2.0), rel=tolerance)


def test_a_plummer_sphere_is_in_virial_equilibrium() -> None:
    """2K/|W| = 1 and E = -1/4; the spread of K over samples of n bodies is a few parts of 1/sqrt(n)."""
    count = 8192
    state = simulate(make_initial_conditions("plummer", count, 1), precision="f32").diagnostics()
    assert state.virial_ratio == pytest.approx(1.0, abs=3 / np.sqrt(count))
    assert state.total == pytest.approx(-0.25, abs=3 * 0.25 / np.sqrt(count))


@pytest.mark.parametrize("integrator", ["euler", "leapfrog", "yoshida4"])
def test_momentum_and_angular_momentum_are_kept(integrator: str) -> None:
    simulation = simulate(cluster(), softening=0.02, integrator=integrator)
    start = simulation.diagnostics()
    end = simulation.run(steps=100, dt=2e-3).diagnostics()
    assert end.momentum_drift(start) < 1e-14
    assert end.angular_momentum_drift(start) < 1e-12


def test_leapfrog_energy_oscillates_and_does_not_drift() -> None:
    """A symplectic integrator's error stays bounded: no larger in the tenth orbit than three times that of the first."""
    simulation = simulate(two_body(eccentricity=0.5))
    start, errors = simulation.energy(), []
    for _ in range(10):
        turn = []
        simulation.run(400, 2 * np.pi / 400, lambda s, turn=turn: turn.append(abs(s.energy() - start)), every=20)
        errors.append(max(turn))
    assert errors[-1] < 3 * errors[0]


@pytest.mark.parametrize("integrator", ["leapfrog", "yoshida4"])
def test_time_runs_backwards(integrator: str) -> None:
    """With velocities turned round the bodies go home: these integrators are symmetric in time."""
    start = cluster(100)
    simulation = simulate(start, softening=0.05, integrator=integrator)
    simulation.run(steps=50, dt=4e-3)
    assert np.abs(positions(simulation) - start.position).max() > 0.01
    simulation.bodies.velocity[:] *= -1
    simulation.run(steps=50, dt=4e-3)
    np.testing.assert_allclose(positions(simulation), start.position, atol=1e-11)
    np.testing.assert_allclose(velocities(simulation), -start.velocity, atol=1e-11)


@pytest.mark.parametrize("softening", [0.0, 0.1, 1.0])
def test_the_force_is_the_gradient_of_the_potential(softening: float) -> None:
    """A different softening in the two would show here: central differences of the energy against the acceleration."""
    start, step = cluster(40), 1e-5
    force = np.array(simulate(start, softening=softening).acceleration)
    for body, axis in ((0, 0), (7, 1), (39, 2)):
        energies = []
        for sign in (1, -1):
            start.position[body, axis] += sign * step
            energies.append(simulate(start, softening=softening).energy())
            start.position[body, axis] -= sign * step
        slope = -(energies[0] - energies[1]) / (2 * step)
        assert slope == pytest.approx(start.mass[body] * force[body, axis], rel=1e-5, abs=1e-9)


def test_mixed_precision_lies_between_f32_and_f64() -> None:
    ends = {}
    for precision in ("f32", "mixed", "f64"):
        run = simulate(cluster(), precision=precision, softening=0.05).run(steps=200, dt=1e-3)
        ends[precision] = positions(run)
    error = {name: float(np.abs(end - ends["f64"]).max()) for name, end in ends.items()}
    assert 0 < error["mixed"] < error["f32"] < 1e-3


@pytest.mark.parametrize(("precision", "tolerance"), [("f32", 2e-6), ("mixed", 2e-6), ("f64", 1e-13)])
def test_layouts_agree(precision: str, tolerance: float) -> None:
    runs = {
        layout: positions(simulate(cluster(), precision=precision, layout=layout, softening=0.1).run(20, 1e-3))
        for layout in ("soa", "aos", "aoas", "soaoas", "aosoa")
    }
    for end in runs.values():
        np.testing.assert_allclose(end, runs["soa"], rtol=tolerance, atol=tolerance)


PROGRAM = """
import hashlib
from tests.physics.systems import cluster, simulate
for precision in ("f32", "mixed", "f64"):
    run = simulate(cluster(1500), precision=precision, softening=0.02, integrator="yoshida4").run(5, 1e-3)
    print(hashlib.sha256(run.bodies.position.tobytes() + run.bodies.velocity.tobytes()).hexdigest(), run.energy().hex())
"""


@pytest.mark.slow
def test_bits_are_the_same_run_to_run_and_for_any_number_of_threads() -> None:
    def bits(threads: int) -> str:
        path = os.pathsep.join((str(SOURCE), str(SOURCE.parent)))
        environment = {**os.environ, "PYTHONPATH": path, "LANEWISE_THREADS": str(threads)}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert bits(1) == bits(2) == bits(2)

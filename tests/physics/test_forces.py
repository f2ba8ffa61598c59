"""Forces and energies against brute force, and against each other: the force is the gradient of the energy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lanewise.layouts import AoAS, AoS, AoSoA, Layout, SoA, SoAoAS
from lanewise.sims.gravity import make_initial_conditions
from tests.physics.problems import brute_force_acceleration, brute_force_potential, simulate, state

LAYOUTS = [SoA(), AoS(), AoAS(16), SoAoAS(), AoSoA(8)]
TOLERANCE = {"f32": 2e-5, "mixed": 2e-5, "f64": 1e-12}


CASES = [(layout, precision, 0.05) for layout in LAYOUTS for precision in TOLERANCE]
CASES += [(layout, precision, 0.0) for layout in (SoA(), AoSoA(8)) for precision in TOLERANCE]


@pytest.mark.grid(every=40)
@pytest.mark.parametrize(("layout", "precision", "softening"), CASES, ids=str)
def test_forces_and_energy_against_brute_force(layout: Layout, precision: str, softening: float) -> None:
    particles = make_initial_conditions("plummer", 301, 5)
    simulation = simulate(particles, precision=precision, layout=layout, softening=softening)
    wanted = brute_force_acceleration(particles.position, particles.mass, softening)
    error = np.linalg.norm(simulation.acceleration - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert error.max() < TOLERANCE[precision]
    potential = brute_force_potential(particles.position, particles.mass, softening)
    assert simulation.diagnostics().potential == pytest.approx(potential, rel=TOLERANCE[precision])


@pytest.mark.parametrize("softening", [0.0, 0.1])
def test_force_is_the_gradient_of_the_potential_energy(softening: float) -> None:
    """m_i a_i = -dW/dx_i by central differences: force and energy share one softening."""
    particles = make_initial_conditions("plummer", 20, 2)
    acceleration = simulate(particles, softening=softening).acceleration
    step = 1e-5
    for body, axis in ((0, 0), (7, 1), (19, 2)):
        potentials: list[float] = []
        for shift in (step, -step):
            moved = particles.position.copy()
            moved[body, axis] += shift
            potentials.append(simulate(replace(particles, position=moved), softening=softening).diagnostics().potential)
        gradient = (potentials[0] - potentials[1]) / (2.0 * step)
        assert particles.mass[body] * acceleration[body, axis] == pytest.approx(-gradient, rel=1e-6, abs=1e-9)


def test_diagnostics_against_numpy() -> None:
    particles = make_initial_conditions("plummer", 100, 4)
    now = simulate(particles, softening=0.1).diagnostics()
    weighted = particles.mass[:, None] * particles.velocity
    assert now.kinetic == pytest.approx(0.5 * particles.mass @ (particles.velocity**2).sum(axis=1), rel=1e-13)
    np.testing.assert_allclose(now.momentum, weighted.sum(axis=0), atol=1e-15)
    np.testing.assert_allclose(now.angular_momentum, np.cross(particles.position, weighted).sum(axis=0), atol=1e-14)
    assert now.momentum_scale == pytest.approx(np.linalg.norm(weighted, axis=1).sum(), rel=1e-13)


@pytest.mark.parametrize("precision", ["f32", "mixed", "f64"])
def test_gravitational_constant_scales_time(precision: str) -> None:
    """With 4 G and velocities twice as fast everything happens in half the time, and energies are four times as big."""
    particles = make_initial_conditions("plummer", 50, 1)
    faster = replace(particles, velocity=2.0 * particles.velocity)
    plain = simulate(particles, precision=precision, softening=0.125)
    scaled = simulate(faster, precision=precision, softening=0.125, gravitational_constant=4.0)
    assert scaled.energy() == pytest.approx(4.0 * plain.energy(), rel=1e-13)
    plain.run(32, 1.0 / 64)
    scaled.run(32, 1.0 / 128)
    # All factors are powers of two, so not even the rounding differs.
    np.testing.assert_array_equal(state(scaled)[0], state(plain)[0])
    np.testing.assert_array_equal(state(scaled)[1], 2.0 * state(plain)[1])


@pytest.mark.parametrize(("precision", "drift"), [("f32", 1e-6), ("mixed", 1e-6), ("f64", 1e-14)])
def test_momentum_is_conserved(precision: str, drift: float) -> None:
    """Newton's third law, up to the rounding of forces."""
    simulation = simulate("plummer", 256, precision=precision, softening=0.05)
    start = simulation.diagnostics()
    simulation.run(100, 0.01)
    end = simulation.diagnostics()
    assert end.momentum_drift(start) < drift
    assert end.angular_momentum_drift(start) < 100 * drift


def test_one_body_moves_straight_on() -> None:
    particles = replace(make_initial_conditions("plummer", 1), velocity=np.array([[1.0, -2.0, 0.5]]))
    for softening in (0.0, 0.1):
        simulation = simulate(particles, softening=softening)
        simulation.run(8, 0.125)
        np.testing.assert_array_equal(state(simulation)[0], [[1.0, -2.0, 0.5]])


@pytest.mark.parametrize("precision", TOLERANCE)
def test_sun_and_earth_in_si_units(precision: str) -> None:
    """The product of the masses, 1.2e55 kg^2, is more than float32 holds; the energy must not need it."""
    particles = replace(
        make_initial_conditions("two-body"),
        position=np.array([[0.0, 0.0, 0.0], [1.496e11, 0.0, 0.0]]),
        velocity=np.array([[0.0, 0.0, 0.0], [0.0, 2.978e4, 0.0]]),
        mass=np.array([1.989e30, 5.972e24]),
    )
    simulation = simulate(particles, precision=precision, gravitational_constant=6.674e-11)
    energy = 0.5 * 5.972e24 * 2.978e4**2 - 6.674e-11 * 1.989e30 * 5.972e24 / 1.496e11
    assert simulation.energy() == pytest.approx(energy, rel=1e-6)
    simulation.run(365, 86_400.0)
    assert simulation.energy() == pytest.approx(energy, rel=1e-4)

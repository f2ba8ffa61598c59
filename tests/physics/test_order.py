"""The order of every integrator, measured: the slope of the error against the time step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lanewise.sims.gravity import INTEGRATORS
from lanewise.sims.gravity.initial.two_body import two_body
from tests.physics.problems import simulate, state

STEPS = {"euler": (512, 1024, 2048, 4096), "leapfrog": (128, 256, 512, 1024), "yoshida4": (128, 256, 512, 1024)}
ORBITS = 1.1
"""Not an integer: an orbit's symmetries at its apsides would hide a part of the error."""


def error(integrator: str, steps: int, reference: np.ndarray) -> float:
    simulation = simulate(two_body(eccentricity=0.3), integrator=integrator)
    simulation.run(steps, ORBITS * 2.0 * math.pi / steps)
    return float(np.linalg.norm(state(simulation)[0] - reference))


def test_all_integrators_are_measured() -> None:
    assert STEPS.keys() == INTEGRATORS.keys()


def kepler(eccentricity: float, time: float) -> np.ndarray:
    """Positions of two equal masses 1/2 with a = 1 that start at apocentre on the x axis, from Kepler's equation."""
    mean = math.pi + time
    anomaly = mean
    for _ in range(50):  # Newton's method
        anomaly -= (anomaly - eccentricity * math.sin(anomaly) - mean) / (1.0 - eccentricity * math.cos(anomaly))
    x, y = math.cos(anomaly) - eccentricity, math.sqrt(1.0 - eccentricity**2) * math.sin(anomaly)
    separation = np.array([-x, -y, 0.0])
    return np.stack([separation / 2.0, -separation / 2.0])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_order_by_slope(integrator: str) -> None:
    reference = kepler(0.3, ORBITS * 2.0 * math.pi)
    errors = [error(integrator, steps, reference) for steps in STEPS[integrator]]
    slope = np.polyfit(np.log([1.0 / steps for steps in STEPS[integrator]]), np.log(errors), 1)[0]
    assert slope == pytest.approx(INTEGRATORS[integrator].order, abs=0.1), errors


@pytest.mark.parametrize("integrator", ["leapfrog", "yoshida4"])
def test_time_reversal(integrator: str) -> None:
    """Symmetric compositions run backwards along their own path; what is left is rounding, not the error of dt."""
    simulation = simulate("plummer", 32, softening=0.05, integrator=integrator)
    begin, velocity = state(simulation)
    simulation.run(200, 0.01)
    there, _ = state(simulation)
    simulation.bodies.velocity = -simulation.bodies.velocity
    simulation.run(200, 0.01)
    back, returned = state(simulation)
    assert np.abs(there - begin).max() > 0.1
    np.testing.assert_allclose(back, begin, atol=1e-10)
    np.testing.assert_allclose(returned, -velocity, atol=1e-10)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_coefficients_are_consistent(integrator: str) -> None:
    chosen = INTEGRATORS[integrator]
    assert sum(chosen.kicks) == pytest.approx(1.0, abs=1e-14)
    assert sum(chosen.drifts) == pytest.approx(1.0, abs=1e-14)
    assert len(chosen.kicks) == len(chosen.drifts) + 1

"""Two and three bodies whose motion is known: Kepler orbits, the figure eight, Burrau's Pythagorean problem."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lanewise.sims.gravity.initial.figure_eight import PERIOD
from lanewise.sims.gravity.initial.two_body import two_body
from tests.physics.problems import simulate, state

ORBIT = 2.0 * math.pi
ENCOUNTER = 1.8
"""Before the first close encounter of the Pythagorean problem: at t = 1.879 two of its bodies pass at 0.01."""


@pytest.mark.parametrize("eccentricity", [0.0, 0.5])
@pytest.mark.parametrize("mass_ratio", [1.0, 0.25])
def test_kepler_orbit(eccentricity: float, mass_ratio: float) -> None:
    """Kepler's third law: semi-major axis 1 and total mass 1 give the period 2 pi; half of it leads to pericentre."""
    simulation = simulate(two_body(eccentricity=eccentricity, mass_ratio=mass_ratio), integrator="yoshida4")
    begin = state(simulation)
    simulation.run(2000, ORBIT / 4000)
    position, _ = state(simulation)
    assert np.linalg.norm(position[0] - position[1]) == pytest.approx(1.0 - eccentricity, abs=1e-8)
    simulation.run(2000, ORBIT / 4000)
    for now, before in zip(state(simulation), begin, strict=True):
        np.testing.assert_allclose(now, before, atol=1e-8)


@pytest.mark.parametrize("eccentricity", [0.0, 0.5])
def test_semi_major_axis_from_the_energy(eccentricity: float) -> None:
    """a = -G m1 m2 / (2 E), anywhere on the orbit."""
    simulation = simulate(two_body(eccentricity=eccentricity), integrator="yoshida4")
    for now in simulation.steps(ORBIT / 4000, every=400):
        assert -0.25 / (2.0 * now.energy()) == pytest.approx(1.0, abs=1e-8)
        if now.step >= 4000:
            break


def test_radius_of_a_circular_orbit_stays() -> None:
    simulation = simulate("two-body", integrator="leapfrog")
    for now in simulation.steps(ORBIT / 1000, every=50):
        position, _ = state(now)
        assert np.linalg.norm(position[0] - position[1]) == pytest.approx(1.0, abs=1e-4)
        if now.step >= 1000:
            break


def test_figure_eight_returns_after_one_period() -> None:
    simulation = simulate("figure-eight", integrator="yoshida4")
    begin = state(simulation)
    assert simulation.energy() == pytest.approx(-1.28714199, abs=1e-8)
    simulation.run(4000, PERIOD / 4000)
    for now, before in zip(state(simulation), begin, strict=True):
        np.testing.assert_allclose(now, before, atol=1e-6)
    assert simulation.energy() == pytest.approx(-1.28714199, abs=1e-8)


def test_bodies_of_the_figure_eight_follow_each_other() -> None:
    """After a third of the period each body stands where another one started."""
    simulation = simulate("figure-eight", integrator="yoshida4")
    begin, _ = state(simulation)
    simulation.run(1500, PERIOD / 4500)
    now, _ = state(simulation)
    distances = np.linalg.norm(now[:, None] - begin[None], axis=2)
    assert sorted(distances.argmin(axis=1)) == [0, 1, 2]
    assert not (distances.argmin(axis=1) == [0, 1, 2]).any()
    assert distances.min(axis=1).max() < 1e-6


def test_pythagorean_energy_is_exact_at_the_start() -> None:
    assert simulate("pythagorean").energy() == pytest.approx(-769.0 / 60.0, rel=1e-15)


def test_pythagorean_energy_until_the_first_close_encounter() -> None:
    simulation = simulate("pythagorean", integrator="yoshida4")
    simulation.run(18_000, ENCOUNTER / 18_000)
    assert simulation.energy() == pytest.approx(-769.0 / 60.0, rel=1e-10)


@pytest.mark.parametrize(("dt", "low", "high"), [(1e-3, 1.0, np.inf), (1e-4, 1e-7, 1e-4), (2e-5, 0.0, 1e-10)])
def test_a_close_encounter_wants_small_steps(dt: float, low: float, high: float) -> None:
    """What fixed steps can do, without softening: two of the bodies pass at a distance of 0.01 at t = 1.88.

    Steps of 1e-3 jump over the encounter and the energy is lost altogether; 2e-5 resolve it. At t = 15.83 they pass at
    4e-4, which wants steps shorter by (0.01 / 4e-4)^1.5 = 125 again: a matter for variable steps or for softening.
    """
    simulation = simulate("pythagorean", integrator="yoshida4")
    simulation.run(round(2.0 / dt), dt)
    assert low <= abs(simulation.energy() / (-769.0 / 60.0) - 1.0) <= high

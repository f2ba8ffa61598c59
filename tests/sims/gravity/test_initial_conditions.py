"""Initial conditions against analytic values, with energies by brute force in float64."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lanewise.io.particles import Particles
from lanewise.sims.gravity.initial import DEFAULT_BODIES, INITIAL_CONDITIONS, make_initial_conditions
from lanewise.sims.gravity.initial.disc_galaxy import DISC, HALO, DiscGalaxy
from lanewise.sims.gravity.initial.two_body import two_body
from lanewise.sims.gravity.initial.uniform_sphere import uniform_sphere
from lanewise.support.errors import InputError

NAMES = ["figure-eight", "galaxies", "plummer", "pythagorean", "two-body", "uniform-sphere"]
SAMPLED = ["galaxies", "plummer", "uniform-sphere"]


def kinetic(bodies: Particles) -> float:
    return float(0.5 * bodies.mass @ (bodies.velocity**2).sum(axis=1))


def potential(bodies: Particles) -> float:
    """Sum of -m_i m_j / r_ij over pairs, a row of the matrix at a time."""
    total = 0.0
    for i in range(1, len(bodies)):
        distance = np.linalg.norm(bodies.position[:i] - bodies.position[i], axis=1)
        total -= float(bodies.mass[i] * (bodies.mass[:i] / distance).sum())
    return total


def energy(bodies: Particles) -> float:
    return kinetic(bodies) + potential(bodies)


@pytest.fixture(scope="module")
def plummer() -> Particles:
    return make_initial_conditions("plummer", 4000, seed=1)


def test_names() -> None:
    assert sorted(INITIAL_CONDITIONS) == NAMES
    assert all(name == condition.name and condition.description for name, condition in INITIAL_CONDITIONS.items())


@pytest.mark.parametrize("name", NAMES)
def test_default_count_and_mass_centre(name: str) -> None:
    bodies = make_initial_conditions(name)
    assert len(bodies) == (INITIAL_CONDITIONS[name].bodies or DEFAULT_BODIES)
    np.testing.assert_allclose(bodies.mass @ bodies.position, 0.0, atol=1e-12)
    np.testing.assert_allclose(bodies.mass @ bodies.velocity, 0.0, atol=1e-12)
    assert len(np.unique(bodies.ids)) == len(bodies)


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("count", [6, 7, 1000])
def test_seed_decides_every_bit(name: str, count: int) -> None:
    first, again, other = (make_initial_conditions(name, count, seed) for seed in (3, 3, 4))
    assert first.position.tobytes() == again.position.tobytes()
    assert first.velocity.tobytes() == again.velocity.tobytes()
    assert first.position.tobytes() != other.position.tobytes()
    assert len(first) == count


def test_one_body() -> None:
    for name in ("plummer", "uniform-sphere"):
        assert make_initial_conditions(name, 1).position.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("plumer", 10, 0),
            f"unknown initial condition 'plumer'; did you mean 'plummer'? wanted one of {', '.join(INITIAL_CONDITIONS)}",
        ),
        (("plummer", 0, 0), "0 bodies requested; wanted at least 1"),
        (("pythagorean", -3, 0), "-3 bodies requested; wanted at least 1"),
        (("two-body", 3, 0), "two-body has exactly 2 bodies; 3 requested"),
        (("figure-eight", 2, 0), "figure-eight has exactly 3 bodies; 2 requested"),
        (("pythagorean", 4, 0), "pythagorean has exactly 3 bodies; 4 requested"),
        (("galaxies", 5, 0), "galaxies needs at least 6 bodies; 5 requested"),
        (("plummer", 10, -1), "the seed is -1; wanted zero or more"),
    ],
)
def test_refused(arguments: tuple[str, int, int], message: str) -> None:
    with pytest.raises(InputError, match="^" + re.escape(message) + "$"):
        make_initial_conditions(*arguments)


def test_plummer_is_in_balance(plummer: Particles) -> None:
    """Virial ratio 1 and energy -1/4 in Henon units; the noise of 4000 bodies is about 1.5 %."""
    assert plummer.mass.sum() == pytest.approx(1.0)
    assert 2.0 * kinetic(plummer) / -potential(plummer) == pytest.approx(1.0, abs=0.04)
    assert energy(plummer) == pytest.approx(-0.25, abs=0.01)


def test_plummer_profile(plummer: Particles) -> None:
    radius = np.linalg.norm(plummer.position, axis=1)
    assert np.median(radius) == pytest.approx(0.7686, rel=0.04)
    # Mass inside r is (1 + a^2 / r^2)^(-3/2): Kolmogorov and Smirnov's distance, 1.63 / sqrt(n) at 1 %.
    expected = (1.0 + (3.0 * np.pi / 16.0 / np.sort(radius)) ** 2) ** -1.5
    assert np.abs(expected - (np.arange(4000) + 0.5) / 4000).max() < 1.63 / np.sqrt(4000)


def test_plummer_is_isotropic_and_bound(plummer: Particles) -> None:
    np.testing.assert_allclose((plummer.velocity**2).mean(axis=0), 0.5 / 3.0, rtol=0.08)
    radius2 = (plummer.position**2).sum(axis=1)
    escape2 = 2.0 / np.sqrt(radius2 + (3.0 * np.pi / 16.0) ** 2)
    assert ((plummer.velocity**2).sum(axis=1) < 1.05 * escape2).mean() > 0.99


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_uniform_sphere(ratio: float) -> None:
    bodies = uniform_sphere(3000, 2, virial_ratio=ratio)
    radius = np.linalg.norm(bodies.position, axis=1)
    assert radius.max() < 1.05
    assert np.median(radius) == pytest.approx(0.5 ** (1 / 3), rel=0.02)
    assert potential(bodies) == pytest.approx(-0.6, rel=0.02)
    assert 2.0 * kinetic(bodies) / 0.6 == pytest.approx(ratio, rel=0.05, abs=1e-12)


@pytest.mark.parametrize("ratio", [-1.0, np.nan, np.inf])
def test_uniform_sphere_refuses(ratio: float) -> None:
    with pytest.raises(InputError, match=f"virial_ratio is {ratio}; wanted zero or more"):
        uniform_sphere(10, 0, virial_ratio=ratio)


@pytest.mark.parametrize("eccentricity", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("mass_ratio", [1.0, 0.25, 3.0])
def test_two_body_elements(eccentricity: float, mass_ratio: float) -> None:
    bodies = two_body(eccentricity=eccentricity, mass_ratio=mass_ratio)
    reduced = float(bodies.mass.prod())
    assert bodies.mass[1] / bodies.mass[0] == pytest.approx(mass_ratio)
    assert energy(bodies) == pytest.approx(-reduced / 2.0)
    momentum = float((bodies.mass[:, None] * np.cross(bodies.position, bodies.velocity)).sum(axis=0)[2])
    assert momentum == pytest.approx(reduced * np.sqrt(1.0 - eccentricity**2))
    assert np.linalg.norm(bodies.position[0] - bodies.position[1]) == pytest.approx(1.0 + eccentricity)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eccentricity": 1.0}, "eccentricity is 1.0; wanted 0 or more and less than 1"),
        ({"eccentricity": -0.1}, "eccentricity is -0.1; wanted 0 or more and less than 1"),
        ({"mass_ratio": 0.0}, "mass_ratio is 0.0; wanted more than zero"),
        ({"bodies": 4}, "two-body has exactly 2 bodies; 4 requested"),
    ],
)
def test_two_body_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match="^" + re.escape(message) + "$"):
        two_body(**arguments)


def test_figure_eight_energy() -> None:
    assert energy(make_initial_conditions("figure-eight")) == pytest.approx(-1.28714199, abs=1e-8)


def test_pythagorean_energy() -> None:
    bodies = make_initial_conditions("pythagorean")
    assert energy(bodies) == pytest.approx(-769.0 / 60.0, rel=1e-15)
    assert kinetic(bodies) == 0.0


def test_galaxy_turns_in_balance() -> None:
    galaxy = DiscGalaxy()
    bodies = galaxy.sample(4000, np.random.default_rng(0))
    assert bodies.mass.sum() == pytest.approx(1.0)
    assert 2.0 * kinetic(bodies) / -potential(bodies) == pytest.approx(1.0, abs=0.1)
    disc = bodies.component == DISC
    x, y, z = bodies.position[disc].T
    radius = np.hypot(x, y)
    turning = (x * bodies.velocity[disc, 1] - y * bodies.velocity[disc, 0]) / radius
    outside = radius > 0.1
    assert np.median(turning[outside] / galaxy.circular_speed(radius)[outside]) == pytest.approx(1.0, abs=0.02)
    assert z.std() == pytest.approx(galaxy.thickness, rel=0.1)
    # Half of the mass of an (uncut) exponential disc lies within 1.678 scale lengths; the cut moves it a little.
    assert np.median(radius) == pytest.approx(1.62 * galaxy.disc_scale, rel=0.05)
    assert radius.max() < galaxy.disc_edge + 0.05


def test_galaxies_approach_on_a_parabola() -> None:
    bodies = make_initial_conditions("galaxies", 6000, seed=1)
    first = np.arange(6000) < 4000
    assert bodies.mass[first].sum() == pytest.approx(1.0)
    assert bodies.mass[~first].sum() == pytest.approx(0.5)
    assert {kind: int((bodies.component == kind).sum()) for kind in (HALO, DISC)} == {HALO: 3000, DISC: 3000}
    here = (bodies.mass[first] @ bodies.position[first], bodies.mass[first] @ bodies.velocity[first])
    there = (2 * bodies.mass[~first] @ bodies.position[~first], 2 * bodies.mass[~first] @ bodies.velocity[~first])
    place, drift = there[0] - here[0], there[1] - here[1]
    assert np.linalg.norm(place) == pytest.approx(3.0)
    assert drift @ drift == pytest.approx(2.0 * 1.5 / 3.0)
    assert np.cross(place, drift)[2] == pytest.approx(np.sqrt(2.0 * 1.5 * 0.5))
    assert place @ drift < 0

"""Shan and Chen's two phases: coexisting densities by mechanical stability, and Laplace's law.

X. Shan, H. Chen, Lattice Boltzmann model for simulating flows with multiple phases and components, Physical Review E 47
(1993), 1815-1819. Mechanical stability: the same, Simulation of nonideal gases and liquid-gas phase transitions by the
lattice Boltzmann equation, Physical Review E 49 (1994), 2941-2948. Its continuum neglects derivatives beyond the
second: vapour is off by less than one percent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.sites.fields import ATTRACTION, density, two_phases


def pressure(rho: Any) -> Any:
    return rho / 3 + ATTRACTION / 6 * (1 - np.exp(-rho)) ** 2


def coexisting() -> tuple[float, float]:
    """Densities of vapour and liquid at a flat interface: one pressure p0, and the integral of (p0 - p) psi' / psi^2 is
    zero.
    """
    # each worker collects this file, and one runs it: to import the two takes a second and more
    integrate, optimize = pytest.importorskip("scipy.integrate"), pytest.importorskip("scipy.optimize")

    def balance(both: Any) -> tuple[float, float]:
        vapour, liquid = both
        excess = lambda rho: (pressure(vapour) - pressure(rho)) * np.exp(-rho) / (1 - np.exp(-rho)) ** 2  # noqa: E731
        return pressure(vapour) - pressure(liquid), integrate.quad(excess, vapour, liquid)[0]

    vapour, liquid = optimize.fsolve(balance, (0.16, 1.95))
    return float(vapour), float(liquid)


def settled(start: Any, steps: int, device: str = "cpu") -> Any:
    """The densities after so many steps from rest."""
    weights = np.array([q.weight for q in lw.D2Q9]).reshape(9, 1, 1)
    sites = two_phases.sites(start.shape, device=device)
    two_phases.set_populations(sites, (weights * start).astype(np.float32))
    two_phases.run(sites, steps, attraction=ATTRACTION)
    found = density(sites)
    return np.asarray(found.get() if hasattr(found, "get") else found).reshape(start.shape)


def test_densities_at_a_flat_interface_are_those_of_mechanical_stability():
    vapour, liquid = coexisting()
    x = np.arange(96)
    profile = vapour + (liquid - vapour) / 2 * (np.tanh((x - 24) / 3) - np.tanh((x - 72) / 3))
    rho = settled(np.tile(profile, (4, 1)), 6000)
    assert rho[0, 48] == pytest.approx(liquid, rel=2e-3)
    assert rho[0, 0] == pytest.approx(vapour, rel=1e-2)
    np.testing.assert_allclose(rho, rho[:1].repeat(4, 0), atol=1e-5)


def test_a_weaker_attraction_keeps_one_phase():
    critical = -4.0  # where the pressure has no minimum any more: p' = p'' = 0 at psi = 1/2
    assert pytest.importorskip("scipy.optimize").brentq(
        lambda g: np.min(1 / 3 + g / 3 * (e := np.linspace(0.01, 0.99, 9999)) * (1 - e)), -6, -2
    ) == pytest.approx(critical, abs=1e-3)
    noisy = np.log(2) + 0.01 * np.random.default_rng(0).standard_normal((32, 32))
    spread = {}
    for attraction in (-3.8, -4.4):
        weights = np.array([q.weight for q in lw.D2Q9]).reshape(9, 1, 1)
        sites = two_phases.sites(noisy.shape)
        two_phases.set_populations(sites, (weights * noisy).astype(np.float32))
        two_phases.run(sites, 2000, attraction=attraction)
        spread[attraction] = float(np.std(density(sites)))
    assert spread[-3.8] < 1e-3
    assert spread[-4.4] > 0.1


def drop(side: int, radius: float, steps: int) -> tuple[float, float]:
    """Radius and excess pressure of a drop that has settled."""
    vapour, liquid = coexisting()
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    rho = settled(vapour + (liquid - vapour) / 2 * (1 - np.tanh((np.hypot(x, y) - radius) / 2)), steps)
    inside, outside = rho[side // 2, side // 2], rho[0, 0]
    area = ((rho - outside) / (inside - outside)).sum()
    return float(np.sqrt(area / np.pi)), float(pressure(inside) - pressure(outside))


@pytest.mark.slow
def test_the_pressure_in_drops_follows_laplace():
    drops = [drop(96, radius, 12000) for radius in (15.0, 20.0, 28.0)]
    tensions = [radius * excess for radius, excess in drops]
    assert np.ptp(tensions) < 0.04 * np.mean(tensions), drops
    assert np.mean(tensions) > 0


def test_a_smaller_drop_has_more_pressure():
    (small, high), (large, low) = drop(48, 9.0, 3000), drop(48, 14.0, 3000)
    assert small < large
    assert small * high == pytest.approx(large * low, rel=0.1)

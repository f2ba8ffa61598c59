"""Many bodies: a Plummer sphere stays in equilibrium, a cold sphere collapses, and precision shows in the drifts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lanewise.layouts import AoAS, AoS, AoSoA, SoA, SoAoAS
from tests.physics.problems import simulate, state

CROSSING = 2.0 * math.sqrt(2.0)
"""The crossing time of Henon units."""


def test_plummer_is_in_equilibrium_and_stays_there() -> None:
    """Virial ratio 1 within sampling noise (1/sqrt(n) = 2 % of each energy), now and after half a crossing time."""
    simulation = simulate("plummer", 2500, precision="f32", softening=0.02)
    start = simulation.diagnostics()
    assert start.virial_ratio == pytest.approx(1.0, abs=0.06)
    assert start.total == pytest.approx(-0.25, abs=0.01)
    radius = np.median(np.linalg.norm(state(simulation)[0], axis=1))
    simulation.run(140, CROSSING / 280)
    end = simulation.diagnostics()
    assert end.virial_ratio == pytest.approx(1.0, abs=0.06)
    assert abs(end.energy_drift(start)) < 1e-4
    assert np.median(np.linalg.norm(state(simulation)[0], axis=1)) == pytest.approx(radius, rel=0.05)


def test_cold_sphere_collapses_in_its_free_fall_time() -> None:
    """From rest all shells arrive together at t = pi / (2 sqrt 2) = 1.11; half-way in time the radius is known:

    r = cos^2(b), t = (b + sin(2 b) / 2) / sqrt 2; so b = 0.5 gives t = 0.6511 and r = 0.7702 of the start.
    """
    simulation = simulate("uniform-sphere", 2000, precision="f32", softening=0.05)
    before = np.linalg.norm(state(simulation)[0], axis=1)
    simulation.run(100, (0.5 + math.sin(1.0) / 2.0) / math.sqrt(2.0) / 100)
    after = np.linalg.norm(state(simulation)[0], axis=1)
    assert np.median(after) / np.median(before) == pytest.approx(math.cos(0.5) ** 2, rel=0.02)


def test_precision_shows_in_the_drift() -> None:
    """f64 and mixed follow each other; f32 loses more: its positions themselves are rounded at every step."""
    drifts: dict[str, float] = {}
    places: dict[str, np.ndarray] = {}
    for precision in ("f32", "mixed", "f64"):
        simulation = simulate("plummer", 400, precision=precision, softening=0.1)
        start = simulation.diagnostics()
        simulation.run(500, 0.002)
        drifts[precision] = simulation.diagnostics().momentum_drift(start)
        places[precision] = state(simulation)[0]
    assert drifts["f64"] < 1e-14 < drifts["mixed"] < drifts["f32"] < 1e-5
    errors = {p: float(np.abs(places[p] - places["f64"]).max()) for p in ("f32", "mixed")}
    assert errors["mixed"] < errors["f32"] < 1e-3


@pytest.mark.quick("f32")
@pytest.mark.parametrize("precision", ["f32", "mixed", "f64"])
def test_all_layouts_agree(precision: str) -> None:
    """The same physics; only the order of sums may differ."""
    results = {}
    for layout in (SoA(), AoS(), AoAS(), SoAoAS(), AoSoA()):
        simulation = simulate("plummer", 200, precision=precision, layout=layout, softening=0.1)
        simulation.run(20, 0.01)
        results[str(layout)] = np.concatenate(state(simulation))
    tolerance = 1e-12 if precision == "f64" else 2e-6
    for name, found in results.items():
        np.testing.assert_allclose(found, results["SoA"], atol=tolerance, err_msg=name)

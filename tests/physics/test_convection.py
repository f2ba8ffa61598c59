"""Rayleigh-Benard convection: a fluid at rest between plates is unstable above the critical Rayleigh number 1707.76.

S. Chandrasekhar, Hydrodynamic and Hydromagnetic Stability (1961), chapter II: rigid plates, the critical wavelength is
2.016 heights.
"""

from __future__ import annotations

import pytest

from tests.physics.convection import Layer, velocity

CRITICAL = 1707.76


def critical(height: int) -> float:
    """Where the growth rate changes its sign."""
    low, high = (Layer(height, rayleigh).growth(4 * height**2, 8 * height**2) for rayleigh in (1600, 1800))
    assert low < 0 < high
    return 1600 - 200 * low / (high - low)


def test_convection_begins_at_the_critical_rayleigh_number():
    assert critical(20) == pytest.approx(CRITICAL, rel=0.01)


@pytest.mark.slow
def test_the_critical_number_converges():
    assert critical(48) == pytest.approx(CRITICAL, rel=0.002)


@pytest.mark.quick("in-place-cpu")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("streaming", ["pull", "push", "in-place"])
def test_coupled_steps_are_the_same_on_every_device_and_in_every_form(device, streaming):
    layers = [Layer(16, 5000, device=d, streaming=s) for d, s in ((device, streaming), ("cpu", "pull"))]
    for layer in layers:
        layer.steps.run(3)
        layer.steps.run(2)
        assert layer.wind.step == layer.warm.step == 5
    found, expected = (velocity(x.wind, **x._looks) for x in layers)
    found = found.get() if hasattr(found, "get") else found
    assert abs(found - expected).max() < 1e-7

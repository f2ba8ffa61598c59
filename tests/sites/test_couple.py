"""Coupled steps are what single steps give, each with what was observed before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.sites.fields import ATTRACTION, density, two_phases
from tests.sites.test_fields import DEVICES, host, start


@lw.stencil(lw.D2Q9)
def wet(t: lw.Field[lw.f32], rho: lw.Field[lw.f32]) -> lw.f32:
    return 0.5 * t[0] + 0.25 * (rho[1] + rho[4])


@lw.sitewise(lw.D2Q5)
def dye(g: lw.populations, rho: lw.f32):
    for q in lw.D2Q5:
        g[q] = g[q] * (1 - 0.1 * rho) + 0.01 * q.weight


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", ["pull", "in-place"])
def test_coupled_steps_are_single_steps_with_what_was_observed(device, form):
    """The parts are at different steps of their cycles, and one of them has populations that were just set."""

    def made() -> tuple[Any, Any, Any]:
        fluid = two_phases.sites((4, 8), streaming=form, device=device)
        two_phases.set_populations(fluid, start((4, 8)).astype(np.float32))
        two_phases.run(fluid, 1, attraction=ATTRACTION)
        return fluid, dye.sites((4, 8), streaming=form, device=device), wet.sites((4, 8), t=1.0, device=device)

    fluid, spot, cloth = made()
    seen = density.of(fluid)
    parts = (
        two_phases.stepper(fluid, attraction=ATTRACTION),
        dye.stepper(spot, rho=seen),
        wet.stepper(cloth, rho=seen),
    )
    together = lw.couple(*parts)
    together.run(1)
    together.run(3)
    fluid2, spot2, cloth2 = made()
    for _ in range(4):
        rho = density(fluid2)
        dye.run(spot2, 1, rho=rho)
        wet.run(cloth2, 1, rho=rho)
        two_phases.run(fluid2, 1, attraction=ATTRACTION)
    assert (fluid.step, spot.step, cloth.step) == (fluid2.step, spot2.step, cloth2.step) == (5, 4, 4)
    np.testing.assert_array_equal(two_phases.populations(fluid), two_phases.populations(fluid2))
    np.testing.assert_array_equal(dye.populations(spot), dye.populations(spot2))
    np.testing.assert_array_equal(host(wet.field(cloth, "t")), host(wet.field(cloth2, "t")))
    assert repr(together) == "<couple(two_phases, dye, wet)>"

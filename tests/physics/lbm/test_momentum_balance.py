"""The force on a body is what a region around it loses of momentum, at every step from the first one, to round-off."""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.sims.lbm import CASES, Simulation
from lanewise.sims.lbm.cases.stream import OBSTACLE
from lanewise.sims.lbm.options import End, Method, Output
from lanewise.sims.lbm.runner import start

CASE = CASES["karman"]
FORMS = ("in-place", pytest.param("pull", marks=pytest.mark.slow), pytest.param("push", marks=pytest.mark.slow))


class Region:
    """Some sites of a flow: their momentum, and what crosses their border, from the populations that arrive."""

    def __init__(self, flow: Simulation, inside: np.ndarray) -> None:
        self.flow, self.inside, self.fluid = flow, inside, ~flow.solid
        self.velocities = np.array(flow.lattice.velocities, float)[:, :2]
        self.weights = np.array([float(w) for w in flow.lattice.weights])
        self.read()

    def read(self) -> None:
        self.f = self.flow.engine.arriving() + self.weights[:, None, None]

    def momentum(self) -> np.ndarray:
        return self.velocities.T @ (self.f * (self.inside & self.fluid)).sum(axis=(1, 2))

    def entered(self) -> np.ndarray:
        """What came from outside in this step less what left; no wall and no face is at the border."""
        total = np.zeros(2)
        for f, e in zip(self.f, self.velocities, strict=True):
            from_inside = np.roll(self.inside, (int(e[1]), int(e[0])), (0, 1))
            total += e * (f[self.inside & ~from_inside].sum() - f[~self.inside & from_inside].sum())
        return total


def impulsive(form: str, interpolated: bool, collision: str = "mrt") -> Simulation:
    """A stream of speed 0.1 that meets a cylinder of 8 sites all at once, in float64."""
    s = CASE.setup(size=8)
    return Simulation(
        lattice=s.lattice, shape=s.shape, viscosity=s.viscosity, collision=collision, mask=s.mask, kinds=s.kinds, edges=s.edges,
        outflow_speed=s.outflow_speed, surfaces=s.surfaces if interpolated else {}, velocity=s.velocity, streaming=form,
        precision="f64", device="cpu",
    )  # fmt: skip


@pytest.mark.quick("in-place-interpolated")
@pytest.mark.parametrize("interpolated", [False, True], ids=["half-way", "interpolated"])
@pytest.mark.parametrize("form", FORMS)
def test_every_step_of_a_start(form: str, interpolated: bool) -> None:
    """Forces are up to 2 here, and go up and down: momentum before + what entered - force = momentum after."""
    flow = impulsive(form, interpolated)
    assert (flow.interpolated_links > 0) == interpolated
    inside = np.zeros(flow.shape, bool)
    inside[20:70, 30:75] = True
    region, largest = Region(flow, inside), 0.0
    for step in range(1, 41):
        before = region.momentum()
        flow.advance(1)
        region.read()
        force = flow.force_on(OBSTACLE)
        np.testing.assert_allclose(region.momentum() - before, region.entered() - force, atol=2e-12, err_msg=f"{step}")
        largest = max(largest, float(abs(force[0])))
    assert largest > 1


@pytest.mark.parametrize("collision", ["mrt", "trt"])
def test_drag_after_an_impulsive_start_does_not_alternate(collision: str) -> None:
    """Undamped walls made it go up and down with every step by several times its mean; the mean is that of half-way
    walls.
    """
    means, swings = [], []
    for interpolated in (True, False):
        flow = impulsive("in-place", interpolated, collision)
        flow.advance(400)
        drag = []
        for _ in range(2):
            flow.advance(1)
            drag.append(float(flow.force_on(OBSTACLE)[0]))
        means.append(np.mean(drag))
        swings.append(abs(drag[0] - drag[1]))
    assert swings[0] < 0.1 * means[0]
    assert means[0] == pytest.approx(means[1], rel=0.1)


def test_a_run_writes_means_over_two_steps() -> None:
    """Drag is about its later 1.5 when sound has left the body, and every value is the mean of two that are measured by
    hand.
    """
    setup = CASE.setup(size=8)
    assert setup.probe is not None
    every = setup.probe.every
    run = start(CASE, CASE.request(size=8), Method(device="cpu"), End(steps=40 * every), Output())
    run.execute()
    series = run.state.series
    np.testing.assert_array_equal(series.steps, every * np.arange(1, 41))
    drag = series.column("drag")[16:]
    assert drag.min() > 1.2
    assert drag.max() < 2
    again = start(CASE, CASE.request(size=8), Method(device="cpu"), End(steps=every), Output()).state.simulation
    again.run(every - 1)
    first = again.force_on(OBSTACLE)
    again.run(1)
    mean = (first + again.force_on(OBSTACLE)) / 2
    assert series.column("force_x")[0] == pytest.approx(mean[0], rel=1e-12)

"""A cylinder in a channel: the benchmark of Schaefer and Turek (1996), steady at Re = 20 (2D-1), shedding at Re = 100 (2D-2).

In benchmark units the channel is 2.2 x 0.41, the cylinder has its centre at (0.2, 0.2) and the diameter D = 0.1, and
the inflow is a parabola of mean U: Re = U D / nu, coefficients are c = 2 F / (rho U^2 D), St = f D / U.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from lanewise.sims.lbm.kinds import Open, Wall
from lanewise.sims.lbm.simulation import Simulation
from tests.physics.lbm.flows import GPU, table

WALL, BODY, INLET, OUTLET = 1, 2, 3, 4


@dataclass(frozen=True)
class Channel:
    """The channel `height` sites high, whose largest inflow is `speed`."""

    height: int
    speed: float
    re: float

    @property
    def scale(self) -> float:
        """Sites of one benchmark unit."""
        return self.height / 0.41

    @property
    def diameter(self) -> float:
        return 0.1 * self.scale

    @property
    def mean(self) -> float:
        return 2 / 3 * self.speed

    @property
    def shape(self) -> tuple[int, int]:
        return self.height, round(2.2 * self.scale)

    def solid(self) -> np.ndarray:
        """Sites whose centres lie in the cylinder; the walls are at -1/2."""
        y, x = np.indices(self.shape) + 0.5
        return (x / self.scale - 0.2) ** 2 + (y / self.scale - 0.2) ** 2 < 0.05**2

    def simulation(self, device: str, precision: str = "f32") -> Simulation:
        """It begins with the parabola everywhere."""
        y = (np.arange(self.height) + 0.5) / self.height
        profile = np.broadcast_to((4 * y * (1 - y))[:, None], self.shape)
        solid = self.solid()
        mask = np.where(solid, BODY, 0)
        mask[:, 0], mask[:, -1] = INLET, OUTLET
        velocity = np.zeros((*self.shape, 2))
        velocity[..., 0] = self.speed * profile * ~solid
        kinds = {
            WALL: Wall("wall"),
            BODY: Wall("cylinder"),
            INLET: Open("inlet", "velocity", "x-", velocity=(self.speed, 0.0), profile=profile),
            OUTLET: Open("outlet", "pressure", "x+", density=1.0),
        }
        return Simulation(
            shape=self.shape, viscosity=self.mean * self.diameter / self.re, edges={"y": "wall"}, mask=mask, kinds=kinds,
            velocity=velocity, precision=precision, device=device,
        )  # fmt: skip

    def coefficients(self, flow: Simulation) -> np.ndarray:
        """(drag, lift)."""
        return 2 * flow.force_on("cylinder") / (self.mean**2 * self.diameter)


def published(case: str, quantity: str) -> tuple[float, float]:
    (row,) = [r for r in table("schaefer_turek.csv") if (r["case"], r["quantity"]) == (case, quantity)]
    return float(row["lower"]), float(row["upper"])


def settled_drag(channel: Channel, flow: Simulation, change: float, most: int) -> tuple[float, float]:
    """Drag and lift when they change by less than `change` while the mean flow passes two diameters, averaged over that."""
    interval = round(2 * channel.diameter / channel.mean / 8)
    before = np.inf
    for _ in range(most):
        samples = []
        for _ in range(8):
            flow.run(interval)
            samples.append(channel.coefficients(flow))
        drag, lift = np.mean(samples, axis=0)
        if abs(drag - before) < change * drag and np.ptp(samples, axis=0)[0] < 10 * change * drag:
            return float(drag), float(lift)
        before = drag
    pytest.fail(f"not steady: drag {before}")


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", GPU])
def test_steady_drag_within_one_percent(device: str) -> None:
    """2D-1 with D = 20 sites."""
    channel = Channel(82, 0.06, 20)
    drag, lift = settled_drag(channel, channel.simulation(device), 2e-4, 200)
    lower, upper = published("2D-1", "cD")
    assert 0.99 * lower < drag < 1.01 * upper
    assert 0 < lift < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", GPU])
def test_shedding_within_the_published_ranges(device: str) -> None:
    """2D-2."""
    channel = Channel(164, 0.1, 100)
    flow = channel.simulation(device)
    passing = channel.diameter / channel.mean
    flow.run(round(100 * passing))  # a vortex street has formed
    every = max(1, round(passing / 40))
    samples = []
    for _ in range(40 * 30):  # about nine periods
        flow.run(every)
        samples.append(channel.coefficients(flow))
    drag, lift = np.array(samples).T
    strouhal = frequency(lift) / every * passing
    low, high = published("2D-2", "St")
    assert low <= strouhal <= high
    low, high = published("2D-2", "cD_max")
    assert low <= drag.max() <= high
    low, high = published("2D-2", "cL_max")
    assert 0.97 * low <= lift.max() <= 1.03 * high


def frequency(values: np.ndarray) -> float:
    """Oscillations a sample, from upward crossings of the middle that are interpolated linearly."""
    v = values - (values.max() + values.min()) / 2
    (i,) = np.nonzero((v[:-1] < 0) & (v[1:] >= 0))
    crossings = i - v[i] / (v[i + 1] - v[i])
    assert len(crossings) > 4
    return (len(crossings) - 1) / float(crossings[-1] - crossings[0])

"""A cylinder in a channel: the benchmark of Schaefer and Turek (1996), steady at Re = 20 (2D-1), shedding at Re = 100
(2D-2).

In benchmark units the channel is 2.2 x 0.41, the cylinder has its centre at (0.2, 0.2) and the diameter D = 0.1, and
the inflow is a parabola of mean U: Re = U D / nu, coefficients are c = 2 F / (rho U^2 D), St = f D / U. The cylinder's
wall is interpolated. Sound runs up and down between inlet and outlet for long: it does not shed, so the means over
phases leave it out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from lanewise.sims.lbm.kinds import Open, Wall
from lanewise.sims.lbm.obstacles import Round, disc
from lanewise.sims.lbm.simulation import Simulation
from tests.physics.lbm.flows import table

WALL, BODY, INLET, OUTLET = 1, 2, 3, 4


@dataclass(frozen=True)
class Channel:
    """The channel `height` sites high, whose largest inflow is `speed`."""

    height: int
    speed: float
    re: float
    interpolated: bool = True

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
        return self.height, round(2.2 * self.scale) + 1

    @property
    def centre(self) -> tuple[float, float]:
        """The inflow is at the first column; the walls are at -1/2."""
        return 0.2 * self.scale, 0.2 * self.scale - 0.5

    def solid(self) -> np.ndarray:
        """Sites whose centres lie in the cylinder."""
        return disc(self.shape, self.centre, self.diameter / 2)

    def simulation(self, device: str, precision: str = "f32") -> Simulation:
        """It begins with the parabola everywhere, and the density that falls with the pressure, 1 at the cylinder."""
        y = (np.arange(self.height) + 0.5) / self.height
        profile = np.broadcast_to((4 * y * (1 - y))[:, None], self.shape)
        solid = self.solid()
        mask = np.where(solid, BODY, 0)
        mask[:, 0], mask[:, -1] = INLET, OUTLET
        viscosity = self.mean * self.diameter / self.re
        density = 1 - 36 * viscosity * self.mean / self.height**2 * (np.arange(self.shape[1]) - self.centre[0])
        velocity = np.zeros((*self.shape, 2))
        velocity[..., 0] = self.speed * profile * ~solid
        kinds = {
            WALL: Wall("wall"),
            BODY: Wall("cylinder"),
            INLET: Open("inlet", "velocity", "x-", velocity=(self.speed, 0.0), profile=profile),
            OUTLET: Open("outlet", "pressure", "x+", density=float(density[-1])),
        }
        return Simulation(
            shape=self.shape, viscosity=viscosity, edges={"y": "wall"}, mask=mask, kinds=kinds,
            density=np.broadcast_to(density, self.shape).copy(), velocity=velocity, precision=precision, device=device,
            surfaces={BODY: Round(self.centre, self.diameter / 2)} if self.interpolated else {},
        )  # fmt: skip

    def coefficients(self, flow: Simulation) -> np.ndarray:
        """(drag, lift), with a density of 1."""
        return 2 * flow.force_on("cylinder") / (self.mean**2 * self.diameter)

    def stream_density(self, flow: Simulation) -> float:
        """Of the fluid on its way to the cylinder: the pressure that drives it makes it denser than that at
        the outlet.
        """
        return float(flow.density[:, round(0.1 * self.scale)].mean())


def published(case: str, quantity: str) -> tuple[float, float]:
    (row,) = [r for r in table("schaefer_turek.csv") if (r["case"], r["quantity"]) == (case, quantity)]
    return float(row["lower"]), float(row["upper"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("height", "device"), [(82, "cpu"), (164, "cpu"), pytest.param(164, "cuda", marks=pytest.mark.cuda)]
)
def test_steady_drag_within_one_percent(height: int, device: str) -> None:
    """2D-1 with D = 20 and D = 40 sites, after the mean flow has passed 32 diameters; the lift of the finer one is in
    the range.
    """
    channel = Channel(height, 0.03, 20)
    flow = channel.simulation(device)
    passing = channel.diameter / channel.mean
    flow.run(round(32 * passing))
    samples = []
    for _ in range(16):  # sound still runs up and down the channel: its mean counts
        flow.run(round(passing / 4))
        samples.append(channel.coefficients(flow))
    drag, lift = np.mean(samples, axis=0) / channel.stream_density(flow)
    lower, upper = published("2D-1", "cD")
    assert 0.99 * upper < drag < 1.01 * lower
    lower, upper = published("2D-1", "cL")
    margin = 0.0 if height > 100 else 0.03
    assert (1 - margin) * lower < lift < (1 + margin) * upper


@dataclass(frozen=True)
class Street:
    """What a vortex street is like: Strouhal number, and the largest coefficients of drag and lift."""

    strouhal: float
    drag: float
    lift: float


def shed(channel: Channel, device: str, before: float = 72, during: int = 28) -> Street:
    """The mean flow passes that many diameters before and while samples are taken; an oscillation takes 3.3."""
    flow = channel.simulation(device)
    passing = channel.diameter / channel.mean
    flow.run(round(before * passing))
    every = round(passing / 40)
    samples, densities = [], []
    for n in range(40 * during):
        flow.run(every)
        samples.append(channel.coefficients(flow))
        if n % 40 == 0:
            densities.append(channel.stream_density(flow))
    drag, lift = np.array(samples).T / np.mean(densities)
    cycles = oscillations(lift)
    return Street(cycles.frequency / every * passing, cycles.largest(drag), cycles.largest(lift))


@pytest.mark.slow
def test_shedding_within_the_published_ranges() -> None:
    """2D-2 with D = 60 sites and a largest velocity of 0.03: Strouhal number, drag and lift."""
    street = shed(Channel(246, 0.03, 100), "cpu")
    for quantity, found in (("St", street.strouhal), ("cD_max", street.drag), ("cL_max", street.lift)):
        low, high = published("2D-2", quantity)
        assert low <= found <= high, street


@pytest.mark.slow
def test_a_staircase_has_more_drag() -> None:
    """2D-2 with D = 20 sites: an interpolated wall is nearer to the published drag."""
    curved, stairs = (shed(Channel(82, 0.04, 100, interpolated=i), "cpu") for i in (True, False))
    low, high = published("2D-2", "St")
    assert low <= curved.strouhal <= high
    _, high = published("2D-2", "cD_max")
    assert high < curved.drag < stairs.drag


@pytest.mark.slow
@pytest.mark.cuda
def test_shedding_on_a_gpu() -> None:
    """2D-2 with D = 100 sites."""
    street = shed(Channel(410, 0.03, 100), "cuda")
    for quantity, found in (("St", street.strouhal), ("cD_max", street.drag)):
        low, high = published("2D-2", quantity)
        assert low <= found <= high, street


@dataclass(frozen=True)
class Oscillations:
    """Upward crossings of a signal through its middle, in samples, not always whole ones."""

    crossings: np.ndarray

    @property
    def frequency(self) -> float:
        """Oscillations a sample."""
        return (len(self.crossings) - 1) / float(self.crossings[-1] - self.crossings[0])

    def largest(self, values: np.ndarray) -> float:
        """Of a signal that repeats with the oscillations: a Fourier series up to their fifth harmonic that fits all of
        them best.
        """
        (within,) = np.nonzero(
            (np.arange(len(values)) >= self.crossings[0]) & (np.arange(len(values)) < self.crossings[-1])
        )
        phase = np.interp(within, self.crossings, np.arange(len(self.crossings)))
        coefficients, *_ = np.linalg.lstsq(harmonics(phase), values[within], rcond=None)
        return float((harmonics(np.linspace(0, 1, 1000)) @ coefficients).max())


def harmonics(phase: np.ndarray) -> np.ndarray:
    angles = 2 * np.pi * np.outer(phase, np.arange(6))
    return np.concatenate([np.cos(angles), np.sin(angles[:, 1:])], axis=1)


def oscillations(values: np.ndarray) -> Oscillations:
    """Crossings are interpolated linearly."""
    v = values - (values.max() + values.min()) / 2
    (i,) = np.nonzero((v[:-1] < 0) & (v[1:] >= 0))
    crossings = i - v[i] / (v[i + 1] - v[i])
    assert len(crossings) > 4
    return Oscillations(crossings)

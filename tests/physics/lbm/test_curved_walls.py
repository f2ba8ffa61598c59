"""Walls between sites: a round pipe and a tilted channel, whose flows are known exactly; interpolated walls are of
second order.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from lanewise.runtime.memory import to_host
from lanewise.sims.lbm.kinds import Wall
from lanewise.sims.lbm.obstacles import Round, SignedDistance, cylinder
from lanewise.sims.lbm.simulation import Simulation
from tests.physics.lbm.flows import GPU

PLACES = ((0.29, 0.63), (0.5, 0.5), (0.11, 0.37), (0.83, 0.71))
"""Of the axis between sites: how well a coarse pipe is met depends on them by a factor of two, so errors are means over all."""


def pipe(
    radius: float, tau: float, *, interpolated: bool, device: str = "cpu", place: tuple[float, float] = PLACES[0]
) -> tuple[float, float]:
    """Poiseuille's flow along z: the error of u = g (R^2 - r^2) / (4 nu) relative to it, and the wall's force over the
    body's.
    """
    n = math.ceil(2 * radius) + 4
    centre = (n / 2 - place[0], n / 2 - place[1])
    solid = ~cylinder((1, n, n), centre, radius)
    nu, speed = (tau - 0.5) / 3, 0.01
    g = 4 * nu * speed / radius**2
    surfaces = {1: Round(centre, radius, "xy")} if interpolated else {}
    flow = Simulation(
        shape=(1, n, n), lattice="D3Q19", omega=1 / tau, mask=solid, force=(0, 0, g), precision="f64", device=device,
        surfaces=surfaces,
    )  # fmt: skip
    flow.run(round(12 * radius**2 / (5.78 * nu)))  # exp(-5.78 nu t / R^2) is the slowest mode
    y, x = np.indices((n, n))
    exact = speed * (1 - ((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / radius**2)
    found = to_host(flow.velocity)[0, :, :, 2]
    inside = ~flow.solid[0]
    error = math.sqrt(((found - exact)[inside] ** 2).sum() / (exact[inside] ** 2).sum())
    return error, float(flow.force_on("wall")[2]) / (g * int(inside.sum()))


def mean_error(radius: float, *, interpolated: bool, device: str) -> float:
    """The root of the mean square over all places; the force of the wall carries the fluid."""
    found = [pipe(radius, 0.8, interpolated=interpolated, device=device, place=p) for p in PLACES]
    assert [force for _, force in found] == pytest.approx([1] * len(found), abs=2e-5)
    return math.sqrt(sum(error**2 for error, _ in found) / len(found))


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.slow), GPU])
def test_a_round_pipe_is_of_second_order(device: str) -> None:
    """From R = 5.3 to 21.2, where the mean error is 0.1 %; a half-way staircase has fifteen times that and is of first
    order.
    """
    coarse, fine = (mean_error(r, interpolated=True, device=device) for r in (5.3, 21.2))
    assert 1.9 < math.log2(coarse / fine) / 2 < 2.1
    assert fine < 0.001
    rough, stairs = (mean_error(r, interpolated=False, device=device) for r in (5.3, 21.2))
    assert math.log2(rough / stairs) / 2 < 1.3
    assert stairs > 12 * fine


@pytest.mark.slow
def test_where_the_wall_of_a_pipe_lies_hardly_depends_on_the_viscosity() -> None:
    """It does on links that are cut before a quarter alone: the flow changes by 0.03 %, while the viscosity grows
    tenfold.
    """
    thin, thick = (pipe(5.3, tau, interpolated=True)[0] for tau in (0.6, 1.5))
    assert thin == pytest.approx(thick, abs=4e-4)


@pytest.mark.slow_cases("0.1")
@pytest.mark.parametrize("offset", [0.1, 0.5, 0.8, 0.95])
def test_couette_between_sites_is_exact(offset: float) -> None:
    """Walls at any fraction of links, one of them moving: u = U (y - y0) / H, and Newton's law for the forces.

    The pressure is 1/3, on 3 sites.
    """
    speed, low, high, ny = 0.05, 1 + offset, 9.3, 12
    mask = np.zeros((ny, 3), int)
    mask[: math.floor(low) + 1], mask[math.ceil(high) :] = 1, 2
    flow = Simulation(
        shape=(ny, 3), omega=1.2, mask=mask, kinds={1: Wall("lower"), 2: Wall("upper", (speed, 0.0))},
        surfaces={1: SignedDistance(lambda p: p[:, 1] - low), 2: SignedDistance(lambda p: high - p[:, 1])},
        precision="f64", device="cpu",
    )  # fmt: skip
    flow.run(4000)
    fluid = ~flow.solid[:, 0]
    exact = speed * (np.arange(ny) - low) / (high - low)
    np.testing.assert_allclose(flow.velocity[fluid, 0, 0], exact[fluid], atol=1e-12)
    shear = flow.settings.viscosity * speed / (high - low) * 3
    np.testing.assert_allclose(flow.force_on("lower"), (shear, -1), atol=1e-12)
    np.testing.assert_allclose(flow.force_on("upper"), (-shear, 1), atol=1e-12)


def test_a_tilted_channel_is_of_second_order() -> None:
    """Poiseuille's flow along walls that rise one site in two, in a box that is periodic along both axes."""
    coarse, fine = tilted_poiseuille(10), tilted_poiseuille(40)
    assert fine < 0.003
    assert math.log2(coarse / fine) / 2 > 1.7


def tilted_poiseuille(n: int) -> float:
    """Walls along (2, 1), n sites apart along y, in a box of 2 n x n sites: what leaves at the right enters n sites
    further down.
    """
    along, normal = np.array([2, 1]) / math.sqrt(5), np.array([-1, 2]) / math.sqrt(5)
    period = n * normal[1]  # from one channel to the next
    width = 0.77 * period

    def beyond(points: np.ndarray) -> np.ndarray:
        """The distance from the channel, negative in walls."""
        s = (points @ normal + 0.37) % period
        return np.where(s < (width + period) / 2, np.minimum(s, width - s), s - period)

    y, x = np.indices((n, 2 * n))
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    mask = (beyond(points) <= 0).reshape(n, 2 * n)
    tau = 0.9
    nu, speed = (tau - 0.5) / 3, 0.01
    g = 8 * nu * speed / width**2
    flow = Simulation(
        shape=(n, 2 * n), omega=1 / tau, mask=mask, force=tuple(g * along), surfaces={1: SignedDistance(beyond)},
        precision="f64", device="cpu",
    )  # fmt: skip
    flow.run(round(14 * width**2 / (nu * math.pi**2)))
    s = ((points @ normal + 0.37) % period).reshape(n, 2 * n)
    exact = (4 * speed * s * (width - s) / width**2)[..., None] * along
    fluid = ~flow.solid
    return float(np.sqrt(((flow.velocity - exact)[fluid] ** 2).sum() / (exact[fluid] ** 2).sum()))

"""Rayleigh-Benard convection: a flow on D2Q9 and a temperature on D2Q5, each of which reads what is observed of the
other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import lanewise as lw


@lw.sitewise(lw.D2Q9)
def air(f: lw.populations, warmth: lw.f32, omega: lw.f32, buoyancy: lw.f32):
    force = lw.vec2(0, buoyancy * warmth)
    density, momentum = lw.f32(1), 0.5 * force
    for q in lw.D2Q9:
        density += f[q]
        momentum += f[q] * q.velocity
    u = momentum / density
    for q in lw.D2Q9:
        c = q.along(u)
        f[q] += omega * (q.weight * (density - 1 + density * (3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u))) - f[q])
        f[q] += (1 - 0.5 * omega) * q.weight * (3 * lw.dot(q.velocity - u, force) + 9 * c * q.along(force))


@lw.sitewise(lw.D2Q5)
def heat(g: lw.populations, wind: lw.vec2, rate: lw.f32):
    t = total(g)
    for q in lw.D2Q5:
        g[q] += rate * (q.weight * t * (1 + 3 * q.along(wind)) - g[q])


@lw.function
def total(g):
    t = lw.f32(0)
    for q in lw.D2Q5:
        t += g[q]
    return t


@heat.kind(1, "floor")
def floor(g: lw.populations, wind: lw.vec2, rate: lw.f32):
    t = total(g)
    for q in lw.D2Q5:
        g[q] += rate * (q.weight * t * (1 + 3 * q.along(wind)) - g[q])
    g[4] = 2 * lw.D2Q5[4].weight * 0.5 - g[4]  # what the wall sends back has its temperature half-way


@heat.kind(2, "ceiling")
def ceiling(g: lw.populations, wind: lw.vec2, rate: lw.f32):
    t = total(g)
    for q in lw.D2Q5:
        g[q] += rate * (q.weight * t * (1 + 3 * q.along(wind)) - g[q])
    g[3] = -2 * lw.D2Q5[3].weight * 0.5 - g[3]


air.wall(3, "plate")
heat.wall(3, "plate")


@air.observer
def velocity(f: lw.populations, warmth: lw.f32, buoyancy: lw.f32) -> lw.vec2:
    density, momentum = lw.f32(1), 0.5 * lw.vec2(0, buoyancy * warmth)
    for q in lw.D2Q9:
        density += f[q]
        momentum += f[q] * q.velocity
    return momentum / density


@heat.observer
def temperature(g: lw.populations) -> lw.f32:
    return total(g)


class Layer:
    """A layer of fluid between plates, the lower one warm; `height` sites, twice as many wide."""

    def __init__(
        self, height: int, rayleigh: float, diffusivity: float = 0.1, device: str = "cpu", streaming: str | None = None
    ) -> None:
        shape = (height, 2 * height)
        mask = np.zeros(shape, np.uint8)
        mask[0], mask[-1] = 1, 2
        edges = {"y": "plate"}
        self.wind = air.sites(shape, edges=edges, device=device, streaming=streaming)
        self.warm = heat.sites(shape, mask=mask, edges=edges, device=device, streaming=streaming)
        y, x = (np.arange(height)[:, None] + 0.5) / height, np.arange(2 * height) / (2 * height)
        t = 0.5 - y + 1e-3 * np.sin(np.pi * y) * np.cos(2 * np.pi * x)
        weights = np.array([q.weight for q in lw.D2Q5]).reshape(5, 1, 1)
        heat.set_populations(self.warm, (weights * t).astype(np.float32))
        omega = 1 / (3 * diffusivity + 0.5)
        buoyancy = rayleigh * diffusivity**2 / height**3
        warmth = temperature.of(self.warm)
        self._looks = {"warmth": warmth, "buoyancy": buoyancy}
        self.steps = lw.couple(
            air.stepper(self.wind, omega=omega, **self._looks),
            heat.stepper(self.warm, wind=velocity.of(self.wind, **self._looks), rate=omega),
        )

    def speed(self) -> float:
        """The largest component of the velocity."""
        u: Any = velocity(self.wind, **self._looks)
        return float(abs(u).max())

    def growth(self, settle: int, steps: int) -> float:
        """The growth rate of the velocity per step, after some for it to settle."""
        self.steps.run(settle)
        before = self.speed()
        self.steps.run(steps)
        return float(np.log(self.speed() / before) / steps)

"""Warm air rises between two plates, at a Rayleigh number of 1e5.

python examples/rayleigh_benard.py [picture] [sites from plate to plate] [steps]
"""

import sys

import numpy as np
from matplotlib.image import imsave

import lanewise as lw


@lw.function
def moments(f, lift):
    density = sum((f[q] for q in lw.D2Q9), lw.f32(1))
    return density, sum((f[q] * q.velocity for q in lw.D2Q9), lw.vec2(0, 0.5 * lift)) / density


@lw.sitewise(lw.D2Q9)
def air(f: lw.populations, lift: lw.f32, omega: lw.f32):
    density, u = moments(f, lift)
    for q in lw.D2Q9:
        c = q.along(u)
        f[q] += omega * (
            q.weight * (density - 1 + density * (3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u))) - f[q]
        )
        f[q] += (3 - 1.5 * omega) * q.weight * lift * (q.y * (1 + 3 * c) - u.y)


@air.observer
def velocity(f: lw.populations, lift: lw.f32) -> lw.vec2:
    return moments(f, lift)[1]


@lw.sitewise(lw.D2Q5)
def heat(g: lw.populations, wind: lw.vec2, plate: lw.f32, omega: lw.f32):
    warmth = sum(g[q] for q in lw.D2Q5)
    for q in lw.D2Q5:
        g[q] += omega * (q.weight * warmth * (1 + 3 * q.along(wind)) - g[q])
        if q.y * plate < 0:  # towards the plate, which sends it back with its own temperature
            g[q] = 2 * q.weight * plate - g[q]


@heat.observer
def buoyancy(g: lw.populations, strength: lw.f32) -> lw.f32:
    return strength * sum(g[q] for q in lw.D2Q5)


if __name__ == "__main__":
    path, height, steps = (
        *sys.argv[1:],
        *("rayleigh_benard.png", "96", "20000")[len(sys.argv) - 1 :],
    )
    shape, diffusivity = (int(height), 3 * int(height)), 0.02
    wind, warm = (flow.sites(shape, edges={"y": "slip"}) for flow in (air, heat))
    heat.set_populations(warm, 0.01 * np.random.default_rng(0).standard_normal((5, *shape)))
    plate = np.repeat([0.5, *[0] * (shape[0] - 2), -0.5], shape[1])
    lift = buoyancy.of(warm, strength=1e5 * diffusivity**2 / shape[0] ** 3)
    rate = {"omega": 1 / (3 * diffusivity + 0.5)}
    heating = heat.stepper(warm, wind=velocity.of(wind, lift=lift), plate=plate, **rate)
    lw.couple(air.stepper(wind, lift=lift, **rate), heating).run(int(steps))
    imsave(
        path,
        warmth := heat.populations(warm).sum(0),
        cmap="inferno",
        origin="lower",
        vmin=-0.5,
        vmax=0.5,
    )
    print(
        f"{warm.step:,} steps, temperatures {warmth.min():.2f} to {warmth.max():.2f}, "
        f"picture: {path}"
    )

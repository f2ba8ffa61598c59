"""A fluid separates into drops and vapour, after Shan and Chen (1993).

python examples/shan_chen.py [picture] [sites along a side] [steps] [cpu or cuda]
"""

import sys

import numpy as np
from matplotlib.image import imsave

import lanewise as lw


@lw.function
def sums(f):
    density, momentum = lw.f32(0), lw.vec2(0)
    for q in lw.D2Q9:
        density += f[q]
        momentum += f[q] * q.velocity
    return density, momentum


@lw.sitewise(lw.D2Q9)
def fluid(f: lw.populations, psi: lw.Field[lw.f32], attraction: lw.f32):
    density, momentum = sums(f)
    for q in lw.D2Q9:
        momentum -= attraction * psi[0] * q.weight * psi[q] * q.velocity
    u = momentum / density
    for q in lw.D2Q9:
        f[q] = (
            q.weight * density * (1 + 3 * q.along(u) + 4.5 * q.along(u) ** 2 - 1.5 * lw.dot(u, u))
        )


@fluid.field("psi")
def potential(f: lw.populations) -> lw.f32:
    density, _ = sums(f)
    return 1 - lw.exp(-density)


if __name__ == "__main__":
    path, side, steps, device = (
        *sys.argv[1:],
        *("shan_chen.png", "256", "3000", "cpu")[len(sys.argv) - 1 :],
    )
    sites = fluid.sites((int(side), int(side)), device=device)
    start = 0.7 + 0.01 * np.random.default_rng(0).standard_normal(sites.shape)
    fluid.set_populations(sites, np.stack([q.weight * start for q in lw.D2Q9]))
    fluid.run(sites, int(steps), attraction=-5.0)
    density = fluid.populations(sites).sum(0)
    imsave(path, density, cmap="viridis", origin="lower")
    print(
        f"{sites.step:,} steps: densities {density.min():.3f} and {density.max():.3f}, "
        f"picture: {path}"
    )

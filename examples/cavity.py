"""A lid-driven cavity from scratch: you write the collision (BGK) of one site, and lanewise makes
the rest from it.

The walls lie half a link outside the sites. The velocity on the centre line is compared with
Ghia, Ghia & Shin (1982).

    python examples/cavity.py [sites along a side] [steps]
"""

import sys

import numpy as np

import lanewise as lw

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 96
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 30_000
LID, RE = (0.1, 0.0), 100


@lw.function
def moments(f):
    # populations are stored less their weights, whose sum is 1
    density, momentum = lw.f32(1), lw.vec2(0)
    for q in lw.D2Q9:
        density += f[q]
        momentum += f[q] * q.velocity
    return density, momentum / density


@lw.sitewise(lw.D2Q9)
def flow(f: lw.populations, omega: lw.f32):
    density, u = moments(f)
    for q in lw.D2Q9:
        c = q.along(u)
        equilibrium = q.weight * (
            density - 1 + density * (3 * c + 4.5 * c * c - 1.5 * lw.dot(u, u))
        )
        f[q] += omega * (equilibrium - f[q])


flow.wall(1, "wall")
flow.wall(2, "lid", velocity="lid_velocity")


@flow.observer
def look(f: lw.populations) -> tuple[lw.f32, lw.vec2]:
    return moments(f)


def main() -> None:
    sites = flow.sites((SIZE, SIZE), edges={"x": "wall", "y": ("wall", "lid")})
    viscosity = LID[0] * SIZE / RE
    flow.run(sites, STEPS, omega=1 / (3 * viscosity + 0.5), lid_velocity=LID)
    print(sites, "after", f"{sites.step:,} steps")

    _, velocity = look(sites, lid_velocity=LID)
    u = velocity.reshape(SIZE, SIZE, 2)[..., 0] / LID[0]
    places, line = (np.arange(SIZE) + 0.5) / SIZE, u[:, SIZE // 2 - 1 : SIZE // 2 + 1].mean(axis=1)
    for y, published in (
        (0.1719, -0.10150),
        (0.4531, -0.21090),
        (0.7344, 0.00332),
        (0.9531, 0.68717),
    ):
        print(f"  u at y = {y:.4f}: {np.interp(y, places, line):+.4f}, published {published:+.4f}")
    drag = flow.force(sites, ["lid"], weights=True, lid_velocity=LID)[0]
    print(f"  force on the lid {drag:+.4f}")


if __name__ == "__main__":
    main()

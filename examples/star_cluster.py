"""Gravity in ten lines: a star cluster, its forces and a few hundred steps of leapfrog, from two
small functions.

python examples/star_cluster.py [bodies] [steps] [device]
"""

import sys

import numpy as np

import lanewise as lw

BODIES = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cpu"


@lw.record
class Body:
    """A star."""

    position: lw.vec3
    mass: lw.f32
    velocity: lw.vec3


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.elementwise
def kick_drift(body: Body, acceleration: lw.vec3, dt: lw.f32):
    body.velocity += acceleration * dt
    body.position += body.velocity * dt


@lw.elementwise
def radius(body: Body) -> lw.f32:
    return lw.length(body.position)


def main() -> None:
    # A cold ball of stars: it falls together, overshoots, and settles.
    rng = np.random.default_rng(1)
    inside = rng.normal(size=(BODIES, 3))
    inside *= rng.random((BODIES, 1)) ** (1 / 3) / np.linalg.norm(inside, axis=1, keepdims=True)
    bodies = Body.array(
        position=inside, mass=1 / BODIES, velocity=0.3 * rng.normal(size=(BODIES, 3)), device=DEVICE
    )
    print(bodies)

    dt, softening2 = 0.01, 0.05**2
    for step in range(STEPS):
        if step % max(1, STEPS // 5) == 0:
            print(f"t = {step * dt:4.2f}   mean radius {radius.sum(bodies) / BODIES:.3f}")
        kick_drift(bodies, gravity(bodies, bodies, softening2), dt)
    print(f"t = {STEPS * dt:4.2f}   mean radius {radius.sum(bodies) / BODIES:.3f}")


if __name__ == "__main__":
    main()

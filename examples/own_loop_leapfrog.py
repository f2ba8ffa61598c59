"""Your own time loop: leapfrog for a cluster of stars, without time lost between calls.

The calls of a step are bound once and passed to lw.steps. The forces of one call are an argument of
the next one without a copy. A callback computes the energy periodically. For comparison the same
steps also run as plain calls, which give the same bits.

    python examples/own_loop_leapfrog.py [stars] [steps]
"""

import sys
import time

import numpy as np

import lanewise as lw

STARS = int(sys.argv[1]) if len(sys.argv) > 1 else 64
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
DT, SOFTENING2 = 1e-3, 0.01


class Star(lw.Record):
    """A point mass."""

    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.pairwise
def gravity(target: Star, source: Star, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * d * lw.rsqrt(lw.dot(d, d) + softening2) ** 3


@lw.pairwise
def potential(target: Star, source: Star, softening2: lw.f32) -> lw.f32:
    d = source.position - target.position
    return lw.select(
        lw.same(target, source), lw.f32(0), -source.mass * lw.rsqrt(lw.dot(d, d) + softening2)
    )


@lw.elementwise
def kick_drift(star: Star, acceleration: lw.vec3, kick: lw.f32, drift: lw.f32):
    star.velocity += kick * acceleration
    star.position += drift * star.velocity


@lw.elementwise
def energy(star: Star, around: lw.f32) -> lw.f32:
    return 0.5 * star.mass * (lw.dot(star.velocity, star.velocity) + around)


def cluster():
    random = np.random.default_rng(5)
    velocity = random.normal(size=(STARS, 3)) * 0.4
    return Star.array(
        position=random.normal(size=(STARS, 3)),
        velocity=velocity - velocity.mean(axis=0),
        mass=np.full(STARS, 1 / STARS),
    )


def whole_energy(stars):
    return energy.sum(stars, potential(stars, stars, SOFTENING2))


if __name__ == "__main__":
    stars = cluster()
    force = gravity.bind(stars, stars, SOFTENING2)
    force()  # at the start
    first_half = kick_drift.bind(stars, force.results[0], DT / 2, DT)
    second_half = kick_drift.bind(stars, force.results[0], DT / 2, 0.0)
    loop = lw.steps([first_half, force, second_half])
    print(loop.explain())

    start = whole_energy(stars)

    def look(loop):
        print(f"step {loop.step:5}: energy {whole_energy(stars):+.6f}")

    loop.run(STEPS, callback=look, every=STEPS // 4)
    print(f"relative error of the energy {abs(whole_energy(stars) / start - 1):.0e}")

    beside = cluster()
    begin = time.perf_counter()
    acceleration = gravity(beside, beside, SOFTENING2)
    for _ in range(STEPS):
        kick_drift(beside, acceleration, DT / 2, DT)
        acceleration = gravity(beside, beside, SOFTENING2)
        kick_drift(beside, acceleration, DT / 2, 0.0)
    plain = time.perf_counter() - begin
    print("the bits of plain calls:", bool((beside.position == stars.position).all()))

    begin = time.perf_counter()
    loop.run(STEPS)
    print(
        f"a step takes {(time.perf_counter() - begin) / STEPS * 1e6:.1f} us, as plain calls "
        f"{plain / STEPS * 1e6:.1f} us"
    )

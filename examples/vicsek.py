"""The model of flocking by Vicsek et al. in two and three dimensions: each agent takes the mean
heading of its neighbours, with some noise.

Speed 0.03, radius 1, density 4 in a periodic box, as in T. Vicsek, A. Czirok, E. Ben-Jacob, I.
Cohen, O. Shochet, Novel type of phase transition in a system of self-driven particles, Phys. Rev.
Lett. 75, 1226 (1995), figure 2a: the order, the length of the mean heading, falls from near 1
without noise to near 0 where headings turn by any angle (noise 2 pi). In two dimensions a heading
turns by up to half the noise to either side, as there; in three by as much in a random direction.

    python examples/vicsek.py [particles] [steps]
"""

import sys
from functools import cache
from typing import Any

import numpy as np

import lanewise as lw

PARTICLES = int(sys.argv[1]) if len(sys.argv) > 1 else 300
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 500
DENSITY, SPEED = 4.0, 0.03


@cache
def make_model(dimension: int, size: float) -> tuple[Any, Any, Any]:
    """The record of a particle, the sum of headings within radius 1, and the move."""
    vec, any_way = (lw.vec2, lw.unit_vector2) if dimension == 2 else (lw.vec3, lw.unit_vector)

    @lw.record
    class Particle:
        position: vec
        heading: vec
        number: lw.i32

    @lw.pairwise(search=lw.Neighbors(radius=1.0, world=lw.Periodic((size,) * dimension)))
    def headings(target: Particle, source: Particle) -> vec:
        return source.heading  # its own, too: everyone meets itself

    @lw.elementwise
    def move(p: Particle, around: vec, step: lw.i32, noise: lw.f32):
        mean, random = lw.normalize(around), any_way(1, step, p.number)
        aside = lw.normalize(random - lw.dot(random, mean) * mean)
        angle = 0.5 * noise * lw.random(2, step, p.number)
        p.heading = lw.normalize(lw.cos(angle) * mean + lw.sin(angle) * aside)
        place = p.position + SPEED * p.heading
        p.position = place - size * lw.floor(place / size)

    return Particle, headings, move


def order_after(
    dimension: int, noise: float, particles: int = PARTICLES, steps: int = STEPS, seed: int = 0
) -> float:
    """The length of the mean heading, averaged over the last quarter of the steps."""
    size, random = (particles / DENSITY) ** (1 / dimension), np.random.default_rng(seed)
    record, headings, move = make_model(dimension, size)
    heading = random.normal(size=(particles, dimension))
    heading /= np.linalg.norm(heading, axis=1, keepdims=True)
    places, numbers = (
        size * random.random((particles, dimension)),
        np.arange(particles, dtype=np.int32),
    )
    flock = record.array(position=places, heading=heading, number=numbers)
    orders = []
    for step in range(steps):
        move(flock, headings(flock, flock), step + seed * steps, noise)
        orders.append(float(np.linalg.norm(flock.heading.mean(axis=0))))
    return float(np.mean(orders[-max(1, steps // 4) :]))


def main() -> None:
    for dimension in (2, 3):
        for noise in (0.1, 2.0, 4.0, 2 * np.pi):
            print(
                f"{dimension}-D, {PARTICLES:,} particles, noise {noise:4.2f}: order "
                f"{order_after(dimension, noise):.3f}"
            )


if __name__ == "__main__":
    main()

"""Your own time loop over a search: soft grains in a box that is shaken sideways.

Each grain pushes the grains nearer than a diameter away. The search is a grid over a periodic
world, so nothing about it has to be decided while the loop runs. The shaking is a value that
changes with the step (lw.by_step), and every hundredth step counts the grains in eight stripes
(lw.every).

    python examples/own_loop_grains.py [grains] [steps]
"""

import math
import sys

import numpy as np

import lanewise as lw

GRAINS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
DIAMETER, STIFFNESS, FRICTION = 0.02, 400.0, 0.5
DT, PERIOD, STRENGTH = 1e-3, 0.5, 2.0
STRIPES = 8


class Grain(lw.Record):
    """A soft disc of mass 1."""

    position: lw.vec2
    velocity: lw.vec2


@lw.pairwise(search=lw.StaticGrid(radius=DIAMETER, world=lw.Periodic((1, 1))))
def push(target: Grain, source: Grain) -> lw.vec2:
    d = target.position - source.position
    d -= lw.floor(d + lw.vec2(0.5, 0.5))  # the nearest image
    r = lw.length(d)
    return lw.select(r > 0, STIFFNESS * (DIAMETER - r) / lw.max(r, 1e-6) * d, lw.vec2(0, 0))


@lw.elementwise
def move(grain: Grain, force: lw.vec2, dt: lw.f32, shake: lw.f32):
    grain.velocity += dt * (force - FRICTION * grain.velocity + lw.vec2(shake, 0))
    grain.position += dt * grain.velocity
    grain.position -= lw.floor(grain.position)


@lw.elementwise
def count(grain: Grain, stripes: lw.Array1[lw.i32]):
    lw.scatter_add(stripes, lw.min(lw.i32(STRIPES * grain.position.x), STRIPES - 1), 1)


@lw.elementwise
def sideways(grain: Grain) -> lw.f32:
    return grain.velocity.x


if __name__ == "__main__":
    random = np.random.default_rng(1)
    grains = Grain.array(position=random.random((GRAINS, 2)), velocity=np.zeros((GRAINS, 2)))
    stripes = np.zeros(STRIPES, np.int32)
    omega = 2 * math.pi / PERIOD
    force = push.bind(grains, grains)
    shaken = move.bind(
        grains,
        force.results[0],
        DT,
        shake=lw.by_step(lambda n: STRENGTH * math.cos(omega * n * DT)),
    )
    loop = lw.steps([force, shaken, lw.every(100, count.bind(grains, stripes))])
    print(loop.explain())

    fastest = [0.0]

    def look(loop):
        fastest.append(sideways.sum(grains) / GRAINS)

    loop.run(STEPS, callback=look, every=10)

    # Pushes cancel in the mean, so all grains together are one driven body with friction.
    exact = STRENGTH / math.hypot(omega, FRICTION)
    settled = fastest[-int(PERIOD / DT / 10) :]
    swing = (max(settled) - min(settled)) / 2
    print(f"{loop.step:,} steps; the mean velocity swings by {swing:.4f}, exact {exact:.4f}")
    print(f"grains in a stripe: {stripes.min() * 100 // STEPS} to {stripes.max() * 100 // STEPS}")

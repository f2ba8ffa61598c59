"""Which layout do kernels choose for an array with layout="auto", and why? The first call decides,
and a later one may move the records once more. Results have the bits of that layout.

python examples/auto_layout.py [particles]
"""

import sys

import numpy as np

import lanewise as lw

PARTICLES = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
RADIUS = 0.03


@lw.record
class Particle:
    """Fourteen scalars; the search reads four of them."""

    position: lw.vec3
    mass: lw.f32
    velocity: lw.vec3
    density: lw.f32
    tracers: lw.vec4
    age: lw.f32
    kind: lw.i32


@lw.pairwise(search=lw.Neighbors(radius=RADIUS))
def density(target: Particle, source: Particle) -> lw.f32:
    d = source.position - target.position
    return source.mass * (RADIUS * RADIUS - lw.dot(d, d)) ** 3


@lw.elementwise
def drift(particle: Particle, dt: lw.f32):
    particle.position += particle.velocity * dt


def run(layout):
    """Ten steps; the array and the last densities."""
    rng = np.random.default_rng(1)
    particles = Particle.array(
        position=rng.random((PARTICLES, 3)),
        velocity=0.01 * rng.standard_normal((PARTICLES, 3)),
        mass=1.0,
        layout=layout,
    )
    print("made: ", particles)
    first = particles[0]  # rows and slices move along
    for _ in range(10):
        found = density(particles, particles)
        drift(particles, 0.1)
    assert np.array_equal(first.position, particles.position[0])
    return particles, found


if __name__ == "__main__":
    particles, found = run("auto")
    print("later:", particles)
    explanation = density.compile(particles, particles).explain()
    print(explanation.as_dict()["layout_reasons"]["target"])

    _, given = run(particles.layout)  # an explicit layout is never touched
    print("the same bits as with that layout given:", np.array_equal(found, given))

    call = density.bind(particles, particles)  # what is bound stays where it is
    print("bound:", call.compiled.explain().as_dict()["layout_reasons"]["target"])

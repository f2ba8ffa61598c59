"""Sums and extremes over all elements, without an array of the values in between.

python examples/reductions.py [particles]
"""

import sys

import numpy as np

import lanewise as lw

PARTICLES = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000


@lw.record
class Particle:
    """A particle of a gas."""

    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.elementwise
def moments(p: Particle) -> tuple[lw.f32, lw.vec3]:
    return 0.5 * p.mass * lw.dot(p.velocity, p.velocity), p.mass * p.velocity


@lw.elementwise
def position(p: Particle) -> lw.vec3:
    return p.position


@lw.elementwise
def speed(p: Particle) -> lw.f32:
    return lw.length(p.velocity)


def main() -> None:
    rng = np.random.default_rng(4)
    gas = Particle.array(
        position=rng.random((PARTICLES, 3)),
        velocity=rng.normal(size=(PARTICLES, 3)),
        mass=1 / PARTICLES,
    )
    energy, momentum = moments.sum(gas)  # float64, in a fixed order: the same bits every time
    print(f"kinetic energy {energy:.6f} (a gas at temperature 1 has 1.5)")
    print(f"momentum       {momentum}")
    print(f"bounding box   {position.min(gas)} to {position.max(gas)}")
    print(f"fastest        {speed.max(gas):.3f}")

    values = speed(gas)  # the values themselves; lw.sum, lw.min and lw.max reduce any array
    print(f"mean speed     {lw.sum(values) / len(gas):.4f} (Maxwell: {np.sqrt(8 / np.pi):.4f})")
    print("again the same bits:", moments.sum(gas)[0] == energy)


if __name__ == "__main__":
    main()

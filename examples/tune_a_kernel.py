"""Measure other plans than the default one, and store the fastest: later calls, also in other
programs, use it.

python examples/tune_a_kernel.py [particles] [seconds]
"""

import sys

import numpy as np

import lanewise as lw

PARTICLES = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 15


@lw.record
class Particle:
    """A charge in a plasma."""

    position: lw.vec3
    charge: lw.f32


@lw.pairwise
def yukawa(target: Particle, source: Particle, screening: lw.f32) -> lw.f32:
    if lw.same(target, source):
        return 0.0
    r = lw.length(target.position - source.position)
    return source.charge * lw.exp(-screening * r) / r


def main() -> None:
    rng = np.random.default_rng(6)
    particles = Particle.array(
        position=rng.normal(size=(PARTICLES, 3)), charge=rng.choice([-1.0, 1.0], PARTICLES)
    )
    tuning = yukawa.tune(particles, particles, screening=0.5, seconds=SECONDS)
    print(tuning)
    # another call of the kind that was tuned
    used = yukawa.compile(particles, particles, screening=0.7).plan
    print(f"\ncalls use the tuned plan: {used == tuning.plan}")


if __name__ == "__main__":
    main()

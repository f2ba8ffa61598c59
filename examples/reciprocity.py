"""Found and not declared: what f(i, j) and f(j, i) have in common.

A GPU computes it once for each pair.

python examples/reciprocity.py [device]

Without a GPU, `lanewise explain examples/reciprocity.py:gravity --device cuda` shows what one would
do.
"""

import sys

import numpy as np

import lanewise as lw

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cpu"


@lw.record
class Bird:
    """A bird with a place, a heading and a mass."""

    position: lw.vec3
    heading: lw.vec3
    mass: lw.f32


@lw.pairwise
def gravity(target: Bird, source: Bird, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


@lw.pairwise
def align(target: Bird, source: Bird, range2: lw.f32) -> lw.vec3:
    """A bird takes on the headings of those near it: the weight is mutual, what it weighs is
    not.
    """
    d = source.position - target.position
    return lw.exp(-lw.dot(d, d) / range2) * source.heading


@lw.pairwise
def notice(target: Bird, source: Bird, sharpness: lw.f32) -> lw.f32:
    """How much a bird faces the places of the others, from the origin: nothing of it is mutual."""
    return lw.exp(sharpness * lw.dot(target.heading, source.position))


def main() -> None:
    rng = np.random.default_rng(7)
    birds = Bird.array(
        position=rng.normal(size=(2000, 3)),
        heading=rng.normal(size=(2000, 3)),
        mass=1.0,
        device=DEVICE,
    )
    for kernel in (gravity, align, notice):
        report = kernel.compile(birds, birds, 0.01).explain()
        print(f"{kernel.__name__}: {dict(report.analysis.lines)['symmetry']}")
        print(f"  on {DEVICE}: {report.row('reciprocity').reason}")


if __name__ == "__main__":
    main()

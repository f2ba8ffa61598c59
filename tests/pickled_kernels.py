"""Records, kernels and helpers at the top of a module, where pickle finds them; and what another process does with
them.
"""

from typing import Any

import lanewise as lw

__all__ = ["Grain", "Numbered", "attract", "bounce", "grow", "heaps", "near", "spread", "total_mass", "twice", "walled"]


@lw.record
class Grain:
    position: lw.vec3
    mass: lw.f64
    kind: lw.i32
    alive: lw.bool


@lw.record
class Numbered:
    serial: lw.i64


@lw.function
def twice(x):
    return 2 * x


@lw.elementwise
def grow(grain: Grain, by: lw.f64) -> lw.f64:
    grain.mass += twice(by)
    return grain.mass


@lw.segmentwise
def heaps(grain: Grain, by: lw.f64) -> lw.f64:
    return grain.mass * by


@lw.threadwise
def spread(y: lw.index, x: lw.index, a: lw.Array1[lw.f64], c: lw.Array2[lw.f64], by: lw.f64):
    c[y, x] += by * a[x]


@lw.pairwise
def attract(target: Grain, source: Grain) -> lw.vec3:
    return source.position - target.position


near = attract.using(lw.Neighbors(radius=1.0))


@lw.sitewise(lw.D2Q9)
def bounce(f: lw.populations):
    for q in lw.D2Q9:
        f[q] = f[q] * 1


@lw.stencil(lw.D2Q5)
def warm(t: lw.Field[lw.f32]) -> lw.f32:
    return 0.5 * t[0] + 0.25 * (t[1] + t[2])


walled = lw.sitewise(lw.D2Q9)(bounce.python)
walled.wall(1, "wall")


def total_mass(kernel: Any, grains: Any) -> tuple[float, Any]:
    """What a worker does: it runs a kernel that it got on an array that it got."""
    kernel(grains, by=1.0)
    return float(lw.sum(grains.mass)), grains

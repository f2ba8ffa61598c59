"""Kernels that test_fork.py runs in several processes and threads."""

from __future__ import annotations

import lanewise as lw


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.pairwise(search=lw.StaticGrid(radius=0.2))
def near(target: Body, source: Body) -> lw.vec3:
    return source.mass * (source.position - target.position)

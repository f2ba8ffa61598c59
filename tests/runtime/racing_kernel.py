"""A kernel that several processes compile at the same time."""

from __future__ import annotations

import lanewise as lw


@lw.record
class Point:
    position: lw.vec3
    weight: lw.f32


@lw.pairwise
def attraction(target: Point, source: Point, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return source.weight / (lw.dot(d, d) + softening2) * d

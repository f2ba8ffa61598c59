"""Small kernels for the tests of tuning, in a module of their own so that another process can import them."""

from __future__ import annotations

import numpy as np

import lanewise as lw


@lw.record
class Point:
    position: lw.vec3
    weight: lw.f32


@lw.pairwise
def attraction(target: Point, source: Point, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.weight * inv**3 * d


@lw.pairwise
def repulsion(target: Point, source: Point, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return -source.weight * inv**3 * d


@lw.pairwise
def without_itself(target: Point, source: Point, softening2: lw.f32) -> lw.vec3:
    if lw.same(target, source):
        return lw.vec3(0)
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.weight * inv**3 * d


@lw.elementwise
def drift(point: Point, velocity: lw.vec3, dt: lw.f32) -> lw.f32:
    point.position += velocity * dt
    return lw.length(point.position)


@lw.elementwise
def double(point: Point):
    point.weight *= 2


@lw.elementwise
def weighed(x: lw.f32, rate: lw.f32) -> lw.f32:
    return lw.exp(-rate * x) * x


def points(count: int, seed: int = 0, device: str = "cpu") -> lw.RecordArray:
    rng = np.random.default_rng(seed)
    return Point.array(position=rng.normal(size=(count, 3)), weight=rng.uniform(0.5, 1.5, count), device=device)  # type: ignore[attr-defined]

"""Pair functions that tell exactly which sources they met: the number of them, and sums of their numbers, as
integers.
"""

from typing import Any

import numpy as np

import lanewise as lw
from tests.search.clouds import Array


@lw.record
class Vec3:
    number: lw.i32
    position: lw.vec3
    weight: lw.f32


@lw.record
class Vec2:
    position: lw.vec2
    number: lw.i32
    weight: lw.f32


@lw.record
class DVec3:
    weight: lw.f32
    position: lw.dvec3
    number: lw.i32


@lw.record
class DVec2:
    number: lw.i32
    weight: lw.f32
    position: lw.dvec2


@lw.pairwise
def meet_vec3(target: Vec3, source: Vec3) -> tuple[lw.i32, lw.i64, lw.i64, lw.f32]:
    n = lw.i64(source.number)
    return 1, n, n * n * n, lw.length(source.position - target.position)


@lw.pairwise
def meet_vec2(target: Vec2, source: Vec2) -> tuple[lw.i32, lw.i64, lw.i64, lw.f32]:
    n = lw.i64(source.number)
    return 1, n, n * n * n, lw.length(source.position - target.position)


@lw.pairwise
def meet_dvec3(target: DVec3, source: DVec3) -> tuple[lw.i32, lw.i64, lw.i64, lw.f64]:
    n = lw.i64(source.number)
    return 1, n, n * n * n, lw.length(source.position - target.position)


@lw.pairwise
def meet_dvec2(target: DVec2, source: DVec2) -> tuple[lw.i32, lw.i64, lw.i64, lw.f64]:
    n = lw.i64(source.number)
    return 1, n, n * n * n, lw.length(source.position - target.position)


KINDS: dict[tuple[str, int], tuple[Any, Any]] = {
    ("f4", 3): (Vec3, meet_vec3), ("f4", 2): (Vec2, meet_vec2), ("f8", 3): (DVec3, meet_dvec3), ("f8", 2): (DVec2, meet_dvec2),
}  # fmt: skip


def numbered(x: Array, layout: Any = None, device: str = "cpu") -> Any:
    """Records at these points, each with its number."""
    record, _ = KINDS[x.dtype.str[1:], x.shape[1]]
    numbers = np.arange(len(x), dtype="i4")
    return record.array(position=x, number=numbers, weight=np.ones(len(x), "f4"), layout=layout, device=device)


def met(results: Any) -> Array:
    """What tells exactly which sources were met, a row a target."""
    return np.stack([np.asarray(r.get() if hasattr(r, "get") else r) for r in results[:3]], axis=1)


def expected(found: list[Array]) -> Array:
    """The same of lists of indices."""
    return np.array([(len(j), j.sum(), (j.astype(np.int64) ** 3).sum()) for j in found])

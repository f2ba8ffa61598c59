"""Reductions of pairs, their float64 NumPy answers, and inputs with ties, NaN, infinities and zeros of both signs."""

from __future__ import annotations

from typing import Any

import numpy as np

import lanewise as lw
from tests.corpus import Case, Fields, Results

Array = np.ndarray[Any, Any]


@lw.record
class Point:
    position: lw.vec3
    weight: lw.f32
    kind: lw.i32


@lw.pairwise
def extremes(
    target: Point, source: Point
) -> tuple[
    lw.Min[lw.f32], lw.Max[lw.f32], lw.ArgMin[lw.f32], lw.ArgMax[lw.f32], lw.KMin[lw.f32, 4], lw.ArgKMin[lw.f32, 3]
]:
    value = target.weight * source.weight
    return value, value, value, value, value, value


@lw.pairwise
def truths(
    target: Point, source: Point, limit: lw.i32
) -> tuple[lw.Any, lw.All, lw.Count, lw.f32, lw.Min[lw.i32], lw.ArgMax[lw.i32]]:
    near = source.kind < limit
    return near, near, near, source.weight, source.kind - target.kind, source.kind


@lw.pairwise
def soft(target: Point, source: Point) -> tuple[lw.LogSumExp[lw.f32], lw.vec3]:
    d = target.position - source.position
    return -lw.dot(d, d), d


@lw.pairwise
def boxes(target: Point, source: Point) -> tuple[lw.Min[lw.vec3], lw.ArgMax[lw.vec3], lw.Count]:
    return source.position, source.position - target.position, source.kind > target.kind


def values(a: Fields, b: Fields) -> Array:
    """The products of weights, in float32: exact ties are ties."""
    with np.errstate(all="ignore"):
        return a["weight"][:, None] * b["weight"][None, :]


def first(x: Array, sign: int) -> Array:
    """Indices of the smallest (or, with sign -1, largest) values along the second axis; -1 where none is better than
    infinity.
    """
    if not x.shape[1]:
        return np.full(len(x), -1, "i4")
    y = np.where(np.isnan(x), np.inf, sign * x.astype("f8"))
    return np.where(np.isfinite(y.min(1)) | (y.min(1) < 0), y.argmin(1), -1).astype("i4")


def smallest(x: Array, k: int) -> tuple[Array, Array]:
    """The k smallest values of each row and their indices, ties by the smaller index."""
    y = np.where(np.isnan(x), np.inf, x)
    y = np.concatenate([y, np.full((len(x), k), np.inf, x.dtype)], 1)
    order = np.argsort(y, 1, kind="stable")[:, :k]
    found = np.take_along_axis(y, order, 1) + np.float32(0)
    return found, np.where(found < np.inf, order, -1).astype("i4")


def extremes_answer(a: Fields, b: Fields, same: bool) -> Results:
    x = values(a, b)
    low = np.fmin.reduce(x, 1, initial=np.float32(np.inf)) + np.float32(0)
    high = np.fmax.reduce(x, 1, initial=np.float32(-np.inf)) + np.float32(0)
    return low, high, first(x, 1), first(x, -1), smallest(x, 4)[0], smallest(x, 3)[1]


def truths_answer(a: Fields, b: Fields, same: bool, limit: int) -> Results:
    n, near = len(a["kind"]), b["kind"] < limit
    least = np.iinfo("i4").max if not len(near) else b["kind"].min() - a["kind"]
    last = int(np.argmax(b["kind"])) if len(near) else -1
    whole = [np.full(n, near.any()), np.full(n, near.all()), np.full(n, near.sum(), "i4")]
    total = np.full(n, b["weight"].astype("f8").sum(), "f4")
    return (*whole, total, np.broadcast_to(np.int32(least), (n,)), np.full(n, last, "i4"))


def soft_answer(a: Fields, b: Fields, same: bool) -> Results:
    d = a["position"][:, None].astype("f8") - b["position"][None]
    v = -(d * d).sum(-1)
    most = v.max(1, initial=-np.inf)
    with np.errstate(all="ignore"):
        lse = most + np.log(np.exp(v - most[:, None]).sum(1))
    return np.where(np.isnan(lse), -np.inf, lse), d.sum(1)


def boxes_answer(a: Fields, b: Fields, same: bool) -> Results:
    d = b["position"][None] - a["position"][:, None]
    least = b["position"].min(0, initial=np.inf)
    last = d.argmax(1) if d.shape[1] else np.full((len(d), 3), -1)
    above = (b["kind"][None] > a["kind"][:, None]).sum(1)
    return np.broadcast_to(least, (len(d), 3)), last.astype("i4"), above.astype("i4")


def points(rng: np.random.Generator, n: int, *, hard: bool = False) -> Fields:
    weight = rng.integers(-4, 5, n).astype("f4")  # many ties, and zeros of both signs as products
    if hard and n:
        weight[rng.integers(0, n, max(1, n // 4))] = np.nan
        weight[rng.integers(0, n, max(1, n // 8))] = np.inf
    return {
        "position": rng.normal(size=(n, 3)).astype("f4"), "weight": weight, "kind": rng.integers(-5, 6, n).astype("i4")
    }  # fmt: skip


def hard_points(rng: np.random.Generator, n: int) -> Fields:
    return points(rng, n, hard=True)


CASES = [
    Case("extremes", extremes, (Point, Point), points, extremes_answer),
    Case("extremes_hard", extremes, (Point, Point), hard_points, extremes_answer),
    Case("truths", truths, (Point, Point), points, truths_answer, {"limit": 3}),
    Case("boxes", boxes, (Point, Point), points, boxes_answer),
    Case("soft", soft, (Point, Point), points, soft_answer),
]
EXACT = CASES[:4]

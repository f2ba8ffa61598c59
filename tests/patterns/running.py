"""Kernels whose rounds read what was gathered so far, with their answers in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lanewise as lw

Array = np.ndarray[Any, Any]


@lw.threadwise
def sums(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k]
        r[y, k] = s


@lw.threadwise
def sums_before(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 1.0
    for k in range(a.shape[1]):
        r[y, k] = s
        s += a[y, k] * a[y, k]


@lw.threadwise
def largest(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    m = -1e30
    for k in range(a.shape[1]):
        m = lw.max(m, a[y, k])
        r[y, k] = m


@lw.threadwise
def least_by_test(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    m = 0.75
    for k in range(a.shape[1]):
        if a[y, k] < m:
            m = a[y, k]
        r[y, k] = m


@lw.threadwise
def in_place(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(r.shape[1]):
        s += r[y, k]
        r[y, k] = s - a[y, k]


@lw.threadwise
def mean_and_spread(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    q = 0.0
    for k in range(a.shape[1]):
        v = a[y, k]
        s += v
        q += v * v
        n = lw.f32(k + 1)
        r[y, k] = q / n - (s / n) * (s / n)


@lw.threadwise
def farthest(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32], most: lw.Array1[lw.f32]):
    s = 0.0
    m = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] - 0.5
        m = lw.max(m, abs(s))
        r[y, k] = s
    most[y] = m + s


def _sums_before(a: Array, r: Array) -> Array:
    return 1.0 + np.cumsum(a * a, axis=1) - a * a


def _spread(a: Array, r: Array) -> Array:
    n = np.arange(1, a.shape[1] + 1)
    return np.cumsum(a * a, axis=1) / n - (np.cumsum(a, axis=1) / n) ** 2


ANSWERS: dict[Any, Callable[[Array, Array], Array]] = {
    sums: lambda a, r: np.cumsum(a, axis=1),
    sums_before: _sums_before,
    largest: lambda a, r: np.maximum.accumulate(a, axis=1),
    least_by_test: lambda a, r: np.minimum(np.minimum.accumulate(a, axis=1), 0.75),
    in_place: lambda a, r: np.cumsum(r, axis=1) - a,
    mean_and_spread: _spread,
}


def inputs(rows: int, columns: int, seed: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.random((rows, columns), np.float32) for _ in range(2)]


def answer(kernel: Any, given: list[Array]) -> Array:
    """What the kernel leaves in its second array."""
    a, r = (x.astype(np.float64) for x in given)
    return ANSWERS[kernel](a, r)

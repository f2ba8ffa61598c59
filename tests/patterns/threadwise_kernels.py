"""Naive kernels of many kinds, each with its arguments and what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.patterns.threadwise.kernel import Threadwise

Array = np.ndarray[Any, Any]
Arguments = dict[str, Any]


@lw.threadwise
def matmul(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x]
    c[y, x] = s


@lw.threadwise
def transpose(y: lw.index, x: lw.index, a: lw.Array2[lw.f64], c: lw.Array2[lw.f64]):
    c[y, x] = a[x, y]


@lw.threadwise
def smooth(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], weight: lw.f32):
    h, w = a.shape
    if y == 0 or x == 0 or y >= h - 1 or x >= w - 1:
        c[y, x] = a[y, x]
        return
    around = a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]
    c[y, x] = a[y, x] + weight * (around - 4 * a[y, x])


@lw.threadwise
def outer(y: lw.index, x: lw.index, u: lw.Array1[lw.f32], v: lw.Array1[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] += u[y] * v[x]


@lw.threadwise
def rows_times(y: lw.index, a: lw.Array2[lw.f64], v: lw.Array1[lw.f64], r: lw.Array1[lw.f64]):
    s = 0.0
    for k in range(len(v)):
        s += a[y, k] * v[k]
    r[y] = s


@lw.threadwise
def columns_times(x: lw.index, a: lw.Array2[lw.f64], v: lw.Array1[lw.f64], r: lw.Array1[lw.f64]):
    s = 0.0
    for k in range(len(v)):
        s += a[k, x] * v[k]
    r[x] = s


@lw.threadwise
def convolve(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], f: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = 0.0
    for j in range(f.shape[0]):
        for i in range(f.shape[1]):
            s += a[y + j, x + i] * f[j, i]
    c[y, x] = s


@lw.threadwise
def solve(x: lw.index, t: lw.Array2[lw.f64], b: lw.Array2[lw.f64]):
    for i in range(t.shape[0]):
        s = b[i, x]
        for k in range(i):
            s -= t[i, k] * b[k, x]
        b[i, x] = s / t[i, i]


@lw.threadwise
def laplace(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):
    inside = 0 < z < a.shape[0] - 1 and 0 < y < a.shape[1] - 1 and 0 < x < a.shape[2] - 1
    if not inside:
        return
    s = a[z - 1, y, x] + a[z + 1, y, x] + a[z, y - 1, x] + a[z, y + 1, x] + a[z, y, x - 1] + a[z, y, x + 1]
    c[z, y, x] = s - 6 * a[z, y, x]


@lw.function
def mean(a, b):
    return (a + b) / 2


@lw.threadwise
def green(y: lw.index, x: lw.index, raw: lw.Array2[lw.f32], g: lw.Array2[lw.f32]):
    if (y + x) % 2 == 0:
        g[y, x] = raw[y, x]
    elif x == 0:
        g[y, x] = raw[y, x + 1]
    elif x == raw.shape[1] - 1:
        g[y, x] = raw[y, x - 1]
    else:
        g[y, x] = mean(raw[y, x - 1], raw[y, x + 1])


@lw.threadwise
def collatz(i: lw.index, steps: lw.Array1[lw.i32], first: lw.i32):
    n = first + i
    count = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    steps[i] = count


@lw.threadwise
def hashed(i: lw.index, keys: lw.Array1[lw.u32], table: lw.Array1[lw.i64], out_: lw.Array1[lw.i64]):
    h = keys[i] * lw.u32(2654435761)
    h ^= h >> lw.u32(15)
    out_[i] = table[h % lw.u32(len(table))] * 3 - 1


@lw.threadwise
def gather(i: lw.index, order: lw.Array1[lw.i64], a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    j = order[i]
    if j < 0:
        return
    c[i] = a[j] if a[j] > 0.0 else -a[order[0]]


@lw.threadwise
def histogram(y: lw.index, a: lw.Array2[lw.i32], c: lw.Array2[lw.i32]):
    for k in range(a.shape[1]):
        c[y, a[y, k]] += 1


@lw.threadwise
def median(i: lw.index, a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    near = lw.zeros(lw.f32, 3)
    for k in range(3):
        near[k] = a[lw.clamp(i + k - 1, 0, len(a) - 1)]
    for j in range(2):
        for k in range(2 - j):
            if near[k] > near[k + 1]:
                swap = near[k]
                near[k] = near[k + 1]
                near[k + 1] = swap
    c[i] = near[1]


@lw.threadwise
def marked(i: lw.index, flags: lw.Array1[lw.bool], c: lw.Array1[lw.bool]):
    c[i] = not flags[i]


@lw.threadwise
def powers(y: lw.index, x: lw.index, by: lw.f64, v: lw.vec2, c: lw.Array2[lw.f64]):
    for _k in range(x):
        by = by * 2
        v = v + lw.vec2(1, y)
    c[y, x] = by + v.y


@lw.threadwise
def counted(i: lw.index, a: lw.Array1[lw.i32], c: lw.Array1[lw.i32]):
    if a[i] >= 0:
        lw.scatter_add(c, a[i], 1)


@lw.threadwise
def voted(
    y: lw.index,
    x: lw.index,
    a: lw.Array2[lw.i64],
    votes: lw.Array2[lw.i64],
    all_: lw.Array1[lw.u32],
    best: lw.Array1[lw.i32],
):
    for k in range(3):
        lw.scatter_add(votes, (k, a[y, x] % 5), a[y, x] - k)
    lw.scatter_add(all_, 0, lw.u32(3000000000))
    lw.scatter_max(best, x % 2, y)


@lw.threadwise
def ranged(
    i: lw.index, at: lw.Array1[lw.i32], v: lw.Array1[lw.f32], w: lw.Array1[lw.f64],
    low: lw.Array1[lw.f32], high: lw.Array1[lw.f32], least: lw.Array1[lw.f64], most: lw.Array3[lw.f64],
):  # fmt: skip
    lw.scatter_min(low, at[i], v[i])
    lw.scatter_max(high, at[i], v[i])
    lw.scatter_min(least, at[i], w[i])
    lw.scatter_max(most, (0, at[i], 1), w[i])


@dataclass(frozen=True)
class Case:
    """`make(rng, sizes)` gives the arguments and the grid; `expect` the written arrays, of copies that it may change."""

    kernel: Threadwise
    sizes: tuple[int, ...]
    make: Callable[..., tuple[Arguments, Any]]
    expect: Callable[..., dict[str, Array]]
    tolerance: float = 0.0

    @property
    def name(self) -> str:
        return self.kernel.__name__


def f32(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(size=shape).astype(np.float32)


def _smooth(a: Array, c: Array, weight: float) -> dict[str, Array]:
    wide = a.astype(np.float64)
    result = wide.copy()
    core = wide[1:-1, 1:-1]
    if core.size:
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        result[1:-1, 1:-1] = core + weight * (around - 4 * core)
    return {"c": result}


def _convolve(a: Array, f: Array, c: Array) -> dict[str, Array]:
    m, n = f.shape
    h, w = c.shape
    total = np.zeros((h, w))
    for j in range(m):
        for i in range(n):
            total += a[j : j + h, i : i + w].astype(np.float64) * f[j, i]
    return {"c": total}


def _solve(t: Array, b: Array) -> dict[str, Array]:
    return {"b": np.linalg.solve(np.tril(t), b) if b.size else b}


def _laplace(a: Array, c: Array) -> dict[str, Array]:
    w = a.astype(np.float64)
    if min(a.shape) > 2:
        i = slice(1, -1)
        s = w[:-2, i, i] + w[2:, i, i] + w[i, :-2, i] + w[i, 2:, i] + w[i, i, :-2] + w[i, i, 2:]
        c[i, i, i] = s - 6 * w[i, i, i]
    return {"c": c}


def _green(raw: Array, g: Array) -> dict[str, Array]:
    for y, x in np.ndindex(raw.shape):
        if (y + x) % 2 == 0:
            g[y, x] = raw[y, x]
        elif x in (0, raw.shape[1] - 1):
            g[y, x] = raw[y, x + 1 if x == 0 else x - 1]
        else:
            g[y, x] = (raw[y, x - 1] + raw[y, x + 1]) / 2
    return {"g": g}


def _collatz(steps: Array, first: int) -> dict[str, Array]:
    for i in range(len(steps)):
        n = first + i
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps[i] += 1
    return {"steps": steps}


def _hashed(keys: Array, table: Array, out_: Array) -> dict[str, Array]:
    h = keys * np.uint32(2654435761)
    h ^= h >> np.uint32(15)
    return {"out_": table[h % np.uint32(len(table))] * 3 - 1}


def _gather(order: Array, a: Array, c: Array) -> dict[str, Array]:
    taken = order >= 0
    value = a[order[taken]]
    c[taken] = np.where(value > 0, value, -a[order[0]]) if len(order) else value
    return {"c": c}


def _histogram(a: Array, c: Array) -> dict[str, Array]:
    for y in range(len(a)):
        np.add.at(c[y], a[y], 1)
    return {"c": c}


def _median(a: Array, c: Array) -> dict[str, Array]:
    if not len(a):
        return {"c": c}
    wide = np.concatenate([a[:1], a, a[-1:]])
    return {"c": np.median(np.stack([wide[:-2], wide[1:-1], wide[2:]]), axis=0).astype(np.float32)}


def _powers(by: float, v: tuple[float, float], c: Array) -> dict[str, Array]:
    y, x = np.indices(c.shape)
    return {"c": by * 2.0**x + v[1] + x * y}


def _counted(a: Array, c: Array) -> dict[str, Array]:
    np.add.at(c, a[a >= 0], 1)
    return {"c": c}


def _voted(a: Array, votes: Array, all_: Array, best: Array) -> dict[str, Array]:
    for k in range(3):
        np.add.at(votes[k], a % 5, a - k)
    all_[0] += np.uint32(3000000000 * a.size % 2**32)
    for x in range(a.shape[1]):
        best[x % 2] = max(best[x % 2], *range(len(a)))
    return {"votes": votes, "all_": all_, "best": best}


def _ranged(at: Array, v: Array, w: Array, low: Array, high: Array, least: Array, most: Array) -> dict[str, Array]:
    with np.errstate(invalid="ignore"):
        np.minimum.at(low, at, v)
        np.maximum.at(high, at, v)
    np.minimum.at(least, at, w)
    np.maximum.at(most[0, :, 1], at, w)
    return {"low": low, "high": high, "least": least, "most": most}


def _some_nan(a: Array) -> Array:
    a[3::11] = np.nan
    return a


def _of_two(kernel: Threadwise, by_row: bool) -> Case:
    def make(rng: np.random.Generator, m: int, n: int) -> tuple[Arguments, Any]:
        return {
            "a": rng.normal(size=(m, n)),
            "v": rng.normal(size=n if by_row else m),
            "r": np.zeros(m if by_row else n),
        }, (m if by_row else n)

    return Case(kernel, (19, 33), make, lambda a, v, r: {"r": a @ v if by_row else v @ a}, 1e-12)


CASES = [
    Case(matmul, (13, 7, 21), lambda rng, m, k, n: ({"a": f32(rng, m, k), "b": f32(rng, k, n), "c": f32(rng, m, n)}, (m, n)),
         lambda a, b, c: {"c": a.astype(np.float64) @ b}, 1e-5),
    Case(transpose, (13, 21), lambda rng, m, n: ({"a": rng.normal(size=(m, n)), "c": np.zeros((n, m))}, (n, m)),
         lambda a, c: {"c": a.T}),
    Case(smooth, (17, 19), lambda rng, m, n: ({"a": f32(rng, m, n), "c": np.zeros((m, n), np.float32), "weight": 0.25}, (m, n)),
         _smooth, 1e-5),
    Case(outer, (5, 37), lambda rng, m, n: ({"u": f32(rng, m), "v": f32(rng, n), "c": f32(rng, m, n)}, (m, n)),
         lambda u, v, c: {"c": c + np.multiply.outer(u, v).astype(np.float64)}, 1e-5),
    _of_two(rows_times, True), _of_two(columns_times, False),
    Case(convolve, (11, 23, 3, 5), lambda rng, h, w, m, n: ({"a": f32(rng, h + max(m, 1) - 1, w + max(n, 1) - 1), "f": f32(rng, m, n), "c": f32(rng, h, w)}, (h, w)),
         _convolve, 1e-5),
    Case(solve, (9, 17), lambda rng, m, n: ({"t": rng.normal(size=(m, m)) + 8 * np.eye(m), "b": rng.normal(size=(m, n))}, n),
         _solve, 1e-10),
    Case(laplace, (5, 7, 11), lambda rng, d, h, w: ({"a": f32(rng, d, h, w), "c": f32(rng, d, h, w)}, (d, h, w)), _laplace, 1e-5),
    Case(green, (8, 13), lambda rng, m, n: ({"raw": f32(rng, m, max(n, 2)), "g": np.zeros((m, max(n, 2)), np.float32)}, (m, max(n, 2))), _green, 1e-6),
    Case(collatz, (41,), lambda rng, n: ({"steps": np.zeros(n, np.int32), "first": 9}, n), _collatz),
    Case(hashed, (61,), lambda rng, n: ({"keys": rng.integers(0, 2**32, n, np.uint32), "table": rng.integers(-9, 9, 16), "out_": np.zeros(n, np.int64)}, (n,)),
         _hashed),
    Case(gather, (29,), lambda rng, n: ({"order": np.abs(rng.integers(-3, n + 1, n)) % max(n, 1) - (np.arange(n) % 5 == 3), "a": f32(rng, n), "c": f32(rng, n)}, n),
         _gather),
    Case(histogram, (7, 40), lambda rng, m, n: ({"a": rng.integers(0, 5, (m, n), np.int32), "c": np.ones((m, 5), np.int32)}, m), _histogram),
    Case(counted, (301,), lambda rng, n: ({"a": rng.integers(-2, 9, n, np.int32), "c": np.ones(9, np.int32)}, n), _counted),
    Case(voted, (7, 22), lambda rng, m, n: ({"a": rng.integers(-40, 40, (m, n)), "votes": np.full((3, 5), 2**62), "all_": np.ones(1, np.uint32), "best": np.zeros(2, np.int32)}, (m, n)),
         _voted),
    Case(ranged, (83,), lambda rng, n: ({"at": rng.integers(0, 5, n, np.int32), "v": _some_nan(f32(rng, n)), "w": rng.normal(size=n), "low": np.full(5, np.inf, np.float32), "high": np.full(5, -1, np.float32), "least": np.full(5, np.inf), "most": np.full((1, 5, 2), -np.inf)}, n),
         _ranged),
    Case(powers, (3, 11), lambda rng, m, n: ({"by": 1.5, "v": (1.0, 2.0), "c": np.zeros((m, n))}, (m, n)), _powers),
    Case(median, (31,), lambda rng, n: ({"a": f32(rng, n), "c": np.zeros(n, np.float32)}, n), _median),
    Case(marked, (33,), lambda rng, n: ({"flags": rng.integers(0, 2, n) > 0, "c": np.zeros(n, bool)}, n), lambda flags, c: {"c": ~flags}),
]  # fmt: skip
BY_NAME = {c.name: c for c in CASES}

"""The kernels of `bench.cpu_zoo`, as a user writes them at first."""

from __future__ import annotations

import linecache
from typing import Any

import lanewise as lw


def function_of(name: str, kind: str) -> Any:
    """One function of mathematics, of the elements of arrays."""
    two = name in ("atan2", "pow", "hypot")
    text = f"@lw.elementwise\ndef {name}_{kind}(x: lw.{kind}{f', y: lw.{kind}' * two}) -> lw.{kind}:\n    return lw.{name}(x{', y' * two})\n"
    file = f"<{name} of {kind}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"lw": lw}
    exec(compile(text, file, "exec"), scope)
    return scope[f"{name}_{kind}"]


class Point(lw.Record):
    """A place in space."""

    x: lw.vec3


class Place(lw.Record):
    """A particle above a grid, and its charge."""

    x: lw.f32
    y: lw.f32
    q: lw.f32


@lw.pairwise
def kde(y: Point, x: Point, h2: lw.f32) -> lw.f32:
    d = y.x - x.x
    return lw.exp(-0.5 * lw.dot(d, d) / h2)


@lw.threadwise
def kde_by_points(
    i: lw.index, y: lw.Array2[lw.f32], x: lw.Array2[lw.f32], h2: lw.f32, o: lw.Array1[lw.f32]
):
    s = 0.0
    for j in range(x.shape[1]):
        a = y[0, i] - x[0, j]
        b = y[1, i] - x[1, j]
        c = y[2, i] - x[2, j]
        s += lw.exp(-0.5 * (a * a + b * b + c * c) / h2)
    o[i] = s


@lw.elementwise
def deposit(p: Place, g: lw.Array2[lw.f32]):
    i = lw.i32(p.x)
    j = lw.i32(p.y)
    a = p.x - i
    b = p.y - j
    lw.scatter_add(g, (j, i), p.q * (1 - a) * (1 - b))
    lw.scatter_add(g, (j, i + 1), p.q * a * (1 - b))
    lw.scatter_add(g, (j + 1, i), p.q * (1 - a) * b)
    lw.scatter_add(g, (j + 1, i + 1), p.q * a * b)


@lw.threadwise
def scatter32(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place[i], 2 * v[i])


@lw.threadwise
def scatter64(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f64], sums: lw.Array1[lw.f64]):
    lw.scatter_add(sums, place[i], 2 * v[i])


@lw.elementwise
def deposit_in_order(p: Place, g: lw.Array2[lw.f32]):
    i = lw.i32(p.x)
    j = lw.i32(p.y)
    a = p.x - i
    b = p.y - j
    lw.scatter_add(g, (j, i), p.q * (1 - a) * (1 - b), exact=False)
    lw.scatter_add(g, (j, i + 1), p.q * a * (1 - b), exact=False)
    lw.scatter_add(g, (j + 1, i), p.q * (1 - a) * b, exact=False)
    lw.scatter_add(g, (j + 1, i + 1), p.q * a * b, exact=False)


@lw.threadwise
def in_order32(
    i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]
):
    lw.scatter_add(sums, place[i], 2 * v[i], exact=False)


@lw.threadwise
def in_order64(
    i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f64], sums: lw.Array1[lw.f64]
):
    lw.scatter_add(sums, place[i], 2 * v[i], exact=False)


@lw.elementwise
def payoff(path: lw.i32) -> lw.f32:
    return lw.max(100 * lw.exp(0.03 + 0.2 * lw.normal(7, path)) - 100, 0.0)


@lw.threadwise
def diffuse(y: lw.index, x: lw.index, old: lw.Array2[lw.f32], new: lw.Array2[lw.f32], k: lw.f32):
    if 0 < y < old.shape[0] - 1 and 0 < x < old.shape[1] - 1:
        new[y, x] = old[y, x] + k * (
            old[y - 1, x] + old[y + 1, x] + old[y, x - 1] + old[y, x + 1] - 4 * old[y, x]
        )


@lw.stencil(lw.D2Q5)
def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


@lw.threadwise
def life(y: lw.index, x: lw.index, old: lw.Array2[lw.i32], new: lw.Array2[lw.i32]):
    n = 0
    for j in range(-1, 2):
        for i in range(-1, 2):
            if i != 0 or j != 0:
                n += old[(y + j) % old.shape[0], (x + i) % old.shape[1]]
    new[y, x] = 1 if n == 3 or (old[y, x] == 1 and n == 2) else 0


@lw.threadwise
def filter5(
    y: lw.index, x: lw.index, a: lw.Array2[lw.f32], w: lw.Array2[lw.f32], c: lw.Array2[lw.f32]
):
    s = 0.0
    for j in range(5):
        for i in range(5):
            v = abs(y + j - 2)
            u = abs(x + i - 2)
            v = min(v, 2 * (a.shape[0] - 1) - v)
            u = min(u, 2 * (a.shape[1] - 1) - u)
            s += w[j, i] * a[v, u]
    c[y, x] = s


@lw.threadwise
def attend(
    y: lw.index,
    q: lw.Array2[lw.f32],
    k: lw.Array2[lw.f32],
    v: lw.Array2[lw.f32],
    o: lw.Array2[lw.f32],
):
    most = -1e30
    total = 0.0
    mean = lw.zeros(lw.f32, 64)
    for j in range(k.shape[0]):
        s = 0.0
        for c in range(64):
            s += q[y, c] * k[j, c]
        s = s * 0.125
        larger = max(most, s)
        old = lw.exp(most - larger)
        new = lw.exp(s - larger)
        total = total * old + new
        for c in range(64):
            mean[c] = mean[c] * old + new * v[j, c]
        most = larger
    for c in range(64):
        o[y, c] = mean[c] / total


@lw.threadwise
def best_of_row(y: lw.index, a: lw.Array2[lw.f32], best: lw.Array1[lw.i32]):
    most = a[y, 0]
    where = 0
    for k in range(a.shape[1]):
        if a[y, k] > most:
            most = a[y, k]
            where = k
    best[y] = where

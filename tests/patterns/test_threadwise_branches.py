"""Loops in branches that some lanes take: all go round, and those that do not take the branch keep what they have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan
from lanewise.support.errors import PlanError

f32, f64, i32, u32 = np.float32, np.float64, np.int32, np.uint32


@lw.threadwise
def product(
    y: lw.index, x: lw.index, n: lw.i32, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], d: lw.Array2[lw.f32], c: lw.Array2[lw.f32]
):  # fmt: skip
    if d[y, x] > 0.0:
        s = 0.0
        for k in range(n):
            s += a[y, k] * b[k, x]
        c[y, x] = s


@lw.threadwise
def two_sides(
    y: lw.index, x: lw.index, n: lw.i32, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], d: lw.Array2[lw.f32], c: lw.Array2[lw.f32]
):  # fmt: skip
    s = 1.0
    if d[y, x] > 0.0:
        for k in range(n):
            s = s * 0.5 + a[y, k] + k
    else:
        for k in range(2, n):
            s -= b[k, x] * (n - k)
    c[y, x] = s


@lw.threadwise
def early(
    y: lw.index, x: lw.index, n: lw.i32, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], d: lw.Array2[lw.f32], c: lw.Array2[lw.f32]
):  # fmt: skip
    if x < 3 or d[y, x] < 0.0:
        return
    for k in range(n):
        if k % 2 == 1:
            c[y, x] += b[k, x] * lw.f32(k // 2) + lw.min(k, 2)


@lw.threadwise
def triangle(
    y: lw.index, x: lw.index, n: lw.i32, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], d: lw.Array2[lw.f32], c: lw.Array2[lw.f32]
):  # fmt: skip
    if d[y, x] > 0.0:
        for j in range(n):
            for k in range(j):
                c[y, x] += a[y, k] * b[j, x] - (j & 1)


@lw.threadwise
def within(
    y: lw.index, x: lw.index, n: lw.i32, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], d: lw.Array2[lw.f32], c: lw.Array2[lw.f32]
):  # fmt: skip
    s = 0.0
    for k in range(n):
        if d[y, x] > k * 0.1:
            for j in range(k, n):
                s += b[j, x] + j - k
    c[y, x] = s


@lw.threadwise
def bounded(
    y: lw.index, x: lw.index, n: lw.i32, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], d: lw.Array2[lw.f32], c: lw.Array2[lw.f32]
):  # fmt: skip
    """Bounds that are computed within the branch."""
    if d[y, x] > 0.0:
        for k in range(1, 2 * n - 1):
            c[y, x] += k
        for k in range(lw.min(n, c.shape[1] // 8), -1, -1):
            c[y, x] -= b[k, x]


PLANS = (
    Plan(), Plan(across=0), Plan(across=4), Plan(across=16), Plan(across=8, targets=2), Plan(across=8, rows=2), Plan(across=4, targets=3, rows=8),
)  # fmt: skip


@pytest.mark.slow_cases("product-targets=3, across=4, rows=8")
@pytest.mark.grid(every=40)
@pytest.mark.parametrize("plan", PLANS, ids=Plan.short)
@pytest.mark.parametrize("kernel", [product, two_sides, early, triangle, within, bounded], ids=lambda k: k.__name__)
def test_loops_in_branches(kernel: Any, plan: Plan) -> None:
    rng = np.random.default_rng(1)
    for rows, columns, n in ((5, 37, 7), (3, 16, 0), (1, 1, 1), (9, 50, 12)):
        a, b = rng.normal(size=(rows, n + 1)).astype(f32), rng.normal(size=(n + 1, columns)).astype(f32)
        d, c = (rng.normal(size=(rows, columns)).astype(f32) for _ in range(2))
        expected = c.copy()
        for y, x in np.ndindex(rows, columns):
            kernel.python(y, x, n, a, b, d, expected)
        kernel(n, a, b, d, c, grid=(rows, columns), plan=plan)
        np.testing.assert_allclose(c, expected, rtol=2e-4, atol=2e-4)


@lw.threadwise
def wide(i: lw.index, n: lw.i32, c: lw.Array1[lw.i64]):
    if c[i] > 0:
        for k in range(n):
            c[i] += lw.i64(k) * n


def test_lanes_are_the_default_there_and_convert_what_a_loop_counts() -> None:
    c = np.array([0, 1, -1, 5] * 9, np.int64)
    expected = np.where(c > 0, c + 5 * 10, c)
    assert wide.compile(5, c, grid=len(c)).plan.across
    wide(5, c, grid=len(c))
    np.testing.assert_array_equal(c, expected)


# ------------------------------------------------------------ operations that lanes had wrong, or not at all


@lw.threadwise
def distance(i: lw.index, a: lw.Array1[lw.u32], b: lw.Array1[lw.u32], c: lw.Array1[lw.u32]):
    c[i] = lw.abs(a[i]) + abs(a[i] - b[i]) // 4


@pytest.mark.parametrize("plan", [Plan(), Plan(across=0), Plan(across=8)], ids=Plan.short)
def test_numbers_without_a_sign_are_their_own_amounts(plan: Plan) -> None:
    a = np.array([4294967295, 2147483648, 7, 0, 5], u32)
    b = np.array([1, 0, 9, 0, 1], u32)
    c = np.zeros(5, u32)
    distance(a, b, c, grid=5, plan=plan)
    np.testing.assert_array_equal(c, a + (a - b) // u32(4))


@lw.threadwise
def parts(i: lw.index, a: lw.Array1[lw.f64], c: lw.Array1[lw.f64], d: lw.Array1[lw.f64], e: lw.Array1[lw.f64]):
    c[i] = a[i] % 1.0
    d[i] = a[i] // 2
    e[i] = a[i] % math.inf


def test_quotients_of_floats_are_those_of_python() -> None:
    a = np.array([1.5, -1.5, 2.0, -0.25, 7.75, -8.0] * 4)
    c, d, e = (np.zeros_like(a) for _ in range(3))
    parts(a, c, d, e, grid=len(a))
    np.testing.assert_array_equal(c, a % 1.0)
    np.testing.assert_array_equal(d, a // 2)
    np.testing.assert_array_equal(e, [x % math.inf for x in a.tolist()])


@lw.threadwise
def fractions(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] % 1.0
    c[y] = s


def test_rows_of_quotients_of_floats() -> None:
    a = np.linspace(-3, 3, 5 * 300, dtype=f32).reshape(5, 300)
    c = np.zeros(5, f32)
    fractions(a, c, grid=5)
    np.testing.assert_allclose(c, (a % 1).sum(axis=1), rtol=1e-5)


# ------------------------------------------------------------ what lanes do not run together


@lw.function
def turned(v, by):
    return lw.vec2(v.x * by - v.y, v.y * by + v.x)


@lw.threadwise
def helped(x: lw.index, a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    v = turned(lw.vec2(a[x], 1), 0.5)
    c[x] = v.x + v.y


@lw.threadwise
def skipping(x: lw.index, n: lw.i32, a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    for k in range(n):
        if a[x] < k:
            continue
        c[x] += a[x]


@lw.threadwise
def leaving(x: lw.index, n: lw.i32, a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    for k in range(n):
        if a[x] < k:
            break
        c[x] += a[x]


@lw.threadwise
def halving(x: lw.index, a: lw.Array1[lw.f32], c: lw.Array1[lw.f32]):
    v = a[x]
    while v > 1.0:
        v *= 0.5
    c[x] = v


@pytest.mark.parametrize(
    ("kernel", "values", "reason"),
    [
        (helped, (), "it calls turned, which takes the numbers of one thread, and lanes run together"),
        (skipping, (3,), "rounds of a loop end early by continue (a branch around the rest of a round would do), and lanes run together"),
        (leaving, (3,), "a loop is left early by break, and lanes run together"),
        (halving, (), "how often a while loop runs differs, and lanes run together"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)  # fmt: skip
def test_the_reason_is_that_of_the_statement(kernel: Any, values: tuple[int, ...], reason: str) -> None:
    a = np.ones(90, f32)
    with pytest.raises(PlanError) as error:
        kernel.compile(*values, a, a.copy(), grid=90, plan=Plan(across=16))
    assert str(error.value).endswith(reason)

"""Between loops whose rounds lanes share all lanes compute the same: what has no SIMD instruction is computed once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan

f32, f64 = np.float32, np.float64


@lw.threadwise
def logarithm(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    """The logarithm of a softmax."""
    m = a[y, 0]
    for k in range(a.shape[1]):
        m = lw.max(m, a[y, k])
    s = 0.0
    for k in range(a.shape[1]):
        s += lw.exp(a[y, k] - m)
    whole = m + lw.log(s)
    for k in range(a.shape[1]):
        c[y, k] = a[y, k] - whole
    r[y] = whole


@lw.threadwise
def sides(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    """Functions in branches, of which a row takes one; the other one has no value there."""
    s = 0.0
    n = 0
    for k in range(a.shape[1]):
        s += a[y, k]
        if a[y, k] > 0.5:
            n += 1
    if s > 0.0 and n > 0:
        r[y] = lw.log(s) ** 2.5 + 100 // n
    else:
        r[y] = lw.atan2(s, n + 1.0) % 0.3
    for k in range(a.shape[1]):
        c[y, k] = s


@lw.threadwise
def rounds(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    """A loop that all lanes go round alike, and a function of the point alone."""
    s = lw.sin(lw.f32(y))
    for k in range(a.shape[1]):
        s += a[y, k] * a[y, k]
    t = s
    for j in range(3):
        t = lw.log2(t + 2.0 + j)
    for k in range(a.shape[1]):
        c[y, k] = a[y, k] * t
    r[y] = lw.cos(t) * lw.hypot(s, t)


@lw.threadwise
def kept(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    """Exponentials that two loops compute, and a function between them."""
    s = 1.0
    for k in range(a.shape[1]):
        s += lw.exp(a[y, k])
    root = lw.cbrt(s)
    for k in range(a.shape[1]):
        c[y, k] = lw.exp(a[y, k]) / root
    r[y] = root


@lw.threadwise
def precise(y: lw.index, a: lw.Array2[lw.f64], c: lw.Array2[lw.f64], r: lw.Array1[lw.f64]):
    s = lw.f64(0)
    for k in range(a.shape[1]):
        s += a[y, k]
    e = lw.exp(-s * s)
    for k in range(a.shape[1]):
        c[y, k] = a[y, k] - e
    r[y] = e


PLANS = (Plan(), Plan(slices=8), Plan(slices=32), Plan(slices=16, targets=2), Plan(slices=64, targets=4))


@pytest.mark.slow_cases("precise-targets=4, slices=64", "logarithm-neutral")
@pytest.mark.grid(every=40)
@pytest.mark.parametrize("plan", PLANS, ids=Plan.short)
@pytest.mark.parametrize("kernel", [logarithm, sides, rounds, kept, precise], ids=lambda k: k.__name__)
def test_functions_between_loops(kernel: Any, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    dtype = f64 if kernel is precise else f32
    monkeypatch.setenv("LANEWISE_THREADS", "2")
    for rows, columns in ((1, 1), (7, 37), (5, 64), (6, 2100)):
        a = np.random.default_rng(columns).normal(size=(rows, columns)).astype(dtype)
        found, expected = ((np.zeros_like(a), np.zeros(rows, dtype)) for _ in range(2))
        kernel(a, *expected, grid=rows, plan=Plan(across=0))
        kernel(a, *found, grid=rows, plan=plan)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=3e-4, atol=3e-4)


def test_a_logarithm_of_sums_has_lanes_by_default() -> None:
    a = np.random.default_rng(1).normal(size=(64, 3000)).astype(f32)
    c, r = np.empty_like(a), np.empty(64, f32)
    compiled = logarithm.compile(a, c, r, grid=64)
    assert compiled.plan.slices > 1
    assert compiled.source.count(f"@lw.log.v{compiled.plan.slices}f32(<") == 2, "declared, and called once a row"
    logarithm(a, c, r, grid=64)
    exact = np.log(np.exp(a.astype(f64)).sum(axis=1))
    np.testing.assert_allclose(r, exact, rtol=1e-6)
    np.testing.assert_allclose(c, a - exact[:, None], rtol=1e-5, atol=1e-5)


@lw.threadwise
def within(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] % 0.3
    r[y] = s


def test_functions_of_each_round_are_no_matter_of_once() -> None:
    a, r = np.ones((9, 300), f32), np.empty(9, f32)
    with pytest.raises(lw.PlanError, match=r"% of floats takes one number after the other"):
        within(a, r, grid=9, plan=Plan(slices=16))

"""`lw.rsqrt` in every pattern: a few units in the last place, and of special values what is documented."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan

NUMBERS = [0.0, -0.0, np.inf, -np.inf, -1.0, 1e-40, 1e-45, -1e-40, 1.2e-38, np.nan, 4.0, 2.0, 1e38, 3.0]


@lw.record
class Both:
    x: lw.f32
    y: lw.f64
    r: lw.f32
    s: lw.f64


@lw.elementwise
def values(x: lw.f32, y: lw.f64) -> tuple[lw.f32, lw.f64]:
    return lw.rsqrt(x), lw.rsqrt(y)


@lw.elementwise
def fields(b: Both):
    b.r = lw.rsqrt(b.x)
    b.s = lw.rsqrt(b.y)


@lw.threadwise
def points(i: lw.index, x: lw.Array1[lw.f32], r: lw.Array1[lw.f32]):
    r[i] = lw.rsqrt(x[i])


@lw.pairwise
def pairs(a: Both, b: Both) -> tuple[lw.f32, lw.f64]:
    return lw.rsqrt(a.x * b.x), lw.rsqrt(a.y * b.y)


def close(found, x):
    """A few units in the last place of usual numbers, and none below zero; of others float32 says nothing."""
    found, x = np.asarray(found), np.asarray(x)
    limits, wide = np.finfo(x.dtype), x.dtype == np.float64
    usual = (x >= limits.tiny) & (x < np.inf)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found[usual], 1 / np.sqrt(x[usual]), rtol=4 * limits.eps)
        assert np.isnan(found[x <= -limits.tiny]).all()
        assert np.isnan(found[np.isnan(x)]).all()
        if wide:
            np.testing.assert_array_equal(found[x == 0], 1 / x[x == 0])
            np.testing.assert_array_equal(found[x == np.inf], 0)


@pytest.mark.parametrize("times", [1, 3, 40])
def test_every_pattern_is_as_documented(times):
    y = np.array(NUMBERS * times)
    x = y.astype("f4")
    for found, given in zip(values(x, y), (x, y), strict=True):
        close(found, given)
    for layout in (lw.SoA(), lw.AoS()):
        rows = Both.array(x=x, y=y, layout=layout)
        fields(rows)
        close(rows.r, x)
        close(rows.s, y)
        one = Both.array(x=[1], y=[1])
        for plan in (None, Plan(targets=4)):
            sums = pairs.bind(rows, one, plan=plan)()
            close(sums[0], x)
            close(sums[1], y)
    for plan in (None, Plan(across=0), Plan(across=8, targets=2)):
        found = np.zeros_like(x)
        points(x, found, grid=len(x), plan=plan)
        close(found, x)

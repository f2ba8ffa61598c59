"""Functions without SIMD instructions have a row in every pattern of a CPU, and on a GPU none."""

from __future__ import annotations

import numpy as np

import lanewise as lw

ROW = "one number after the other, and no lanes for the loop around it"


@lw.record
class Place:
    x: lw.f32


@lw.function
def slow(x):
    return lw.gamma(x)


@lw.elementwise
def values(x: lw.f32) -> lw.f32:
    return lw.gamma(x) + lw.exp(x) + (lw.f32(1) if lw.isnan(x) else slow(2 * x))


@lw.pairwise
def pairs(a: Place, b: Place) -> lw.f32:
    return slow(a.x - b.x)


@lw.threadwise
def points(i: lw.index, a: lw.Array1[lw.f32], b: lw.Array1[lw.f32]):
    b[i] = lw.gamma(a[i])


@lw.stencil(lw.D2Q5)
def sites(t: lw.Field[lw.f32]) -> lw.f32:
    return lw.gamma(t[0]) + t[1]


@lw.elementwise
def fast(x: lw.f32) -> lw.f32:
    return lw.erf(x) + lw.pow(x, 1.5)


def rows(call):
    return [line.strip() for line in str(call.explain()).splitlines() if ROW in line]


def test_functions_that_stay_scalar_have_a_row():
    x = np.ones(64, "f4")
    place = Place.array(x=x)
    calls = [values.compile(x), pairs.compile(place, place), points.compile(x, x.copy(), grid=64)]
    calls.append(sites.compile(sites.sites((8, 8), t=np.ones((8, 8), "f4"))))
    for call in calls:
        (line,) = rows(call)
        assert line.startswith("scalar")
        assert "lw.gamma, line" in line
    assert "lines 19, 24" in rows(calls[0])[0]
    assert rows(fast.compile(x)) == []

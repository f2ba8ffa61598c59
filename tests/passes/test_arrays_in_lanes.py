"""Local arrays of points in SIMD lanes: a register for each element, and the bits of loops as they are written."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan


@lw.threadwise
def median(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    if 0 < y < a.shape[0] - 1 and 0 < x < a.shape[1] - 1:
        w = lw.zeros(lw.f32, 9)
        for j in range(3):
            for i in range(3):
                w[3 * j + i] = a[y + j - 1, x + i - 1]
        for n in range(8):
            for k in range(8 - n):
                low = lw.min(w[k], w[k + 1])
                w[k + 1] = lw.max(w[k], w[k + 1])
                w[k] = low
        b[y, x] = w[4]


@lw.threadwise
def largest(x: lw.index, a: lw.Array2[lw.f64], b: lw.Array2[lw.f64]):
    """The three largest numbers of a column: elements are set in some lanes."""
    t = lw.zeros(lw.f64, 3)
    for m in range(3):
        t[m] = -1e30
    for k in range(a.shape[0]):
        v = a[k, x]
        for m in range(3):
            if v > t[m]:
                old = t[m]
                t[m] = v
                v = old
    for m in range(3):
        b[m, x] = t[m]


@lw.threadwise
def counts(x: lw.index, a: lw.Array2[lw.u8], b: lw.Array2[lw.i32], shared: lw.Array1[lw.i32]):
    """Arrays made in every round, in a branch, and one that is the same in all lanes."""
    same = lw.zeros(lw.i32, 4)
    for m in range(4):
        same[m] = shared[m] * m
    for k in range(a.shape[0]):
        kept = lw.zeros(lw.i32, 5)
        for m in range(5):
            if a[k, x] % 4 > m:
                kept[m] = kept[m] + same[m % 4] + 1
        if a[k, x] > 100:
            other = lw.zeros(lw.i32, 2)
            other[k % 2] = kept[0] + 7
            kept[1] = other[0] - other[1]
        total = 0
        for m in range(5):
            total += kept[m] * (m + 1)
        b[k, x] = total


PLANS = [Plan(across=16), Plan(across=8, targets=2), Plan(across=4, targets=3), None]


def name_of(plan):
    return "default" if plan is None else f"{plan.across} {plan.targets}"


@pytest.mark.parametrize("plan", PLANS, ids=name_of)
def test_the_bits_are_those_of_loops(plan):
    rng = np.random.default_rng(1)
    for shape in ((1, 1), (3, 3), (5, 40), (17, 133)):
        a, found = rng.normal(size=shape).astype("f4"), []
        for each in (plan, Plan(across=0)):
            found.append(np.zeros_like(a))
            median(a, found[-1], grid=shape, plan=each)
        np.testing.assert_array_equal(found[0].view("u4"), found[1].view("u4"))
        if shape == (17, 133):
            windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3)).reshape(15, 131, 9)
            np.testing.assert_array_equal(found[0][1:-1, 1:-1], np.median(windows, -1))


@pytest.mark.parametrize("plan", PLANS, ids=name_of)
def test_elements_are_set_in_some_lanes(plan):
    rng = np.random.default_rng(2)
    for shape in ((3, 1), (10, 7), (40, 101)):
        a, top = rng.normal(size=shape), np.zeros((3, shape[1]))
        largest(a, top, grid=shape[1], plan=plan)
        np.testing.assert_array_equal(top, -np.sort(-a, axis=0)[:3])
        small, shared, found = rng.integers(0, 256, shape).astype("u1"), np.arange(4, dtype="i4"), []
        for each in (plan, Plan(across=0)):
            found.append(np.zeros(shape, "i4"))
            counts(small, found[-1], shared, grid=shape[1], plan=each)
        np.testing.assert_array_equal(*found)


def test_lanes_are_the_default():
    a, b = np.zeros((64, 256), "f4"), np.zeros((64, 256), "f4")
    assert median.compile(a, b, grid=a.shape).plan.across > 0


@lw.threadwise
def histogram(x: lw.index, a: lw.Array2[lw.i32], b: lw.Array2[lw.i32]):
    bins = lw.zeros(lw.i32, 8)
    for k in range(a.shape[0]):
        bins[a[k, x]] = bins[a[k, x]] + 1
    for m in range(8):
        b[m, x] = bins[m]


@lw.threadwise
def outside(x: lw.index, a: lw.Array1[lw.f32], b: lw.Array1[lw.f32]):
    if a[x] > 0:
        t = lw.zeros(lw.f32, 40)
        t[0] = a[x]
    else:
        t = lw.zeros(lw.f32, 40)
        t[1] = a[x]
    for k in range(40):
        b[x] = b[x] + t[k]


@lw.threadwise
def truths(x: lw.index, a: lw.Array1[lw.f32], b: lw.Array1[lw.f32]):
    t = lw.zeros(lw.bool, 40)
    for k in range(40):
        t[k] = a[x] > k
    b[x] = 1.0 if t[7] else 0.0


REASONS = {
    histogram: "it indexes local arrays|lanes touch different places of bins, a local array",
    outside: "the array t is made in a branch and used outside of it",
    truths: "the array t holds booleans, which take a bit each in a register",
}


@pytest.mark.parametrize("kernel", REASONS, ids=lambda k: k.__name__)
def test_other_arrays_say_why_they_are_scalar(kernel):
    rng = np.random.default_rng(3)
    a = rng.integers(0, 8, (20, 64)).astype("i4") if kernel is histogram else rng.normal(size=64).astype("f4")
    b = np.zeros((8, 64), "i4") if kernel is histogram else np.zeros(64, "f4")
    kernel(a, b, grid=64)
    with pytest.raises(lw.PlanError, match=REASONS[kernel]):
        kernel(a, b, grid=64, plan=Plan(across=16))

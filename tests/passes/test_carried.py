"""Extremes that carry values along, with their rounds in lanes: the bits of the loop as it is written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.explanation.calls import compile_call
from lanewise.planning.plan import Plan
from tests.fuzz.texts import executed


@lw.threadwise
def largest(y: lw.index, a: lw.Array2[lw.f32], best: lw.Array1[lw.i32], value: lw.Array1[lw.f32]):
    most = a[y, 0]
    where = 0
    for k in range(a.shape[1]):
        if a[y, k] > most:
            most = a[y, k]
            where = k
    best[y] = where
    value[y] = most


@lw.threadwise
def nearest(y: lw.index, a: lw.Array2[lw.f64], b: lw.Array2[lw.f64], to: lw.Array2[lw.f64], place: lw.Array1[lw.i32]):
    """Two extremes, one of which carries a number that was loaded; and a sum beside them."""
    low = lw.f64(1e300)
    beside = lw.f64(-1.0)
    where = -1
    high = lw.f64(-1e300)
    last = -7
    total = lw.f64(0.0)
    for k in range(1, a.shape[1]):
        d = (a[y, k] - 0.5) * (a[y, k] - 0.5)
        total += d
        if d < low:
            low = d
            beside = b[y, k] * 2.0
            where = k + 5
        if high < b[y, k]:
            high = b[y, k]
            last = k
    to[y, 0] = low
    to[y, 1] = beside
    to[y, 2] = high
    to[y, 3] = total
    place[y] = where * 10000 + last


@lw.threadwise
def smallest(y: lw.index, a: lw.Array2[lw.i32], found: lw.Array2[lw.i32], limit: lw.i32):
    least = limit
    where = lw.i32(-1)
    other = lw.i32(-2)
    for k in range(a.shape[1]):
        v = a[y, k] * 3
        if v < least:
            least = v
            where = k
            other = a[y, k] + k
    found[y, 0] = least
    found[y, 1] = where
    found[y, 2] = other


@lw.threadwise
def last(y: lw.index, a: lw.Array2[lw.f32], best: lw.Array1[lw.i32], value: lw.Array1[lw.f32]):
    """Of equal ones the last, of the smallest; -1 where there is no number."""
    low = math.inf
    where = -1
    for k in range(a.shape[1]):
        if low >= a[y, k]:
            low = a[y, k]
            where = k
    best[y] = where
    value[y] = low


def rows(kind: str, shape: tuple[int, int], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if kind == "ties":
        return rng.integers(-2, 3, shape).astype("f4") * np.float32(0.0 if seed % 2 else 1.0)
    if kind == "NaN":
        a = rng.normal(size=shape).astype("f4")
        a[rng.random(shape) < 0.4] = np.nan
        return a
    if kind == "infinite":
        return rng.choice(np.array([-np.inf, np.inf, 1.0, -0.0, 0.0], "f4"), shape)
    if kind == "alike":
        return np.full(shape, -np.inf if seed % 2 else np.inf, "f4")
    return rng.normal(size=shape).astype("f4")


def same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("slices", [4, 16, 32, 64])
@pytest.mark.parametrize("kind", ["plain", "ties", "NaN", "infinite", "alike"])
def test_places_of_extremes_have_the_same_bits(kind, slices):
    for n, columns in enumerate((1, 3, 31, 64, 65, 300)):
        a = rows(kind, (7, columns), n)
        for kernel in (last, largest):
            found = []
            for plan in (Plan(slices=1), Plan(slices=slices)):
                best, value = np.full(7, -9, "i4"), np.zeros(7, "f4")
                kernel(a, best, value, grid=7, plan=plan)
                found.append((best, value))
            same(found[0][0], found[1][0])
            same(found[0][1], found[1][1])
        if kind == "plain":
            np.testing.assert_array_equal(found[1][0], a.argmax(1))


@pytest.mark.parametrize("slices", [8, 32])
def test_several_extremes_and_what_they_carry(slices):
    for n, columns in enumerate((1, 2, 9, 70, 301)):
        a, b = rows("ties", (5, columns), 2 * n).astype("f8"), rows("NaN", (5, columns), n).astype("f8")
        found = []
        for plan in (Plan(slices=1), Plan(slices=slices)):
            out, place = np.zeros((5, 4)), np.zeros(5, "i4")
            nearest(a, b, out, place, grid=5, plan=plan)
            found.append((out, place))
        same(found[0][0][:, :3], found[1][0][:, :3])
        same(found[0][1], found[1][1])
        np.testing.assert_allclose(found[0][0][:, 3], found[1][0][:, 3], rtol=1e-12)
        whole = rows("ties", (5, columns), 2 * n).astype("i4")
        for limit in (-(2**31), -3, 2**31 - 1):
            both = [np.zeros((5, 3), "i4") for _ in range(2)]
            smallest(whole, both[0], limit, grid=5, plan=Plan(slices=1))
            smallest(whole, both[1], limit, grid=5, plan=Plan(slices=slices))
            same(*both)


def test_lanes_are_the_default_of_long_rows():
    a = rows("plain", (64, 1000), 1)
    best, value = np.zeros(64, "i4"), np.zeros(64, "f4")
    assert largest.compile(a, best, value, grid=64).plan.slices > 1


@lw.threadwise
def read_again(y: lw.index, a: lw.Array2[lw.f32], best: lw.Array1[lw.i32]):
    most = a[y, 0]
    where = 0
    for k in range(a.shape[1]):
        if a[y, k] > most:
            most = a[y, k]
            where = where + 1
    best[y] = where


@lw.threadwise
def counted(y: lw.index, a: lw.Array2[lw.f32], best: lw.Array1[lw.i32]):
    most = a[y, 0]
    where = 0
    for k in range(a.shape[1]):
        if a[y, k] > most:
            most = a[y, k]
            where = k
        if where > 3:
            most = most + 1.0
    best[y] = where


@pytest.mark.parametrize("kernel", [counted, read_again], ids=lambda k: k.__name__)
def test_other_loops_say_why_they_are_scalar(kernel):
    a, best = rows("plain", (64, 1000), 1), np.zeros(64, "i4")
    assert kernel.compile(a, best, grid=64).plan.slices == 1
    with pytest.raises(lw.PlanError, match="keeps a value from one round to the next"):
        kernel(a, best, grid=64, plan=Plan(slices=32))


OF_VALUES = {
    "absolute": "abs(a[y, k])",
    "weighted": "a[y, k] * b[k]",
    "square": "(a[y, k] - b[k]) * (a[y, k] - b[k])",
    "growth": "lw.exp(a[y, k])",
}
PLACE = """@lw.threadwise
def kernel(y: lw.index, a: lw.Array2[lw.f32], b: lw.Array1[lw.f32], place: lw.Array1[lw.i32], value: lw.Array1[lw.f32]):
    m = a[y, 0]
    w = -1
    for k in range(a.shape[1]):
        if {e} > m:
            m = {e}
            w = k
    place[y] = w
    value[y] = m
"""


@pytest.mark.parametrize("e", OF_VALUES.values(), ids=OF_VALUES)
def test_what_is_compared_may_be_computed_twice(e: str) -> None:
    """The text has it in the test and in the branch; it is one value."""
    with executed(PLACE.format(e=e), "place.py") as names:
        for n, kind in enumerate(("plain", "ties", "NaN", "infinite")):
            a = rows(kind, (6, 130), n)
            found = []
            for plan in (Plan(slices=1), Plan(slices=32)):
                place, value = np.zeros(6, "i4"), np.zeros(6, "f4")
                names.kernel(a, rows("plain", (1, 130), 5)[0], place, value, grid=6, plan=plan)
                found.append((place, value))
            same(found[0][0], found[1][0])
            same(found[0][1], found[1][1])
        offline = compile_call(names.kernel, a, a[0].copy(), place, value, grid=6, device="cuda", arch="sm_90")
        assert offline.executable.program.plan.slices > 1

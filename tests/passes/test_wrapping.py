"""Edges by remainders: points in lanes give what loops do as they are written, at any size."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan


@lw.threadwise
def life(y: lw.index, x: lw.index, old: lw.Array2[lw.u8], new: lw.Array2[lw.u8]):
    n = 0
    for j in range(-1, 2):
        for i in range(-1, 2):
            if i != 0 or j != 0:
                n += old[(y + j) % old.shape[0], (x + i) % old.shape[1]]
    new[y, x] = 1 if n == 3 or (old[y, x] == 1 and n == 2) else 0


@lw.threadwise
def ring(x: lw.index, a: lw.Array1[lw.f64], b: lw.Array1[lw.f64], far: lw.i32):
    n = len(a)
    b[x] = a[(x + 1) % n] - 2 * a[x] + a[(x - 1 + n) % n] + 0.5 * a[(x + far) % n] + a[(x - 37) % n]


@lw.threadwise
def box(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], b: lw.Array3[lw.f32]):
    d, h, w = a.shape
    b[z, y, x] = a[z, y, x] + 0.1 * (
        a[(z + 1) % d, y, x] + a[(z - 1) % d, y, x]
        + a[z, (y + 1) % h, x] + a[z, (y - 1) % h, x]
        + a[z, y, (x + 1) % w] + a[z, y, (x - 1) % w] - 6 * a[z, y, x]
    )  # fmt: skip


@lw.threadwise
def masked(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], step: lw.i32):
    if a[y, x] > 0:
        b[y, x] = a[(2 * y + step) % a.shape[0], (x + step) % a.shape[1]] + a[y % 3, x]


def rolled(a: Any, *shift: int) -> Any:
    return np.roll(a, tuple(-s for s in shift), tuple(range(len(shift))))


PLANS = [None, Plan(across=16), Plan(across=8, rows=3, targets=2), Plan(across=4, targets=3)]
SHAPES = [(1, 1), (1, 40), (5, 16), (7, 17), (3, 33), (40, 100)]


@pytest.mark.slow_cases("8 3 2", "4 None 3")
@pytest.mark.parametrize("plan", PLANS, ids=lambda p: "default" if p is None else f"{p.across} {p.rows} {p.targets}")
def test_planes_go_round(plan):
    rng = np.random.default_rng(3)
    for shape in SHAPES:
        old = rng.integers(0, 2, shape).astype("u1")
        new, n = np.full(shape, 7, "u1"), np.zeros(shape, int)
        for j in (-1, 0, 1):
            for i in (-1, 0, 1):
                n += rolled(old, j, i) if i or j else 0
        life(old, new, grid=shape, plan=plan)
        np.testing.assert_array_equal(new, (n == 3) | ((old == 1) & (n == 2)))
        a = rng.normal(size=shape).astype("f4")
        for step in (1, 20, -300):
            b, rows = np.zeros_like(a), (2 * np.arange(shape[0]) + step) % shape[0]
            if shape[0] < 3:
                continue
            masked(a, b, step, grid=shape, plan=plan)
            right = a[rows][:, (np.arange(shape[1]) + step) % shape[1]] + a[np.arange(shape[0]) % 3]
            np.testing.assert_array_equal(b, np.where(a > 0, right, 0))


@pytest.mark.slow_cases("4 4")
@pytest.mark.parametrize("plan", [None, Plan(across=8), Plan(across=4, targets=4)], ids=["default", "8", "4 4"])
def test_rows_go_round(plan):
    rng = np.random.default_rng(4)
    for n in (1, 7, 9, 36, 37, 200, 1001):
        a = rng.integers(-99, 99, n).astype("f8")
        for far in (0, 3, -3, 500, -(2**31), 2**31 - 1):
            b = np.zeros(n)
            ring(a, b, far, grid=n, plan=plan)
            # integers of 32 bits wrap before their remainder is taken
            place = (np.arange(n, dtype=np.int64) + far).astype("i4").astype("i8") % n
            right = rolled(a, 1) - 2 * a + rolled(a, -1) + 0.5 * a[place] + rolled(a, -37)
            np.testing.assert_array_equal(b, right)


@pytest.mark.parametrize("plan", [None, Plan(across=16, rows=2)], ids=["default", "16 2"])
def test_boxes_go_round(plan):
    rng = np.random.default_rng(5)
    for shape in ((1, 1, 1), (2, 3, 5), (4, 5, 16), (3, 4, 50), (6, 6, 130)):
        a = rng.normal(size=shape).astype("f4")
        found = []
        for each in (plan, Plan(across=0)):
            found.append(np.zeros_like(a))
            box(a, found[-1], grid=shape, plan=each)
        np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-6)
        near = sum(rolled(a, *s) + rolled(a, *(-x for x in s)) for s in ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
        np.testing.assert_allclose(found[0], a + 0.1 * (near - 6 * a), rtol=1e-5, atol=1e-5)


def made(text: str) -> Any:
    file = f"<{hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"lw": lw}
    exec(compile(text, file, "exec"), scope)
    return lw.threadwise(scope["named"])


NAMED = {
    "once": ("left = (x - 1) % w\n    b[y, x] = a[y, left]", lambda a: rolled(a, 0, -1), True),
    "rows, and twice": (
        "up = (y - 1) % h\n    right = (x + 1) % w\n    b[y, x] = a[up, x] + 2 * a[y, right] - a[up, right]",
        lambda a: rolled(a, -1) + 2 * rolled(a, 0, 1) - rolled(a, -1, 1),
        True,
    ),
    "two at once": (
        "left, right = (x - 1) % w, (x + 1) % w\n    b[y, x] = a[y, left] - a[y, right]",
        lambda a: rolled(a, 0, -1) - rolled(a, 0, 1),
        True,
    ),
    "another name that changes": (
        "right = (x + 1) % w\n    to = right\n    s = a[y, to]\n    to = 0\n    b[y, x] = s + a[y, to]",
        lambda a: rolled(a, 0, 1) + a[:, :1],
        None,
    ),
    "in a loop": (
        "s = 0\n    for k in range(3):\n        to = (x + k) % w\n        s += a[y, to]\n    b[y, x] = s",
        lambda a: a + rolled(a, 0, 1) + rolled(a, 0, 2),
        True,
    ),
    "in a branch": (
        "right = (x + 1) % w\n    s = a[y, x]\n    if s > 0:\n        s += a[y, right]\n    b[y, x] = s",
        lambda a: np.where(a > 0, a + rolled(a, 0, 1), a),
        None,
    ),
    "more than an index": (
        "right = (x + 1) % w\n    b[y, x] = a[y, right] + right",
        lambda a: rolled(a, 0, 1) + (np.arange(a.shape[1]) + 1) % a.shape[1],
        False,
    ),
    "read behind the loop": (
        "to = 0\n    s = 0\n    for k in range(3):\n        to = (x + k) % w\n        s += a[y, to]\n"
        "    b[y, x] = s - a[y, to]",
        lambda a: a + rolled(a, 0, 1),
        False,
    ),
    "of what changes later": (
        "k = 1\n    to = (x + k) % w\n    k = 2\n    b[y, x] = a[y, to] + k",
        lambda a: rolled(a, 0, 1) + 2,
        None,
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_remainders_with_names_are_what_they_are_in_place(name):
    """lanes: whether the default takes them; None where that is left open."""
    text, wanted, lanes = NAMED[name]
    kernel = made(
        "def named(y: lw.index, x: lw.index, a: lw.Array2[lw.i32], b: lw.Array2[lw.i32]):\n"
        f"    h, w = a.shape\n    {text}\n"
    )
    rng = np.random.default_rng(7)
    for shape in SHAPES:
        a, b = rng.integers(-99, 99, shape).astype("i4"), np.full(shape, -1, "i4")
        kernel(a, b, grid=shape)
        np.testing.assert_array_equal(b, wanted(a))
    a, b = np.zeros((64, 256), "i4"), np.zeros((64, 256), "i4")
    if lanes is not None:
        assert (kernel.compile(a, b, grid=a.shape).plan.across > 0) == lanes


def test_lanes_are_the_default():
    a, b = np.zeros((64, 256), "u1"), np.zeros((64, 256), "u1")
    assert life.compile(a, b, grid=a.shape).plan.across > 0


@lw.threadwise
def elsewhere(x: lw.index, a: lw.Array1[lw.f32], b: lw.Array1[lw.f32], n: lw.Array1[lw.i32]):
    b[x] = a[(x + n[0]) % len(a)] + x % 3


def test_other_remainders_say_why_they_are_scalar():
    a, b, n = np.arange(100, dtype="f4"), np.zeros(100, "f4"), np.ones(1, "i4")
    with pytest.raises(lw.PlanError, match="% by anything but a power of two takes one number after the other"):
        elsewhere(a, b, n, grid=100, plan=Plan(across=16))
    elsewhere(a, b, n, grid=100)
    np.testing.assert_array_equal(b, np.roll(a, -1) + np.arange(100) % 3)

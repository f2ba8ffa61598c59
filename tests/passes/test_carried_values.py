"""Threads of a GPU share loops whose extremes carry values along: they find what one thread finds, ties and all."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.language.target import CUDA, Machine
from lanewise.passes import loop_sharing, loop_splitting
from lanewise.passes.shared_loops import Sharing
from lanewise.patterns.tables.names import length_of
from lanewise.planning.plan import NEUTRAL, Plan
from tests.passes.ptx import check_cubin
from tests.patterns.reductions import reference, run

Array = np.ndarray[Any, Any]
F32 = np.float32


@lw.threadwise
def first_largest(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    m = a[y, 0]
    w = 0
    for k in range(a.shape[1]):
        if a[y, k] > m:
            m = a[y, k]
            w = k
    r[y, 0] = m
    r[y, 1] = lw.f32(w)


@lw.threadwise
def last_smallest(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    m = 1e30
    w = -1
    for k in range(a.shape[1]):
        e = a[y, k] * 0.5
        if e <= m:
            m = e
            w = k
    r[y, 0] = m
    r[y, 1] = lw.f32(w)


@lw.threadwise
def several_along(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    m = -1e30
    w = -7
    b = 0.25
    s = 0.0
    n = 0
    for k in range(a.shape[1]):
        e = a[y, k]
        if e > m:
            m = e
            w = k
            b = a[y, 0] - e
        if e > 0.0:
            n += 1
        s = lw.max(s, e)
    r[y, 0] = m + s
    r[y, 1] = lw.f32(w) * b + lw.f32(n)


@lw.threadwise
def both_ends(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    m = a[y, 0]
    w = 0
    for k in range(1, a.shape[1]):
        if a[y, k] < m:
            m = a[y, k]
            w = k
    h = m
    v = w
    for k in range(a.shape[1]):
        if a[y, k] >= h:
            h = a[y, k]
            v = k
    r[y, 0] = h - m
    r[y, 1] = lw.f32(v * 1000 + w)


@lw.threadwise
def of_columns(x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    m = -1e30
    w = -1
    for k in range(a.shape[0]):
        if m < a[k, x]:
            m = a[k, x]
            w = k
    r[x, 0] = m
    r[x, 1] = lw.f32(w)


@lw.threadwise
def through_elements(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    """What is carried is an element whose place another element says."""
    m = a[y, 0]
    w = 5.0
    for k in range(a.shape[1]):
        if a[y, k] > m:
            m = a[y, k]
            w = a[y, lw.clamp(lw.i32(a[y, a.shape[1] - 1 - k]), 0, a.shape[1] - 1)]
    r[y, 0] = m
    r[y, 1] = w


KERNELS = (first_largest, last_smallest, several_along, both_ends, of_columns, through_elements)
SHARED = (
    Sharing("row", 8, 4), Sharing("row", 32, 2, unroll=2), Sharing("row", 128, 1, unroll=4), Sharing("column", 4, 8),
    Sharing("column", 16, 4),
)  # fmt: skip
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)


def values(kind: str, m: int, n: int) -> Array:
    """Rows with ties, and with what compares in ways of its own."""
    rng = np.random.default_rng(n * 7 + m)
    a = rng.integers(-2, 3, (m, n)).astype(F32)
    if kind == "odd":
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0], F32)
        a = odd[rng.integers(0, len(odd), (m, n))]
    return -np.abs(a) - 1 if kind == "below" else a


def shapes(kernel: Any, *of_rows: tuple[int, int]) -> list[tuple[int, int]]:
    """Of few points with loops of many lengths; along columns up to eight points, which several blocks have."""
    return [(n, 8 if n == 40 else m) for m, n in of_rows] if kernel is of_columns else list(of_rows)


def given(kernel: Any, a: Array) -> tuple[tuple[Array, Array], int]:
    points = a.shape[1] if kernel is of_columns else a.shape[0]
    return (a, np.full((points, 2), 77, F32)), points


@pytest.mark.grid(every=100)
@each_kernel
@pytest.mark.parametrize("kind", ["ties", "odd", "below"])
@pytest.mark.parametrize("multiple", [1, 4])
def test_threads_find_what_one_thread_finds(kernel, kind, multiple):
    for m, n in shapes(kernel, (3, 40), (5, 1), (2, 132)):
        arguments, grid = given(kernel, values(kind, m, n))
        text = reference(kernel, arguments, grid, multiple=multiple)
        alone = run((text,), kernel, arguments, grid)[-1]
        for sharing in SHARED:
            found = run((loop_sharing.apply(text, sharing),), kernel, arguments, grid)[-1]
            np.testing.assert_array_equal(found, alone, err_msg=f"{sharing} {(m, n)}")


@pytest.mark.grid(every=9)
@pytest.mark.parametrize("kernel", [first_largest, several_along, of_columns], ids=lambda k: k.__name__)
@pytest.mark.parametrize("kind", ["ties", "odd", "below"])
def test_parts_find_what_one_thread_finds(kernel, kind):
    for (m, n), parts in product(shapes(kernel, (3, 40), (4, 1), (2, 150)), (2, 5)):
        arguments, grid = given(kernel, values(kind, m, n))
        text = reference(kernel, arguments, grid)
        alone = run((text,), kernel, arguments, grid)[-1]
        first, second = loop_splitting.apply(text, parts)
        for one in (SHARED[0], Sharing("row", 64, 1), SHARED[3]):
            kernels = loop_sharing.apply(first, one), loop_sharing.apply(second, SHARED[0])
            found = run(kernels, kernel, arguments, grid)[-1]
            np.testing.assert_array_equal(found, alone, err_msg=f"{one} {(m, n)} {parts}")


def test_the_last_of_equal_elements_is_not_found_by_parts():
    arguments, grid = given(last_smallest, values("ties", 3, 40))
    reason = loop_splitting.legal(reference(last_smallest, arguments, grid), 4)
    assert reason == (
        "m carries along what belongs to the last of equal elements, and a part that found none looks like one that did"
    )


@pytest.mark.grid(every=40)
@each_kernel
@pytest.mark.parametrize("shape", [(4_096, 1_000), (2, 1 << 20)])
def test_default_plans_share_long_rows(kernel, shape):
    """As those of a maximum without a place."""
    if kernel is of_columns:
        shape = shape[::-1]
    arguments, grid = given(kernel, np.zeros((3, 64), F32))
    text = reference(kernel, arguments, grid)
    points = shape[1] if kernel is of_columns else shape[0]
    lengths = {length_of("a", d): np.int32(n) for d, n in enumerate(shape)}
    lengths |= {length_of("r", 0): np.int32(points), length_of("r", 1): np.int32(2)}
    work = describe_work(text, points, CUDA).at(lengths, points)
    plan = complete_plan(Plan(), Machine("cuda", 132), work)
    assert plan.slices * plan.parts > 1
    for k in build_program(text, plan, "cuda").kernels:
        check_cubin(k)


@each_kernel
def test_plans_that_a_user_names(kernel):
    arguments, grid = given(kernel, values("ties", *((90, 3) if kernel is of_columns else (3, 90))))
    text = reference(kernel, arguments, grid)
    alone = run((text,), kernel, arguments, grid)[-1]
    for wish in (Plan(block=64, slices=32), Plan(block=64, slices=64), Plan(block=64, slices=8, unroll=4)):
        program = build_program(text, wish.filled(NEUTRAL), "cuda")
        np.testing.assert_array_equal(run(program.kernels, kernel, arguments, grid)[-1], alone)

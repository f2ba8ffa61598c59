"""Squares: whatever is turned, on whatever shapes, is what NumPy makes of it, and comes to memory in whole lines."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.emit.llvm_vectors import FAR
from lanewise.ir.printer import print_kernel
from lanewise.planning.plan import Plan
from lanewise.support.errors import PlanError
from tests.emit.comments import comments
from tests.lines import part_of_memory
from tests.patterns.threadwise import stages

EXTENTS = st.sampled_from([0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 70])
SQUARES = [Plan(across=4, rows=4), Plan(across=8, rows=8), Plan(across=16, rows=16)]
PLANS = [*SQUARES, Plan(across=4, rows=4, tile=8), Plan(across=8, rows=8, tile=64)]
some_plans = pytest.mark.parametrize(
    "plans", [[PLANS[0], PLANS[4]], pytest.param(PLANS[1:4], marks=pytest.mark.slow)], ids=["few", "others"]
)


@lw.threadwise
def write_turned(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[x, y] = a[y, x]


@lw.threadwise
def symmetric(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32], d: lw.Array2[lw.f32]):
    mean = 0.5 * (a[y, x] + a[x, y])
    c[y, x] = mean
    d[x, y] = a[y, x] - mean


@lw.threadwise
def read_turned(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[x, y]


@lw.threadwise
def summed(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[x, y] + b[y, x]


@lw.threadwise
def looked_up(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    row = y // 2
    c[x, y] = a[row, x]


@lw.threadwise
def only_below(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    if x < y:
        c[y, x] = a[x, y]


@lw.threadwise
def added(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] += a[x, y]


@lw.threadwise
def shifted(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x + 1] = a[x, y]


@lw.threadwise
def numbered(y: lw.index, x: lw.index, c: lw.Array2[lw.f32]):
    c[x, y] = lw.f32(y * 100 + x)


@lw.threadwise
def widened(y: lw.index, x: lw.index, a: lw.Array2[lw.i32], b: lw.Array2[lw.i32], c: lw.Array2[lw.i64]):
    c[x, y] = lw.i64(a[y, x]) - lw.i64(b[x, y])


@lw.threadwise
def mixed(
    y: lw.index, x: lw.index, a: lw.Array2[lw.i32], b: lw.Array2[lw.f64], c: lw.Array2[lw.f32], d: lw.Array2[lw.f64]
):
    d[y, x] = lw.f64(a[y, x]) + b[x, y] + c[x, y]


@lw.threadwise
def twice(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = 0.0
    c[y, x] = a[x, y]


def numbers(*shape: int) -> Any:
    values = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    values.reshape(-1)[::7] = np.nan
    values.reshape(-1)[1::11] = -np.inf
    return values


@some_plans
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(EXTENTS, EXTENTS, st.integers(0, 5))
def test_what_is_written_in_columns(plans: list[Plan], m: int, n: int, number: int) -> None:
    plan = plans[number % len(plans)]
    a, c = numbers(m, n), np.full((n, m), 7, np.float32)
    write_turned(a, c, grid=(m, n), plan=plan)
    np.testing.assert_array_equal(c, a.T)


@some_plans
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(EXTENTS, st.integers(0, 5))
def test_reads_and_writes_in_both_directions(plans: list[Plan], n: int, number: int) -> None:
    plan = plans[number % len(plans)]
    a = np.random.default_rng(n).normal(size=(n, n)).astype(np.float32)
    results = []
    for chosen in (plan, Plan(across=0)):
        c, d = np.zeros_like(a), np.zeros_like(a)
        symmetric(a, c, d, grid=(n, n), plan=chosen)
        results.append((c, d))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("plan", [Plan(across=4, rows=4, tile=8), Plan(across=8, rows=8)], ids=["tiles", "registers"])
@pytest.mark.parametrize("n", [5, 16, 37])
def test_squares_of_several_types_in_one_kernel(n: int, plan: Plan) -> None:
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-(2**31), 2**31, (n, n)).astype(np.int32) for _ in range(2))
    c, d = np.zeros((n, n), np.int64), rng.normal(size=(n, n))
    of_all = np.zeros((n, n))
    widened(a, b, c, grid=(n, n), plan=plan)
    mixed(a, d, b.astype(np.float32), of_all, grid=(n, n), plan=plan)
    np.testing.assert_array_equal(c, a.T.astype(np.int64) - b)
    np.testing.assert_array_equal(of_all, a + d.T + b.astype(np.float32).T)


@pytest.mark.parametrize("before", [0, 1, 4, 15])
def test_tiles_of_arrays_that_begin_within_a_line(before: int) -> None:
    m, n = 37, 70
    a = numbers(m, n)
    part = part_of_memory((n, m), before)
    write_turned(a, part.array, grid=(m, n), plan=Plan(across=16, rows=16, tile=32))
    np.testing.assert_array_equal(part.array, a.T)
    part.assert_nothing_beside()


def test_a_part_of_an_array_is_written_and_the_rest_stays() -> None:
    a, c = numbers(40, 50), np.full((60, 70), 7, np.float32)
    write_turned(a, c, grid=(33, 21), plan=Plan(across=4, rows=4, tile=8))
    np.testing.assert_array_equal(c[:21, :33], a[:33, :21].T)
    c[:21, :33] = 7
    assert (c == 7).all()


def test_points_beyond_the_end_use_their_own_index() -> None:
    c = np.zeros((21, 33), np.float32)
    numbered(c, grid=(33, 21), plan=Plan(across=4, rows=4, tile=8))
    np.testing.assert_array_equal(c, np.arange(33) * 100 + np.arange(21)[:, None])


@pytest.mark.parametrize(("n", "plan", "stores"), [
    (2052, "tile=1024, across=8, rows=8", "align 16, !nontemporal"), (2064, "across=8, rows=8", "align 32, !nontemporal"),
], ids=["rows begin anywhere", "rows are lines"])  # fmt: skip
def test_large_arrays_go_past_the_caches_by_default(n: int, plan: str, stores: str) -> None:
    assert n * n * 4 > FAR
    a, c = numbers(n, n), np.zeros((n, n), np.float32)
    run = write_turned.bind(a, c, grid=(n, n), plan=Plan(vector_bits=256))
    assert run.compiled.plan.short().startswith(plan)
    assert stores in run.compiled.source
    assert ("align 16, !nontemporal" in run.compiled.source) == ("align 16" in stores), "whole lines alone"
    run()
    np.testing.assert_array_equal(c, a.T)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize(("before", "read"), [(0, 9), (1, 1), (4, 4), (15, 0)])
@pytest.mark.parametrize("kernel", [write_turned, read_turned])
def test_squares_begin_with_the_lines_of_both_arrays(kernel: Any, before: int, read: int) -> None:
    """Long rows of whole lines, wherever both arrays begin: the first and the last squares hang over both ends."""
    m, n = 2080, 2064
    a, part = part_of_memory((m, n), read).array, part_of_memory((n, m), before)
    a[...] = numbers(m, n)
    kernel(a, part.array, grid=(m, n) if kernel is write_turned else (n, m), plan=Plan(across=16, rows=16))
    np.testing.assert_array_equal(part.array, a.T)
    part.assert_nothing_beside()


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("plan", SQUARES, ids=Plan.short)
@pytest.mark.parametrize("kernel", [added, shifted, twice])
def test_squares_that_write_to_memory_need_no_element_of_their_own(kernel: Any, plan: Plan) -> None:
    a, results = numbers(37, 37), list[Any]()
    for chosen in (plan, Plan(across=0)):
        c = np.arange(37 * 38, dtype=np.float32).reshape(37, 38)
        kernel(a, c, grid=(37, 37), plan=chosen)
        results.append(c)
    np.testing.assert_array_equal(*results)


def test_edges_are_turned_in_registers_too() -> None:
    a, c = numbers(21, 33), np.zeros((33, 21), np.float32)
    run = write_turned.bind(a, c, grid=a.shape, plan=Plan(across=4, rows=4))
    _, _, edge = run.compiled.source.partition("else:")
    assert comments(edge).count("        4 rows of as many elements, turned in registers") == 1
    assert edge.count("call void @llvm.masked.store.v4f32") == 4
    assert "one lane after the other" not in edge
    run()
    np.testing.assert_array_equal(c, a.T)


def test_what_the_next_tile_reads_is_asked_for() -> None:
    """With each square as many lines as it reads, of every array, row by row; not in kernels that gather tiles."""
    text = stage_text(write_turned, Plan(across=16, rows=16))
    assert re.findall(r"prefetch a\[(.*?)\]", text) == [
        f"$next.y.a, $next.x.a{f' + {n}' if n else ''}" for _ in range(2) for n in range(0, 128, 16)
    ]
    assert "$next.y.a: i32 = $next.y.begin + $square * 2\n" in text
    assert "$next.y.a: i32 = $next.y.begin + ($square * 2 + 1)\n" in text
    both = stage_text(summed, Plan(across=16, rows=16))
    assert both.count("prefetch a[") == both.count("prefetch b[") == 16
    assert "prefetch" not in stage_text(write_turned, Plan(across=16, rows=16, tile=64))
    assert "prefetch" not in stage_text(looked_up, Plan(across=16, rows=16)), "a place that a point computes"


def stage_text(kernel: Any, plan: Plan) -> str:
    """The kernel in lanes, as text."""
    arrays = {n: np.zeros((40, 40), np.float32) for n in kernel.signature.arrays}
    compiled = kernel.compile(**arrays, grid=(40, 40), plan=plan)
    return print_kernel(stages(compiled.reference, plan, "cpu")["SIMD lanes"])


@pytest.mark.parametrize(("kernel", "plan", "reason"), [
    (only_below, Plan(across=4, rows=4, tile=8), "do not touch neighbouring elements of a"),
    (only_below, Plan(across=4, rows=4), "do not touch neighbouring elements of a"),
    (added, Plan(across=4, rows=4, tile=8), "c is read and written, and a tile writes it when all of its points are computed"),
    (shifted, Plan(across=4, rows=4, tile=8), "not every point writes its own element of c, once and in any case"),
    (twice, Plan(across=4, rows=4, tile=8), "a point writes an element twice, and a tile has room for one of both"),
    (write_turned, Plan(across=4, rows=4, tile=6), "a tile has whole squares of 4 points, and at most 1024 per side; 6 were requested"),
    (write_turned, Plan(across=16, rows=16, tile=2048), "at most 1024 per side; 2048 were requested"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(kernel: Any, plan: Plan, reason: str) -> None:
    a, c = numbers(9, 9), np.zeros((10, 10), np.float32)
    with pytest.raises(PlanError) as error:
        kernel(a, c, grid=(9, 9), plan=plan)
    assert reason in str(error.value)

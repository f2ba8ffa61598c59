"""Arrays of more elements than 32 bits count, by default plans and as written."""

from __future__ import annotations

from typing import Any

import pytest

import lanewise as lw

cp = pytest.importorskip("cupy")

pytestmark = pytest.mark.cuda

ROWS, COLUMNS = 65_537, 32_771  # primes; 2^31 + 256,019 elements
PLANS = [None, lw.Plan(block=256)]


@lw.threadwise
def opposite(i: lw.index, a: lw.Array1[lw.bool], c: lw.Array1[lw.bool]):
    c[i] = not a[i]


@lw.threadwise
def row_sums(y: lw.index, a: lw.Array2[lw.f32], c: lw.Array1[lw.f32]):
    total = 0.0
    for x in range(a.shape[1]):
        total += a[y, x]
    c[y] = total


@lw.threadwise
def transpose(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = a[x, y]


@lw.threadwise
def total(y: lw.index, x: lw.index, a: lw.Array2[lw.f32]) -> lw.f32:
    return a[y, x]


@pytest.fixture(scope="module")
def matrix() -> Any:
    """Small integers, whose sums float32 holds exactly; every element tells its row and column."""
    if cp.cuda.Device().mem_info[0] < 20 * 2**30:
        pytest.skip("needs 20 GiB of GPU memory")
    rows, columns = cp.arange(ROWS, dtype=cp.float32) % 61, cp.arange(COLUMNS, dtype=cp.float32) % 53
    return rows[:, None] + columns[None, :]


@pytest.mark.parametrize("plan", PLANS)
def test_one_index(plan: lw.Plan | None) -> None:
    n = 2**31 + 12_345
    a = cp.arange(n, dtype=cp.uint8) % 3 == 0
    c = cp.zeros(n, cp.bool_)
    opposite(a, c, grid=n, plan=plan)
    assert bool((c != a).all())


@pytest.mark.parametrize("plan", PLANS)
def test_rows(matrix: Any, plan: lw.Plan | None) -> None:
    c = cp.zeros(ROWS, cp.float32)
    row_sums(matrix, c, grid=ROWS, plan=plan)
    assert bool((c == matrix.sum(axis=1, dtype=cp.float64)).all())


@pytest.mark.parametrize("plan", PLANS)
def test_transposed(matrix: Any, plan: lw.Plan | None) -> None:
    c = cp.zeros((COLUMNS, ROWS), cp.float32)
    transpose(matrix, c, grid=c.shape, plan=plan)
    assert bool((c == matrix.T).all())


def test_a_sum(matrix: Any) -> None:
    assert total(matrix, grid=matrix.shape) == float(matrix.sum(dtype=cp.float64))

"""Shared and divided loops on a GPU: right against float64, the same bits in every run."""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.planning.plan import Plan
from tests.patterns.reductions import columns, count, expected, inputs, positive, rows, several, softmax, total

pytestmark = pytest.mark.cuda

PLANS = {
    rows: (None, Plan(block=128, slices=32, unroll=4), Plan(block=256, slices=256, parts=3), Plan(block=64, slices=8)),
    columns: (None, Plan(block=256, slices=4, parts=5, unroll=8), Plan(block=128, parts=3)),
    softmax: (
        None,
        Plan(block=128, slices=128, tile=512),
        Plan(block=64, slices=16, tile=128),
        Plan(block=32, slices=32),
    ),
    several: (None, Plan(block=128, slices=64, parts=3), Plan(block=64, slices=4)),
    total: (None, Plan(block=256, slices=256, parts=33), Plan(block=32, slices=32, parts=1000)),
}


@pytest.mark.parametrize("kernel", PLANS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("shape", [(1, 1), (257, 1009), (64, 4096), (3, 100_004), (5003, 7)])
def test_results_and_bits(kernel, shape):
    import cupy

    host, grid = inputs(kernel, *shape)
    wanted = expected(kernel, host)
    for plan in PLANS[kernel]:
        runs: list[list[np.ndarray]] = []
        for _ in range(3):
            given = [cupy.asarray(a) for a in host]
            result = kernel(*given, grid=grid, plan=plan)
            found = [np.array([result])] if kernel is total else [a.get() for a in given]
            runs.append(found[-len(wanted) :])
        for one, other in zip(runs[0], wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4, err_msg=str(plan))
        for again in runs[1:]:
            assert all(a.tobytes() == b.tobytes() for a, b in zip(again, runs[0], strict=True)), plan


def test_a_sum_is_left_on_the_gpu():
    import cupy

    a, out = cupy.arange(10_000, dtype=cupy.float32).reshape(100, 100), cupy.empty(1, cupy.float64)
    assert total(a, grid=a.shape, out=out) is out
    assert float(out[0]) == 49_995_000.0 == total(a, grid=a.shape)


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 7), (64, 64, 64), (3, 5, 40_000), (40_000, 1, 3), (2, 70_000, 1)])
@pytest.mark.parametrize("plan", [None, Plan(parts=2), Plan(block=64, slices=64, parts=33)], ids=str)
def test_sums_of_whole_numbers_over_three_indices(shape, plan):
    import cupy

    a = np.random.default_rng(7).integers(-9, 10, shape, np.int32)
    assert count(cupy.asarray(a), grid=shape, plan=plan) == a.sum()


@pytest.mark.parametrize("plan", [None, Plan(parts=2), Plan(block=64, slices=64, parts=33)], ids=str)
def test_sums_over_one_index(plan):
    import cupy

    a = np.random.default_rng(7).integers(-9, 10, 100_003).astype(np.float32)
    assert positive(cupy.asarray(a), 3.0, grid=a.size, plan=plan) == a[a >= 3].sum()

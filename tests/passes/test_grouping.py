"""Neighbouring points as one, before lanes share their loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir.printer import print_kernel
from lanewise.passes import loop_sharing
from lanewise.passes.points import grouping
from lanewise.passes.shared_loops import Sharing
from lanewise.planning.plan import Plan
from lanewise.support.errors import PlanError
from tests.emit.comments import comments
from tests.patterns.reductions import columns, expected, inputs, reference, rows, run, several, softmax, total


@lw.threadwise
def batches(z: lw.index, y: lw.index, a: lw.Array3[lw.f32], x: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s, most = 0.0, a[z, y, 0]
    for k in range(a.shape[2]):
        s += a[z, y, k] * x[z, k]
        most = lw.max(most, a[z, y, k])
    r[z, y] = s + most


@lw.threadwise
def triangle(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
    s = 0.0
    for k in range(y + 1):
        s += a[y, k]
    r[y] = s


def test_golden(golden: Any) -> None:
    golden("rows", print_kernel(grouping.apply(reference(rows, *inputs(rows, 5, 37)), 3)))


@pytest.mark.parametrize("kernel", [rows, columns, softmax], ids=lambda k: k.__name__)
@pytest.mark.parametrize("shape", [(1, 1), (5, 37), (0, 5), (13, 4)])
def test_meaning_is_kept(kernel: Any, shape: tuple[int, int]) -> None:
    """Of groups with points beyond the end, of groups whose loops are shared, and of no points at all."""
    arguments, grid = inputs(kernel, *shape)
    before = reference(kernel, arguments, grid)
    for points in (1, 2, 8):
        grouped = grouping.apply(before, points)
        kernels = [grouped]
        if kernel is rows:
            kernels.append(loop_sharing.apply(grouped, Sharing("row", 32, 1)))
        for made in kernels:
            found = run((made,), kernel, arguments, grid)
            for one, other in zip(found[-len(expected(kernel, arguments)) :], expected(kernel, arguments), strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6, err_msg=f"{points} points")


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([0, 1, 2, 3, 7]), st.sampled_from([0, 1, 2, 3, 4, 11]), st.sampled_from([1, 7, 8, 64, 97]))
def test_machine_code_of_all_shapes(m: int, n: int, length: int) -> None:
    """Two indices, of which the last one is grouped; rows with masked ends; two variables that gather."""
    rng = np.random.default_rng(m * 10_000 + n * 100 + length)
    a, x = rng.normal(size=(m, n, length)).astype("f4"), rng.normal(size=(m, length)).astype("f4")
    found = {}
    for points in (1, 3):
        r = np.full((m, n), np.nan, "f4")
        batches(a, x, r, grid=(m, n), plan=Plan(slices=8, targets=points))
        found[points] = r
    expected = np.einsum("zyk,zk->zy", a.astype("f8"), x.astype("f8")) + a.max(axis=2).astype("f8")
    np.testing.assert_allclose(found[3], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found[3], found[1])  # a point's sum has its order, however many points go together


def test_what_all_points_read_is_read_once() -> None:
    arguments, grid = inputs(rows, 40, 200)
    for points in (1, 4):
        source = rows.compile(*arguments, grid=grid, plan=Plan(slices=16, targets=points)).source
        head, _, body = source.partition("for k_first_round in")
        rounds = [line.strip() for line in comments(body.partition("k_first_round = k_whole")[0])]
        assert sum(" = a_array[" in line for line in rounds) == points
        assert sum(" = x_array[" in line for line in rounds) == 1
        # One row is requested ahead; several are streams that a core follows.
        assert sum(line.startswith("prefetch ") for line in rounds) == (points == 1)
        assert sum(line.endswith(": f32 = 0.0") for line in comments(head)) >= points


def test_rows_that_read_the_same_vector_go_together_by_default() -> None:
    arguments, grid = inputs(rows, 64, 200)
    assert (
        rows.compile(*arguments, grid=grid, plan=Plan(vector_bits=256)).plan.short().startswith("targets=8, slices=8")
    )
    arguments, grid = inputs(rows, 3, 200)  # too few for all cores
    assert "targets" not in rows.compile(*arguments, grid=grid).plan.short()
    arguments, grid = inputs(softmax, 64, 200)  # they read nothing in common
    assert softmax.compile(*arguments, grid=grid).plan.targets == 1


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (several, "many is read and written, and the last point may be computed several times"),
        (total, "it has one point"),
        (triangle, "how often its loops run depends on y, and points that are one run the same rounds"),
    ],
    ids=lambda v: v.__name__ if hasattr(v, "__name__") else "",
)
def test_what_does_not_fit_is_refused(kernel: Any, reason: str) -> None:
    arguments, grid = (
        inputs(kernel, 5, 37) if kernel is not triangle else ((np.ones((5, 5), "f4"), np.ones(5, "f4")), 5)
    )
    with pytest.raises(PlanError) as error:
        kernel(*arguments, grid=grid, plan=Plan(slices=8, targets=2))
    assert reason in str(error.value)


@pytest.mark.parametrize(("points", "said"), [(0, "0 points were requested"), (-1, "wanted an integer from 0")])
def test_no_points_are_refused(points: int, said: str) -> None:
    arguments, grid = inputs(rows, 5, 37)
    with pytest.raises(PlanError, match=said):
        rows(*arguments, grid=grid, plan=Plan(slices=8, targets=points))


def test_rows_and_layers_are_refused() -> None:
    arguments, grid = inputs(rows, 5, 37)
    with pytest.raises(
        PlanError, match="lanes share the rounds of neighbours along the last index alone: rows has to be 1"
    ):
        rows(*arguments, grid=grid, plan=Plan(slices=8, rows=2))

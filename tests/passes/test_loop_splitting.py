from __future__ import annotations

import numpy as np
import pytest

from lanewise.ir.printer import print_kernel
from lanewise.passes import loop_sharing, loop_splitting, shared_loops
from lanewise.passes.shared_loops import Sharing
from lanewise.support.errors import PlanError
from tests.patterns.reductions import (
    columns,
    count,
    expected,
    inputs,
    positive,
    reference,
    rows,
    run,
    several,
    softmax,
    total,
)


def test_golden(golden):
    arguments, grid = inputs(rows, 5, 37)
    golden("rows", "\n".join(map(print_kernel, loop_splitting.apply(reference(rows, arguments, grid), 3))))
    arguments, grid = inputs(total, 5, 37)
    golden("total", "\n".join(map(print_kernel, loop_splitting.apply(reference(total, arguments, grid), 8))))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("kernel", [rows, columns, several, total], ids=lambda k: k.__name__)
@pytest.mark.parametrize("shape", [(1, 1), (3, 100), (0, 5), (67, 2)])
@pytest.mark.parametrize("multiple", [1, 4])
def test_meaning_is_kept(kernel, shape, multiple, monkeypatch):
    monkeypatch.setattr(loop_splitting, "PIECE", 48)  # rows in several pieces, without arrays of millions
    arguments, grid = inputs(kernel, *shape)
    before = reference(kernel, arguments, grid, multiple=multiple)
    for parts in (1, 5):
        split = loop_splitting.apply(before, parts)
        mapped = tuple(loop_sharing.apply(k, Sharing(shared_loops.best_way(k), 4, 8)) for k in split)
        for kernels in (split, mapped):
            found = run(kernels, kernel, arguments, grid)
            for one, other in zip(found[-len(expected(kernel, arguments)) :], expected(kernel, arguments), strict=True):
                np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6, err_msg=f"{parts} parts")


def test_sums_over_one_and_three_indices():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=1009).astype(np.float32), rng.integers(-9, 9, (3, 5, 41)).astype(np.int32)
    for kernel, array, grid, named, whole in (
        (positive, a, 1009, {"floor": np.float32(0.25)}, a[a >= 0.25].sum(dtype=np.float64)),
        (count, b, b.shape, {}, b.sum()),
    ):
        split = loop_splitting.apply(reference(kernel, (array,), grid, **named), 5)
        mapped = tuple(loop_sharing.apply(k, Sharing("row", 32, 1)) for k in split)
        (found,) = run(mapped, kernel, (array,), grid, **named)[-1]
        assert found == pytest.approx(whole, rel=1e-12)


def test_reasons():
    arguments, grid = inputs(softmax, 3, 8)
    reason = "its loops follow one another, and each needs all that the one before it gathered"
    assert loop_splitting.legal(reference(softmax, arguments, grid), 2) == reason
    with pytest.raises(PlanError) as error:
        loop_splitting.apply(reference(softmax, arguments, grid), 2)
    assert str(error.value) == f"splitting of loops cannot be applied to softmax: {reason}"
    arguments, grid = inputs(rows, 3, 8)
    assert loop_splitting.legal(reference(rows, arguments, grid), 0) == "0 parts were requested"

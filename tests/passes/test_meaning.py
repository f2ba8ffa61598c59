"""Every stage of the pipeline means what the reference kernel means: interpreted, on arbitrary counts, layouts and
plans.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lanewise.planning.plan import Plan
from tests.corpus import CASES, ELEMENTWISE, LAYOUTS, PAIRWISE, Case, case
from tests.harness import Input, expected, run_kernels, stages

SMALL = [c for c in PAIRWISE if not c.local_arrays]  # the interpreter takes long for loops within loops


@st.composite
def gpu_plans(draw: st.DrawFn) -> Plan:
    block = draw(st.sampled_from([32, 64]))
    slices = draw(st.sampled_from([1, 2, 4]))
    tile = block * draw(st.sampled_from([1, 2])) if slices > 1 or draw(st.booleans()) else 0
    return Plan(
        block=block,
        slices=slices,
        tile=tile,
        targets=draw(st.integers(1, 3)),
        parts=draw(st.integers(1, 3)) if tile else 1,
        unroll=draw(st.sampled_from([0, 1, 4])),
        accumulate=draw(st.sampled_from(["native", "f64"])) if tile else "native",
    )


@st.composite
def cpu_plans(draw: st.DrawFn) -> Plan:
    tile = draw(st.sampled_from([0, 1, 7, 16]))
    return Plan(
        targets=draw(st.integers(1, 5)),
        tile=tile,
        accumulate=draw(st.sampled_from(["native", "f64"])) if tile else None,
    )


def check(c: Case, label: str, plan: Plan, kind: str, targets: int, sources: int | None) -> None:
    """The sums are the same up to their order, everything else to the bit."""
    data, layout = Input(c, targets, sources, seed=targets), LAYOUTS[label]
    reference: tuple[Any, ...] | None = None
    for stage, kernels in stages(c, layout, plan, kind, same=sources is None):
        found = run_kernels(kernels, data, layout)
        reference = reference or found
        for f, n, w in zip(found, reference, expected(data), strict=True):
            assert f.dtype == n.dtype, stage
            if f.dtype.kind in "biu" or not c.pairwise:
                np.testing.assert_array_equal(f, n, err_msg=stage)
            else:
                eps = float(np.finfo(f.dtype).eps)
                size = float(np.abs(w).max(initial=0.0)) + c.atol * 1e3
                np.testing.assert_allclose(f, n, rtol=0, atol=64 * eps * size, err_msg=stage)


@given(
    st.sampled_from(SMALL),
    st.sampled_from(list(LAYOUTS)),
    gpu_plans(),
    st.integers(1, 40),
    st.none() | st.integers(1, 40),
)
@example(case("gravity_potential"), "SoAoAS", Plan(block=32, tile=32, slices=1, targets=3, parts=2), 1, None)
@example(case("count_ranks"), "AoSoA", Plan(block=64, tile=64, slices=2, targets=2, parts=3), 33, 31)
def test_pairwise_for_threads(c: Case, label: str, plan: Plan, targets: int, sources: int | None) -> None:
    check(c, label, plan, "cuda", min(targets, 12) if sources is None else targets % 8 + 1, sources)


@given(
    st.sampled_from(SMALL),
    st.sampled_from(list(LAYOUTS)),
    cpu_plans(),
    st.integers(1, 40),
    st.none() | st.integers(1, 40),
)
def test_pairwise_for_a_cpu(c: Case, label: str, plan: Plan, targets: int, sources: int | None) -> None:
    check(c, label, plan, "cpu", min(targets, 12) if sources is None else targets % 8 + 1, sources)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@given(st.sampled_from(ELEMENTWISE), st.sampled_from(list(LAYOUTS)), st.integers(1, 40))
def test_elementwise(kind: str, c: Case, label: str, count: int) -> None:
    check(c, label, Plan(), kind, count, None)


@pytest.mark.parametrize("name", [c.name for c in CASES])
def test_the_naive_kernel_means_what_numpy_says(name: str) -> None:
    """The oracle itself."""
    from tests.harness import assert_close

    c = case(name)
    data = Input(c, 7, seed=2)
    (_, kernels), *_ = stages(c, LAYOUTS["AoS"], Plan(), "cpu")
    assert_close(run_kernels(kernels, data, LAYOUTS["AoS"]), expected(data), c)

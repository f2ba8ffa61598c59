from __future__ import annotations

import numpy as np
from hypothesis import given as examples
from hypothesis import strategies as st

import lanewise as lw
from lanewise.passes import accumulation, tiling
from tests.corpus import case
from tests.harness import Input, run_kernels
from tests.passes.probe import PROBE, PULL, before_and_after, check, inputs, layouts, refusal, simple


def test_golden(golden):
    before = tiling.apply(simple(PULL), 128)
    golden("f64", before_and_after(before, accumulation.apply(before)))


def test_golden_leaves_whole_numbers_and_float64_alone(golden):
    golden(
        "mixed_results",
        before_and_after(tiling.apply(simple(PROBE), 8), accumulation.apply(tiling.apply(simple(PROBE), 8))),
    )


@examples(inputs, layouts, st.integers(1, 50))
def test_meaning_is_kept(given, layout, tile):
    before = simple(given.case, same=given.same, layout=layout)
    check(given, before, (accumulation.apply(tiling.apply(before, tile)),), layout)


def test_rounding_gets_smaller():
    given = Input(case("gravity_potential"), 3, 200, seed=5)
    exact = given.reference()[1]
    plain = simple(given.case, same=False)
    errors = [
        float(np.max(np.abs(run_kernels((k,), given, lw.SoAoAS())[1] - exact)))
        for k in (plain, accumulation.apply(tiling.apply(plain, 8)))
    ]
    assert errors[1] < errors[0]


def test_refusal():
    reason = refusal(lambda: accumulation.apply(simple(PULL)))
    assert (
        reason == "float64 accumulation cannot be applied to pull: its sources are not cut into tiles (Plan(tile=...))"
    )

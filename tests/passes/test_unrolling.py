from __future__ import annotations

import lanewise as lw
from lanewise.passes import thread_merging, tiling, unrolling
from tests.corpus import case
from tests.harness import Input, reference_kernel
from tests.passes.probe import PROBE, PULL, before_and_after, check, refusal, simple


def test_golden(golden):
    before = thread_merging.apply(tiling.apply(simple(PULL), 128), 1, 64)
    golden("unroll", before_and_after(before, unrolling.apply(before, 8), unrolling.apply(before, 0)))


def test_meaning_is_kept():
    before = simple(PROBE)
    check(Input(PROBE, 9), before, (unrolling.apply(before, 4),))


def test_refusals():
    kernel = simple(PULL)
    assert refusal(lambda: unrolling.apply(kernel, -1)) == "unrolling cannot be applied to pull: a factor of -1"
    elements = reference_kernel(case("speed"), lw.SoA(), "cuda")
    assert (
        refusal(lambda: unrolling.apply(elements, 2))
        == "unrolling cannot be applied to speed: it has no loop over sources"
    )

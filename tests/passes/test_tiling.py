from __future__ import annotations

from hypothesis import given as examples
from hypothesis import strategies as st

import lanewise as lw
from lanewise.passes import tiling
from tests.corpus import case
from tests.harness import reference_kernel
from tests.passes.probe import PULL, before_and_after, check, inputs, layouts, refusal, simple


def test_golden(golden):
    before = simple(PULL)
    golden("tile", before_and_after(before, tiling.apply(before, 128)))


@examples(inputs, layouts, st.integers(1, 50))
def test_meaning_is_kept(given, layout, tile):
    before = simple(given.case, same=given.same, layout=layout)
    check(given, before, (tiling.apply(before, tile),), layout)


def test_refusals():
    kernel = simple(PULL)
    assert refusal(lambda: tiling.apply(kernel, 0)) == "tiling cannot be applied to pull: a tile of 0 sources is empty"
    again = refusal(lambda: tiling.apply(tiling.apply(kernel, 4), 2))
    assert again == "tiling cannot be applied to pull: its sources are cut into tiles already"
    elements = reference_kernel(case("speed"), lw.SoA(), "cuda")
    assert (
        refusal(lambda: tiling.apply(elements, 8)) == "tiling cannot be applied to speed: it has no loop over sources"
    )

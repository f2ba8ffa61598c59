from __future__ import annotations

from hypothesis import given as examples
from hypothesis import strategies as st

from lanewise.passes import accumulation, slicing, thread_merging, tiling
from tests.corpus import case
from tests.harness import Input
from tests.passes.probe import PROBE, PULL, before_and_after, check, layouts, refusal, simple, small_inputs


def merged(kernel, tile, targets, lanes, *, wide=False):
    kernel = tiling.apply(kernel, tile)
    return thread_merging.apply(accumulation.apply(kernel) if wide else kernel, targets, lanes)


def test_golden(golden):
    before = merged(simple(PULL), 64, 1, 16)
    golden("slices", before_and_after(before, slicing.apply(before, 4, 64)))


def test_golden_two_targets_and_several_results(golden):
    before = merged(simple(PROBE), 64, 2, 32)
    golden("several_results", before_and_after(before, slicing.apply(before, 2, 64)))


@examples(
    small_inputs,
    layouts,
    st.integers(1, 3),
    st.integers(2, 6),
    st.sampled_from((2, 3, 5)),
    st.integers(1, 5),
    st.booleans(),
)
def test_meaning_is_kept(given, layout, targets, lanes, slices, width, wide):
    before = simple(given.case, same=given.same, layout=layout)
    kernel = merged(before, slices * width, targets, lanes, wide=wide)
    check(given, before, (slicing.apply(kernel, slices, slices * width),), layout)


def test_a_function_that_reads_nothing():
    given = Input(case("order"), 5, 7)
    before = simple(given.case, same=False)
    check(given, before, (slicing.apply(merged(before, 4, 2, 2), 2, 4),))


def test_refusals():
    kernel = simple(PULL)
    on_cpu = thread_merging.apply(tiling.apply(kernel, 8), 4, 1)
    assert (
        refusal(lambda: slicing.apply(on_cpu, 2, 8))
        == "slicing cannot be applied to pull: its targets are not mapped to the lanes of a block"
    )
    untiled = thread_merging.apply(kernel, 1, 16)
    assert (
        refusal(lambda: slicing.apply(untiled, 2, 0))
        == "slicing cannot be applied to pull: its sources are not cut into tiles"
    )
    uneven = merged(kernel, 64, 1, 16)
    assert (
        refusal(lambda: slicing.apply(uneven, 3, 64))
        == "slicing cannot be applied to pull: 3 slices do not divide a tile of 64 sources"
    )

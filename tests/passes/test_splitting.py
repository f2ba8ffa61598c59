from __future__ import annotations

from hypothesis import given as examples
from hypothesis import strategies as st

from lanewise.passes import accumulation, slicing, splitting, thread_mapping, thread_merging, tiling
from tests.passes.probe import PROBE, PULL, before_and_after, check, layouts, refusal, simple, small_inputs


def test_golden(golden):
    before = thread_merging.apply(tiling.apply(simple(PULL), 64), 1, 64)
    golden("parts", before_and_after(before, *splitting.apply(before, 4)))


def test_golden_of_several_results(golden):
    before = thread_merging.apply(tiling.apply(simple(PROBE), 64), 1, 64)
    _, combine = splitting.apply(before, 4)
    golden("combine_several_results", before_and_after(combine, thread_mapping.apply(combine, 64)))


@examples(
    small_inputs,
    layouts,
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 4),
    st.sampled_from((1, 2)),
    st.booleans(),
)
def test_meaning_is_kept(given, layout, targets, lanes, parts, slices, wide):
    before = simple(given.case, same=given.same, layout=layout)
    kernel = tiling.apply(before, 6)
    kernel = thread_merging.apply(accumulation.apply(kernel) if wide else kernel, targets, lanes)
    if slices > 1 and lanes > 1:
        kernel = slicing.apply(kernel, slices, 6)
    check(given, before, splitting.apply(kernel, parts), layout)


def test_scratch_arrays_are_those_of_a_split_kernel():
    whole = thread_merging.apply(tiling.apply(simple(PROBE), 64), 1, 64)
    split, _ = splitting.apply(whole, 4)
    assert whole.scratch == ()
    names = [s.array for s in thread_mapping.apply(split, 64, lanes=64).scratch]
    assert names == ["$partial.result0", "$partial.result1", "$partial.result2"]


def test_refusals():
    kernel = simple(PULL)
    tiled = tiling.apply(kernel, 8)
    merged = thread_merging.apply(tiled, 1, 32)
    assert (
        refusal(lambda: splitting.apply(merged, 0))
        == "splitting of sources cannot be applied to pull: 0 parts were requested"
    )
    reason = refusal(lambda: splitting.apply(thread_merging.apply(kernel, 1, 32), 2))
    assert reason == "splitting of sources cannot be applied to pull: its sources are not cut into tiles"
    assert (
        refusal(lambda: splitting.apply(tiled, 2))
        == "splitting of sources cannot be applied to pull: its targets are not mapped to blocks"
    )

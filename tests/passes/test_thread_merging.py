from __future__ import annotations

from hypothesis import given as examples
from hypothesis import strategies as st

from lanewise.passes import accumulation, thread_mapping, thread_merging, tiling
from tests.corpus import case
from tests.harness import Input
from tests.passes.probe import PROBE, PULL, before_and_after, check, inputs, layouts, refusal, simple


def test_golden_two_targets_of_a_thread(golden):
    before = simple(PULL)
    golden("gpu", before_and_after(before, thread_merging.apply(before, 2, 64)))


def test_golden_on_a_cpu(golden):
    before = simple(PULL, device_kind="cpu")
    golden("cpu", before_and_after(before, thread_merging.apply(before, 3, 1)))


def test_golden_one_target(golden):
    before = simple(PULL)
    golden("one", before_and_after(before, thread_merging.apply(before, 1, 32)))


def test_golden_what_does_not_depend_on_the_target_stays_single(golden):
    before = simple(case("order"), same=False)
    golden("independent", before_and_after(before, thread_merging.apply(before, 2, 32)))


@examples(inputs, layouts, st.integers(1, 5), st.sampled_from((1, 2, 7, 32)), st.sampled_from((0, 3)), st.booleans())
def test_meaning_is_kept(given, layout, targets, lanes, tile, wide):
    before = simple(given.case, same=given.same, layout=layout)
    kernel = tiling.apply(before, tile) if tile else before
    kernel = accumulation.apply(kernel) if wide and tile else kernel
    check(given, before, (thread_merging.apply(kernel, targets, lanes),), layout)


def test_a_function_that_reads_nothing():
    for same in (True, False):
        given = Input(case("order"), 5, None if same else 7)
        before = simple(given.case, same=same)
        check(given, before, (thread_merging.apply(before, 3, 2),))


def test_refusals():
    kernel = simple(PROBE)
    assert (
        refusal(lambda: thread_merging.apply(kernel, 0, 32))
        == "thread merging cannot be applied to probe: 0 targets per thread were requested"
    )
    merged = thread_merging.apply(kernel, 2, 32)
    assert (
        refusal(lambda: thread_merging.apply(merged, 2, 32))
        == "thread merging cannot be applied to probe: its targets are already merged"
    )
    mapped = thread_mapping.apply(kernel, 32)
    reason = refusal(lambda: thread_merging.apply(mapped, 2, 32))
    assert reason == "thread merging cannot be applied to probe: its elements are already mapped to threads"

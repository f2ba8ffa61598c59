from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.passes import splitting, thread_mapping, thread_merging, tiling
from tests.corpus import CASES, ELEMENTWISE, case
from tests.harness import Input, run_kernels
from tests.passes.probe import PULL, assert_equal, before_and_after, check, layouts, refusal, simple, small_inputs


def test_golden_one_element_a_thread(golden):
    before = simple(case("kick_drift"))
    golden("elements", before_and_after(before, thread_mapping.apply(before, 256)))


def test_golden_blocks_of_lanes(golden):
    merged = thread_merging.apply(tiling.apply(simple(PULL), 64), 1, 64)
    split, _ = splitting.apply(merged, 4)
    golden("blocks", before_and_after(split, thread_mapping.apply(split, 64, targets=1, lanes=64, min_blocks=2)))


@settings(max_examples=6)
@examples(small_inputs, layouts, st.integers(1, 2), st.integers(1, 3))
def test_meaning_is_kept(given, layout, targets, parts):
    before = simple(given.case, same=given.same, layout=layout)
    kernel, combine = splitting.apply(thread_merging.apply(tiling.apply(before, 8), targets, 32), parts)
    mapped = thread_mapping.apply(kernel, 32, targets=targets, lanes=32)
    check(given, before, (mapped, thread_mapping.apply(combine, 32)), layout)


@pytest.mark.parametrize(
    "given", [Input(c, n) for c in ELEMENTWISE for n in (1, 33)], ids=lambda g: f"{g.case.name}-{g.targets}"
)
def test_meaning_of_elementwise_kernels_is_kept(given):
    before = simple(given.case, layout=lw.AoSoA(4))
    assert_equal(
        run_kernels((thread_mapping.apply(before, 32),), given, lw.AoSoA(4)), run_kernels((before,), given, lw.AoSoA(4))
    )


def test_golden_one_thread_for_everything(golden):
    before = simple(PULL)
    golden("serial", before_and_after(before, thread_mapping.apply_serial(before)))


@settings(max_examples=6)
@examples(small_inputs, layouts)
def test_one_thread_keeps_the_meaning(given, layout):
    before = simple(given.case, same=given.same, layout=layout)
    check(given, before, (thread_mapping.apply_serial(before),), layout)


def test_refusals_of_one_thread():
    kernel = simple(PULL)
    assert refusal(lambda: thread_mapping.apply_serial(kernel, targets=2, slices=1, tile=64)) == (
        "mapping to one thread cannot be applied to pull: "
        "block=1 runs the whole kernel on one thread, which has no other to share targets=2 and tile=64 with"
    )
    mapped = thread_mapping.apply_serial(kernel)
    assert refusal(lambda: thread_mapping.apply_serial(mapped)) == (
        "mapping to one thread cannot be applied to pull: its elements are already mapped to threads"
    )


def test_refusals():
    kernel = simple(CASES[0])
    for threads in (0, 31, 48, 2048):
        reason = refusal(lambda threads=threads: thread_mapping.apply(kernel, threads))
        assert reason == (
            "mapping to threads cannot be applied to gravity: "
            f"a block has 32 to 1024 threads, in whole warps of 32; {threads} were requested"
        )
    mapped = thread_mapping.apply(kernel, 32)
    again = refusal(lambda: thread_mapping.apply(mapped, 32))
    assert again == "mapping to threads cannot be applied to gravity: its elements are already mapped to threads"

from __future__ import annotations

from hypothesis import given as examples
from hypothesis import strategies as st

from lanewise.passes import shared_memory, slicing, splitting, thread_merging, tiling
from tests.corpus import case
from tests.passes.probe import PULL, before_and_after, check, layouts, refusal, simple, small_inputs


def merged(kernel, tile, lanes):
    return thread_merging.apply(tiling.apply(kernel, tile), 1, lanes)


def test_golden(golden):
    before = merged(simple(PULL), 128, 64)
    golden("stage", before_and_after(before, shared_memory.apply(before, 128, 64)))


def test_golden_after_slicing(golden):
    before = slicing.apply(merged(simple(PULL), 64, 32), 2, 64)
    golden("stage_slices", before_and_after(before, shared_memory.apply(before, 64, 64)))


@examples(
    small_inputs,
    layouts,
    st.integers(1, 3),
    st.integers(2, 6),
    st.sampled_from((1, 2)),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_meaning_is_kept(given, layout, targets, lanes, slices, rounds, parts):
    before = simple(given.case, same=given.same, layout=layout)
    threads = lanes * slices
    kernel = thread_merging.apply(tiling.apply(before, threads * rounds), targets, lanes)
    if slices > 1:
        kernel = slicing.apply(kernel, slices, threads * rounds)
    combine = ()
    if parts > 1:
        kernel, second = splitting.apply(kernel, parts)
        combine = (second,)
    check(given, before, (shared_memory.apply(kernel, threads * rounds, threads), *combine), layout)


def test_refusals():
    kernel = simple(PULL)
    where = "shared-memory tiles cannot be applied to"
    untiled = thread_merging.apply(kernel, 1, 32)
    assert refusal(lambda: shared_memory.apply(untiled, 32, 32)) == f"{where} pull: its sources are not cut into tiles"
    odd = refusal(lambda: shared_memory.apply(merged(kernel, 48, 32), 48, 32))
    assert odd == f"{where} pull: a tile of 48 sources is no multiple of the 32 threads that stage it"
    nothing = merged(simple(case("order"), same=False), 32, 32)
    assert (
        refusal(lambda: shared_memory.apply(nothing, 32, 32))
        == f"{where} order: its function reads nothing of a source"
    )
    no_block = tiling.apply(kernel, 32)
    assert (
        refusal(lambda: shared_memory.apply(no_block, 32, 32))
        == f"{where} pull: its targets are not mapped to the threads of a block"
    )


def test_a_tile_leaves_no_gaps():
    """dvec3 and f64 fill two 16-byte groups; whole fields would take 40 bytes."""
    for name, size in (("gravity", 16), ("gravity_f64", 32), ("gravity_mixed", 28)):
        kernel = shared_memory.apply(merged(simple(case(name)), 1024, 64), 1024, 64)
        (tile,) = [a for a in kernel.arrays if a.space == "shared"]
        assert tile.arrangement.nbytes(1024) == 1024 * size
        assert [s.leaf for s in tile.arrangement.slots] == [leaf.name for leaf in tile.leaves]

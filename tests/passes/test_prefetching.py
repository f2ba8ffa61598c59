from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.interpreter import SHARED, ArrayMemory, Interpreter, SharedMemory
from lanewise.ir.names import own
from lanewise.ir.traverse import flat_map, statements
from lanewise.ir.verify import verify_kernel
from lanewise.language.record import Leaf
from lanewise.language.types import F32, I32
from lanewise.launch.executable import build_executable
from lanewise.passes import (
    accumulation,
    layout_lowering,
    prefetching,
    shared_memory,
    slicing,
    splitting,
    thread_mapping,
    thread_merging,
    tiling,
)
from lanewise.patterns.pairwise.build import PAIRWISE
from lanewise.planning.plan import Plan
from lanewise.support.errors import PlanError, VerificationError
from tests.corpus import CASES, LAYOUTS, Case, case
from tests.emit.test_cubins import check
from tests.harness import Input, assert_close, expected, program, run_kernels, run_public, stages
from tests.passes import probe
from tests.passes.probe import PROBE, PULL, assert_equal, before_and_after, layouts, refusal, simple, small_inputs

WAYS = ("registers", "async")


def staged(kernel, tile, threads, *, targets=1, slices=1, parts=1, wide=False):
    """The kernel with its tiles in shared memory, and the kernel that adds its parts."""
    kernel = tiling.apply(kernel, tile)
    kernel = thread_merging.apply(accumulation.apply(kernel) if wide else kernel, targets, threads // slices)
    if slices > 1:
        kernel = slicing.apply(kernel, slices, tile)
    combine = ()
    if parts > 1:
        kernel, second = splitting.apply(kernel, parts)
        combine = (second,)
    return shared_memory.apply(kernel, tile, threads), combine


@pytest.mark.parametrize("how", WAYS)
def test_golden(golden, how):
    before, _ = staged(simple(PULL), 128, 64)
    golden(how, before_and_after(before, prefetching.apply(before, how)))


def test_golden_of_parts(golden):
    before, _ = staged(simple(PULL), 64, 64, slices=2, parts=3)
    golden("async_parts", before_and_after(before, prefetching.apply(before, "async")))


@pytest.mark.parametrize("layout", ["SoA", "SoAoAS"])
def test_golden_of_lowered_copies(golden, layout):
    kernel, _ = staged(simple(case("gravity"), layout=LAYOUTS[layout]), 64, 64)
    lowered = layout_lowering.apply(prefetching.apply(kernel, "async"), vector_loads=True)
    golden(f"lowered_{layout}", before_and_after(kernel, lowered))


@examples(
    given=small_inputs,
    layout=layouts,
    how=st.sampled_from(WAYS),
    targets=st.integers(1, 3),
    lanes=st.integers(2, 6),
    slices=st.sampled_from((1, 2)),
    rounds=st.integers(1, 3),
    parts=st.integers(1, 4),
    wide=st.booleans(),
)
def test_meaning_is_kept(given, layout, how, targets, lanes, slices, rounds, parts, wide):
    before = simple(given.case, same=given.same, layout=layout)
    threads = lanes * slices
    kernel, combine = staged(before, threads * rounds, threads, targets=targets, slices=slices, parts=parts, wide=wide)
    probe.check(given, before, (prefetching.apply(kernel, how), *combine), layout)


@examples(
    given=small_inputs,
    layout=layouts,
    how=st.sampled_from(WAYS),
    block=st.sampled_from((32, 64)),
    slices=st.sampled_from((1, 2)),
    parts=st.integers(1, 3),
    unroll=st.sampled_from((1, 4)),
)
def test_loads_and_copies_mean_the_same(given, layout, how, block, slices, parts, unroll):
    plan = Plan(prefetch=how, block=block, tile=block, slices=slices, parts=parts, unroll=unroll, targets=2)
    pipeline = stages(given.case, layout, plan, "cuda", same=given.same)
    assert_equal(run_kernels(pipeline[-1][1], given, layout), run_kernels(pipeline[0][1], given, layout))


# ---------------------------------------------------------------- the interpreter finds what a GPU would not report


Change = Callable[[ir.Statement], ir.Block]
GIVEN = Input(PROBE, 9, 70)


def changed(change: Change) -> ir.Kernel:
    """A kernel with asynchronous copies, mapped to threads, in which somebody made a mistake."""
    kernel, _ = staged(simple(PROBE, same=False), 32, 32)
    kernel = thread_mapping.apply(prefetching.apply(kernel, "async"), 32, lanes=32)
    return replace(kernel, body=flat_map(kernel.body, change))


def mistake(change: Change) -> str:
    with pytest.raises(VerificationError) as error:
        run_kernels((changed(change),), GIVEN, lw.SoAoAS())
    return str(error.value)


def test_a_tile_is_not_read_before_the_wait():
    text = mistake(lambda s: () if isinstance(s, ir.WaitAsync) else (s,))
    assert text == "$tile.source[0].place.x is touched while an asynchronous copy to it is under way"


def test_a_tile_is_not_read_before_the_barrier():
    text = mistake(lambda s: () if isinstance(s, ir.Barrier) else (s,))
    assert text == "a race: two threads touch $tile.source[1].place.x between two barriers, and one writes"


def test_the_tile_that_is_read_is_not_copied_to():
    """One half for all tiles: the copy of the next one destroys what others still read."""

    def one_half(s: ir.Statement) -> ir.Block:
        if isinstance(s, ir.CopyAsync):
            return (replace(s, index=ir.Local(own("lane"), s.index.type)),)
        here = isinstance(s, ir.Assign) and s.name == own("half")
        return (replace(s, value=ir.Literal(0, s.value.type)),) if here else (s,)

    assert mistake(one_half) == "$tile.source[0].place.x is touched while an asynchronous copy to it is under way"


def test_a_copy_is_waited_for():
    text = mistake(lambda s: () if isinstance(s, ir.For) and s.role == "tiles" else (s,))
    assert text == "threads end before an asynchronous copy that they began"


def test_a_place_holds_garbage_until_the_wait():
    """Reading nothing of the tile is no error; what a copy leaves there before the wait is no number."""
    memory = ArrayMemory(np.zeros(8, np.uint8), lw.SoA().arrange([Leaf("value", F32)]), 2)
    source = ArrayMemory(np.ones(2, np.float32).view(np.uint8), memory.arrangement, 2)
    shared = SharedMemory(contents={"tile": memory})
    array = ir.ArrayArgument("source", (Leaf("value", F32),), memory.arrangement)
    kernel = ir.Kernel("k", PAIRWISE, (array, replace(array, name="tile", space="shared", length=2)), (), (), ())
    machine = Interpreter(kernel, {}, {"source": source})
    one = ir.Literal(1, I32)
    steps = machine._block(
        (ir.CopyAsync("tile", one, "source", one, ("value",)), ir.Barrier(), ir.WaitAsync()), {"@id": 0, SHARED: shared}
    )
    next(steps)
    assert np.isnan(memory.read("value", 1))
    assert next(steps, None) is None
    assert memory.read("value", 1) == 1.0


# ---------------------------------------------------------------- copies


def copies(name: str, layout: str) -> list[int]:
    """The bytes of every asynchronous copy that one thread begins for one source."""
    c = case(name)
    kernel, _ = staged(simple(c, layout=LAYOUTS[layout]), 64, 64)
    lowered = layout_lowering.apply(prefetching.apply(kernel, "async"), vector_loads=True)
    sizes = {b.name: b.type.size for b in lowered.buffers}
    found = [s.lanes * sizes[s.buffer] for s in statements(lowered.body) if isinstance(s, ir.CopyLanes)]
    return found[: len(found) // 2]  # the first tile, and the next one


@pytest.mark.parametrize(
    ("name", "layout", "sizes"),
    [
        ("gravity", "SoAoAS", [16]),
        ("gravity", "SoA", [4, 4, 4, 4]),
        ("gravity", "AoS", [4, 4, 4, 4]),
        ("gravity", "AoAS", [16]),
        ("gravity", "AoSoA", [4, 4, 4, 4]),
        ("gravity_f64", "SoAoAS", [16, 8, 8]),
        ("gravity_f64", "SoA", [8, 8, 8, 8]),
    ],
)
def test_copies_are_as_wide_as_both_layouts_allow(name, layout, sizes):
    assert copies(name, layout) == sizes


# ---------------------------------------------------------------- refusals


def test_refusals():
    where = "prefetching cannot be applied to pull:"
    merged = thread_merging.apply(tiling.apply(simple(PULL), 64), 1, 64)
    reason = "its sources are not staged in shared memory (Plan(tile=...))"
    assert refusal(lambda: prefetching.apply(merged, "async")) == f"{where} {reason}"
    kernel, _ = staged(simple(PULL), 64, 64)
    assert refusal(lambda: prefetching.apply(kernel, "both")) == f"{where} 'both' is neither 'registers' nor 'async'"
    halves = f"{where} its tile has two halves, which 'async' fills: 'async3' is for threadwise kernels"
    assert refusal(lambda: prefetching.apply(kernel, "async3")) == halves
    assert refusal(lambda: program(PULL, lw.SoA(), Plan(prefetch="registers", tile=0), "cuda")) == f"{where} {reason}"


@lw.record
class Flagged:
    weight: lw.f32
    alive: lw.bool


@lw.pairwise
def count(target: Flagged, source: Flagged) -> lw.f32:
    return source.weight if source.alive else 0.0


def test_a_truth_value_is_too_small_for_a_copy():
    flagged = Case("count", count, (Flagged, Flagged), lambda rng, n: {}, lambda *_: ())
    plan = Plan(prefetch="async", tile=64, block=64)
    assert refusal(lambda: program(flagged, lw.SoA(), plan, "cuda")) == (
        "prefetching cannot be applied to count: an asynchronous copy moves 4, 8 or 16 bytes, "
        "and alive of source is bool, 1 byte"
    )
    assert program(flagged, lw.SoA(), Plan(prefetch="registers", tile=64, block=64), "cuda").kernels


@pytest.mark.parametrize("name", ["gravity", "kick_drift"])
def test_a_cpu_prefetches_by_itself(name):
    with pytest.raises(PlanError) as error:
        program(case(name), lw.SoA(), Plan(prefetch="registers"), "cpu")
    assert str(error.value) == f"prefetching cannot be applied to {name}: a CPU prefetches by itself"


def test_elements_have_no_tiles():
    with pytest.raises(PlanError) as error:
        program(case("kick_drift"), lw.SoA(), Plan(prefetch="async", block=64), "cuda")
    assert str(error.value) == ("prefetching cannot be applied to kick_drift: it has no loop over sources")


# ---------------------------------------------------------------- compilation


SHARE = [(name, layout, how) for name, (layout, how) in zip(
    [c.name for c in CASES if c.pairwise and c.name != "order"] * 2,  # which reads nothing of a source
    [(layout, how) for how in WAYS for layout in LAYOUTS] * 2, strict=False)]  # fmt: skip


@pytest.mark.grid(every=40)
@pytest.mark.parametrize(("name", "layout", "how"), SHARE)
def test_compiles_without_spills(name, layout, how):
    plan = Plan(prefetch=how, tile=128, block=128, targets=2, slices=2, min_blocks=1)
    c = case(name)
    check(program(c, LAYOUTS[layout], plan, "cuda"), "sm_90", local_arrays=c.local_arrays)


def test_old_architectures_have_no_asynchronous_copies():
    p = program(case("gravity"), lw.SoAoAS(), Plan(prefetch="async", tile=64, block=64), "cuda")
    assert refusal(lambda: build_executable(p, "cuda", "sm_75")) == (
        "prefetching cannot be applied to gravity: asynchronous copies need architecture sm_80 or newer, and this is sm_75; "
        "choose prefetch='registers'"
    )


def test_one_thread_stages_nothing():
    text = refusal(
        lambda: program(case("gravity"), lw.SoA(), Plan(prefetch="registers", block=1, tile=0, unroll=1), "cuda")
    )
    assert (
        text == "prefetching cannot be applied to gravity: its sources are not staged in shared memory (Plan(tile=...))"
    )


# ---------------------------------------------------------------- copies that do not fit


def broken(copy: ir.Statement) -> str:
    """What the verifier says to another copy in the place of the right ones."""
    kernel, _ = staged(simple(case("gravity")), 64, 64)
    kernel = thread_mapping.apply(prefetching.apply(kernel, "async"), 64, lanes=64)
    if isinstance(copy, ir.CopyLanes):
        kernel = layout_lowering.apply(kernel, vector_loads=True)
    change = flat_map(kernel.body, lambda s: (copy,) if isinstance(s, type(copy)) else (s,))
    with pytest.raises(VerificationError) as error:
        verify_kernel(replace(kernel, body=change))
    return str(error.value).splitlines()[0]


ZERO = ir.Literal(0, I32)
TILE = "$tile.source.position_mass"
BROKEN = [
    (ir.CopyAsync("$tile.source", ZERO, "nobody", ZERO, ()), "no such arrays, or not an integer as an index"),
    (ir.CopyAsync("source", ZERO, "target", ZERO, ()), "a copy from global to global memory"),
    (ir.CopyAsync("$tile.source", ZERO, "source", ZERO, ("velocity.x",)), "velocity.x of source does not fit $tile.source"),
    (ir.CopyLanes(TILE, ZERO, 0, "nobody", ZERO, 0, 4), "no such buffers, or not an integer as an index"),
    (ir.CopyLanes("$result", ZERO, 0, "source.position_mass", ZERO, 0, 1), "a copy of f32 from global to f32 in global memory"),
    (ir.CopyLanes(TILE, ZERO, 2, "source.position_mass", ZERO, 0, 4), f"4 lanes from 2 on do not fit {TILE}"),
    (ir.CopyLanes(TILE, ZERO, 0, "source.position_mass", ZERO, 1, 2), "2 lanes from 1 on do not fit source.position_mass"),
]  # fmt: skip


@pytest.mark.parametrize(("copy", "problem"), BROKEN, ids=lambda x: x if isinstance(x, str) else "")
def test_the_verifier_refuses_copies_that_do_not_fit(copy, problem):
    assert broken(copy) == f"kernel gravity: {problem} in"


# ---------------------------------------------------------------- on a GPU


@pytest.mark.cuda
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_on_a_gpu(how, layout):
    for targets, sources in ((1, 1), (33, 31), (200, 128), (100, 1000)):
        given = Input(PROBE, targets, sources)
        wanted = run_public(given, LAYOUTS[layout], "cpu")
        for slices, parts, wide in ((1, 1, "native"), (2, 1, "f64"), (2, 3, "native"), (1, 4, "f64")):
            plan = Plan(
                prefetch=how, block=64, tile=64, slices=slices, parts=parts, accumulate=wide, targets=2, unroll=4
            )
            assert_equal(run_public(given, LAYOUTS[layout], "cuda", plan), wanted)


@pytest.mark.cuda
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", ["gravity", "gravity_f64", "gravity_mixed", "lennard_jones"])
def test_corpus_on_a_gpu(how, name):
    given = Input(case(name), 1000)
    plan = Plan(prefetch=how, block=128, tile=256, targets=2, unroll=8)
    found = run_public(given, lw.SoAoAS(), "cuda", plan)
    assert_close(found, expected(given), case(name))
    assert_equal(run_public(given, lw.SoAoAS(), "cuda", plan), found)

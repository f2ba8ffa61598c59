from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.language.types import I64
from lanewise.passes import fission
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_reduction
from lanewise.planning.plan import Plan
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import PlanError
from tests.corpus import CASES, LAYOUTS, Case, case
from tests.emit.test_cubins import check as check_compiled
from tests.harness import Input, assert_close, expected, program, run_kernels, run_public
from tests.passes.probe import PROBE, PULL, Bead, assert_equal, before_and_after, check, layouts, refusal, simple

CORPUS = [c for c in CASES if not fission.legal(simple(c))]


@lw.elementwise
def step(bead: Bead, force: lw.vec2, dt: lw.f32) -> tuple[lw.f32, lw.i32]:
    """Results that share work, a field that one part reads and another writes, a loop that only one of them needs."""
    steps = 0
    n = bead.level
    while n > 0:
        if n == 3:
            break
        n -= 1
        steps += 1
    bead.place += force * dt
    if bead.level % 2 == 0:
        bead.level = bead.level + 1
        return bead.place.y, -steps
    bead.weight = bead.weight * 2.0 + lw.f64(bead.place.x)
    return bead.place.x, steps


@lw.elementwise
def cross(bead: Bead, dt: lw.f32):
    """A bead that leaves the box comes back on the other side, and counts it: both or neither."""
    x = bead.place.x + bead.place.y * dt
    if x > 2.0:
        x -= 4.0
        bead.level += 1
    bead.place = lw.vec2(x, bead.place.y)
    bead.weight = bead.weight * 2.0


@lw.elementwise
def cells(bead: Bead, dt: lw.f32) -> tuple[lw.i32, lw.i32]:
    x = bead.place.x + bead.place.y * dt
    cell = lw.i32(lw.floor(x))
    return cell, cell * 2


@lw.elementwise
def swap(bead: Bead):
    old = bead.place.x
    bead.place = lw.vec2(lw.f32(bead.level), bead.place.y)
    bead.level = lw.i32(old)


@lw.elementwise
def chain(bead: Bead) -> lw.f32:
    """place and level need each other's old value, weight needs both, and the result is apart."""
    old = bead.place.x
    bead.place += lw.vec2(lw.f32(bead.level), 0.0)
    bead.level += lw.i32(old)
    bead.weight += lw.f64(old) + lw.f64(bead.level)
    return bead.place.y * 2.0


def _elements(kernel) -> Case:
    return Case(
        kernel.__name__, kernel, (Bead,), PROBE.fill, lambda *_: (), {"dt": 0.5} if "dt" in kernel.signature.parameters else {},
        arrays=lambda rng, n: {"force": rng.integers(-8, 9, (n, 2)).astype("f4")} if kernel is step else {},
    )  # fmt: skip


STEP, CROSS, CELLS, SWAP, CHAIN = map(_elements, (step, cross, cells, swap, chain))


def test_golden(golden):
    before = simple(case("kick_drift"))
    golden("kick_drift", before_and_after(before, *fission.apply(before), functions=True))


def test_golden_of_pairs(golden):
    before = simple(case("gravity_potential"))
    golden("gravity_potential", before_and_after(before, *fission.apply(before), functions=True))


def test_golden_of_loops_and_early_returns(golden):
    before = simple(STEP)
    golden("step", before_and_after(before, *fission.apply(before), functions=True))


def test_values_that_need_each_other_stay_together():
    kernels = fission.apply(simple(CHAIN))
    assert [k.name for k in kernels] == ["chain_weight", "chain_result", "chain_place_level"]


def test_one_decision_is_taken_once():
    """Compiled twice, place and level could see a borderline bead on two sides of the test."""
    assert [k.name for k in fission.apply(simple(CROSS))] == ["cross_place_level", "cross_weight"]


@examples(st.sampled_from([STEP, CHAIN, CROSS]), layouts, st.integers(1, 24), st.integers(0, 99))
def test_meaning_is_kept_for_elements(c, layout, count, seed):
    given = Input(c, count, seed=seed)
    before = simple(c, layout=layout)
    check(given, before, fission.apply(before), layout)
    for kind in ("cpu", "cuda"):
        p = program(c, layout, Plan(fission=True, block=32), kind)
        assert_equal(run_kernels(p.kernels, given, layout), run_kernels((p.reference,), given, layout))


@examples(
    layouts, st.integers(1, 20), st.none() | st.integers(1, 40), st.integers(1, 3), st.sampled_from((0, 32)),
    st.sampled_from((1, 2)), st.sampled_from(("native", "f64")), st.sampled_from(("none", "registers", "async")),
)  # fmt: skip
def test_meaning_is_kept_for_pairs(layout, targets, sources, merged, tile, parts, accumulate, prefetch):
    given = Input(PROBE, targets, sources)
    before = simple(PROBE, same=given.same, layout=layout)
    check(given, before, fission.apply(before), layout)
    tiled = {"parts": parts, "accumulate": accumulate, "prefetch": prefetch} if tile else {}
    if sources is not None:  # a part of the probe that only counts reads nothing of a source that could be prefetched
        tiled.pop("prefetch", None)
    plan = Plan(fission=True, targets=merged, tile=tile, block=32, **tiled)
    p = program(PROBE, layout, plan, "cuda", same=given.same)
    assert_equal(run_kernels(p.kernels, given, layout), run_kernels((p.reference,), given, layout))


@pytest.mark.parametrize("name", ["gravity_potential", "kick_drift"])
def test_results_through_the_public_interface(name):
    c = case(name)
    given = Input(c, 37, 21 if c.pairwise else None)
    assert_close(run_public(given, lw.SoAoAS(), "cpu", Plan(fission=True)), expected(given), c)


def test_sums_of_results_are_split_as_well():
    c = case("speed")
    records = {"body": (c.records[0].__record__, lw.SoA())}
    reference = build_reduction(c.kernel.lowered, ElementwiseArguments(records, {}, {}), I64, "sum", strided=False)
    assert [k.name for k in fission.apply(reference)] == ["speed_sum_partial_result0", "speed_sum_partial_result1"]


# ---------------------------------------------------------------- refusals


def test_refusals():
    where = "loop splitting cannot be applied to"
    assert refusal(lambda: fission.apply(simple(PULL))) == f"{where} pull: it computes one result only"
    assert refusal(lambda: fission.apply(simple(SWAP))) == (
        f"{where} swap: place and level are computed from each other's old values, and no order of the kernels keeps them for both"
    )
    assert refusal(lambda: fission.apply(simple(CELLS))) == (
        f"{where} cells: result0 and result1 depend on one decision, floor(x), that two kernels may round in two ways"
    )
    one = refusal(lambda: program(case("gravity"), lw.SoA(), Plan(fission=True), "cuda"))
    assert one == f"{where} gravity: it computes one result only"


@lw.elementwise
def pushed(bead: Bead, force: lw.vec2, dt: lw.f32) -> tuple[lw.vec2, lw.i32]:
    steps = 0
    n = bead.level
    while n > 0:
        n -= 1
        steps += 1
    bead.place += force * dt
    return bead.place, steps


def test_arrays_that_share_memory_are_refused():
    """The result lies where a later kernel reads: one kernel would be right, two would not."""
    bead = Bead.array(**PROBE.fill(np.random.default_rng(0), 8))
    force = np.ones((8, 2), np.float32)
    out = (force, np.zeros(8, np.int32))
    plan = Plan(fission=True)
    with pytest.raises(PlanError) as error:
        pushed.bind(bead, force, dt=0.5, out=out, plan=plan)()
    assert str(error.value) == (
        "Plan(fission=True) of pushed: force and the result share memory, and one kernel would overwrite what another one reads; "
        "choose fission=False, or give them their own memory"
    )
    pushed.bind(bead, force, dt=0.5, out=(np.zeros((8, 2), np.float32), out[1]), plan=plan)()


# ---------------------------------------------------------------- on a GPU


@pytest.mark.cuda
@pytest.mark.parametrize("c", [STEP, CHAIN, CROSS, PROBE], ids=lambda c: c.name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_bits_on_a_gpu(c, layout):
    for count in (1, 100, 1000):
        given = Input(c, count, 300 if c.pairwise else None)
        plan = Plan(fission=True, block=64, tile=64 if c.pairwise else 0, parts=2 if c.pairwise else 1)
        assert_equal(run_public(given, LAYOUTS[layout], "cuda", plan), run_public(given, LAYOUTS[layout], "cpu"))


@pytest.mark.cuda
@pytest.mark.parametrize("c", CORPUS, ids=lambda c: c.name)
def test_corpus_on_a_gpu(c):
    given = Input(c, 1000, 500 if c.pairwise else None)
    assert_close(run_public(given, lw.SoAoAS(), "cuda", Plan(fission=True)), expected(given), c)


# ---------------------------------------------------------------- compilation


@pytest.mark.parametrize(("c", "layout"), [(c, list(LAYOUTS)[n % len(LAYOUTS)]) for n, c in enumerate(CORPUS)], ids=str)
def test_compiles_without_spills(c, layout):
    plan = Plan(fission=True, block=128, tile=128 if c.pairwise else 0, min_blocks=1)
    check_compiled(
        program(c, LAYOUTS[layout] if c.records else lw.AoS(), plan, "cuda"), "sm_90", local_arrays=c.local_arrays
    )


def test_a_part_takes_fewer_registers():
    """What the pass is for: a part of the probe keeps less in registers than all of it."""

    def registers(split: bool) -> list[int]:
        p = program(PROBE, lw.SoA(), Plan(fission=split, targets=8, block=128, tile=128, min_blocks=1), "cuda")
        return [compile_cubin(emit_cuda(k, "test"), k.name, "sm_90").resources.registers for k in p.kernels]

    (whole,) = registers(False)
    assert max(registers(True)) < whole

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.work import describe_work
from lanewise.ir.verify import verify_kernel
from lanewise.language.target import Machine
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.executable import build_executable
from lanewise.launch.task_list import BoundArray
from lanewise.passes import reciprocity, thread_mapping, tiling
from lanewise.patterns.results import result_arrays
from lanewise.planning.plan import Plan
from lanewise.support.errors import PlanError
from tests.corpus import Case, Fields, case
from tests.harness import Input, assert_close, expected, program, run_kernel, run_kernels
from tests.passes.probe import PULL, Bead, before_and_after, check, layouts, refusal, simple
from tests.written import module


@lw.pairwise
def spring(target: Bead, source: Bead, scale: lw.f32) -> tuple[lw.vec2, lw.i32, lw.f64]:
    """Exact in any order: an odd force, an even count, and something that each side has of its own."""
    if lw.same(target, source):
        return lw.vec2(0.0), 100, 0.0
    d = (source.place - target.place) * scale
    r2 = lw.dot(d, d)
    return d * r2 * lw.f32(source.level), lw.i32(r2 > 9.0), source.weight


def _fill(rng: np.random.Generator, n: int) -> Fields:
    return {
        "place": rng.integers(-3, 4, (n, 2)).astype("f4"),
        "level": rng.integers(-5, 6, n).astype("i4"),
        "weight": rng.integers(-9, 10, n).astype("f8"),
    }


@lw.pairwise
def leaning(target: Bead, source: Bead) -> lw.f32:
    """Nothing of one direction is of use for the other."""
    return lw.sqrt(source.place.x * 2.0 + lw.exp(target.place.y))


LEANING = Case("leaning", leaning, (Bead, Bead), _fill, lambda *_: ())
SPRING = Case("spring", spring, (Bead, Bead), _fill, lambda *_: (), {"scale": 2.0})


def shaped(kernel, targets, mode, unroll=4, *, wide=False, threads=32):
    main, *rest = reciprocity.apply(kernel, targets, mode, unroll, wide=wide, threads=threads)
    return (main, *(thread_mapping.apply(k, 32) for k in rest))


@pytest.mark.parametrize("mode", ["scratch", "ordered", "grouped"])
def test_golden(golden, mode):
    before = simple(SPRING)
    golden(mode, before_and_after(before, *shaped(before, 2, mode), functions=True))
    golden(f"{mode}_wide", before_and_after(before, *shaped(before, 1, mode, wide=True, threads=64)))


@given(
    st.integers(1, 100),
    st.integers(1, 2),
    st.sampled_from(["scratch", "ordered", "grouped"]),
    layouts,
    st.integers(0, 99),
    st.booleans(),
    st.sampled_from([32, 64, 96]),
)
def test_meaning_is_kept(n, targets, mode, layout, seed, wide, threads):
    before = simple(SPRING, layout=layout)
    check(Input(SPRING, n, None, seed), before, shaped(before, targets, mode, wide=wide, threads=threads), layout)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("mode", ["scratch", "ordered", "grouped"])
@pytest.mark.parametrize("name", ["gravity", "lennard_jones", "yukawa", "gravity_f64", "gravity_mixed"])
def test_corpus(name, mode):
    c = case(name)
    for n, accumulate in ((33, "native"), (70, "f64")):
        plan = Plan(reciprocity=mode, targets=2, block=32, tile=0, unroll=4, accumulate=accumulate)
        given_input = Input(c, n, None, n)
        p = program(c, lw.SoAoAS(), plan, "cuda")
        assert_close(run_kernels(p.kernels, given_input, lw.SoAoAS()), expected(given_input), c)


def test_turns_leave_zero_for_the_next_launch():
    """A second run of the same kernels on counters that the first one left gives the same."""
    c = case("gravity")
    p = program(c, lw.SoAoAS(), Plan(reciprocity="ordered", targets=1, block=32, tile=0), "cuda")
    (kernel,) = p.kernels
    assert [s.zeroed for s in kernel.scratch] == [True, True]
    bound, env = _bind(c, 70)
    run_kernel(kernel, bound, env)
    for s in kernel.scratch:
        assert not bound[s.array].data.any()


def _bind(c, n):
    g = Input(c, n, None, 1)
    (record, _) = g.records(lw.SoAoAS())
    bound = {x: BoundArray(record.data, record.arrangement, n) for x in ("target", "source")}
    for name, kind in result_arrays(c.kernel.lowered):
        bound[name] = bind_value_array(np.zeros((n, 3), "f4"), kind)
    return bound, {"softening2": 1e-2, "$target.count": n, "$source.count": n, **c.values}


@pytest.mark.grid(every=40)
@pytest.mark.slow_cases("yukawa-8-scratch", "gravity-8-scratch")
@pytest.mark.parametrize("mode", ["scratch", "ordered", "grouped"])
@pytest.mark.parametrize(
    ("name", "targets"), [("gravity", 8), ("gravity", 16), ("yukawa", 8), ("lennard_jones", 8), ("gravity_f64", 4)]
)
def test_cubins_do_not_spill(name, targets, mode):
    p = program(case(name), lw.SoAoAS(), Plan(reciprocity=mode, targets=targets, block=32, tile=0, unroll=4), "cuda")
    for cubin in build_executable(p, "cuda", arch="sm_90").cubins:
        assert cubin.resources.spill_stores == cubin.resources.stack_bytes == 0


HEAD = "reciprocity cannot be applied to "


def test_refusals():
    assert (
        refusal(lambda: reciprocity.apply(simple(SPRING), 0, "scratch", 1))
        == f"{HEAD}spring: 0 targets per thread were requested"
    )
    assert refusal(lambda: reciprocity.apply(simple(SPRING), 1, "scratch", 1, threads=48)) == (
        f"{HEAD}spring: each warp has its own tasks, and a block 32 to 1024 threads in whole warps; 48 were requested"
    )
    two = simple(SPRING, same=False)
    assert (
        refusal(lambda: reciprocity.apply(two, 1, "scratch", 1))
        == f"{HEAD}spring: its targets and its sources are two arrays"
    )
    elements = simple(case("speed"))
    assert refusal(lambda: reciprocity.apply(elements, 1, "scratch", 1)) == f"{HEAD}speed: its elements are no pairs"
    assert refusal(lambda: reciprocity.apply(simple(LEANING), 1, "scratch", 1)) == (
        f"{HEAD}leaning: the two directions of a pair share too little: 0 % of the work would be saved, "
        "and the exchange between threads pays from 15 %"
    )
    assert refusal(lambda: reciprocity.apply(simple(case("ranked_distance")), 1, "scratch", 1)) == (
        f"{HEAD}ranked_distance: it is not known what the two directions of a pair share: ranked_distance has a local array"
    )
    loops = tiling.apply(simple(PULL), 32)
    assert refusal(lambda: reciprocity.apply(loops, 1, "scratch", 1)) == f"{HEAD}pull: its loops are shaped already"


KINDS = {
    "Min": "lw.Min[lw.f32]", "Max": "lw.Max[lw.vec2]", "ArgMin": "lw.ArgMin[lw.f32]", "ArgMax": "lw.ArgMax[lw.i32]",
    "KMin": "lw.KMin[lw.f32, 3]", "ArgKMin": "lw.ArgKMin[lw.f32, 3]", "LogSumExp": "lw.LogSumExp[lw.f32]", "Any": "lw.Any", "All": "lw.All",
    "Count": "lw.Count",
}  # fmt: skip
VALUES = {"lw.Max[lw.vec2]": "d * r", "lw.ArgMax[lw.i32]": "lw.i32(r) * (1 + source.level)"}


def _reducing(*names: str, extra: str = "") -> Case:
    """A function of distances that are integers, most of them several times; one side has something of its own."""
    kinds = [*(KINDS[n] for n in names), *([extra] if extra else [])]
    values = [VALUES.get(k, "r < 20.0" if k in ("lw.Any", "lw.All", "lw.Count") else "r") for k in kinds]
    text = f"""
        @lw.pairwise
        def near(target: Bead, source: Bead) -> {f"tuple[{', '.join(kinds)}]" if len(kinds) > 1 else kinds[0]}:
            d = target.place - source.place
            r = lw.dot(d, d) * lw.dot(d, d)
            return {", ".join(values)}
        """
    return Case("near", module(text, Bead=Bead).near, (Bead, Bead), _fill, lambda *_: (), rtol=1e-6)


def _same(found, wanted, *, exact=True) -> None:
    """To the bit, but for sums of exponentials, which are merged in another order."""
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(f, w) if exact else np.testing.assert_allclose(f, w, rtol=2e-6)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("mode", ["scratch", "ordered", "grouped"])
@pytest.mark.parametrize("name", KINDS)
def test_every_reduction(name, mode):
    """States travel as sums do: whatever a target takes from one side, it takes from both."""
    c = _reducing(name)
    for n, targets, threads, layout in ((1, 1, 32, lw.SoA()), (70, 1, 64, lw.AoS()), (97, 2, 32, lw.AoSoA(32))):
        before, given_input = simple(c, layout=layout), Input(c, n, None, n)
        after = shaped(before, targets, mode, threads=threads)
        for k in after:
            verify_kernel(k)
        found, wanted = (run_kernels(k, given_input, layout) for k in (after, (before,)))
        _same(found, wanted, exact=name != "LogSumExp")


@pytest.mark.parametrize("mode", ["scratch", "ordered", "grouped"])
def test_several_reductions(golden, mode):
    """A sum is added to its result in turn, beside states that have memory of their own; in float64 it has it, too."""
    c = _reducing("ArgMin", "Count", "Min", extra="lw.f32")
    before = simple(c)
    golden(f"states_{mode}", before_and_after(before, *shaped(before, 1, mode), functions=True))
    for wide in (False, True):
        given_input = Input(c, 75, None, 3)
        found = run_kernels(shaped(before, 2, mode, wide=wide), given_input, lw.SoAoAS())
        _same(found, run_kernels((before,), given_input, lw.SoAoAS()))


@pytest.mark.parametrize("name", KINDS)
def test_states_of_one_number_are_exchanged_by_default(name):
    """The others do not pay for their way around the warp (bench/results/gpu_both_ways.md)."""
    work = describe_work(simple(_reducing(name)), 20_000)
    plan = complete_plan(None, Machine("cuda", 132), work)
    assert work.both_ways > 0
    assert (plan.reciprocity != "off") is work.exchanges is (name in ("Min", "Max", "Any", "All", "Count"))


@pytest.mark.parametrize(("kind", "expected_default"), [("lw.Max[lw.f32]", False), ("lw.f32", True)])
def test_exact_results_keep_their_bits_by_default(kind, expected_default):
    """A compiler fuses one of two products that are added; from the other side they stand the other way round."""
    text = f"""
        @lw.pairwise
        def area(target: Bead, source: Bead) -> {kind}:
            a, b = target.place, source.place
            return abs(a.x * b.y - a.y * b.x) * lw.sqrt(a.x * a.x + b.x * b.x + 1.0)
        """
    c = Case("area", module(text, Bead=Bead).area, (Bead, Bead), _fill, lambda *_: ())
    assert describe_work(simple(c), 20_000).exchanges is expected_default
    assert reciprocity.legal(simple(c), 1) is None


def test_float64_is_for_sums():
    c = _reducing("ArgMin", "Min")
    reason = "float64 accumulation cannot be applied to near: it has no sums: float64 adds nothing to argmin, min"
    assert refusal(lambda: reciprocity.apply(simple(c), 1, "scratch", 1, wide=True)) == reason


def test_plans_that_do_not_go_with_it():
    plan = Plan(reciprocity="ordered", targets=2, block=64, tile=64)
    with pytest.raises(PlanError, match=r"its tasks belong to single warps and need Plan\(tile=0\), found 64"):
        program(case("gravity"), lw.SoAoAS(), plan, "cuda")
    with pytest.raises(PlanError, match="it is the threads of a GPU that exchange sums"):
        program(case("gravity"), lw.SoA(), Plan(reciprocity="ordered"), "cpu")


@pytest.mark.cuda
@pytest.mark.parametrize("mode", ["scratch", "ordered", "grouped"])
@pytest.mark.parametrize("name", ["gravity", "lennard_jones", "yukawa", "gravity_f64", "gravity_mixed"])
def test_on_a_gpu_it_is_right_and_repeats_to_the_bit(name, mode):
    c = case(name)
    for n, targets, wide, block in (
        (1, 1, 0, 32), (33, 1, 0, 64), (1000, 2, 1, 128), (5000, 8, 0, 32), (20_011, 4, 1, 128), (3000, 4, 0, 96),
    ):  # fmt: skip
        accumulate = "f64" if wide else "native"
        plan = Plan(
            reciprocity=mode, targets=targets, block=block, tile=0, slices=1, parts=1, unroll=4, accumulate=accumulate
        )
        g = Input(c, n, None, n)
        (bodies, _) = g.records(lw.SoAoAS(), "cuda")
        run = c.kernel.bind(bodies, bodies, **c.values, plan=plan)
        first = [x.get().copy() for x in _tuple(run())]
        for _ in range(3):
            for a, b in zip(first, _tuple(run()), strict=True):
                np.testing.assert_array_equal(a, b.get())
        whole = c.kernel(bodies, bodies, **c.values)
        if n <= 5000:
            assert_close(first, expected(g), c, scale=4.0)
        else:
            assert_close(first, [x.get() for x in _tuple(whole)], c, scale=8.0)


@pytest.mark.cuda
@pytest.mark.parametrize("mode", ["scratch", "ordered", "grouped"])
@pytest.mark.parametrize("name", KINDS)
def test_on_a_gpu_every_reduction_is_that_of_one_side(name, mode):
    c = _reducing(name)
    for n, targets, block in ((1, 1, 32), (33, 1, 64), (1000, 2, 128), (5003, 4, 32)):
        plan = Plan(reciprocity=mode, targets=targets, block=block, tile=0, slices=1, parts=1, unroll=4)
        (beads, _) = Input(c, n, None, n).records(lw.SoAoAS(), "cuda")
        run = c.kernel.bind(beads, beads, plan=plan)
        found = [x.get().copy() for x in _tuple(run())]
        _same([x.get() for x in _tuple(run())], found)
        wanted = [x.get() for x in _tuple(c.kernel(beads, beads, plan=Plan(reciprocity="off")))]
        _same(found, wanted, exact=name != "LogSumExp")


def _tuple(x):
    return x if isinstance(x, tuple) else (x,)

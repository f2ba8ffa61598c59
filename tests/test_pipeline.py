"""The pipeline: every stage of every corpus kernel means the same, and plans that do not fit are refused."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir.functions import functions
from lanewise.ir.verify import verify_kernel
from lanewise.planning.plan import Plan
from lanewise.support.errors import CompileError, PlanError
from tests.corpus import CASES, LAYOUTS, PAIRWISE, case
from tests.corpus_kernels import Charge
from tests.harness import Input, assert_close, expected, program, reference_kernel, run_kernels, stages
from tests.passes.probe import assert_equal, layouts, small_inputs

GPU_PLAN = Plan(targets=2, tile=64, slices=2, parts=2, unroll=2, block=64, accumulate="f64")


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_the_naive_kernel_is_what_numpy_says(c):
    for sources in (None, 6) if c.pairwise else (None,):
        given = Input(c, 5, sources)
        kernel = reference_kernel(c, lw.SoA(), "cpu", same=given.same)
        assert_close(run_kernels((kernel,), given, lw.SoA()), expected(given), c)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_every_stage_of_the_corpus_means_the_same(c, kind):
    given = Input(c, 3, 5 if c.pairwise else None, seed=1)
    plan = GPU_PLAN if kind == "cuda" and c.pairwise else Plan(targets=2)
    for _, kernels in stages(c, lw.SoAoAS(), plan, kind, same=given.same):
        assert_close(run_kernels(kernels, given, lw.SoAoAS()), expected(given), c)


@st.composite
def gpu_plans(draw):
    block = draw(st.sampled_from((32, 64)))
    slices = draw(st.sampled_from((1, 2, 4)))
    return Plan(
        block=block,
        slices=slices,
        tile=block * draw(st.integers(1, 2)),
        targets=draw(st.integers(1, 3)),
        parts=draw(st.integers(1, 3)),
        unroll=draw(st.sampled_from((0, 1, 4))),
        accumulate=draw(st.sampled_from(("native", "f64"))),
    )


@settings(max_examples=5)
@examples(small_inputs, layouts, gpu_plans())
def test_every_stage_of_any_gpu_plan_gives_the_same_bits(given, layout, plan):
    pipeline = stages(given.case, layout, plan, "cuda", same=given.same)
    wanted = run_kernels(pipeline[0][1], given, layout)
    for _, kernels in pipeline[1:]:
        assert_equal(run_kernels(kernels, given, layout), wanted)


@examples(small_inputs, layouts, gpu_plans())
def test_any_gpu_plan_gives_the_same_bits(given, layout, plan):
    pipeline = stages(given.case, layout, plan, "cuda", same=given.same)
    assert_equal(run_kernels(pipeline[-1][1], given, layout), run_kernels(pipeline[0][1], given, layout))


@examples(small_inputs, layouts, st.integers(1, 6), st.sampled_from((0, 1, 7, 16)), st.booleans())
def test_any_cpu_plan_gives_the_same_bits(given, layout, targets, tile, wide):
    plan = Plan(targets=targets, tile=tile, accumulate="f64" if wide and tile else "native")
    pipeline = stages(given.case, layout, plan, "cpu", same=given.same)
    for _, kernels in pipeline[1:]:
        assert_equal(run_kernels(kernels, given, layout), run_kernels(pipeline[0][1], given, layout))


def test_tiles_are_not_staged_when_nothing_of_a_source_is_read():
    p = program(case("order"), lw.SoA(), Plan(tile=64, block=64), "cuda", same=False)
    assert not any(a.space == "shared" for k in p.kernels for a in k.arrays)


def test_stages_have_names():
    names = [name for name, _ in stages(case("gravity"), lw.SoAoAS(), GPU_PLAN, "cuda")]
    assert names == [
        "pattern", "constant folding", "scalar replacement", "dead code", "tiling", "float64 accumulation", "thread merging", "slicing",
        "splitting of sources", "shared-memory tiles", "unrolling", "mapping to threads", "unused indices", "layout lowering",
        "load selection",
    ]  # fmt: skip


REFUSED = [
    (Plan(block=64, slices=3, tile=64), "Plan(block=64, slices=3): the threads of a block must divide evenly into slices of at least 2 threads"),
    (Plan(block=64, slices=0, tile=64), "Plan(block=64, slices=0): the threads of a block must divide evenly into slices of at least 2 threads"),
    (Plan(block=32, slices=32), "Plan(block=32, slices=32): the threads of a block must divide evenly into slices of at least 2 threads"),
    (
        Plan(block=100),
        "mapping to threads cannot be applied to gravity: a block has 32 to 1024 threads, in whole warps of 32; 100 were requested",
    ),
    (
        Plan(block=128, tile=64),
        "shared-memory tiles cannot be applied to gravity: a tile of 64 sources is no multiple of the 128 threads that stage it",
    ),
    (
        Plan(block=1024, tile=4096),
        "mapping to threads cannot be applied to gravity: "
        "its tiles and sums take 65,536 bytes of shared memory per block, and there are 49,152",
    ),
    (Plan(tile=0, slices=2), "slicing cannot be applied to gravity: its sources are not cut into tiles"),
    (Plan(tile=0, parts=2), "splitting of sources cannot be applied to gravity: its sources are not cut into tiles"),
    (Plan(parts=0), "splitting of sources cannot be applied to gravity: 0 parts were requested"),
    (Plan(targets=0), "thread merging cannot be applied to gravity: 0 targets per thread were requested"),
    (
        Plan(tile=0, accumulate="f64"),
        "float64 accumulation cannot be applied to gravity: its sources are not cut into tiles (Plan(tile=...))",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "text"), REFUSED, ids=lambda x: str(x) if isinstance(x, Plan) else "")
def test_plans_that_do_not_fit_are_refused(plan, text):
    with pytest.raises(PlanError) as error:
        program(case("gravity"), lw.SoAoAS(), plan, "cuda")
    assert str(error.value) == text


@pytest.mark.parametrize("name", ["slices", "parts"])
def test_a_cpu_does_not_divide_the_sources(name):
    with pytest.raises(PlanError) as error:
        program(case("gravity"), lw.SoA(), Plan(**{name: 2}), "cpu")
    assert str(error.value) == f"Plan({name}=2): only a GPU divides the sources of one target; on a CPU {name} is 1"


def test_truth_values_are_not_summed():
    @lw.pairwise
    def close(target: Charge, source: Charge) -> lw.bool:
        return lw.length(source.position - target.position) < 1.0

    given = Charge.zeros(3)
    with pytest.raises(CompileError) as error:
        close(given, given)
    line = close.lowered.function.location.line
    assert (
        str(error.value)
        .splitlines()[0]
        .endswith(f"test_pipeline.py:{line}:{1 + 4}: the results of a pairwise function are summed")
    )
    assert str(error.value).splitlines()[-3:] == [
        "  found: a result of type bool",
        "  wanted: numbers",
        "  hint: -> lw.Count counts the sources for which it holds; lw.Any and lw.All say whether it holds",
    ]


def test_functions_of_one_name_stay_apart():
    def first():
        @lw.function
        def twice(x):
            return 2.0 * x

        return twice

    def second():
        @lw.function
        def twice(x):
            return 3.0 * x

        return twice

    one, other = first(), second()

    @lw.elementwise
    def twice(x: lw.f32) -> lw.f32:
        return one(x) + other(x)

    import numpy as np

    from tests.corpus import Case

    c = Case(
        "twice",
        twice,
        (),
        lambda rng, n: {},
        lambda x: (5 * x.astype("f8"),),
        arrays=lambda rng, n: {"x": rng.random(n).astype("f4")},
    )
    given = Input(c, 3)
    p = program(c, lw.SoA(), Plan(), "cpu")
    assert len(functions(p.reference.body)) == 3
    for kernels in ((p.reference,), p.kernels):
        np.testing.assert_allclose(run_kernels(kernels, given, lw.SoA())[0], 5 * given.arrays["x"], rtol=1e-6)


def test_every_layout_verifies_at_every_stage():
    for c in PAIRWISE:
        for layout in LAYOUTS.values():
            for _, kernels in stages(c, layout, GPU_PLAN, "cuda"):
                for k in kernels:
                    verify_kernel(k)

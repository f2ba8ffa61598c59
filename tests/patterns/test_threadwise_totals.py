"""Sums over an index space, and the plans by which threads share loops, through the public interface."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir.pattern import Work
from lanewise.language.target import Machine
from lanewise.launch.executable import generated_texts
from lanewise.patterns.threadwise.pattern import THREADWISE
from lanewise.patterns.threadwise.plans import default_plan
from lanewise.patterns.threadwise.work import describe
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import ArgumentError, CompileError, PlanError
from tests.patterns.reductions import (
    columns,
    count,
    expected,
    inputs,
    positive,
    reference,
    rows,
    run,
    several,
    softmax,
    total,
)

H200 = Machine("cuda", 132)


@pytest.mark.parametrize("shape", [(1, 1), (3, 131), (0, 4), (4, 0), (257, 5)])
def test_a_call_gives_a_number(shape):
    a = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    found = total(a, grid=shape)
    assert type(found) is float
    assert found == pytest.approx(a.sum(dtype=np.float64), rel=1e-12, abs=1e-12)
    out = np.empty(1)
    assert total(a, grid=shape, out=out) is out
    assert out[0] == found == total(a, grid=shape, out=None)


def test_whole_numbers_are_counted_in_64_bits():
    a = np.full((2, 3, 50), 2**30, np.int32)
    found = count(a, grid=a.shape)
    assert (type(found), found) == (int, 300 * 2**30)


def test_a_thread_may_return_early():
    a = np.random.default_rng(1).normal(size=997).astype(np.float32)
    assert positive(a, 0.5, grid=997) == pytest.approx(a[a >= np.float32(0.5)].sum(dtype=np.float64), rel=1e-12)


def test_what_out_has_to_be():
    a = np.zeros((2, 3), np.float32)
    with pytest.raises(ArgumentError, match=r"out must be a contiguous array of float64 with shape \(1,\)"):
        total(a, grid=a.shape, out=np.zeros(1, np.float32))


def test_sums_of_other_things_are_refused():
    def two(x: lw.index, a: lw.Array1[lw.f32]) -> lw.vec2:
        return lw.vec2(a[x], a[x])

    def writes(x: lw.index, a: lw.Array1[lw.f32]) -> lw.f32:
        a[x] = 0.0
        return a[x]

    def reads_nothing(x: lw.index) -> lw.f32:
        return 1.0

    a = np.zeros(3, np.float32)
    for function, message in (
        (two, "a threadwise function with a result is summed over its indices"),
        (writes, "a threadwise function writes arrays or has a result, and not both"),
        (reads_nothing, "a threadwise function reads or writes arrays"),
    ):
        with pytest.raises(CompileError, match=message):
            lw.threadwise(function)(a, grid=3)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("kernel", [rows, columns, softmax, total], ids=lambda k: k.__name__)
@pytest.mark.parametrize("shape", [(3, 70), (65, 9)])
def test_plans_of_slices_and_parts(kernel, shape):
    arguments, grid = inputs(kernel, *shape)
    before = reference(kernel, arguments, grid)
    plans = [Plan(block=64, slices=16, unroll=2), Plan(block=64, slices=8, parts=3), Plan(block=32, parts=4)]
    plans = [Plan(block=64, slices=64), Plan(block=64, slices=16, tile=64)] if kernel is softmax else plans
    for plan in plans:
        program = build_program(before, plan.filled(NEUTRAL), "cuda")
        found = run(program.kernels, kernel, arguments, grid)[-1]
        np.testing.assert_allclose(found, expected(kernel, arguments)[0], rtol=2e-5, atol=2e-6, err_msg=str(plan))


@pytest.mark.slow_cases("shape2")
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 7), (2, 40, 70)])
def test_sums_over_three_indices_with_any_number_of_parts(shape):
    """Every variable of a text is set before it is read, of which NVRTC warns: Python would not."""
    a = np.random.default_rng(1).integers(-9, 10, shape, np.int32)
    before = reference(count, (a,), shape)
    for plan in (Plan(block=32), Plan(block=32, parts=2), Plan(block=64, slices=64, parts=33)):
        program = build_program(before, plan.filled(NEUTRAL), "cuda")
        assert run(program.kernels, count, (a,), shape)[-1] == a.sum(), plan
        if shape == (1, 1, 1):
            for k, text in zip(program.kernels, generated_texts(program, "cuda", locations=False), strict=True):
                assert "warning" not in compile_cubin(text, k.name, "sm_90").log.lower(), text


def test_refusals():
    arguments, grid = inputs(rows, 3, 70)
    before = reference(rows, arguments, grid)
    for plan, reason in (
        (Plan(block=96, slices=3), "neighbours of a warp meet in powers of two, and 3 is none"),
        (Plan(block=64, slices=7), "a block of 64 threads does not divide into 7 slices"),
        (Plan(block=64, slices=8, rows=2), "threads that share a point have one: rows has to be 1"),
    ):
        with pytest.raises(PlanError) as error:
            build_program(before, plan.filled(NEUTRAL), "cuda")
        assert str(error.value) == f"slicing cannot be applied to rows: {reason}"


def chosen(kernel, shape, points, rounds, multiple=1, **wish):
    arguments, grid = inputs(kernel, *shape)
    text = reference(kernel, arguments, grid)
    text = replace(text, arrays=tuple(replace(a, multiple=multiple) for a in text.arrays))
    work = describe(text, Work(THREADWISE, points))
    if work.rounds is not None:
        counts = dict.fromkeys(("$a.shape0", "$a.shape1", "$x.extent", "$y.extent"), rounds)
        work = Work(THREADWISE, points, rounds=work.rounds.at(counts))
    plan = default_plan(H200, work, Plan(**wish))
    return plan.block, plan.slices, plan.parts, plan.tile


def test_default_plans_on_a_gpu():
    assert chosen(rows, (3, 8), 16384, 16384) == (256, 256, 1, 0), "a block for each row"
    assert chosen(rows, (3, 8), 65536, 2048) == (256, 128, 1, 0), "sixteen rounds of a thread"
    assert chosen(rows, (3, 8), 131072, 512) == (256, 32, 1, 0), "a warp for each row"
    assert chosen(rows, (3, 8), 64, 16384)[1:] == (256, 4, 0), "few rows: a block for each, and several blocks"
    assert chosen(columns, (3, 8), 16384, 16384) == (256, 4, 8, 0), "columns along threads"
    assert chosen(columns, (3, 8), 2**20, 16384) == (256, 1, 1, 0), "enough columns for a thread each"
    assert chosen(softmax, (3, 8), 65536, 4096, multiple=4) == (256, 256, 1, 4096), "a row is kept"
    assert chosen(softmax, (3, 8), 65536, 4098, multiple=2) == (256, 256, 1, 0), "whose copies would be short"
    assert chosen(total, (3, 8), 2**28, 16384) == (256, 256, 4096, 0)
    assert chosen(rows, (3, 8), 16384, 7) == (256, 1, 1, 0), "short rows"
    assert chosen(rows, (3, 8), 16384, 16384, slices=64) == (256, 1, 1, 0), "a wish leaves the rest neutral"
    assert chosen(rows, (3, 8), 16384, 16384, targets=2) == (256, 1, 1, 0)


COMPILED = [
    (rows, Plan(block=256, slices=32, unroll=4)), (rows, Plan(block=256, slices=256, parts=4, unroll=4)),
    (columns, Plan(block=256, slices=4, parts=16, unroll=8)), (columns, Plan(block=256, parts=64, unroll=8)),
    (total, Plan(block=256, slices=256, parts=4096, unroll=4)), (softmax, Plan(block=256, slices=256, tile=4096, unroll=4)),
    (several, Plan(block=128, slices=64, parts=3)),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "plan"), COMPILED, ids=[f"{k.__name__}-{p.slices}-{p.parts}" for k, p in COMPILED])
def test_kernels_compile_without_spills(kernel, plan):
    arguments, grid = inputs(kernel, 8, 128)
    for multiple in (1, 4):
        program = build_program(reference(kernel, arguments, grid, multiple=multiple), plan.filled(NEUTRAL), "cuda")
        for k, text in zip(program.kernels, generated_texts(program, "cuda", locations=False), strict=True):
            cubin = compile_cubin(text, k.name, "sm_90")
            assert "warning" not in cubin.log.lower(), cubin.log
            assert (cubin.resources.spill_stores, cubin.resources.stack_bytes) == (0, 0)
            assert cubin.resources.registers <= 48
            assert ("float4" in text) == (
                multiple == 4 and kernel not in (columns, several) and not k.name.endswith("_combine")
            )


def test_sums_along_rows_are_free_on_a_cpu():
    for kernel, free in ((rows, True), (columns, False), (total, True)):
        arguments, grid = inputs(kernel, 8, 128)
        program = build_program(reference(kernel, arguments, grid), NEUTRAL, "cpu")
        texts = generated_texts(program, "cpu", locations=False)
        sums = re.findall(r" = fadd ([a-z ]* )(?:float|double)", texts[0])
        assert ("reassoc nsz contract " in sums) == free, kernel.__name__
        assert "reassoc" not in re.sub(r" = fadd reassoc nsz contract (float|double)", "", texts[0]), (
            "the rest is as it is written"
        )


def test_a_compensated_sum_is_no_sum():
    @lw.threadwise
    def kahan(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array1[lw.f32]):
        s = 0.0
        lost = 0.0
        for k in range(a.shape[1]):
            v = a[y, k] - lost
            t = s + v
            lost = (t - s) - v
            s = t
        r[y] = s

    a = np.random.default_rng(2).normal(size=(2, 100_000)).astype(np.float32) + np.float32(100)
    r = np.zeros(2, np.float32)
    kahan(a, r, grid=2)
    np.testing.assert_allclose(r, a.sum(axis=1, dtype=np.float64), rtol=1e-7)
    assert "reassoc" not in kahan.compile(a, r, grid=2).source


@lw.threadwise
def squares(i: lw.index, a: lw.Array1[lw.f32]) -> lw.f32:
    return a[i] * a[i]


def test_a_sum_is_not_put_into_what_it_reads():
    a, out = np.ones(64, np.float32), np.zeros(1)
    for _ in range(3):  # a first call, and such as are remembered
        assert squares(a, grid=64, out=out) is out
        assert out[0] == 64
        for into in (a[:2].view(np.float64), a[10:12].view(np.float64)):
            with pytest.raises(
                ArgumentError, match="squares: out shares memory with the array 'a'; give it its own memory"
            ):
                squares(a, grid=64, out=into)
    two = np.ones(2, np.float32)  # as long as the result
    squares(two, grid=2, out=out)
    with pytest.raises(ArgumentError, match="out shares memory with the array 'a'"):
        squares(two, grid=2, out=two.view(np.float64))
    with pytest.raises(ArgumentError, match="out shares memory with the array 'a'"):
        squares.bind(a, grid=64, out=a[:2].view(np.float64))
    assert (a == 1).all()

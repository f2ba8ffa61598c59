"""segmentwise: sums over the items of segments, on every device and by every plan."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.language import types as t
from lanewise.language.target import Machine
from lanewise.launch.support import compile_kernel
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.memory import to_host
from lanewise.runtime.nvrtc import compile_cubin
from tests.patterns.segmentwise import (
    Case,
    Sft,
    Template,
    angles,
    interpreted,
    moments,
    picked,
    power,
    reference_kernel,
)

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoAS(16), lw.SoAoAS(), lw.AoSoA(8)]
MIXED = np.array([[3, 0], [5, 1], [2, 40]])
PLANS = [
    Plan(), Plan(block=64, targets=2), Plan(targets=4, unroll=4), Plan(slices=4), Plan(slices=8, targets=2), Plan(slices=32),
    Plan(slices=32, targets=2), Plan(registers=40), Plan(min_blocks=2), Plan(uniforms="global"),
    Plan(segments="packed"), Plan(segments="packed", block=64, slices=4, unroll=2),
]  # fmt: skip

counts = st.one_of(
    st.lists(st.integers(0, 9), min_size=1, max_size=6).map(np.array),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 99)).map(
        lambda x: np.random.default_rng(x[2]).integers(0, 6, x[:2])
    ),
)


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(to_host(found), wanted, rtol=1e-5, atol=2e-5)  # the same places are not numbers


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_as_in_numpy(device: str, layout: lw.Layout) -> None:
    case = Case(MIXED)
    found = power(*case.arguments(device, layout), scale=1.5)
    assert found.shape == (5, 3, 2, 2)
    assert np.isnan(to_host(found)).any()
    assert not np.isnan(to_host(found)).all()
    close(found, case.reference(1.5))


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(counts=counts, templates=st.integers(1, 9), seed=st.integers(0, 2**20), longest=st.sampled_from([1, 5, 30]))
def test_any_lengths(counts: Any, templates: int, seed: int, longest: int) -> None:
    case = Case(counts, templates, seed, longest)
    arguments = case.arguments()
    wanted = case.reference(0.5)
    found = power(*arguments, scale=0.5)
    close(found, wanted)
    side_by_side = power(*arguments, scale=0.5, plan=Plan(targets=4))
    np.testing.assert_array_equal(side_by_side, found)  # to the bit
    close(power(*case.arguments("python"), scale=0.5), wanted)


@pytest.mark.parametrize(("templates", "targets"), [(31, 1), (32, 64), (75, 64)])
def test_cells_lie_side_by_side_by_default(templates: int, targets: int) -> None:
    """On a CPU, where the dense axis has as many; the same bits as one after another."""
    case = Case(np.array([[40, 3], [0, 700]]), templates, 5, 30)
    arguments = case.arguments()
    compiled = power.compile(*arguments, scale=0.5)
    assert compiled.plan.targets == targets
    found = power(*arguments, scale=0.5)
    close(found, case.reference(0.5))
    np.testing.assert_array_equal(power(*arguments, scale=0.5, plan=Plan(targets=1)), found)
    assert angles.compile(*arguments[:2], plan=Plan(hoist=True)).plan.targets == 1


@settings(deadline=None)
@given(counts=counts, templates=st.integers(1, 70), seed=st.integers(0, 2**20), plan=st.sampled_from(PLANS))
def test_threads_of_a_gpu(counts: Any, templates: int, seed: int, plan: Plan) -> None:
    """Thread by thread in the interpreter, which finds races and accesses outside of arrays."""
    case = Case(counts, templates, seed)
    (found,) = interpreted(power, case.arguments(), {"scale": 0.5}, plan)
    close(found.reshape(templates, *counts.shape, 2), case.reference(0.5))


GEOMETRIC = np.random.default_rng(3).geometric(0.2, 150) - 1  # many short lists, some empty, few long ones
PACKED = [
    Plan(segments="packed"), Plan(segments="packed", block=32), Plan(segments="packed", block=64, slices=2), Plan(slices=4, block=64),
    Plan(segments="packed", unroll=4),
]  # fmt: skip


MANY = GEOMETRIC[:61]  # with 3 templates 183 cells: several blocks of any size that is tried


@cache
def apart(slices: int | None, unroll: int | None) -> Any:
    """Blocks with a segment each; the same for several plans."""
    (sums,) = interpreted(
        power, Case(MANY, 3).arguments(), {"scale": 0.5}, Plan(block=64, slices=slices, unroll=unroll)
    )
    return sums


@pytest.mark.quick("segments='packed'", "slices=4, block=64")
@pytest.mark.parametrize("plan", PACKED, ids=lambda p: p.short())
def test_blocks_of_many_short_segments(plan: Plan) -> None:
    """Blocks that are filled with cells of several segments give the bits of blocks with one each, where as many threads share a cell."""
    case = Case(MANY, 3)
    (found,) = interpreted(power, case.arguments(), {"scale": 0.5}, plan)
    close(found.reshape(3, len(MANY), 2), case.reference(0.5))
    assert found.tobytes() == apart(plan.slices, plan.unroll).tobytes()


@pytest.mark.parametrize("targets", [1, 2, 64])
def test_many_short_segments_on_a_cpu(targets: int) -> None:
    case = Case(GEOMETRIC, 3)
    found = power(*case.arguments(), scale=0.5, plan=Plan(targets=targets))
    close(found, case.reference(0.5))
    assert found.tobytes() == power(*case.arguments(), scale=0.5).tobytes()


def packing(counts: Any, templates: int, **wish: Any) -> tuple[str, int]:
    """What is decided for a GPU with 132 multiprocessors."""
    arguments = Case(np.asarray(counts), templates).arguments()
    work = power._calls.subject.work(power._calls.given((*arguments, 0.5), {}))  # pyright: ignore[reportPrivateUsage]
    plan = complete_plan(Plan(**wish), Machine("cuda", 132), work)
    return plan.segments, plan.slices


def test_lengths_decide_how_blocks_are_filled() -> None:
    """By default a short dense axis shares blocks, and no more threads share a cell than its list has items."""
    assert packing(GEOMETRIC, 3) == ("packed", 4)
    assert packing([40] * 150, 3) == ("apart", 32)  # four lanes a block, and three places
    assert packing([2] * 10, 300) == ("apart", 2)
    assert packing([1] * 10, 300) == ("apart", 1)
    assert packing([1] * 10, 60) == ("packed", 1)
    assert packing(GEOMETRIC, 3, targets=2) == ("apart", 4)
    assert packing(GEOMETRIC, 3, segments="apart") == ("apart", 4)
    assert packing(GEOMETRIC, 3, slices=1) == ("packed", 1)


def test_packing_is_refused_where_there_is_nothing_to_pack() -> None:
    arguments = Case(MIXED).arguments()
    with pytest.raises(lw.PlanError, match="segment packing cannot be applied to power: a CPU has no blocks to fill"):
        power(*arguments, scale=0.5, plan=Plan(segments="packed"))
    for kernel, arrays, plan, text in (
        (
            moments,
            arguments[1:2],
            Plan(segments="packed"),
            "it has no dense axis: a block has as many segments as threads",
        ),
        (power, arguments, Plan(segments="packed", targets=2), "cells of one thread may lie in several segments"),
    ):
        with pytest.raises(lw.PlanError, match=text):
            interpreted(kernel, arrays, {"scale": 0.5} if kernel is power else {}, plan)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.short())
def test_compiles_for_gpus(plan: Plan, arch: str) -> None:
    reference = reference_kernel(power, Case(MIXED).arguments(layout=lw.AoS()), {"scale": 0.5})
    made = compile_kernel(reference, plan.filled(Plan(block=32).filled(NEUTRAL)), "cuda", arch=arch)
    assert made.cubins[0].resources.registers > 0
    assert made.cubins[0].resources.spill_stores == 0


@pytest.mark.cuda
@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.short())
def test_plans_on_a_gpu(plan: Plan) -> None:
    case = Case(np.array([[3, 0], [50, 1], [2, 400]]), 300)
    arguments = case.arguments("cuda")
    found = power(*arguments, scale=0.5, plan=plan)
    close(found, case.reference(0.5))
    for _ in range(3):
        np.testing.assert_array_equal(to_host(power(*arguments, scale=0.5, plan=plan)), to_host(found))


@pytest.mark.parametrize("device", DEVICES)
def test_without_a_dense_axis(device: str) -> None:
    case = Case(MIXED)
    _, items, _ = case.arguments(device)
    squares, starts = moments(items)
    assert squares.shape == starts.shape == (3, 2)
    ends = np.concatenate([[0], np.cumsum(MIXED.reshape(-1))])
    wanted = [(case.sft["delay"][a:b] ** 2).sum() for a, b in pairwise(ends)]
    np.testing.assert_allclose(to_host(squares).reshape(-1), wanted, rtol=1e-12)
    assert to_host(starts).reshape(-1).tolist() == [case.sft["start"][a:b].sum() for a, b in pairwise(ends)]


def test_threads_without_a_dense_axis() -> None:
    _, items, _ = Case(MIXED).arguments()
    squares, starts = moments(items)
    for plan in (Plan(), Plan(slices=8), Plan(block=64, slices=64), Plan(unroll=2)):
        found = interpreted(moments, (items,), {}, plan)
        np.testing.assert_allclose(found[0], squares.reshape(-1), rtol=1e-12)
        np.testing.assert_array_equal(found[1], starts.reshape(-1))


def test_what_no_item_changes_is_computed_once_a_cell() -> None:
    template, items, _ = Case(MIXED).arguments()
    wanted = angles(template, items)
    assert wanted.shape == (5, 3, 2)
    hoisted = angles.compile(template, items, plan=Plan(hoist=True))
    assert "angles_invariants" in hoisted.source
    np.testing.assert_allclose(hoisted(template, items), wanted, rtol=1e-14)
    for plan in (Plan(hoist=True), Plan(hoist=True, targets=2, slices=4)):
        (found,) = interpreted(angles, (template, items), {}, plan)
        np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-14)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_and_their_lengths(device: str) -> None:
    lengths = np.array([2, 0, 3, 1])
    values = np.arange(6.0)
    items = lw.ragged(
        Sft.array(delay=np.ones(4), weight=np.ones(4, "f4"), start=np.array([1, 0, 2, 1], "i4"), device=device),
        counts=[2, 1, 1], device=device,
    )  # fmt: skip
    found = to_host(picked(items, lw.ragged(values, counts=lengths, device=device)))
    assert found[:2].tolist() == [2.0, 12.0]
    assert np.isnan(found[2])  # its row has one value, and place 1 was requested
    everywhere = to_host(picked(items, lw.ragged(values, counts=np.array([0, 0, 3, 3]), device=device)))
    assert everywhere.tolist() == [0.0, 3 * 2.0, 3 * 4.0]


def test_uneven_stacks_have_one_axis() -> None:
    case = Case(np.array([3, 0, 5]))
    template, flat, rows = case.arguments()
    uneven = lw.ragged(flat.data, counts=(np.array([1, 2]), case.counts))
    found = power(template, uneven, rows, 1.0)
    assert found.shape == (5, 3, 2)
    np.testing.assert_array_equal(found, power(template, flat, rows, 1.0))


def test_results_go_where_they_are_wanted() -> None:
    arguments = Case(MIXED).arguments()
    wanted = power(*arguments, scale=1.0)
    out = np.full((5, 3, 2, 2), 7, np.float32)
    assert power(*arguments, scale=1.0, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    run = power.bind(*arguments, scale=1.0)
    np.testing.assert_array_equal(run(), wanted)
    with pytest.raises(
        lw.ArgumentError, match=r"out must be a contiguous array of shape \(5, 3, 2, 2\), found an array of"
    ):
        power(*arguments, scale=1.0, out=np.zeros((5, 6, 2), np.float32))


def test_results_have_memory_of_their_own() -> None:
    lengths = [30] * 2
    items = lw.ragged(Sft.array(delay=np.ones(2), weight=np.ones(2, "f4"), start=np.zeros(2, "i4")), counts=[1, 1])
    rows = lw.ragged(np.ones(60), counts=lengths)
    with pytest.raises(lw.ArgumentError, match="picked: out shares memory with 'values'; give it its own memory"):
        picked(items, rows, out=rows.data[3:5])


def test_in_ordinary_python() -> None:
    case = Case(np.array([4]), 1, longest=30)
    template, items, rows = case.arguments()
    total = sum(
        (power.python(template[0], items.data[i], lw.Row(rows[i]), np.float32(0.5)) for i in range(4)), lw.vec2(0, 0)
    )
    np.testing.assert_allclose(tuple(total), case.reference(0.5)[0, 0], rtol=1e-5, atol=1e-6)
    row = lw.Row(np.arange(3.0))
    assert (len(row), row[1], len(lw.window(row, 1, 2))) == (3, 1.0, 2)
    assert np.isnan(row[3])
    assert np.isnan(row[-1])
    for first in range(-2, 4):
        near = lw.window(row, first, 2)
        expected = [first, first + 1] if 0 <= first <= 1 else [np.nan, np.nan]
        np.testing.assert_array_equal([near[0], near[1]], expected)


def test_explains_itself() -> None:
    arguments = Case(MIXED).arguments()
    text = str(power.compile(*arguments, scale=1.0).explain())
    assert "power (segmentwise, 30 cells)" in text
    assert "per cell" in text
    with pytest.raises(lw.ArgumentError, match="takes the arguments of a call, because lists cannot be made up"):
        power.compile(*arguments, scale=1.0).explain(measure=True)


def test_is_tuned() -> None:
    arguments = Case(MIXED, 50).arguments()
    wanted = power(*arguments, scale=1.0)
    tuning = power.tune(*arguments, scale=1.0, seconds=1.0)
    assert tuning.plan.targets in (1, 16, 64, 256)
    np.testing.assert_allclose(power(*arguments, scale=1.0), wanted, rtol=1e-5, atol=1e-5)


def test_pickles_and_copies() -> None:
    assert pickle.loads(pickle.dumps(power)) is power
    assert copy.copy(power) is copy.deepcopy(power) is power
    assert repr(power) == "<lanewise segmentwise kernel power>"


# ---------------------------------------------------------------- texts


def test_text_of_the_kernels(golden: Callable[[str, str], None]) -> None:
    from lanewise.compiler.pipeline import build_program
    from lanewise.emit.cuda import emit_cuda
    from lanewise.emit.llvm import emit_llvm
    from lanewise.ir.printer import print_kernel

    arguments = Case(MIXED).arguments(layout=lw.AoS())
    reference = reference_kernel(power, arguments, {"scale": 1.0})
    golden("reference", print_kernel(reference))
    for name, plan in (("merged", Plan(block=64, targets=2)), ("sliced", Plan(slices=8))):
        (kernel,) = build_program(reference, plan.filled(Plan(block=32).filled(NEUTRAL)), "cuda").kernels
        text = emit_cuda(kernel, "test", locations=False)
        golden(name, text)
        assert compile_cubin(text, kernel.name, "sm_90").resources.registers > 0
    host = reference_kernel(power, arguments, {"scale": 1.0}, t.I64)
    (kernel,) = build_program(host, Plan(targets=16).filled(NEUTRAL), "cpu").kernels
    golden("lanes", emit_llvm(kernel, "test", locations=False))


# ---------------------------------------------------------------- mistakes


def wrong_arguments() -> list[tuple[tuple[Any, ...], str]]:
    template, items, rows = Case(MIXED).arguments()
    other = lw.ragged(Template.array(frequency=np.ones(51)), counts=[51])
    return [
        ((template, items.data, rows, 1.0), "power: 'sft' must be lw.ragged(...) of Sft, found an array of Sft"),
        ((template, other, rows, 1.0), "power: 'sft' must be lw.ragged(...) of Sft, found <ragged: 1 list with 51 Template on cpu>"),
        ((items, items, rows, 1.0), "power: 'template' must be an array of Template, found RaggedArray"),
        ((template, items, rows.data, 1.0), "power: 'bins' must be lw.ragged(...) of lw.vec2, with a list for each item, found an array of float32"),
        ((template, items, lw.ragged(np.ones(51), counts=[1] * 51), 1.0), "'bins' must be lw.ragged(...) of lw.vec2, with a list for each item, found <ragged: 51 lists with 51 f64"),
        ((template, items, lw.ragged(np.ones((3, 2), "f4"), counts=[1, 2]), 1.0), "power: 'bins' has 2 lists; wanted one for each of the 51 items"),
        ((template, items[0], rows, 1.0), "power: 'sft' is a part of another ragged array; make it independent with .copy()"),
        ((template, items, rows, np.ones(3)), "power: 'scale' must be one f32 for all, found an array of float64"),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(8))
def test_wrong_arguments_are_explained(number: int) -> None:
    arguments, text = wrong_arguments()[number]
    with pytest.raises(lw.ArgumentError) as caught:
        power(*arguments)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (Plan(tile=64), "tiling cannot be applied to power"),
        (Plan(parts=2), "splitting of sources cannot be applied to power"),
        (Plan(reciprocity="ordered"), "reciprocity cannot be applied to power"),
        (Plan(accumulate="f64"), "its sums have the type of the result: return lw.f64 for wider ones"),
        (Plan(slices=3), "a block of 32 threads does not divide into 3 slices"),
        (Plan(block=48), "a block has 32 to 1024 threads"),
        (Plan(targets=0), "0 targets per thread were requested"),
    ],
)
def test_plans_that_do_not_fit_are_refused(plan: Plan, text: str) -> None:
    reference = reference_kernel(power, Case(MIXED).arguments(), {"scale": 1.0})
    with pytest.raises(lw.PlanError) as caught:
        compile_kernel(reference, plan.filled(Plan(block=32).filled(NEUTRAL)), "cuda", arch="sm_90")
    assert text in str(caught.value)


def test_plans_that_do_not_fit_a_cpu_are_refused() -> None:
    arguments = Case(MIXED).arguments()
    for plan, text in (
        (Plan(slices=2), "only a GPU divides the sources"),
        (Plan(unroll=2), "on a CPU LLVM decides"),
        (Plan(targets=0), "wanted 1 to 4096 cells in a loop, found 0"),
    ):
        with pytest.raises(lw.PlanError, match=text):
            power(*arguments, scale=1.0, plan=plan)
    with pytest.raises(lw.PlanError, match="choose hoist=False or targets=1"):
        angles(*arguments[:2], plan=Plan(targets=2, hoist=True))
    with pytest.raises(lw.PlanError, match="it has no dense axis: neighbouring segments have no items in common"):
        moments(arguments[1], plan=Plan(targets=2))


@lw.segmentwise
def one(template: Template, sft: Sft, row: lw.Row[lw.f32]) -> lw.f32:
    return 1.25


@lw.segmentwise
def counted(template: Template, sft: Sft, row: lw.Row[lw.f32]) -> lw.i32:
    unused = len(row) + row[0]  # noqa: F841
    return 2


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize(("function", "each"), [(one, 1.25), (counted, 2)], ids=["one", "counted"])
def test_results_that_read_nothing(function: Any, each: float, device: str) -> None:
    """What is left of the loads is no loop over items of its own: plans that divide loops are right, or refused."""
    arguments = Case(MIXED).arguments(device=device)
    total = int(MIXED.sum())
    row = lw.ragged(np.ones(3 * total, np.float32), counts=[3] * total, device=device)
    given = (*arguments[:2], row)
    wanted = np.broadcast_to(each * MIXED, (len(arguments[0]), *MIXED.shape))
    np.testing.assert_array_equal(to_host(function(*given)), wanted)
    if device == "python":
        return
    assert "internal error" not in str(function.compile(*given).explain())
    for targets in (1, 4):
        try:
            found = function(*given, plan=Plan(fission=True, targets=targets))
        except lw.PlanError as error:
            assert re.search("it has more than one loop over the items|it computes one result only", str(error))  # noqa: PT017
            continue
        np.testing.assert_array_equal(to_host(found), wanted)


def no_item(scale: lw.f32) -> lw.f32:
    return scale


def three(a: Template, b: Sft, c: Sft) -> lw.f32:
    return a.slope


def silent(sft: Sft) -> None:
    pass


def truth(sft: Sft) -> lw.bool:
    return sft.weight > 0


def same_pair(template: Template, sft: Sft) -> lw.f32:
    return 1.0 if lw.same(template, sft) else 0.0


def whole_row(sft: Sft, bins: lw.Row[lw.i32]) -> lw.f32:
    return sft.weight


def free_window(sft: Sft, bins: lw.Row[lw.f32]) -> lw.f32:
    near = lw.window(bins, 0, 4)
    return near[sft.start]


def long_window(sft: Sft, bins: lw.Row[lw.f32]) -> lw.f32:
    return lw.window(bins, 0, 4)[4]


def run_time_window(sft: Sft, bins: lw.Row[lw.f32]) -> lw.f32:
    return lw.window(bins, 0, sft.start)[0]


def float_index(sft: Sft, bins: lw.Row[lw.f32]) -> lw.f32:
    return bins[sft.weight]


def kept_row(sft: Sft, bins: lw.Row[lw.f32]) -> lw.f32:
    other = bins
    return other[0]


def written_row(sft: Sft, bins: lw.Row[lw.f32]) -> lw.f32:
    bins[0] = 1.0
    return bins[0]


def windows_of_one_name(sft: Sft, bins: lw.Row[lw.f32]) -> lw.f32:
    near = lw.window(bins, 0, 4)
    near = lw.window(bins, 1, 4)
    return near[0]


WRONG = (no_item, three, silent, truth, same_pair, whole_row, free_window, long_window, run_time_window, float_index, kept_row,
         written_row, windows_of_one_name)  # fmt: skip


@pytest.mark.parametrize("function", WRONG, ids=lambda f: f.__name__)
def test_wrong_functions_are_explained(function: Any, golden: Callable[[str, str], None]) -> None:
    _, items, _ = Case(MIXED).arguments()
    rows = lw.ragged(np.ones(51, "f4"), counts=[1] * 51)
    kernel = lw.segmentwise(function)
    given = {"sft": items, "bins": rows, "template": Template.array(slope=np.ones(2, "f4"))}
    names = [n for n in given if n in function.__annotations__]
    with pytest.raises(lw.CompileError) as caught:
        kernel(**{n: given[n] for n in names})
    where, _, text = str(caught.value).partition("test_segmentwise.py:")
    assert where
    golden(function.__name__, text.partition(": ")[2])


def test_rows_belong_to_segmentwise_functions() -> None:
    with pytest.raises(lw.CompileError, match="a row belongs to a segmentwise function"):
        lw.elementwise(free_window)(Sft.array(delay=np.ones(3)), 1.0)

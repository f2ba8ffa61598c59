"""Threadwise kernels: interpreter, CPU, GPU and NumPy agree; shapes of all kinds; calls, compilation, copies."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.launch.support import compile_kernel
from lanewise.passes.thread_mapping import MAX_THREADS
from lanewise.planning.plan import NEUTRAL, Plan
from tests.patterns.threadwise_kernels import BY_NAME, CASES, Case, matmul, smooth, transpose

Array = np.ndarray[Any, Any]
ALL = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


def arguments(case: Case, sizes: tuple[int, ...] | None = None) -> tuple[dict[str, Any], Any]:
    return case.make(np.random.default_rng(3), *(case.sizes if sizes is None else sizes))


def copies(given: dict[str, Any]) -> dict[str, Any]:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}


def check(case: Case, found: dict[str, Any], given: dict[str, Any]) -> None:
    for name, value in case.expect(**copies(given)).items():
        if case.tolerance:
            np.testing.assert_allclose(found[name], value, rtol=case.tolerance, atol=10 * case.tolerance)
        else:
            np.testing.assert_array_equal(found[name], value)


def run(case: Case, sizes: tuple[int, ...] | None = None, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    given, grid = arguments(case, sizes)
    changed = copies(given)
    assert case.kernel(**changed, grid=grid, **options) is None
    return changed, given


@ALL
def test_on_a_cpu(case: Case) -> None:
    check(case, *run(case))


@ALL
def test_interpreted(case: Case) -> None:
    with lw.device("python"):
        check(case, *run(case))


@pytest.mark.grid(every=40)
@ALL
@pytest.mark.parametrize("threads", [32, 256, 1024])
def test_the_text_for_a_gpu_compiles(case: Case, threads: int) -> None:
    given, grid = arguments(case)
    reference = case.kernel.compile(**given, grid=grid).reference
    executable = compile_kernel(reference, Plan(block=threads).filled(NEUTRAL), "cuda", arch="sm_90")
    assert all(c.resources.registers for c in executable.cubins)


@pytest.mark.cuda
@ALL
@pytest.mark.parametrize("threads", [32, 96, 256, MAX_THREADS])
def test_on_a_gpu(case: Case, threads: int) -> None:
    import cupy

    given, grid = arguments(case)
    changed = {n: cupy.asarray(v) if isinstance(v, np.ndarray) else v for n, v in given.items()}
    for _ in range(2):  # compiled, then repeated
        for n, v in given.items():
            if isinstance(v, np.ndarray):
                changed[n].set(v)
        case.kernel(**changed, grid=grid, plan=Plan(block=threads))
        check(case, {n: v.get() if isinstance(v, cupy.ndarray) else v for n, v in changed.items()}, given)


@pytest.mark.cuda
def test_calls_on_a_gpu() -> None:
    """Repeated calls, explanations and what is refused, with arrays of CuPy."""
    import cupy

    case = BY_NAME["smooth"]
    kernel, (given, grid) = lw.threadwise(case.kernel.python), arguments(case)
    a, c = cupy.asarray(given["a"]), cupy.zeros_like(cupy.asarray(given["c"]))
    for weight in (0.25, 0.25, 0.5):
        kernel(a, c, weight, grid=grid)
        expected = case.expect(given["a"], given["c"], weight)["c"]
        np.testing.assert_allclose(c.get(), expected, rtol=1e-5, atol=1e-5)
    other = cupy.zeros_like(c)
    kernel(2 * a, other, 0.5, grid=grid)
    np.testing.assert_allclose(other.get(), 2 * expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(lw.ArgumentError, match="shares memory with 'a'"):
        kernel(a, a, 0.5, grid=grid)
    with pytest.raises(lw.ArgumentError, match=r"different devices \(a on the host, c on 'cuda'\)"):
        kernel(given["a"], c, 0.5, grid=grid)
    with pytest.raises(lw.ArgumentError, match="must be a contiguous array"):
        kernel(a.T, c, 0.5, grid=grid)
    kernel(a, c, 0.5, grid=(0, 7))
    compiled = kernel.compile(a, c, 0.5, grid=grid)
    assert compiled.executable.device == "cuda"
    assert compiled.explain().as_dict()["analysis"]["accesses"][0]["pattern"] == "coalesced"


@ALL
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_stage_means_the_same(case: Case, device: str) -> None:
    from tests.patterns.threadwise import run_stage

    sizes = tuple(min(n, 6) for n in case.sizes)
    given, grid = arguments(case, sizes)
    compiled = case.kernel.compile(**given, grid=grid)
    stages: list[ir.Kernel] = []
    plan = Plan(block=32 if device == "cuda" else 0).filled(NEUTRAL)
    build_program(compiled.reference, plan, device, lambda name, kernel: stages.append(kernel))
    for stage in stages:
        changed = copies(given)
        run_stage(stage, changed, compiled.environment)
        check(case, changed, given)


SIZES = st.sampled_from([0, 1, 2, 3, 7, 16, 17, 31, 64])


@pytest.mark.parametrize(
    "name", ["matmul", "transpose", "smooth", "outer", "columns_times", "laplace", "solve", "median"]
)
def test_shapes_of_all_kinds(name: str) -> None:
    case = BY_NAME[name]

    @settings(max_examples=2 * settings().max_examples, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*[SIZES] * len(case.sizes)))
    def holds(sizes: tuple[int, ...]) -> None:
        check(case, *run(case, sizes))

    holds()


# ------------------------------------------------------------ calls


def test_one_kernel_serves_all_shapes() -> None:
    case = BY_NAME["matmul"]
    kernel = lw.threadwise(case.kernel.python)
    for sizes in ((3, 4, 5), (5, 4, 3), (0, 2, 2), (30, 1, 3)):
        given, grid = arguments(case, sizes)
        kernel(**given, grid=grid)
    assert len(kernel._calls.compiled) == 1  # pyright: ignore[reportPrivateUsage]


def test_repeated_calls_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    case = BY_NAME["smooth"]
    kernel = lw.threadwise(case.kernel.python)
    given, grid = arguments(case)
    calls = (given["a"], given["c"], given["weight"])
    kernel(*calls, grid=grid)
    bound: list[int] = []
    original = type(kernel._calls).bind  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(type(kernel._calls), "bind", lambda *a: bound.append(1) or original(*a))  # pyright: ignore[reportPrivateUsage]
    other = copies(given)
    kernel(other["a"], other["c"], 0.5, grid=grid)
    assert not bound, "an argument of the same shape and another number"
    np.testing.assert_allclose(other["c"], case.expect(**{**given, "weight": 0.5})["c"], rtol=1e-5, atol=1e-5)
    kernel(other["a"], other["c"], 0.5, grid=(3, 3))
    assert not bound, "another grid"
    with pytest.raises(lw.ArgumentError, match="shares memory with"):
        kernel(other["a"], other["a"], 0.5, grid=grid)
    bound.clear()
    larger = {n: np.ones((20, 20), np.float32) for n in "ac"}
    kernel(larger["a"], larger["c"], 0.5, grid=(20, 20))
    assert not bound, "another shape"
    smooth = case.expect(**{**given, **larger, "weight": 0.5})["c"]
    np.testing.assert_allclose(larger["c"], smooth, rtol=1e-5, atol=1e-5)


def test_a_call_with_other_memory_changes_that_memory() -> None:
    given, grid = arguments(BY_NAME["transpose"])
    first, second = copies(given), copies(given)
    transpose(**first, grid=grid)
    second["a"] *= 2
    transpose(**second, grid=grid)
    np.testing.assert_array_equal(second["c"], 2 * first["c"])


def test_bound_calls_and_compiled_kernels_run_again() -> None:
    given, grid = arguments(BY_NAME["transpose"])
    call = transpose.bind(given["a"], given["c"], grid=grid)
    assert (given["c"] == 0).all()
    call()
    given["a"] += 1
    assert call() is None
    np.testing.assert_array_equal(given["c"], given["a"].T)
    compiled = transpose.compile(given["a"], given["c"], grid=grid)
    given["a"] += 1
    compiled(given["a"], given["c"], grid=grid)
    np.testing.assert_array_equal(given["c"], given["a"].T)


def test_the_function_is_python() -> None:
    given, grid = arguments(BY_NAME["matmul"], (3, 4, 5))
    for y, x in np.ndindex(*grid):
        matmul.python(y, x, given["a"], given["b"], given["c"])
    np.testing.assert_allclose(given["c"], given["a"] @ given["b"], rtol=1e-5, atol=1e-6)


def test_copies_are_the_kernel_itself() -> None:
    assert pickle.loads(pickle.dumps(smooth)) is smooth
    assert copy.copy(smooth) is smooth
    assert copy.deepcopy(smooth) is smooth
    assert repr(smooth) == "<lanewise threadwise kernel smooth>"


def test_wide_indices_are_those_of_another_kernel() -> None:
    """An extent beyond 32 bits, over an array without memory of that size: the text alone."""
    from dataclasses import replace

    calls = matmul._calls  # pyright: ignore[reportPrivateUsage]
    given, grid = arguments(BY_NAME["matmul"], (3, 4, 5))
    found = calls.given((), {**given, "grid": grid})
    wide = calls.subject.reference(replace(found, variant=(True, False)))
    assert "$y.extent: i64" in print_kernel(wide)
    executable = compile_kernel(wide, Plan(block=256).filled(NEUTRAL), "cuda", arch="sm_90")
    assert "const long long y = " in executable.source
    assert found.variant == (False, True)


@pytest.mark.parametrize(
    ("most", "variant"), [(2**31 - 2**16, (False, True)), (1000, (False, False)), (20, (True, False))]
)
def test_widths_hang_on_extents_lengths_and_sizes(
    most: int, variant: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if so few values had 32 bits: 40 x 30 elements, and what is computed with wide indices is the same."""
    from lanewise.patterns.threadwise import arguments as module

    monkeypatch.setattr(module, "NARROW", most)
    kernel = lw.threadwise(transpose.python)
    a, c = np.random.default_rng(0).normal(size=(40, 30)), np.zeros((30, 40))
    assert kernel._calls.given((a, c), {"grid": c.shape}).variant == variant  # pyright: ignore[reportPrivateUsage]
    kernel(a, c, grid=c.shape)
    np.testing.assert_array_equal(c, a.T)
    reference = kernel.compile(a, c, grid=c.shape).reference
    assert reference.counts[0].type.name == ("i64" if variant[0] else "i32")
    assert compile_kernel(reference, Plan(block=256).filled(NEUTRAL), "cuda", arch="sm_90").cubins


@lw.threadwise
def walk(i: lw.index, following: lw.Array1[lw.i32], length: lw.Array1[lw.i32]):
    j = following[i]
    count = 0
    while following[j] != j and count < len(following):
        j = following[j]
        count += 1
    length[i] = count


def test_a_condition_that_loads() -> None:
    rng = np.random.default_rng(1)
    following, found = rng.integers(0, 30, 30, np.int32), np.zeros(30, np.int32)
    expected = found.copy()
    for i in range(30):
        walk.python(i, following, expected)
    walk(following, found, grid=30)
    np.testing.assert_array_equal(found, expected)
    with lw.device("python"):
        found[:] = 0
        walk(following, found, grid=30)
    np.testing.assert_array_equal(found, expected)
    assert expected.any()


def test_results_are_the_same_to_the_bit_for_every_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    case, found = BY_NAME["matmul"], []
    for threads in ("1", "3"):
        monkeypatch.setenv("LANEWISE_THREADS", threads)
        found.append(run(case, (67, 31, 43))[0]["c"])
    np.testing.assert_array_equal(*found)


def test_plans_that_do_not_apply_are_refused() -> None:
    given, grid = arguments(BY_NAME["matmul"])
    for plan, reason in ((Plan(tile=32), "choose across=16, or tile=0"), (Plan(targets=2), "choose across=16, or targets=1"), (Plan(accumulate="f64"), "its sums are variables"),
                         (Plan(hoist=True), "invariant code motion"), (Plan(fission=True), "loop splitting")):  # fmt: skip
        with pytest.raises(lw.PlanError, match=reason):
            matmul(**given, grid=grid, plan=plan)


def test_golden_texts(golden: Callable[[str, str], None]) -> None:
    for case in (BY_NAME["matmul"], BY_NAME["smooth"], BY_NAME["laplace"]):
        given, grid = arguments(case)
        compiled = case.kernel.compile(**given, grid=grid, plan=Plan(across=0))
        on_gpu = compile_kernel(compiled.reference, Plan(block=256).filled(NEUTRAL), "cuda", arch="sm_90")
        entry = on_gpu.source[on_gpu.source.index('extern "C"') :]
        on_cpu = compiled.source[compiled.source.index("define internal") :]
        golden(case.name, "\n".join([print_kernel(compiled.reference), entry, on_cpu]))


# ------------------------------------------------------------ tuning, explanation


def test_is_tuned() -> None:
    given, grid = arguments(BY_NAME["matmul"], (40, 30, 50))
    before = copies(given)
    tuning = matmul.tune(**given, grid=grid, seconds=1.5)
    np.testing.assert_array_equal(given["c"], before["c"], "tuning works on copies")
    assert any(t.status == "measured" for t in tuning.trials)
    assert not any(t.status == "wrong" for t in tuning.trials)
    matmul(**given, grid=grid)
    check(BY_NAME["matmul"], given, before)


def test_tuning_of_nothing_is_refused() -> None:
    given, _ = arguments(BY_NAME["matmul"])
    with pytest.raises(lw.ArgumentError, match="has no elements"):
        matmul.tune(**given, grid=(0, 3))

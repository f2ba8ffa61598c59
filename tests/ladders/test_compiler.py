"""The ladder of naive array kernels: what its rungs are, that they are right, and that nothing is hidden."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from bench import gpu_threadwise
from lanewise.ladders import compiler, compiler_kernels, compiler_run, find_ladder
from lanewise.ladders.compiler import BESIDES, DEFAULT, LADDER, LIBRARY, NAIVE, climb, climb_benchmark, summary
from lanewise.ladders.compiler_inputs import LibraryNames
from lanewise.ladders.compiler_plans import (
    CAMPING,
    COPIES,
    PREFETCHING,
    RungChange,
    changes,
    every_pass,
    left_out,
    naive_plan,
)
from lanewise.ladders.compiler_plot import plot_compiler
from lanewise.ladders.compiler_problems import BENCHMARKS, Benchmark, make_case, sample
from lanewise.ladders.compiler_run import LeastTime, Runner, bound_of
from lanewise.ladders.rung import Options, Rung, as_json
from lanewise.launch.support import compile_kernel
from lanewise.models.devices import table_model
from lanewise.planning.plan import FIELDS, NEUTRAL, CompletePlan, Plan

BY_NAME = {b.name: b for b in BENCHMARKS}
FEW = ("mm", "rd", "strsm", "tp", "softmax")
ELEMENTS = 40 * 40
ON_CPU = Options("cpu", (ELEMENTS,), quick=True, only=FEW)
PRODUCT = Plan(block=128, across=16, rows=8, targets=8, tile=16, prefetch="registers", unroll=0).filled(NEUTRAL)
TURNED = Plan(block=256, neighbours="first", across=16, rows=4, targets=4, tile=1).filled(NEUTRAL)
ROWS = Plan(block=512, slices=512, parts=4, tile=4096, unroll=4).filled(NEUTRAL)
ON_GPU = naive_plan("cuda")


@pytest.fixture(scope="module")
def rungs() -> list[Rung]:
    return list(climb(ON_CPU))


def step(rung: Rung) -> str:
    return str(rung.extra["step"])


def check(rungs: list[Rung], names: tuple[str, ...]) -> None:
    """Every benchmark has its naive kernel, its default plan and a library, all right and with their times."""
    assert list(dict.fromkeys(r.extra["benchmark"] for r in rungs)) == list(names)
    for name in names:
        own = {step(r): r for r in rungs if r.extra["benchmark"] == name}
        assert next(iter(own)) == NAIVE
        assert {DEFAULT, LIBRARY} <= own.keys()
        for r in own.values():
            assert r.skipped is None, (r.name, r.skipped)
            assert r.seconds is not None
            assert r.relative_error is not None
            assert (
                r.extra["share_of_bound"] is r.extra["bound_seconds"] is None
            )  # nothing tells the most that a CPU can do
        naive, default, library = own[NAIVE], own[DEFAULT], own[LIBRARY]
        assert (naive.over, naive.speedup) == (None, None)
        assert default.over == library.over == naive.name
        assert default.extra["over_naive"] == default.speedup == pytest.approx(naive.seconds / default.seconds)  # type: ignore[operator]
        assert default.extra["of_library"] == pytest.approx(library.seconds / default.seconds)  # type: ignore[operator]
        assert naive.predicted_seconds is not None
        assert (library.predicted, library.predicted_seconds) == (None, None)
        assert library.extra["library"] == BY_NAME[name].library[0].on_cpu


def test_on_a_cpu(rungs: list[Rung]) -> None:
    check(rungs, tuple(b.name for b in BENCHMARKS if b.name in FEW))
    halving = next(r for r in rungs if r.name == "rd, naive")
    assert halving.extra["launches"] == math.ceil(math.log2((4 * 40) ** 2))


@pytest.mark.slow
def test_every_benchmark_on_a_cpu() -> None:
    check(list(climb(replace(ON_CPU, bodies=(33 * 33,), only=()))), tuple(BY_NAME))


def test_report(rungs: list[Rung]) -> None:
    climbed = json.loads(json.dumps(as_json({"name": "here"}, LADDER, rungs), allow_nan=False))
    keys = {"benchmark", "original", "step", "n", "bound_seconds", "bound_by", "share_of_bound", "runs"}
    assert all(keys <= row.keys() for row in climbed["rungs"])
    assert find_ladder("compiler") is LADDER
    assert LADDER.parts == tuple(BY_NAME)


def test_bounds_are_those_of_what_no_cache_can_hold() -> None:
    gpu = table_model("sm_90")
    tp, mm = BY_NAME["tp"], BY_NAME["mm"]
    assert tp.traffic(256) < gpu.last_cache_bytes < tp.traffic(4096)
    assert bound_of(tp, 256, gpu) == LeastTime(None, "memory")  # a cache may keep everything
    large = bound_of(tp, 4096, gpu)
    assert large.seconds == pytest.approx((tp.traffic(4096) - gpu.last_cache_bytes) / gpu.memory_peak)
    assert bound_of(mm, 4096, gpu) == LeastTime(mm.flops(4096) / (2 * gpu.fp32_operations), "fp32")
    assert bound_of(tp, 4096, replace(gpu, kind="cpu")).seconds is None


def test_sizes() -> None:
    assert LADDER.sizes("cuda", False) == (4096**2,)
    assert LADDER.sizes("cpu", True) == (256**2,)


def test_the_originals_ten_come_first() -> None:
    assert [b.name for b in BENCHMARKS if b.original] == [b.name for b in BENCHMARKS][:10]


def test_the_benchmark_of_plans_has_the_same_kernels() -> None:
    for name in (
        "matmul",
        "matvec",
        "transposed",
        "total",
        "softmax",
        "transpose",
        "convolve",
        "outer",
        "demosaic",
        "maxima",
        "batched",
    ):
        assert getattr(gpu_threadwise, name) is getattr(compiler_kernels, name)


# ---------------------------------------------------------------- the plans of the rungs


def names_of(start: CompletePlan, goal: CompletePlan) -> list[str]:
    return [c.name for c in changes(start, goal)]


def test_the_passes_of_a_product() -> None:
    climbed = list(changes(ON_GPU, PRODUCT))
    assert [(c.name, dict(c.fields)) for c in climbed] == [
        ("coalescing by staging", {"tile": 16}),
        ("thread-block merging", {"block": 128, "across": 16}),
        ("thread merging", {"targets": 8, "rows": 8, "adjacent": 1}),
        ("prefetching", {"prefetch": "registers"}),
        ("vectorised accesses", {"adjacent": 0}),
        ("unrolling", {"unroll": 0}),
    ]


def test_the_passes_of_a_transposition_and_of_sums() -> None:
    assert names_of(ON_GPU, TURNED) == [
        "remapping of threads",
        "coalescing by staging",
        "thread-block merging",
        "thread merging",
        "vectorised accesses",
    ]
    assert names_of(ON_GPU, ROWS) == [
        "reduction: blocks",
        "reduction: threads of a block",
        "coalescing by staging",
        "thread-block merging",
        "unrolling",
    ]
    assert names_of(ON_GPU, ON_GPU) == []


@pytest.mark.parametrize("goal", [PRODUCT, TURNED, ROWS, replace(PRODUCT, adjacent=1)], ids=lambda p: p.short())
def test_passes_lead_to_the_default_plan(goal: CompletePlan) -> None:
    plan = ON_GPU
    for change in changes(ON_GPU, goal):
        plan = change.on(plan, {})
    assert plan == goal


def test_a_pass_that_nobody_listed_has_a_rung() -> None:
    assert {f for p in every_pass() for f in p.fields} == set(FIELDS)
    assert names_of(ON_GPU, replace(ON_GPU, order="panels", fma=True)) == ["FMA rearrangement", "order of blocks"]


def test_what_the_default_plan_leaves_out() -> None:
    assert [c.name for c in left_out(PRODUCT, 2)] == [COPIES, CAMPING]
    assert [c.name for c in left_out(replace(TURNED, tile=1), 2)] == [PREFETCHING, COPIES, CAMPING]
    assert [c.name for c in left_out(replace(PRODUCT, prefetch="none"), 3)] == [PREFETCHING, COPIES]
    assert [c.name for c in left_out(replace(PRODUCT, prefetch="async3"), 2)] == [CAMPING]
    assert not list(left_out(ROWS, 2))


def test_naive_plans() -> None:
    assert naive_plan("cuda:1") == Plan(block=256).filled(NEUTRAL)
    assert naive_plan("cpu") == NEUTRAL


# ---------------------------------------------------------------- what is refused, wrong or missing


def measured(benchmark: Benchmark, options: Options = ON_CPU) -> dict[str, Rung]:
    return {step(r): r for r in climb_benchmark(options, benchmark)}


def test_a_refused_pass_is_shown_and_tried_again_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [
        RungChange("one", {"prefetch": "registers"}),
        RungChange("two", {"block": 64}),
        RungChange("three", {"prefetch": "none"}),
    ]
    plans: dict[str, Plan | None] = {}
    measure = Runner.plan

    def noted(self: Runner, name: str, plan: Plan | None, *others: Any, **more: Any) -> Rung:
        plans[name] = plan
        return measure(self, name, plan, *others, **more)

    monkeypatch.setattr(compiler, "changes", lambda start, goal: iter(steps))
    monkeypatch.setattr(Runner, "plan", noted)
    climbed = measured(BY_NAME["mm"])
    for name in ("one", "two"):
        assert climbed[name].extra["skip"] == "illegal"
        assert "a CPU prefetches by itself" in str(climbed[name].skipped)
    assert plans["two"] == replace(NEUTRAL, prefetch="registers", block=64)
    assert plans["three"] == replace(NEUTRAL, block=64)
    assert climbed["three"].extra["skip"] == "same code"


def test_same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "changes", lambda start, goal: iter([RungChange("nothing", {"block": 64})]))
    climbed = measured(BY_NAME["vv"])
    assert climbed["nothing"].extra["skip"] == "same code"
    assert climbed["nothing"].skipped == "its code is that of 'naive': nothing changes on this device"
    assert climbed[DEFAULT].extra["code_of"] == DEFAULT, "lanes of SIMD registers"


def test_wrong_results_have_no_time() -> None:
    climbed = measured(replace(BY_NAME["vv"], answer=lambda g, at: 1.1 * BY_NAME["vv"].answer(g, at)))
    assert all(r.seconds is None and r.extra["skip"] == "wrong" for r in climbed.values())
    assert str(climbed[NAIVE].skipped).startswith(
        "wrong: the relative error against float64 is 9.1e-02, and 4.3e-06 is"
    )
    assert summary(list(climbed.values())) == []


def test_elements_that_are_left_out_are_wrong() -> None:
    case = make_case(BY_NAME["vv"], 32, "cpu", 0)
    case.bind(None)()
    assert case.error(case.arrays["c"]) < 1e-6
    case.arrays["c"][77, 31] = np.nan  # wherever it is
    assert case.error(case.arrays["c"]) == math.inf


def test_a_library_that_fails_ends_nothing() -> None:
    def fails(xp: Any, g: Any) -> None:
        raise RuntimeError("not installed")

    climbed = measured(replace(BY_NAME["vv"], library=(LibraryNames("theirs", "theirs", fails),)))
    assert climbed[LIBRARY].skipped == "failed: RuntimeError: not installed"
    assert climbed[LIBRARY].extra["skip"] == "failed"
    assert climbed[DEFAULT].seconds is not None
    assert "of_library" not in climbed[DEFAULT].extra


def test_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_run, "QUICK_LIMIT", 1e-9)
    climbed = measured(BY_NAME["vv"])
    assert climbed[NAIVE].extra["skip"] == "too long"
    assert "(matrices of 10 x 10 take " in str(climbed[NAIVE].skipped)


def test_too_large() -> None:
    (rung,) = climb_benchmark(Options("cpu", (2**31 - 2**16,)), BY_NAME["tp"])
    assert rung.extra["skip"] == "device"
    assert str(rung.skipped).startswith("benchmark 'tp' for matrices of 46340 x 46340 needs ")


# ---------------------------------------------------------------- what is checked, and the bound


@lw.threadwise
def count(i: lw.index, a: lw.Array1[lw.i32], c: lw.Array1[lw.i32]):
    c[i] += a[2 * i] + a[2 * i + 1]


def test_a_benchmark_is_one_entry() -> None:
    """Also one of integers that are added to, with fewer results than elements."""

    def values(xp: Any, name: str, array: Any) -> Any:
        return (array * 9).astype(xp.int32) if name == "a" else xp.zeros(array.shape, xp.int32)

    counting = Benchmark(
        name="count", title="pairs", kernel=count, shapes=lambda n: {"a": (n * n,), "c": (n * n // 2,)}, in_place=True, values=values,
        answer=lambda g, at: np.add(g["a"][2 * at[0]], g["a"][2 * at[0] + 1], dtype=np.float64), original=False,
        points=lambda g: (len(g["c"]),), library=(LibraryNames("CuPy", "NumPy", lambda xp, g: g["a"].reshape(-1, 2).sum(axis=1)),),
    )  # fmt: skip
    climbed = measured(counting)
    case = make_case(counting, 40, "cpu", 0)
    call = case.bind(None)
    for _ in range(3):
        case.reset()  # what a kernel adds to is as it was
        call()
    assert case.error(case.arrays["c"]) == 0.0
    call()
    assert case.error(case.arrays["c"]) == 1.0
    assert {name: r.relative_error for name, r in climbed.items()} == {NAIVE: 0.0, DEFAULT: 0.0, LIBRARY: 0.0}


def test_places() -> None:
    assert [len(p) for p in sample((7, 5), 20)] == [35, 35]
    y, x = sample((5000, 900), 64)
    assert len(y) == len(x) == 64
    corners = {(0, 0), (0, 899), (4999, 0), (4999, 899)}
    assert corners <= set(zip(y.tolist(), x.tolist(), strict=True))


def test_bounds() -> None:
    model = table_model("sm_90")
    product = bound_of(BY_NAME["mm"], 4096, model)
    assert product.limiter == "fp32"
    assert product.seconds == pytest.approx(4096**3 / (132 * 128 * 1.98e9))
    vector = bound_of(BY_NAME["mv"], 4096, model)
    assert vector.limiter == "memory"
    moved = 4 * (16384**2 + 2 * 16384) - model.last_cache_bytes
    assert vector.seconds == pytest.approx(moved / model.memory_peak)


# ---------------------------------------------------------------- what is said


def rung(name: str, seconds: float, factor: float | None = None, **extra: Any) -> Rung:
    benchmark, _, own = name.partition(", ")
    facts = {
        "benchmark": benchmark,
        "step": own,
        "original": "yes",
        "bound_seconds": 1e-3,
        "bound_by": "memory",
        **extra,
    }
    return Rung(name=name, bodies=1024, seconds=seconds, speedup=factor, extra=facts)


SAID = [
    rung("mm, naive", 8e-3),
    rung("mm, thread merging", 2e-3, 4.0, over_naive=4.0),
    rung("mm, unrolling", 4e-3, 0.5, over_naive=2.0),
    rung("mm, default plan", 2e-3, 4.0, over_naive=4.0, of_library=0.5, share_of_bound=0.5, over_naive_predicted=5.0),
    rung("mm, library", 1e-3, 8.0, over_naive=8.0, library="BLAS"),
    rung("tp, naive", 3e-3),
    rung("tp, thread merging", 3e-3, 1.0, over_naive=1.0),
    rung("tp, default plan", 3e-3, 1.0, over_naive=1.0, share_of_bound=0.333),
    rung("tp, besides: diagonal blocks (partition camping)", 3e-3, 1.0),
]


def test_summary() -> None:
    assert summary(SAID) == [
        "mm (matrix times matrix): 2.00 ms by the default plan, 4.00 times as fast as the naive kernel, 0.500 times as fast as the "
        "library, 50% of the bound (memory)",
        "tp (transpose): 3.00 ms by the default plan, 1.00 times as fast as the naive kernel, 33% of the bound (memory)",
        "geometric mean of 2 of the original's ten benchmarks: 2.00 times the naive kernel (5.00 by the model, of 1), 0.500 times the "
        "library",
        "thread merging: helps 1 of 2, geometric mean 2.00, at most 4.00; not tp 1.00",
        "unrolling: does not help here (mm 0.500)",
        "besides: diagonal blocks (partition camping): does not help here (tp 1.00)",
    ]
    assert summary([]) == []


def test_picture(tmp_path: Path) -> None:
    for name, rungs in (("some", SAID), ("none", []), ("skipped", [Rung(name="mm, naive", bodies=4, skipped="no")])):
        plot_compiler(tmp_path / name, LADDER, rungs, "a machine")
        width, height = struct.unpack(">II", (tmp_path / name).read_bytes()[16:24])
        assert width > 1000
        assert height > 200


# ---------------------------------------------------------------- GPUs


@pytest.mark.parametrize("name", ["mm", "tp"])
def test_rungs_compile_for_sm_90(name: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    benchmark, goal = BY_NAME[name], replace(PRODUCT, targets=2, rows=2, tile=4) if name == "mm" else TURNED
    reference = make_case(benchmark, 32, "cpu", 0).bind(None).compiled.reference
    plan = ON_GPU
    for change in changes(ON_GPU, goal):
        plan = change.on(plan, {})
        assert all(c.resources.registers for c in compile_kernel(reference, plan, "cuda", arch="sm_90").cubins)


@pytest.mark.cuda
def test_on_a_gpu() -> None:
    short = tuple(n for n in BY_NAME if n != "strsm")  # whose kernels take long to compile; tests/cuda has them
    climbed = list(climb(Options("cuda", (512**2,), quick=True, only=short)))
    for r in climbed:
        allowed = (None, "illegal", "same code", *(("failed",) if step(r).startswith(BESIDES) else ()))
        assert r.extra.get("skip") in allowed, (r.name, r.skipped)
        if step(r) in (NAIVE, DEFAULT, LIBRARY):
            assert r.seconds is not None, (r.name, r.skipped)
    assert {r.extra["benchmark"] for r in climbed} == set(short)
    (product,) = [r for r in climbed if r.name == f"mm, {NAIVE}"]
    assert product.extra["global_accesses"] == 512 * 512 * (2 * 512 + 1)
    assert product.extra["shared_accesses"] == 0

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

import pytest

from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.ladders import hybrid, run, tutorial
from lanewise.ladders.problem import ACCELERATION, Law
from lanewise.ladders.run import predict_executable
from lanewise.ladders.rung import Options, Rung
from lanewise.ladders.tutorial import ASKED, AUTOMATIC, GPUS, LADDER, NAMES, SERIAL, STEPS, THREADS
from lanewise.language.target import Machine
from lanewise.language.types import F32, I32
from lanewise.launch.support import compile_kernel
from lanewise.layouts import AoS, Layout, default_layout
from lanewise.models.devices import table_model
from lanewise.patterns.pairwise.build import PAIRWISE, PairwiseArguments, build_pairwise
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.sims.gravity.physics import RECORDS
from lanewise.support.errors import PlanError
from tests.ladders.problems import problem

TUTORIAL = (
    "one CPU thread", "one GPU thread", "N threads", "scalar arrays", "constant-memory parameters", "rsqrt",
    "two loops instead of the if", "shared-memory blocking", "unroll 8", "if-elimination through softening",
    "FMA rearrangement", "unroll 128", "fast-math flags",
)  # fmt: skip
OWN = (
    "4 targets per thread",
    "prefetch",
    "reciprocity, scratch",
    "reciprocity, ordered",
    ASKED,
    AUTOMATIC,
    *hybrid.NAMES,
)
ON_CPU = Options("cpu", (300,), quick=True)


@pytest.fixture(scope="module")
def rungs() -> list[Rung]:
    return list(tutorial.climb(ON_CPU, lambda bodies, seed, law: problem(bodies)))


def test_the_thirteen_rungs_and_ours():
    assert (*TUTORIAL, *OWN) == NAMES
    paper = [s.paper for s in STEPS]
    assert all(len(p) == len(GPUS) for p in paper[:12])
    assert not any(paper[12:])


def test_on_a_cpu(rungs):
    assert [r.name for r in rungs] == list(NAMES)
    by_name = {r.name: r for r in rungs}
    for name in (SERIAL, "N threads", "scalar arrays", "shared-memory blocking", "fast-math flags", ASKED, AUTOMATIC):
        assert by_name[name].skipped is None, name
        assert (by_name[name].relative_error or 1.0) < problem(300).tolerance
    assert by_name["one GPU thread"].skipped == "a rung of a GPU, and this is a CPU"
    for name in ("prefetch", "reciprocity, scratch", "reciprocity, ordered"):
        assert by_name[name].extra["skip"] == "illegal", name
        assert "CPU" in (by_name[name].skipped or "")
    assert by_name["unroll 8"].extra["skip"] == "same code"
    assert not any(r.extra.get("skip") in ("wrong", "too long") for r in rungs)


def test_factors_are_over_the_last_rung_that_was_timed(rungs):
    before: Rung | None = None
    for rung in rungs:
        if rung.seconds is None:
            assert (rung.speedup, rung.over) == (None, None)
            continue
        if before is not None:
            assert rung.over == before.name
            assert rung.speedup == pytest.approx((before.seconds or 0.0) / rung.seconds)
        before = rung


def test_every_rung_is_json(rungs):
    for row in json.loads(json.dumps([r.as_dict() for r in rungs], allow_nan=False)):
        assert row.keys() >= {
            "name", "bodies", "seconds", "speedup", "over", "predicted", "paper", "relative_error", "skipped", "device", "layout",
            "plan",
        }  # fmt: skip
        assert set(row["paper"] or GPUS) == set(GPUS)
        assert (row["seconds"] is None) == (row["skipped"] is not None)
        assert row["seconds"] is None or row.keys() >= {
            "pairs_per_second",
            "gflops",
            "share_of_bound",
            "limiter",
            "runs",
        }


def test_summary(rungs):
    best = min((r for r in rungs if r.seconds is not None), key=lambda r: r.seconds or 0.0)
    first, last = tutorial.summary(rungs)
    assert first.startswith(f"300 bodies: fastest is {best.name!r} with ")
    assert last.startswith("paper: 675.6 GFLOP/s on a GTX 480 (66 % of its peak, 2.1 GB/s of main memory), 1677.6 on ")
    assert len(tutorial.summary([])) == 1


def test_wrong_kernels_end_no_ladder(monkeypatch):
    monkeypatch.setattr(tutorial, "STEPS", STEPS[:3])
    found = list(tutorial.climb(ON_CPU, lambda bodies, seed, law: problem(bodies, "wrong power")))
    assert [r.name for r in found] == [*NAMES[:4], ASKED, AUTOMATIC, *hybrid.NAMES]
    assert all(r.seconds is None and r.speedup is None for r in found)
    assert [r.extra.get("skip") for r in found] == ["wrong", "device", *["wrong"] * 4, "device", "device"]
    assert tutorial.summary(found) == tutorial.summary([])


def test_a_rung_that_takes_too_long_gives_the_next_one_no_factor(monkeypatch):
    monkeypatch.setattr(run, "PILOT", {"serial": 64, "cpu": 10_000, "cuda": 64})
    monkeypatch.setattr(run, "QUICK_LIMIT", 1e-9)
    monkeypatch.setattr(tutorial, "STEPS", STEPS[:3])
    found = {r.name: r for r in tutorial.climb(ON_CPU, lambda bodies, seed, law: problem(bodies))}
    assert found[SERIAL].extra["skip"] == "too long"
    assert found["N threads"].seconds is not None
    assert found["N threads"].speedup is None
    assert found["scalar arrays"].over == "N threads"


def test_sizes():
    assert LADDER.sizes("cuda", False) == (1_000, 10_000, 100_000, 300_000, 1_000_000)
    assert LADDER.sizes("cpu", True) == (4096,)


def on_gpu() -> Iterator[tuple[str, Plan, Layout]]:
    """Every rung as a GPU gets it: each on top of the last, those that a pass refuses left out."""
    plan, layout = Plan(block=THREADS).filled(NEUTRAL), AoS()
    for step in STEPS:
        if step.first is not None:
            plan = step.first.filled(plan)
    for step in STEPS:
        wanted, lying = step.change.filled(plan), step.layout or layout
        try:
            build_program(reference(lying), wanted, "cuda")
        except PlanError:
            continue
        plan, layout = wanted, lying
        yield step.name, plan, layout
    machine, layout = Machine("cuda", 132), default_layout(RECORDS["f32"].__record__, "cuda")
    for name, asked in ((ASKED, Plan(rsqrt=plan.rsqrt, fast_math=plan.fast_math)), (AUTOMATIC, None)):
        yield name, complete_plan(asked, machine, Work(PAIRWISE, 100_000, False, True)), layout


@cache
def plans_on_gpu() -> dict[str, tuple[Plan, Layout]]:
    return {name: (plan, layout) for name, plan, layout in on_gpu()}


def reference(layout: Layout, law: Law = ACCELERATION) -> ir.Kernel:
    pair = [(n, RECORDS["f32"].__record__, layout) for n in ("target", "source")]
    return build_pairwise(
        law.kernel.lowered, PairwiseArguments(pair[0], pair[1], dict.fromkeys(law.values, F32), True), I32
    )


@pytest.mark.quick(
    "one GPU thread",
    "N threads",
    "scalar arrays",
    "constant-memory parameters",
    "shared-memory blocking",
    "unroll 8",
    "FMA rearrangement",
    "fast-math flags",
    "prefetch",
    "reciprocity, ordered",
    "automatic plan",
)
@pytest.mark.slow_cases("automatic plan")
@pytest.mark.parametrize("name", NAMES[1:])
def test_every_rung_compiles_for_a_gpu_and_is_predicted(name):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    plan, layout = plans_on_gpu()[name]
    executable = compile_kernel(reference(layout), plan, "cuda", requested=plan, arch="sm_90")
    for cubin in executable.cubins:
        assert "warning" not in cubin.log.lower(), cubin.log
        assert (cubin.resources.spill_stores, cubin.resources.stack_bytes) == (0, 0), cubin.log
    found = predict_executable(executable, table_model("sm_90"), 100_000, ACCELERATION.values)
    assert 0 < found.bound
    assert 1e-3 < found.seconds < (1e4 if name == "one GPU thread" else 1.0)


@pytest.mark.cuda
def test_on_a_gpu():
    found = list(tutorial.climb(Options("cuda", (2048, 16_384), quick=True)))
    assert [r.name for r in found] == list(NAMES) * 2
    wrong = {(r.name, r.bodies): r.skipped for r in found if r.extra.get("skip") in ("wrong", "illegal")}
    assert not wrong
    timed = {r.name for r in found if r.bodies == 2048 and r.seconds is not None}
    assert timed >= {SERIAL, "one GPU thread", "N threads", "shared-memory blocking", ASKED, AUTOMATIC}

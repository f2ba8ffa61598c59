"""The space of a kernel: only what its passes allow, nothing that the caller fixed, nothing that loosens arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.language.target import CPU, Machine
from lanewise.models.devices import device_model, table_model
from lanewise.patterns.tables.names import POINTS
from lanewise.patterns.threadwise.work import describe
from lanewise.planning.plan import Plan
from lanewise.tuning.job import Job
from lanewise.tuning.space import KernelSpace, ModelEstimator
from tests.corpus import case
from tests.harness import reference_kernel
from tests.patterns.threadwise_kernels import BY_NAME
from tests.tuning.landscapes import family

NOWHERE: Any = None  # what a job has for measuring; spaces never look at it


def job(name: str, kind: str, wanted: Plan | None = None, count: int = 16_384) -> Job:
    """A job for an NVIDIA H200 or for a CPU of 2 cores, neither of which has to be here."""
    c = case(name)
    reference = reference_kernel(c, lw.SoAoAS() if kind == "cuda" else lw.SoA(), kind)
    work = describe_work(reference, count)
    environment = {"$target.count": count, "$source.count": count, "$count": count, **c.values}
    machine = Machine(kind, 132 if kind == "cuda" else 2)
    return Job(
        name, reference, kind, machine, work, {}, environment, wanted or Plan(), NOWHERE, NOWHERE, NOWHERE, NOWHERE
    )


def space(name: str, kind: str, wanted: Plan | None = None, count: int = 16_384) -> KernelSpace:
    found = job(name, kind, wanted, count)
    return KernelSpace(found, ModelEstimator(found.environment, table_model("sm_90")))


def test_gravity_on_a_gpu_meets_its_pairs_in_three_ways() -> None:
    found = space("gravity", "cuda", Plan(parts=1))
    names = {f.base.reciprocity: f for f in found.families}
    assert set(names) == {"off", "scratch", "ordered"}
    assert found.families[0].plan(found.families[0].start) == found.default
    assert {"targets", "block", "slices", "unroll", "tile"} <= set(names["off"].axes)
    assert set(names["ordered"].axes).isdisjoint({"block", "tile", "slices", "parts", "hoist", "prefetch"})
    assert {4, 8, 10, 12, 16} <= set(names["ordered"].axes["targets"])
    for f in found.families:
        assert f.base.parts == 1
        assert f.plan(f.start) == f.base
        assert found.examine(f.base).reason == ""


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["gravity", "lennard_jones", "gravity_mixed", "kick_drift"])
def test_arithmetic_is_the_users_alone(name: str, kind: str) -> None:
    found = space(name, kind, Plan(accumulate="f64") if name == "gravity_mixed" else None)
    for f in found.families:
        assert set(f.axes).isdisjoint({"rsqrt", "fast_math", "accumulate"})
        assert (f.base.rsqrt, f.base.fast_math) == ("written", False)
        assert f.base.accumulate == ("f64" if name == "gravity_mixed" else "native")
        assert all(len(values) == len(set(values)) > 1 for values in f.axes.values())


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_what_the_caller_fixes_stays(kind: str) -> None:
    wanted = Plan(targets=2, reciprocity="off", fma=True, unroll=4) if kind == "cuda" else Plan(targets=2, tile=64)
    found = space("gravity", kind, wanted)
    (f,) = found.families
    for point in (f.start, *(p for axis in f.axes for p in f.line(f.start, axis))):
        plan = f.plan(point)
        assert wanted.filled(plan) == plan


def test_a_tile_follows_the_block_that_stages_it() -> None:
    (f,) = space("gravity", "cuda", Plan(reciprocity="off")).families
    assert f.relative_tile
    for point in f.line({**f.start, "tile": 2}, "block"):
        assert f.plan(point).tile == 2 * point["block"]
    assert f.plan({**f.start, "tile": 0}).tile == 0


def test_legality_and_reasons_are_those_of_the_passes() -> None:
    found = space("gravity", "cuda", Plan(reciprocity="off"))
    (f,) = found.families
    too_many = f.plan({**f.start, "block": 32, "slices": 16, "tile": 0})
    assert found.examine(too_many).reason == (
        "slicing cannot be applied to gravity: its sources are not cut into tiles"
    )
    assert found.examine(too_many).predicted is None
    legal = found.examine(f.base)
    assert legal.predicted is not None
    assert 1e-5 < legal.predicted < 1e-2
    build_program(job("gravity", "cuda").reference, f.base, "cuda")


def test_optimisations_that_do_not_apply_are_listed_with_their_reasons() -> None:
    refused = {(f, v): r for f, v, r in space("gravity", "cpu").refused}
    assert refused["self_term", "drop"] == "it has no test for a pair of an element with itself"
    assert refused["reciprocity", "scratch"].startswith("it is the threads of a GPU that exchange sums")
    assert refused["hoist", True] == "it computes nothing from the target and from uniform arguments alone"
    assert "reciprocity" not in {f for f, _, _ in space("gravity", "cuda").refused}
    assert ("reciprocity", "scratch") in {(f, v) for f, v, _ in space("yukawa", "cpu").refused}


def test_plans_with_the_same_kernels_are_one_plan() -> None:
    found = space("kick_drift", "cpu")
    assert found.examine(found.default).same_as is None
    more = Plan(block=64).filled(found.default)  # a CPU has no blocks
    assert found.examine(more).same_as == found.default
    wide = Plan(vector_bits=512).filled(found.default)
    assert found.examine(wide).same_as is None


def test_a_default_that_lies_off_the_grid_is_on_it() -> None:
    found = space("gravity", "cuda", Plan(reciprocity="off"), count=6000)
    (f,) = found.families
    assert all(f.start[axis] in values for axis, values in f.axes.items())
    assert f.plan(f.start) == found.default


def test_points_of_some_axes() -> None:
    f = family()
    assert len(list(f.points())) == f.size == 3600
    some = list(f.points(("targets", "block")))
    assert len(some) == 30
    assert {p["unroll"] for p in some} == {1}
    assert [p["fma"] for p in f.line(f.start, "fma")] == [True]


# ------------------------------------------------------------ points of an index space


NO_NUMBERS: Mapping[str, int] = {}


def points_space(name: str, wanted: Plan | None = None, numbers: Mapping[str, int] = NO_NUMBERS) -> KernelSpace:
    """The space of a threadwise kernel on an NVIDIA H200, for a call with these numbers."""
    c = BY_NAME[name]
    given, grid = c.make(np.random.default_rng(1), *c.sizes)
    compiled = c.kernel.compile(**given, grid=grid)
    reference, environment = compiled.reference, {**compiled.environment, **numbers}
    work = describe(reference, describe_work(reference, environment[POINTS]))
    rounds = None if work.rounds is None else work.rounds.at(environment)
    machine, work = Machine("cuda", 132), replace(work, rounds=rounds)
    found = Job(
        name, reference, "cuda", machine, work, {}, environment, wanted or Plan(), NOWHERE, NOWHERE, NOWHERE, NOWHERE
    )
    return KernelSpace(found, ModelEstimator(environment, table_model("sm_90")))


def host_space(name: str, wanted: Plan | None = None, **numbers: int) -> KernelSpace:
    """The space of a threadwise kernel on a CPU of two cores with registers of 512 bits, as fast as the one at hand."""
    c = BY_NAME[name]
    given, grid = c.make(np.random.default_rng(1), *c.sizes)
    compiled = c.kernel.compile(**given, grid=grid, plan=Plan(across=0))
    reference, environment = compiled.reference, {**compiled.environment, **numbers}
    work = describe(reference, describe_work(reference, environment[POINTS], CPU))
    rounds = None if work.rounds is None else work.rounds.at(environment)
    machine, work = Machine("cpu", 2, 512), replace(work, rounds=rounds)
    found = Job(
        name, reference, "cpu", machine, work, {}, environment, wanted or Plan(), NOWHERE, NOWHERE, NOWHERE, NOWHERE
    )
    return KernelSpace(found, ModelEstimator(environment, device_model("cpu")))


LANES, ROUNDS, WRITTEN = "points as lanes", "shared rounds", "loops as they are written"


@pytest.mark.parametrize(("name", "families"), [
    ("matmul", [LANES, WRITTEN]), ("transpose", [LANES, WRITTEN]), ("rows_times", [WRITTEN, ROUNDS]), ("collatz", [WRITTEN]),
])  # fmt: skip
def test_the_lanes_of_a_cpu_are_tried(name: str, families: list[str]) -> None:
    """Every way that the kernel allows, that of the default plan first; each has what it can choose, and no more."""
    found = host_space(name)
    assert [f.name for f in found.families] == families
    assert found.families[0].base == found.default
    by_name = {f.name: f for f in found.families}
    for f in found.families:
        assert found.examine(f.base).reason == ""
        assert {"block", "parts", "order", "neighbours", "down"}.isdisjoint(f.axes)
    assert {"across", "slices", "rows", "tile"}.isdisjoint(by_name[WRITTEN].axes)
    if LANES in by_name:
        assert {"across", "targets", "rows", "tile"} <= set(by_name[LANES].axes)
        assert "slices" not in by_name[LANES].axes
    if ROUNDS in by_name:
        assert {"slices", "tile"} <= set(by_name[ROUNDS].axes)
        assert "across" not in by_name[ROUNDS].axes


def test_what_is_fixed_on_a_cpu_stays() -> None:
    assert [f.name for f in host_space("matmul", Plan(across=0, slices=1)).families] == [WRITTEN]
    assert [f.name for f in host_space("matmul", Plan(across=8)).families] == [LANES]
    assert [f.name for f in host_space("rows_times", Plan(slices=16)).families] == [ROUNDS]
    assert host_space("matmul", Plan(slices=16)).families == (), "it is not legal"
    assert all(f.base.across == 8 for f in host_space("matmul", Plan(across=8)).families)


FEW_LONG_ROWS = {"$points": 64, "$y.extent": 64, "$a.shape0": 64, "$a.shape1": 1 << 20, "$v.shape0": 1 << 20}
ALONE, TOGETHER = "points of a thread", "shared loops"


@pytest.mark.slow_cases("matmul-numbers1-points of a thread")
@pytest.mark.parametrize(
    ("name", "numbers", "first"), [("rows_times", FEW_LONG_ROWS, TOGETHER), ("matmul", {"$points": 1 << 24}, ALONE)]
)  # fmt: skip
def test_points_have_threads_of_their_own_or_share_them(name: str, numbers: dict[str, int], first: str) -> None:
    """Both ways are tried, that of the default plan first; each has what it can choose, and no more."""
    found = points_space(name, numbers=numbers)
    assert [f.name for f in found.families] == [first, TOGETHER if first == ALONE else ALONE]
    assert found.families[0].base == found.default
    by_name = {f.name: f for f in found.families}
    assert set(by_name[TOGETHER].axes) == {"block", "slices", "parts", "unroll", "tile", "min_blocks", "registers"}
    assert {"rows", "targets", "tile", "neighbours"} <= set(by_name[ALONE].axes)
    assert set(by_name[ALONE].axes).isdisjoint({"slices", "parts"})
    assert {32, 256} <= set(by_name[TOGETHER].axes["slices"])
    for f in found.families:
        assert found.examine(f.base).reason == ""
        assert f.plan(f.start) == f.base
        assert not f.relative_tile
    legal = [
        p
        for p in by_name[TOGETHER].line(by_name[TOGETHER].start, "parts")
        if not found.examine(by_name[TOGETHER].plan(p)).reason
    ]
    assert len(legal) > 4


@pytest.mark.parametrize(
    ("wanted", "families"),
    [(Plan(slices=1, parts=1), [ALONE]), (Plan(slices=8), [TOGETHER]), (Plan(parts=4), [TOGETHER]), (Plan(slices=1), [ALONE, TOGETHER]), (Plan(rows=2), [ALONE])],
)  # fmt: skip
def test_points_keep_what_the_caller_fixes(wanted: Plan, families: list[str]) -> None:
    found = points_space("matmul", wanted)
    assert [f.name for f in found.families] == families
    for f in found.families:
        for point in (f.start, *(p for axis in f.axes for p in f.line(f.start, axis))):
            assert wanted.filled(f.plan(point)) == f.plan(point)


def test_loops_that_no_threads_can_share_are_refused_with_the_reason() -> None:
    found = points_space("transpose")
    assert [f.name for f in found.families] == [ALONE]
    assert ("slices", 32, "it has no loop whose rounds several threads could share") in found.refused
    assert len(found.refused) == len(set(found.refused))

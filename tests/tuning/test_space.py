"""The space of a kernel: only what its passes allow, nothing that the caller fixed, nothing that loosens arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

import lanewise as lw
from lanewise.models.devices import table_model
from lanewise.pipeline import build_program
from lanewise.plan import Plan
from lanewise.target import Machine
from lanewise.tuning.job import Job
from lanewise.tuning.space import KernelSpace, ModelEstimator
from lanewise.work import describe_work
from tests.corpus import case
from tests.harness import reference_kernel
from tests.tuning.landscapes import family

NOWHERE: Any = None  # what a job has for measuring; spaces never look at it


def job(name: str, kind: str, wanted: Plan | None = None, count: int = 16_384) -> Job:
    """A job for an NVIDIA H200 or for a CPU of 2 cores, neither of which has to be here."""
    c = case(name)
    reference = reference_kernel(c, lw.SoAoAS() if kind == "cuda" else lw.SoA(), kind)
    work = describe_work(reference, count)
    environment = {"$target.count": count, "$source.count": count, "$count": count, **c.values}
    machine = Machine(kind, 132 if kind == "cuda" else 2)
    return Job(name, reference, kind, machine, work, {}, environment, wanted or Plan(), NOWHERE, NOWHERE, NOWHERE)


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

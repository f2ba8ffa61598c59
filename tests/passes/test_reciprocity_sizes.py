"""More elements than a launch can count with their pairs: refused in words, with what to do; never by default."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.optimisations import BuiltPrograms
from lanewise.compiler.pipeline import Program, build_program
from lanewise.compiler.work import describe_work
from lanewise.explanation.estimate import Estimates
from lanewise.explanation.measure import Times
from lanewise.explanation.offline import compile_offline
from lanewise.explanation.rows import RowMaker
from lanewise.ir.pattern import Work
from lanewise.language.target import Machine
from lanewise.launch.forms import MAX_GRID_ELEMENTS, extent_of
from lanewise.launch.tasks import Launch
from lanewise.models.devices import table_model
from lanewise.passes.reciprocity import Mode, sizes
from lanewise.passes.reciprocity.sizes import too_many
from lanewise.patterns.pairwise.build import plan_class
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.sims.gravity.physics import RECORDS, make_physics
from lanewise.support.errors import PlanError
from lanewise.tuning.space import KernelSpace, ModelEstimator
from tests.corpus import case
from tests.explanation.test_explanation import subject
from tests.harness import reference_kernel
from tests.tuning.test_space import job

GPU = Machine("cuda", 132)
MODES: tuple[Mode, ...] = ("scratch", "ordered", "grouped")
# around the limits of every number of targets, and far beyond
COUNTS = st.one_of(
    st.integers(1, 2**31),
    st.builds(lambda t, d: max(1, sizes.ALWAYS * t + d), st.integers(1, 16), st.integers(-600, 600)),
    st.integers(1, 2_000_000),
)


@cache
def reference() -> Any:
    return reference_kernel(case("gravity"), lw.SoAoAS(), "cuda")


@cache
def work() -> Work:
    return describe_work(reference(), 1)


@cache
def program(targets: int, mode: Mode) -> Program:
    plan = Plan(targets=targets, reciprocity=mode, block=32, unroll=1).filled(NEUTRAL)
    return build_program(reference(), plan, "cuda", between=False)


@given(count=COUNTS)
@example(2**18)
@example(20_970_880)  # the most of which a launch counts the tasks of 10 targets
@example(20_970_881)
@example(22_000_000)
def test_groups_leave_registers_where_one_gpu_takes_all(count: int) -> None:
    """Where one GPU has 12 targets a thread, tasks in groups have 10, or 11 where these are too many; else as many."""
    known = replace(work(), targets=count)
    one, part = (complete_plan(Plan(reciprocity=mode), GPU, known) for mode in ("ordered", "grouped"))
    if one.targets != 12:
        assert part.targets == one.targets
        return
    wanted = next((n for n in (10, 11) if not too_many(count, n, "grouped")), 12)
    assert (part.targets, part.registers) == (wanted, 128)


@given(count=COUNTS, targets=st.sampled_from([1, 2, 5, 8, 12, 16]), mode=st.sampled_from(MODES))
@example(sizes.ALWAYS, 1, "ordered")
@example(sizes.ALWAYS + 1, 1, "ordered")
def test_what_is_refused_is_what_a_launch_cannot_count(count: int, targets: int, mode: Mode) -> None:
    """By the extents and the memory of the kernels themselves."""
    numbers = {"$target.count": count, "$source.count": count}
    kernels = program(targets, mode).kernels
    counted = [extent_of(Launch(k).extent)(numbers) for k in kernels]
    counted += [extent_of(s.length)(numbers) for k in kernels for s in k.scratch]
    reason = too_many(count, targets, mode)
    assert (reason is None) == (max(counted) <= MAX_GRID_ELEMENTS), reason
    if reason is not None:
        found, limit = (int(x.replace(",", "")) for x in re.findall(r"[\d,]*\d(?= (?:pairs|partial)|; wanted)", reason))
        assert found in counted
        assert found > limit == MAX_GRID_ELEMENTS
        check_remedy(count, targets, mode, reason)


def check_remedy(count: int, targets: int, mode: Mode, reason: str) -> None:
    """What is wanted can be had, and nothing less."""
    if found := re.search(r"wanted (reciprocity='ordered' with )?targets=(\d+) or more", reason):
        enough, wanted = int(found[2]), mode if found[1] is None else "ordered"
        assert too_many(count, enough, wanted) is None
        assert too_many(count, enough - 1, wanted) is not None
    elif reason.endswith("wanted reciprocity='ordered'"):
        assert mode == "scratch"
        assert too_many(count, targets, "ordered") is None
    else:
        assert reason.endswith("wanted reciprocity='off'")


@given(
    count=COUNTS,
    request=st.builds(
        Plan, targets=st.sampled_from([None, 1, 2, 4, 12, 16]), unroll=st.sampled_from([None, 1, 8]),
        tile=st.sampled_from([None, 0]),
    ),
    length=st.sampled_from([37, 80, 400, 3000]),
    traits=st.fixed_dictionaries({n: st.booleans() for n in ("wide", "converts", "sequences")}),
)  # fmt: skip
@example(20_000_000, Plan(targets=1), 37, {})
@example(20_000_000, Plan(), 80, {})  # whose twelve targets become six, as the function is long
def test_who_does_not_ask_for_it_is_never_refused(count: int, request: Plan, length: int, traits: Any) -> None:
    sized = replace(work(), targets=count, length=length, **traits)
    plan = complete_plan(request, GPU, sized)
    assert sized.pattern.unfit(GPU, sized, plan) is None
    assert request.filled(plan) == plan


@given(a=COUNTS, b=COUNTS, length=st.sampled_from([37, 80, 400]))
@example(12_000_000, 20_000_000, 80)
def test_equal_classes_of_many_elements_have_equal_plans(a: int, b: int, length: int) -> None:
    one, other = (replace(work(), targets=n, length=length) for n in (a, b))
    if plan_class(GPU, one, a) == plan_class(GPU, other, b):
        assert complete_plan(None, GPU, one) == complete_plan(None, GPU, other)


ORDERED = (
    "Plan(reciprocity='ordered', targets=12): 30,000,000 elements have 3,051,796,875 pairs of tiles of 384, and a launch "
    "on a GPU counts at most 2,147,418,112; wanted targets=15 or more, or reciprocity='off'"
)
SCRATCH = (
    "Plan(reciprocity='scratch', targets=12): it keeps 2,605,000,000 partial sums of 1,000,000 elements, and a launch on "
    "a GPU counts at most 2,147,418,112; wanted reciprocity='ordered'"
)


@pytest.mark.parametrize(("mode", "count", "text"), [("ordered", 30_000_000, ORDERED), ("scratch", 1_000_000, SCRATCH)])
def test_who_asks_for_it_is_refused_in_words(mode: Any, count: int, text: str) -> None:
    kernel = make_physics(RECORDS["f32"], softened=True).acceleration
    with pytest.raises(PlanError) as refused:
        compile_offline(kernel, count, "cuda", arch="sm_90", requested=Plan(reciprocity=mode))
    assert str(refused.value) == text


def test_why_a_function_has_none_comes_first() -> None:
    """Of two arrays, and on a CPU."""
    apart = reference_kernel(case("gravity"), lw.SoAoAS(), "cuda", same=False)
    asked = Plan(reciprocity="ordered")
    for kind, kernel, reason in [
        ("cuda", apart, "its targets and its sources are two arrays"),
        ("cpu", reference_kernel(case("gravity"), lw.SoA(), "cpu"), "it is the threads of a GPU that exchange sums"),
    ]:
        plan = complete_plan(asked, Machine(kind, 8), describe_work(kernel, 60_000_000))
        with pytest.raises(PlanError, match=reason):
            build_program(kernel, plan, kind, between=False)


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("count", "mode"), [slow(1_000_000, None), slow(20_000_000, "ordered"), (20_000_000, "off"), (30_000_000, None)]
)
def test_what_an_explanation_compares_with_can_be_had(count: int, mode: Any) -> None:
    s = subject(case("gravity"), "cuda", plan=Plan(reciprocity=mode), count=count)
    programs = BuiltPrograms(s.reference, s.kind, s.unfit)
    maker = RowMaker(s, programs, Estimates(s, programs))
    rows = {r.field: r for r in maker.make(Times())}
    assert {s.plan, *maker.compared}
    assert [p for p in maker.compared if s.unfit(p)] == []
    if count == 30_000_000:
        assert rows["reciprocity"].best is None
        assert "pairs of tiles" in rows["reciprocity"].reason
        assert rows["reciprocity"].reason.endswith("targets=15 or more, or reciprocity='off'")


def test_tuning_tries_none_that_cannot_be_had() -> None:
    def space(count: int) -> KernelSpace:
        found = job("gravity", "cuda", count=count)
        return KernelSpace(found, ModelEstimator(found.environment, table_model("sm_90")))

    families = {f.base.reciprocity: f for f in space(20_000_000).families}
    assert set(families) == {"off", "ordered"}
    tried = space(20_000_000)
    ordered = next(f for f in tried.families if f.base.reciprocity == "ordered")
    reasons = {p["targets"]: tried.examine(ordered.plan(p)).reason for p in ordered.line(ordered.start, "targets")}
    assert {t: bool(why) for t, why in reasons.items()} == {t: t < 10 for t in reasons}
    refused = {way: why for name, way, why in space(30_000_000).refused if name == "reciprocity"}
    assert {w: "pairs of tiles" in why or "partial sums" in why for w, why in refused.items()} == {
        "scratch": True, "ordered": True,
    }  # fmt: skip

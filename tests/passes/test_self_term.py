from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.passes import self_term
from lanewise.planning.plan import Plan
from tests.corpus import Case, case
from tests.corpus_kernels import Body
from tests.harness import Input, assert_close, expected, program, run_public, stages
from tests.passes.probe import PROBE, Bead, before_and_after, check, refusal, simple
from tests.passes.ptx import check_cubin


@lw.pairwise
def softened(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    if lw.same(target, source):
        return lw.vec3(0.0)
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


SOFTENED = Case(
    "softened", softened, (Body, Body), case("gravity").fill, case("gravity").reference, {"softening2": 0.05}
)


@lw.pairwise
def stretched(target: Bead, source: Bead, scale: lw.f32) -> tuple[lw.vec2, lw.i32, lw.f64]:
    """Exact in any order, and zero for an element with itself, with and without the test."""
    if lw.same(target, source):
        return lw.vec2(0.0), 0, 0.0
    d = source.place - target.place
    return d * scale, source.level - target.level, (source.weight - target.weight) * target.weight


STRETCHED = Case("stretched", stretched, (Bead, Bead), PROBE.fill, lambda *_: (), {"scale": 2.0})
one_array = st.builds(lambda n, seed: Input(STRETCHED, n, None, seed), st.integers(1, 40), st.integers(0, 99))
LOOPS, DROP = Plan(self_term="loops", targets=1, tile=0), Plan(self_term="drop")


def test_golden(golden):
    before = simple(SOFTENED)
    for choice in ("loops", "drop"):
        golden(choice, before_and_after(before, self_term.apply(before, choice, 1, 0), functions=True))


@given(one_array, st.sampled_from(["loops", "drop"]))
def test_meaning_is_kept(given: Input, choice: self_term.Choice):
    before = simple(STRETCHED)
    check(given, before, (self_term.apply(before, choice, 1, 0),))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("plan", [LOOPS, DROP, Plan(tile=32, targets=2, self_term="drop")], ids=str)
@pytest.mark.parametrize("count", [1, 33])
def test_stages(kind: str, plan: Plan, count: int):
    """On a GPU the threads past the last target end their loops at the last source."""
    before = simple(STRETCHED, device_kind=kind)
    for _, kernels in stages(STRETCHED, lw.SoAoAS(), plan, kind)[-2:]:
        check(Input(STRETCHED, count), before, kernels)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize(
    "c", [SOFTENED, case("gravity_potential"), case("lennard_jones"), case("yukawa")], ids=lambda c: c.name
)
@pytest.mark.parametrize("choice", ["loops", "drop"])
def test_public(c: Case, choice: self_term.Choice):
    given, plan = Input(c, 33), LOOPS if choice == "loops" else DROP
    if choice == "drop" and c.name in ("gravity_potential", "yukawa"):
        assert "without the test, its value" in refusal(lambda: run_public(given, lw.SoA(), "cpu", plan))
        return
    assert_close(run_public(given, lw.SoA(), "cpu", plan), expected(given), c)


@pytest.mark.cuda
@pytest.mark.parametrize("plan", [LOOPS, DROP], ids=str)
@pytest.mark.parametrize("count", [1, 31, 300])
def test_cuda(plan: Plan, count: int):
    given = Input(SOFTENED, count)
    assert_close(run_public(given, lw.SoAoAS(), "cuda", plan), expected(given), SOFTENED)


@pytest.mark.parametrize("plan", [LOOPS, Plan(tile=256, targets=4, block=256, self_term="drop")], ids=str)
def test_cubin(plan: Plan):
    pytest.importorskip("cuda.bindings.nvrtc")
    for k in program(SOFTENED, lw.SoAoAS(), plan, "cuda").kernels:
        check_cubin(k)


def test_values_are_checked_when_they_are_bound():
    given = Input(SOFTENED, 5)
    target, source = given.records(lw.SoA())
    call = softened.bind(target, source, softening2=0.05, plan=DROP)
    again = softened.bind(target, source, softening2=0.0, plan=Plan(self_term="test"))
    assert np.isfinite(again()).all()
    assert call().shape == (5, 3)
    for value, shown in ((0.0, "0.0"), (-1.0, "-1.0")):
        assert refusal(lambda value=value: softened.bind(target, source, softening2=value, plan=DROP)) == (
            "Plan(self_term='drop'): softened may not leave out its test for a pair of an element with itself: "
            f"softening2 must be at least 1.18e-38, and it is {shown}; choose self_term='test'"
        )
    early = Plan(self_term="loops", targets=1, tile=0)  # the test returns zero before anything depends on softening
    assert np.isfinite(softened.bind(target, source, softening2=0.0, plan=early)()).all()


def test_refusals():
    def refused(c: Case, choice: str, targets: int = 1, tile: int = 0, *, same: bool = True) -> str:
        text = refusal(lambda: self_term.apply(simple(c, same=same), choice, targets, tile))  # type: ignore[arg-type]
        return text.removeprefix(f"if-elimination cannot be applied to {c.name}: ")

    nothing = "it has no test for a pair of an element with itself"
    assert refused(case("gravity"), "drop") == refused(case("gravity"), "loops") == nothing
    assert refused(SOFTENED, "drop", same=False) == "its target and source are different arrays"
    assert refused(PROBE, "drop") == (
        "without the test, its value for a pair of an element with itself is not zero: "
        "result1 is target.level - target.level * 2"
    )
    assert refused(case("order"), "loops") == (
        "its value for a pair of an element with itself is not zero: result1 is 1.0"
    )
    assert refused(SOFTENED, "loops", targets=2) == (
        "each target leaves out another source, which needs Plan(targets=1, tile=0), found targets=2, tile=0"
    )
    assert refused(SOFTENED, "loops", tile=64) == (
        "each target leaves out another source, which needs Plan(targets=1, tile=0), found targets=1, tile=64"
    )
    assert refused(SOFTENED, "never") == "'test', 'loops' or 'drop' was wanted, found 'never'"
    assert refused(case("speed"), "drop") == "it has no loop over sources"
    assert self_term.apply(simple(SOFTENED), "test", 4, 64) == simple(SOFTENED)


@lw.pairwise
def two_parts(target: Body, source: Body, softening2: lw.f32) -> tuple[lw.vec3, lw.f32]:
    """The first result has no test, the second one has."""
    d = source.position - target.position
    crowd = 0.0 if lw.same(target, source) else lw.dot(d, d) * lw.rsqrt(softening2)
    return d, crowd


def _two_parts(t, s, same, softening2):
    d = s["position"].astype("f8")[None] - t["position"].astype("f8")[:, None]
    return d.sum(1), (d * d).sum((1, 2)) / np.sqrt(softening2)


TWO_PARTS = Case("two_parts", two_parts, (Body, Body), SOFTENED.fill, _two_parts, {"softening2": 0.05}, atol=1e-4)


def test_a_part_without_a_test_stays_as_it_is():
    plan = Plan(self_term="drop", fission=True)
    found = program(TWO_PARTS, lw.SoA(), plan, "cpu")
    assert len(found.kernels) == 2
    assert [c.demand for c in found.self_term.conditions] == ["> 0"]
    given = Input(TWO_PARTS, 20)
    assert_close(run_public(given, lw.SoA(), "cpu", plan), expected(given), TWO_PARTS)
    target, source = given.records(lw.SoA())
    assert "softening2 must be at least" in refusal(lambda: two_parts.bind(target, source, softening2=0.0, plan=plan))

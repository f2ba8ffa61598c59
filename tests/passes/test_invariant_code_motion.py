from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.language.types import F64
from lanewise.passes import invariant_code_motion, self_term, thread_merging
from lanewise.planning.plan import Plan
from tests.corpus import Case, case
from tests.corpus_kernels import Charge
from tests.harness import Input, assert_close, expected, program, run_public, stages
from tests.passes.probe import PROBE, Bead, before_and_after, check, refusal, simple
from tests.passes.ptx import check_cubin
from tests.passes.random_functions import kernel_of, pair_functions, run


@lw.pairwise
def screened(target: Charge, source: Charge, length: lw.f32, k: lw.f32) -> tuple[lw.f32, lw.f32]:
    strength = k * target.charge  # of the target
    scale = 1.0 / (length * length)  # of uniform arguments
    sign = -target.charge  # a lone sign: free
    d = source.position - target.position
    if lw.same(target, source):
        return 0.0, 0.0
    if strength * strength < scale * 2.0:  # a boolean moves, too
        return strength * source.charge * lw.exp(-lw.dot(d, d) * scale), lw.exp(strength) * d.x
    return lw.exp(strength) + source.charge * sign, strength * strength * d.y


def _screened(t, s, same, length, k):
    d = s["position"].astype("f8")[None] - t["position"].astype("f8")[:, None]
    q, c = t["charge"].astype("f8")[:, None], s["charge"].astype("f8")[None]
    strength, scale, r2 = k * q, 1 / length**2, (d * d).sum(-1)
    near = strength**2 < scale * 2
    first = np.where(near, strength * c * np.exp(-r2 * scale), np.exp(strength) - c * q)
    second = np.where(near, np.exp(strength) * d[..., 0], strength**2 * d[..., 1])
    if same:
        np.fill_diagonal(first, 0.0)
        np.fill_diagonal(second, 0.0)
    return first.sum(1), second.sum(1)


SCREENED = Case(
    "screened",
    screened,
    (Charge, Charge),
    case("yukawa").fill,
    _screened,
    {"length": 0.8, "k": 1.5},
    rtol=1e-4,
    atol=1e-4,
)


@lw.function
def doubled(x):
    return x * 2.0


@lw.pairwise
def helped(target: Bead, source: Bead) -> lw.f32:
    return doubled(target.place.x) - source.place.x


@lw.pairwise
def exact(target: Bead, source: Bead, scale: lw.f32) -> tuple[lw.vec2, lw.i32, lw.f64]:
    """Exact in any order, with invariants of the target and of uniform arguments."""
    wide = scale * scale + 1.0
    return (source.place - target.place * wide) * wide, source.level - target.level * 2, source.weight * (wide + 1.0)


EXACT = Case("exact", exact, (Bead, Bead), PROBE.fill, lambda *_: (), {"scale": 2.0})
HELPED = Case("helped", helped, (Bead, Bead), PROBE.fill, lambda *_: ())


def test_golden(golden):
    before = simple(SCREENED)
    after = invariant_code_motion.apply(before)
    golden("moved", before_and_after(before, after, functions=True))
    # What belongs to uniform arguments stays single when targets are merged.
    golden("merged", before_and_after(after, thread_merging.apply(after, 2, 32)))


def with_an_invariant(function: ir.Function) -> ir.Function:
    """The function with its first result times (target.a * k): there is always something to move."""
    *body, last = function.body
    assert isinstance(last, ir.Return)
    x, y = last.values
    factor = ir.Binary("*", ir.Local("target.a", F64), ir.Local("k", F64), F64)
    return replace(
        function,
        body=(*body, ir.Return((ir.Binary("*", ir.Binary("+", x, ir.Local("source.b", F64), F64), factor, F64), y))),
    )


@given(pair_functions("+-*/nr"), st.integers(0, 9))
def test_meaning_is_kept(function: ir.Function, seed: int):
    """The operations are the same ones, so every bit stays, and every value that is not a number."""
    before = kernel_of(with_an_invariant(function))
    assume(invariant_code_motion.legal(before) is None)  # a branch that is always taken hides it
    after = invariant_code_motion.apply(before)
    np.testing.assert_array_equal(run(after, seed), run(before, seed))
    assert invariant_code_motion.legal(after) is not None  # at once


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("plan", [Plan(), Plan(targets=4), Plan(targets=2, tile=32, slices=1, parts=2)], ids=str)
def test_stages(kind: str, plan: Plan):
    if kind == "cpu" and plan.parts is not None:
        plan = Plan(targets=2, tile=32)
    before = simple(EXACT, device_kind=kind)
    for _, kernels in stages(EXACT, lw.SoAoAS(), replace(plan, hoist=True), kind)[-2:]:
        check(Input(EXACT, 19), before, kernels)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("c", [SCREENED, case("count_ranks")], ids=lambda c: c.name)
@pytest.mark.parametrize("targets", [1, 4])
@pytest.mark.parametrize("sources", [None, 50])
def test_public(c: Case, targets: int, sources: int | None):
    given = Input(c, 21, sources)
    assert_close(run_public(given, lw.SoA(), "cpu", Plan(hoist=True, targets=targets)), expected(given), c)


@pytest.mark.cuda
@pytest.mark.parametrize("c", [SCREENED, case("count_ranks")], ids=lambda c: c.name)
@pytest.mark.parametrize("targets", [1, 4])
def test_cuda(c: Case, targets: int):
    given = Input(c, 300)
    assert_close(run_public(given, lw.SoAoAS(), "cuda", Plan(hoist=True, targets=targets)), expected(given), c)


def test_both_loops_around_the_self_term_take_the_invariants():
    before = simple(SCREENED)
    after = invariant_code_motion.apply(self_term.apply(before, "loops", 1, 0))
    check(Input(SCREENED, 9), self_term.apply(before, "loops", 1, 0), (after,))


@pytest.mark.parametrize("targets", [1, 4])
def test_cubin(targets: int):
    pytest.importorskip("cuda.bindings.nvrtc")
    plan = Plan(block=256, tile=256, targets=targets, unroll=4, hoist=True)
    for k in program(SCREENED, lw.SoAoAS(), plan, "cuda").kernels:
        check_cubin(k)


def test_refusals():
    def refused(kernel: ir.Kernel) -> str:
        text = refusal(lambda: invariant_code_motion.apply(kernel))
        return text.removeprefix(f"invariant code motion cannot be applied to {kernel.name}: ")

    nothing = "it computes nothing from the target and from uniform arguments alone"
    assert refused(simple(case("gravity"))) == nothing
    assert refused(simple(HELPED)) == f"{nothing} (the pass does not look inside the functions that it calls)"
    assert refused(simple(case("speed"))) == (
        "it computes every element once: there is no loop over sources to move values out of"
    )
    tiled = program(SCREENED, lw.SoA(), Plan(tile=32), "cpu").kernels[0]
    assert refused(tiled) == "its loop over sources is cut up already"

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.language.types import F64
from lanewise.passes import fma_rearrangement
from lanewise.planning.plan import Plan
from tests.corpus import CASES, Case, case
from tests.harness import Input, assert_close, expected, program, run_public
from tests.passes.probe import Bead, before_and_after, refusal, simple
from tests.passes.ptx import arithmetic, check_cubin
from tests.passes.random_functions import kernel_of, pair_functions, run

GAINING = [c for c in CASES if c.name in ("gravity", "gravity_f64", "gravity_mixed", "gravity_potential", "yukawa")]


@lw.pairwise
def signs(target: Bead, source: Bead, e: lw.f32) -> tuple[lw.f32, lw.f32, lw.f32]:
    p, q = source.place, target.place
    square = p.x * p.x  # read once: looked through
    twice = p.y * p.y  # read twice: stays
    return square - p.x * q.y - e, -(q.x * q.x) - q.y * q.y - e, twice + q.x * q.y + (e - q.x) + twice * e


SIGNS = Case("signs", signs, (Bead, Bead), case("gravity").fill, lambda *_: (), {"e": 2.0})


def test_golden(golden):
    for c in (case("gravity"), SIGNS):
        before = simple(c)
        golden(c.name, before_and_after(before, fma_rearrangement.apply(before), functions=True))


def test_what_is_saved():
    assert fma_rearrangement.saved(simple(case("gravity"))) == 1
    assert fma_rearrangement.saved(simple(SIGNS)) == 2


def with_a_sum_of_squares(function: ir.Function) -> ir.Function:
    """The function with a * a + b * b + e - x for its result x: there is always something to gain."""
    *body, last = function.body
    assert isinstance(last, ir.Return)
    x, y = last.values
    a, b, e = (ir.Local(n, F64) for n in ("source.a", "target.b", "e"))
    square = ir.Binary("+", ir.Binary("*", a, a, F64), ir.Binary("*", b, b, F64), F64)
    value = ir.Binary("-", ir.Binary("+", square, e, F64), x, F64)
    return replace(function, body=(*body, ir.Return((value, y))))


@given(pair_functions("++-**n"), st.integers(0, 9))
def test_meaning_is_kept(function: ir.Function, seed: int):
    """Sums and products of small integers are exact in any order, so every bit stays."""
    before = kernel_of(with_a_sum_of_squares(function))
    assume(fma_rearrangement.legal(before) is None)  # a branch that is always taken hides it
    after = fma_rearrangement.apply(before)
    assert fma_rearrangement.saved(after) == 0
    wanted, found = run(before, seed), run(after, seed)
    assume(max(np.max(np.abs(w)) for w in wanted) < 2**50)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("c", GAINING, ids=lambda c: c.name)
@pytest.mark.parametrize("sources", [None, 50])
def test_public(c: Case, sources: int | None):
    given = Input(c, 21, sources)
    assert_close(run_public(given, lw.SoA(), "cpu", Plan(fma=True)), expected(given), c)


@pytest.mark.cuda
@pytest.mark.parametrize("c", GAINING, ids=lambda c: c.name)
def test_cuda(c: Case):
    given = Input(c, 300)
    assert_close(run_public(given, lw.SoAoAS(), "cuda", Plan(fma=True)), expected(given), c)


def test_gravity_adds_its_softening_in_a_fused_multiply_add():
    """Thirteen instructions for an interaction: 3 sub, 6 fma, 1 rsqrt, 3 mul. Without the pass 3 sub, 1 add, 5 fma, 1
    rsqrt, 4 mul.
    """
    pytest.importorskip("cuda.bindings.nvrtc")

    def counts(*, fma: bool):
        plan = Plan(tile=0, unroll=1, block=128, fma=fma)
        found = arithmetic(program(case("gravity"), lw.SoAoAS(), plan, "cuda").kernels[0])
        return {name: n / found["rsqrt"] for name, n in found.items()}  # the compiler unrolls

    assert counts(fma=False) == {"sub": 3, "add": 1, "fma": 5, "rsqrt": 1, "mul": 4}
    assert counts(fma=True) == {"sub": 3, "fma": 6, "rsqrt": 1, "mul": 3}


@pytest.mark.parametrize("name", ["gravity", "gravity_f64"])
def test_cubin(name: str):
    pytest.importorskip("cuda.bindings.nvrtc")
    for k in program(case(name), lw.SoAoAS(), Plan(block=256, tile=256, targets=4, unroll=8, fma=True), "cuda").kernels:
        check_cubin(k)


def test_refusals():
    assert refusal(lambda: fma_rearrangement.apply(simple(case("lennard_jones")))) == (
        "FMA rearrangement cannot be applied to lennard_jones: "
        "every product in its sums already joins one in a fused multiply-add"
    )
    assert refusal(lambda: run_public(Input(case("kick_drift"), 3), lw.SoA(), "cpu", Plan(fma=True))) == (
        "FMA rearrangement cannot be applied to kick_drift: every product in its sums already joins one in a fused multiply-add"
    )

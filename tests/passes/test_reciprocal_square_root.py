from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.language.types import F64
from lanewise.passes import reciprocal_square_root
from lanewise.planning.plan import Plan
from tests.corpus import CASES, Case, case
from tests.corpus_kernels import Body
from tests.harness import Input, assert_close, expected, program, run_public
from tests.passes.probe import before_and_after, refusal, simple
from tests.passes.ptx import arithmetic, check_cubin
from tests.passes.random_functions import kernel_of, pair_functions, run


@lw.pairwise
def fractions(target: Body, source: Body, e: lw.f32) -> tuple[lw.vec3, lw.f32, lw.f32]:
    d = source.position - target.position
    r2 = lw.dot(d, d) + e
    r = lw.sqrt(r2)
    near = lw.sqrt(d.x * d.x + e)
    falling = 0.0
    while falling < 2.0 / lw.sqrt(e + falling):
        falling += 1.0
    force = source.mass * d / (r2 * r) + d / r**3 + d * (d.y * d.y + e) ** -1.5
    return force, 1 / (2.0 * lw.sqrt(e)) + lw.exp(-near) / near, falling


def _fractions(t, s, same, e):
    d = s["position"].astype("f8")[None] - t["position"].astype("f8")[:, None]
    r2 = (d * d).sum(-1) + e
    weight = (s["mass"].astype("f8") + 1) / r2**1.5 + (d[..., 1] ** 2 + e) ** -1.5
    near = np.sqrt(d[..., 0] ** 2 + e)
    falling = next(n for n in range(9) if n >= 2 / np.sqrt(e + n))
    count = np.full(len(d), falling * d.shape[1])
    return (weight[..., None] * d).sum(1), (0.5 / np.sqrt(e) + np.exp(-near) / near).sum(1), count


FRACTIONS = Case("fractions", fractions, (Body, Body), case("gravity").fill, _fractions, {"e": 0.3}, atol=1e-5)
DIVIDING = (FRACTIONS, case("yukawa"))
APPROXIMATE = tuple(c for c in CASES if c.name.startswith("gravity"))


def test_golden(golden):
    before = simple(FRACTIONS)
    golden("hardware", before_and_after(before, reciprocal_square_root.apply(before, "hardware"), functions=True))
    before = simple(case("gravity"))
    golden("exact", before_and_after(before, reciprocal_square_root.apply(before, "exact"), functions=True))


def with_a_root(function: ir.Function) -> ir.Function:
    """The function with its first result divided by a root: there is always something to rewrite."""
    *body, last = function.body
    assert isinstance(last, ir.Return)
    x, y = last.values
    root = ir.Binary("/", x, ir.Call("sqrt", (ir.Local("source.a", F64),), F64), F64)
    return replace(function, body=(*body, ir.Return((root, y))))


@given(pair_functions("+*//rr"), st.integers(0, 9))
def test_hardware_keeps_the_meaning(function: ir.Function, seed: int):
    """All values are positive: no sum cancels, and each operation adds one rounding."""
    before = kernel_of(with_a_root(function))
    assume(reciprocal_square_root.legal(before, "hardware") is None)  # a branch that is always taken hides it
    after = reciprocal_square_root.apply(before, "hardware")
    np.testing.assert_allclose(run(after, seed), run(before, seed), rtol=1e-13)


@given(pair_functions("+*//rr"), st.integers(0, 9))
def test_exact_is_the_definition(function: ir.Function, seed: int):
    """The interpreter defines rsqrt as the rounded division by the rounded root: there every bit stays."""
    written = kernel_of(with_a_root(function))
    assume(reciprocal_square_root.legal(written, "hardware") is None)
    before = reciprocal_square_root.apply(written, "hardware")
    after = reciprocal_square_root.apply(before, "exact")
    assert reciprocal_square_root.legal(after, "exact") == "it takes no lw.rsqrt"
    np.testing.assert_array_equal(run(after, seed), run(before, seed))


@pytest.mark.parametrize("c", DIVIDING, ids=lambda c: c.name)
@pytest.mark.parametrize("sources", [None, 50])
def test_public_hardware(c: Case, sources: int | None):
    given = Input(c, 21, sources)
    assert_close(run_public(given, lw.SoA(), "cpu", Plan(rsqrt="hardware")), expected(given), c)


@pytest.mark.parametrize("c", APPROXIMATE, ids=lambda c: c.name)
def test_public_exact(c: Case):
    given = Input(c, 21)
    assert_close(run_public(given, lw.SoA(), "cpu", Plan(rsqrt="exact")), expected(given), c)


@pytest.mark.cuda
@pytest.mark.parametrize("c", [*DIVIDING, *APPROXIMATE], ids=lambda c: c.name)
def test_cuda(c: Case):
    given = Input(c, 300)
    plan = Plan(rsqrt="hardware" if c in DIVIDING else "exact")
    assert_close(run_public(given, lw.SoAoAS(), "cuda", plan), expected(given), c)


def test_instructions():
    """`hardware` leaves no division by a root, `exact` no approximate root."""
    pytest.importorskip("cuda.bindings.nvrtc")

    def counts(name: str, **choice):
        return arithmetic(
            program(case(name), lw.SoAoAS(), Plan(tile=0, unroll=1, block=128, **choice), "cuda").kernels[0]
        )

    written, hardware = counts("yukawa"), counts("yukawa", rsqrt="hardware")
    assert (written["div"], written["rsqrt"]) == (2 * written["sqrt"], 0)
    assert (hardware["div"], hardware["rsqrt"]) == (hardware["sqrt"], hardware["sqrt"])
    exact = counts("gravity", rsqrt="exact")
    assert exact["rsqrt"] == 0
    assert exact["sqrt"] == exact["rcp"] > 0


@pytest.mark.parametrize(("name", "choice"), [("gravity", "exact"), ("yukawa", "hardware")])
def test_cubin(name: str, choice):
    pytest.importorskip("cuda.bindings.nvrtc")
    plan = Plan(block=256, tile=256, targets=4, unroll=4, rsqrt=choice)
    for k in program(case(name), lw.SoAoAS(), plan, "cuda").kernels:
        check_cubin(k)


def test_refusals():
    kernel = simple(case("lennard_jones"))
    assert refusal(lambda: reciprocal_square_root.apply(kernel, "hardware")) == (
        "reciprocal square root cannot be applied to lennard_jones: it divides by no square root"
    )
    assert refusal(lambda: reciprocal_square_root.apply(kernel, "exact")) == (
        "reciprocal square root cannot be applied to lennard_jones: it takes no lw.rsqrt"
    )
    assert refusal(lambda: run_public(Input(case("gravity"), 3), lw.SoA(), "cpu", Plan(rsqrt="fast"))) == (  # type: ignore[arg-type]
        "Plan(rsqrt='fast'): wanted one of 'written', 'hardware', 'exact'"
    )
    assert reciprocal_square_root.apply(kernel, "written") is kernel

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.analysis.self_term import Proof, violated, zero_self_term
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import call
from lanewise.ir.printer import print_expression
from lanewise.language.types import F64
from tests.corpus import PAIRWISE, case
from tests.corpus_kernels import Body
from tests.passes.random_functions import LEAVES, UNIFORMS, pair_functions


def proof(kernel, *, same: bool = False) -> Proof | str:
    return zero_self_term(kernel.lowered.function, "target", "source", same=same)


def conditions(found: Proof | str) -> list[tuple[str, str]]:
    assert isinstance(found, Proof), found
    return [(print_expression(c.value), c.demand) for c in found.conditions]


CUBE = "rsqrt(softening2) * (rsqrt(softening2) * rsqrt(softening2))"


@pytest.mark.parametrize("name", ["gravity", "gravity_f64", "gravity_mixed"])
def test_gravity_needs_softening(name: str):
    assert conditions(proof(case(name).kernel)) == [("softening2", "> 0"), (CUBE, "finite")]


WITHOUT_TEST = {
    "gravity_potential": "result1 is -target.mass * rsqrt(softening2)",
    "yukawa": "result is target.charge * target.charge * exp(-(0.10000000149011612 / length)...",
    "count_ranks": "result1 is 1",
    "order": "result0 is 1",
    "ranked_distance": "ranked_distance has a local array",
}
WITH_TEST = {
    "count_ranks": "result2 is 1 << i64(target.rank + target.rank * 8)",
    "order": "result1 is 1.0",
    "ranked_distance": "ranked_distance has a local array",
}


@pytest.mark.parametrize("c", PAIRWISE, ids=lambda c: c.name)
def test_corpus(c):
    without, with_test = proof(c.kernel), proof(c.kernel, same=True)
    assert isinstance(without, Proof) if c.name not in WITHOUT_TEST else without == WITHOUT_TEST[c.name]
    assert isinstance(with_test, Proof) if c.name not in WITH_TEST else with_test == WITH_TEST[c.name]


@pytest.mark.parametrize("name", ["lennard_jones", "yukawa"])
def test_an_early_zero_needs_nothing(name: str):
    assert proof(case(name).kernel, same=True) == Proof()


@lw.pairwise
def contracted(target: Body, source: Body) -> lw.f32:
    """fma(s, s, -(t * t)) is the rounding error of the product, not zero."""
    return source.mass * source.mass - target.mass * target.mass


@lw.pairwise
def two_routines(target: Body, source: Body) -> lw.f32:
    """Sources may go through a vector exponential, the target through a scalar one."""
    return lw.exp(source.mass) - lw.exp(target.mass)


@lw.pairwise
def overflowing(target: Body, source: Body) -> lw.f32:
    return (source.mass - target.mass) * lw.exp(target.mass)


@lw.pairwise
def fused(target: Body, source: Body) -> lw.f32:
    return lw.fma(source.mass - target.mass, lw.exp(target.mass), 0.0)


@lw.pairwise
def dividing(target: Body, source: Body) -> lw.f32:
    return (source.mass - target.mass) / (target.mass + source.mass)


@lw.pairwise
def by_zero(target: Body, source: Body) -> lw.vec3:
    d = source.position - target.position
    return d / lw.length(d)


@lw.pairwise
def offset(target: Body, source: Body, e: lw.f32) -> lw.f32:
    return source.mass - target.mass + e


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (contracted, "result is target.mass * target.mass - target.mass * target.mass"),
        (two_routines, "result is exp(target.mass) - exp(target.mass)"),
        (overflowing, "result is 0.0 * exp(target.mass), and exp(target.mass) may be infinite"),
        (fused, "result is fma(0.0, exp(target.mass), 0.0), and exp(target.mass) may be infinite"),
        (dividing, "result is 0.0 / (target.mass + target.mass), and target.mass + target.mass may be zero"),
        (by_zero, "result.x is nan, and it divides by zero"),
        (offset, "result is e"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_is_not_proved(kernel, reason: str):
    assert proof(kernel) == reason


@lw.pairwise
def spring(target: Body, source: Body, k: lw.f32, r: lw.f32) -> tuple[lw.vec3, lw.i32]:
    d = source.position - target.position
    heavier = lw.i32(source.mass > target.mass)
    return lw.vec3(0.0) if lw.dot(d, d) > r else d * k / r, heavier


def test_conditions_of_other_uniforms():
    found = proof(spring)
    assert isinstance(found, Proof)
    assert violated(found, {"k": 2.0, "r": 0.5}) is None
    problem = violated(found, {"k": 2.0, "r": 0.0})
    assert problem == "1.0 / r must be at most 1.84e+19 in size, and it is inf for r = 0.0"
    assert violated(found, {"k": float("nan"), "r": 0.5}) == "k must be at most 1.84e+19 in size, and it is nan"


def test_violations():
    found, wide = proof(case("gravity").kernel), proof(case("gravity_f64").kernel)
    assert isinstance(found, Proof)
    assert isinstance(wide, Proof)
    assert violated(found, {"softening2": 1e-4}) is None
    assert violated(found, {"softening2": 0.0}) == "softening2 must be at least 1.18e-38, and it is 0.0"
    assert violated(found, {"softening2": -1.0}) == "softening2 must be at least 1.18e-38, and it is -1.0"
    assert violated(found, {"softening2": 1e-40}) == "softening2 must be at least 1.18e-38, and it is 1e-40"
    assert violated(wide, {"softening2": 1e-40}) is None
    assert violated(found, {"softening2": 1e-20}) == (
        f"{CUBE} must be at most 1.84e+19 in size, and it is 1e+30 for softening2 = 1e-20"
    )
    assert violated(found, {"softening2": float("nan")}) == "softening2 must be at least 1.18e-38, and it is nan"


def with_a_difference(function: ir.Function) -> ir.Function:
    """The function with its results times `source.a - target.a`: often zero, and sometimes for certain."""
    *body, last = function.body
    assert isinstance(last, ir.Return)
    zero = ir.Binary("-", ir.Local("source.a", F64), ir.Local("target.a", F64), F64)
    results = tuple(ir.Binary("*", zero, v, F64) for v in last.values)
    return replace(function, body=(*body, ir.Return(results)))


@given(pair_functions("+--**/"), st.integers(0, 9))
def test_a_proof_holds(function: ir.Function, seed: int):
    """What is proved to be zero is zero for elements of equal fields, where the conditions hold."""
    function = with_a_difference(function)
    found = zero_self_term(function, "target", "source")
    rng = np.random.default_rng(seed)
    a, b = (np.float64(x) for x in rng.integers(1, 6, 2))
    values = {
        "target.a": a,
        "source.a": a,
        "target.b": b,
        "source.b": b,
        **{n: np.float64(v) for n, v in UNIFORMS.items()},
    }
    assume(isinstance(found, Proof) and violated(found, values) is None)
    assert call(function, values)[0] == [0.0, 0.0]


def test_long_expressions_of_uniforms_are_left_alone():
    """Forty squares in a row would be an expression of a million million parts."""
    names = [ir.Local("e", F64)] + [ir.Local(f"v{n}", F64) for n in range(40)]
    body = tuple(ir.Assign(x.name, ir.Binary("*", y, y, F64)) for y, x in pairwise(names))
    zero = ir.Binary("-", ir.Local("source.a", F64), ir.Local("target.a", F64), F64)
    last = ir.Return((ir.Binary("*", zero, names[-1], F64),))
    parameters = tuple(ir.Parameter(n, F64) for n in LEAVES)
    found = zero_self_term(
        ir.Function("f", parameters, (ir.Parameter("result", F64),), (*body, last)), "target", "source"
    )
    assert found == "result is a long expression, and an expression of the uniform arguments is too long to be checked"

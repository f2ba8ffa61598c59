"""Constant folding: text before and after, meaning kept, and what must stay as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

import lanewise as lw
from lanewise.analysis.folding import fold
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.printer import print_expression, print_function
from lanewise.ir.verify import verify_function
from lanewise.language.types import BOOL, F32, F64, I32, I64, U32
from lanewise.passes.constant_folding import fold_function

DEBUG = False
ORDER = 4


@lw.function
def folded(x: lw.f32, n: lw.i32) -> lw.f32:
    y = x * 1.0 + lw.f32(2.0) * lw.f32(3.0)
    if DEBUG:
        y = 0.0
    while DEBUG and x > 0.0:
        y += 1.0
    if ORDER > 2 and n > 0:
        y = y + lw.f32(n * 1 + 0)
    return y + 0.0 if lw.i32(ORDER) // lw.i32(3) == 1 else x


def function_of(helper: object) -> ir.Function:
    @lw.elementwise
    def kernel(x: lw.f32, n: lw.i32) -> lw.f32:
        return helper(x, n)

    return next(s.function for s in kernel.lowered.function.body if isinstance(s, ir.Apply))


def test_golden(golden):
    before = function_of(folded)
    after = fold_function(before)
    verify_function(after)
    golden("fold", f"{print_function(before)}\n\n{print_function(after)}\n")


def _literal(kind):
    values = {
        BOOL: st.booleans(),
        F32: st.floats(width=32),
        F64: st.floats(),
        I32: st.integers(-(2**31), 2**31 - 1),
        U32: st.integers(0, 2**32 - 1),
        I64: st.integers(-(2**63), 2**63 - 1),
    }
    return values[kind].map(lambda v: ir.Literal(v, kind))


def _expressions(kind):
    operators = {BOOL: "& | ^", F32: "+ - * / // %", F64: "+ - * / // %"}.get(kind, "+ - * // % & | ^ << >>").split()
    leaf = (
        _literal(kind)
        | st.just(ir.Literal(1.0 if kind.is_float else 1 if kind.is_integer else True, kind))
        | st.just(ir.Local("x", kind))
    )

    def grow(inner):
        binary = st.builds(lambda o, a, b: ir.Binary(o, a, b, kind), st.sampled_from(operators), inner, inner)
        test = st.builds(lambda a, b: ir.Compare("<", a, b), inner, inner)
        select = st.builds(lambda c, a, b: ir.Select(c, a, b, kind), test | _literal(BOOL), inner, inner)
        logical = st.builds(lambda o, a, b: ir.Logical(o, a, b), st.sampled_from(("and", "or")), inner, inner)
        return binary | select | (logical if kind == BOOL else st.builds(lambda a: ir.Unary("-", a, kind), inner))

    return st.recursive(leaf, grow, max_leaves=8)


@pytest.mark.parametrize("kind", [BOOL, F32, F64, I32, U32, I64], ids=str)
@examples(data=st.data())
def test_folding_keeps_every_bit(kind, data):
    e = data.draw(_expressions(kind))
    x = data.draw(_literal(kind)).value
    from lanewise.ir.traverse import rewrite

    with np.errstate(all="ignore"):
        env = {"x": kind.dtype.type(x)}
        before, after = evaluate(e, env), evaluate(rewrite(e, fold), env)
    if kind.is_float and math.isnan(before):
        assert math.isnan(after)
    else:
        assert before.tobytes() == after.tobytes(), print_expression(e)


def literal(v, kind=F32):
    return ir.Literal(v, kind)


@pytest.mark.parametrize(
    "e",
    [
        ir.Binary("+", ir.Local("x", F32), literal(0.0), F32),  # -0.0 + 0.0 is 0.0
        ir.Binary("*", ir.Local("x", F32), literal(0.0), F32),  # NaN, infinity
        ir.Binary("-", literal(0.0), ir.Local("x", F32), F32),
        ir.Binary("//", ir.Local("x", F32), literal(1.0), F32),  # rounds down
        ir.Binary("//", literal(5, I32), literal(0, I32), I32),  # the user's guard may keep it from running
        ir.Binary("%", literal(5, I32), literal(0, I32), I32),
    ],
    ids=print_expression,
)
def test_what_is_not_exact_stays(e):
    assert fold(e) == e


def test_shifts_beyond_the_type_are_folded():
    """They have one meaning: nothing is left, or copies of the sign."""
    shifts = [("<<", 5, 40), ("<<", 5, -1), (">>", -5, 40), (">>", 5, 32)]
    folds = [fold(ir.Binary(o, ir.Literal(a, I32), ir.Literal(b, I32), I32)) for o, a, b in shifts]
    assert folds == [ir.Literal(value, I32) for value in (0, 0, -1, 0)]

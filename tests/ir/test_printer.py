"""Printed IR: one golden text with every node, and parentheses that say exactly what the tree says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ir.printer import print_block, print_expression, print_kernel
from lanewise.language.types import BOOL, F32, I64
from lanewise.passes import layout_lowering
from lanewise.planning.plan import Plan
from tests.corpus import CASES, case
from tests.harness import reference_kernel, stages

A, B, C = (ir.Local(n, I64) for n in "abc")
FLAG = ir.Local("flag", BOOL)


def test_every_statement(golden):
    kernel = reference_kernel(case("grow"), lw.AoSoA(4), "cpu")
    golden(
        "grow",
        print_kernel(kernel)
        + "\n"
        + print_kernel(layout_lowering.apply(kernel, vector_loads=False), with_functions=False),
    )
    for name in ("histogram", "march", "ranked_distance", "lennard_jones", "count_ranks"):
        golden(name, print_kernel(reference_kernel(case(name), lw.SoA(), "cpu")))


def test_a_mapped_kernel(golden):
    _, (kernel, combine) = stages(case("gravity"), lw.SoAoAS(), Plan(block=32, parts=2, unroll=0), "cuda")[-1]
    golden("mapped", print_kernel(kernel) + "\n" + print_kernel(combine))


PARENTHESES = [
    (ir.Binary("*", ir.Binary("+", A, B, I64), C, I64), "(a + b) * c"),
    (ir.Binary("-", A, ir.Binary("-", B, C, I64), I64), "a - (b - c)"),
    (ir.Binary("-", ir.Binary("-", A, B, I64), C, I64), "a - b - c"),
    (ir.Unary("-", ir.Binary("*", A, B, I64), I64), "-(a * b)"),
    (ir.Compare("==", ir.Compare("<", A, B), FLAG), "(a < b) == flag"),
    (ir.Unary("not", ir.Logical("or", FLAG, FLAG), BOOL), "not (flag or flag)"),
    (ir.Logical("and", ir.Unary("not", FLAG, BOOL), FLAG), "not flag and flag"),
    (ir.Binary("+", ir.Select(FLAG, A, B, I64), C, I64), "(a if flag else b) + c"),
    (ir.Select(ir.Select(FLAG, FLAG, FLAG, BOOL), A, ir.Select(FLAG, B, C, I64), I64), "a if (flag if flag else flag) else (b if flag else c)"),
    (ir.Binary("&", ir.Binary("<<", A, B, I64), C, I64), "a << b & c"),
]  # fmt: skip


def test_parentheses_stand_where_they_are_needed():
    assert [print_expression(e) for e, _ in PARENTHESES] == [text for _, text in PARENTHESES]


_numbers = st.sampled_from((A, B, C)) | st.integers(0, 9).map(lambda v: ir.Literal(v, I64))


def _grow(inner):
    binary = st.builds(lambda o, a, b: ir.Binary(o, a, b, I64), st.sampled_from("+ - * & | ^".split()), inner, inner)
    test = st.builds(ir.Compare, st.sampled_from("< <= == != > >=".split()), inner, inner)
    logical = st.builds(ir.Logical, st.sampled_from(("and", "or")), test, test)
    negated = st.builds(lambda t: ir.Unary("not", t, BOOL), logical)
    select = st.builds(lambda t, a, b: ir.Select(t, a, b, I64), logical | negated | test, inner, inner)
    return (
        binary
        | select
        | st.builds(lambda a: ir.Unary("-", a, I64), inner)
        | st.builds(lambda a: ir.Unary("~", a, I64), inner)
    )


@given(st.recursive(_numbers, _grow, max_leaves=12))
def test_printed_text_read_as_python_means_the_tree(e):
    env = {"a": np.int64(5), "b": np.int64(-3), "c": np.int64(2)}
    assert int(eval(print_expression(e), {}, {n: int(v) for n, v in env.items()})) == int(evaluate(e, env))


def test_printing_is_stable():
    for c in CASES:
        assert print_kernel(reference_kernel(c, lw.SoA(), "cpu")) == print_kernel(reference_kernel(c, lw.SoA(), "cpu"))


def test_the_least_of_a_warp():
    least = ir.Least("$walk.gap2", ir.Local("$walk.own2", F32))
    inside = ir.If(ir.Local("$far", BOOL), (least,))
    assert print_block((inside,)) == "  if $far:\n    $walk.gap2 = least $walk.own2 of the warp"
    two = ir.Least("$walk.gap2", ir.Local("$own#0", F32), (ir.Local("$own#1", F32),))
    assert print_block((two,)) == "  $walk.gap2 = least $own#0, $own#1 of the warp"

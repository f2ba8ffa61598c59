"""Scalar replacement: text before and after, meaning kept, and what must stay an array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import call
from lanewise.ir.printer import print_function
from lanewise.ir.traverse import statements
from lanewise.ir.verify import verify_function
from lanewise.language.types import BOOL, F32, F64, I32, LocalArray, Scalar
from lanewise.passes import scalar_replacement
from lanewise.passes.constant_folding import fold_function
from lanewise.passes.scalar_replacement import replace_arrays
from tests.corpus import CASES, LAYOUTS
from tests.harness import Input, reference_kernel, run_kernels
from tests.passes.probe import assert_equal

ORDER = 2


@lw.elementwise
def stencil(x: lw.f32, n: lw.i32) -> tuple[lw.f32, lw.i32, lw.bool]:
    left = lw.zeros(lw.f32, 4)
    seen = lw.zeros(lw.bool, 2)
    counts = lw.zeros(lw.i32, 3)
    left[0] = x
    left[ORDER * 1 - 1] = left[0] + left[3]
    for k in range(n):
        inner = lw.zeros(lw.i32, 2)
        inner[1] += k
        counts[k % 3] += inner[1]
        seen[0] = seen[0] or inner[1] > 2
    return left[1], counts[0], seen[0] and not seen[1]


def arrays(f: ir.Function) -> list[str]:
    return [s.name for s in statements(f.body) if isinstance(s, ir.DeclareArray)]


def test_golden(golden):
    before = fold_function(stencil.lowered.function)
    after = replace_arrays(before)
    verify_function(after)
    assert arrays(before) == ["left", "seen", "counts", "inner"]
    assert arrays(after) == ["counts"]  # its index is known only at run time
    golden("replace", f"{print_function(before)}\n\n{print_function(after)}\n")


@pytest.mark.parametrize("n", [0, 1, 5])
def test_meaning_of_every_type_is_kept(n):
    before = fold_function(stencil.lowered.function)
    given = {"x": np.float32(1.5), "n": np.int32(n)}
    wanted, found = call(before, given)[0], call(replace_arrays(before), given)[0]
    assert [type(v) for v in found] == [type(v) for v in wanted]
    assert found == wanted


def test_meaning_is_kept_over_the_corpus():
    for case in CASES:
        given = Input(case, 4, 3 if case.pairwise else None)
        before = reference_kernel(case, LAYOUTS["AoS"], "cpu", same=False)
        after = scalar_replacement.apply(before)
        assert_equal(run_kernels((after,), given, lw.AoS()), run_kernels((before,), given, lw.AoS()))


NAMES, LENGTH = ("a", "b", "c"), 3


@st.composite
def functions(draw: st.DrawFn) -> ir.Function:
    """Arrays of doubles, written and read at literals, sometimes at the variable `n`, in branches and loops."""

    def index() -> ir.Expression:
        at_run_time = draw(st.integers(0, 11)) == 0
        return ir.Local("n", I32) if at_run_time else ir.Literal(draw(st.integers(0, LENGTH - 1)), I32)

    def value() -> ir.Expression:
        read = ir.Element(draw(st.sampled_from(NAMES)), index(), F64)
        return ir.Binary(draw(st.sampled_from(("+", "-"))), read, ir.Local("x", F64), F64)

    def block(depth: int) -> ir.Block:
        done: list[ir.Statement] = []
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.integers(0, 5 if depth else 3))
            if kind < 3:
                done.append(ir.SetElement(draw(st.sampled_from(NAMES)), index(), value()))
            elif kind == 3:
                done.append(ir.DeclareArray(draw(st.sampled_from(NAMES)), LocalArray(F64, LENGTH)))
            elif kind == 4:
                done.append(ir.If(ir.Compare("<", value(), value()), block(depth - 1), block(depth - 1)))
            else:
                bounds = (ir.Literal(0, I32), ir.Literal(draw(st.integers(0, 3)), I32), ir.Literal(1, I32))
                done.append(ir.For(f"k{depth}", *bounds, block(depth - 1)))
        return tuple(done)

    declared = tuple(ir.DeclareArray(n, LocalArray(F64, LENGTH)) for n in NAMES)
    elements = [ir.Element(n, ir.Literal(i, I32), F64) for n in NAMES for i in range(LENGTH)]
    results = tuple(ir.Parameter(f"result{i}", F64) for i in range(len(elements)))
    parameters = (ir.Parameter("x", F64), ir.Parameter("n", I32))
    return ir.Function("random", parameters, results, (*declared, *block(2), ir.Return(tuple(elements))))


@settings(max_examples=100, deadline=None)
@examples(functions(), st.integers(0, LENGTH - 1), st.floats(-9, 9))
def test_meaning_is_kept(f, n, x):
    after = replace_arrays(f)
    verify_function(after)
    given = {"x": np.float64(x), "n": np.int32(n)}
    assert call(after, given)[0] == call(f, given)[0]
    with_run_time_index = {a for a in NAMES if f"{a}[n]" in print_function(f)}
    assert set(arrays(after)) == with_run_time_index


def access(index: ir.Expression, element: Scalar = F32) -> ir.Function:
    zero = ir.Literal(False if element == BOOL else 0.0 if element.is_float else 0, element)
    body = (ir.DeclareArray("a", LocalArray(element, 2)), ir.SetElement("a", index, zero))
    return ir.Function("f", (ir.Parameter("n", I32),), (), body)


@pytest.mark.parametrize(
    "index",
    [ir.Local("n", I32), ir.Literal(2, I32), ir.Literal(-1, I32), ir.Binary("*", *[ir.Literal(1, I32)] * 2, I32)],
    ids=["run time", "behind the end", "before the start", "not folded"],
)
def test_other_indices_leave_the_array(index):
    f = access(index)
    assert replace_arrays(f) == f


@pytest.mark.parametrize("element", [F32, F64, I32, BOOL], ids=str)
def test_zeros_have_the_type_of_the_elements(element):
    after = replace_arrays(access(ir.Literal(1, I32), element))
    verify_function(after)
    assert [(s.name, s.value.type) for s in after.body] == [("a.1", element)] * 2


def test_a_function_without_arrays_is_unchanged():
    f = ir.Function("f", (ir.Parameter("x", F32),), (), (ir.Assign("y", ir.Local("x", F32)),))
    assert replace_arrays(f) == f

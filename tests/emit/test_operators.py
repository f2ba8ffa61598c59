"""Every operator and intrinsic: CPU code against the interpreter, CUDA text through the compiler; and every awkward
literal.
"""

from __future__ import annotations

import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.llvm_expressions import literal as llvm_literal
from lanewise.passes import layout_lowering, thread_mapping
from lanewise.planning.plan import Plan
from lanewise.runtime.cuda_spelling import literal as cuda_literal
from lanewise.runtime.nvrtc import compile_cubin
from tests.corpus import Case
from tests.emit.operators import (
    CLOSE,
    EXACT,
    LITERALS,
    check_classes,
    check_literals,
    check_mathematics,
    interpreted,
    literal_kernel,
    mismatches,
    operands,
    operator_kernel,
)  # fmt: skip
from tests.harness import program


@pytest.mark.parametrize("kind", EXACT, ids=str)
def test_operators_have_one_meaning_on_the_cpu(kind):
    kernel, given = operator_kernel(kind, EXACT[kind]), operands(kind)
    with lw.device("cpu"):
        assert mismatches(EXACT[kind], given, kernel(**given), interpreted(kernel, given)) == []


@pytest.mark.parametrize("kind", CLOSE, ids=str)
def test_mathematics_on_the_cpu(kind):
    check_mathematics(kind, "cpu")


@pytest.mark.parametrize("kind", CLOSE, ids=str)
def test_mathematics_of_infinities_on_the_cpu(kind):
    check_classes(kind, "cpu")


@pytest.mark.parametrize(
    ("kind", "table"), [pytest.param(k, t, id=f"{k}-{n}") for n, t in (("exact", EXACT), ("close", CLOSE)) for k in t]
)
def test_operators_compile_for_cuda_without_a_warning(kind, table):
    kernel = operator_kernel(kind, table[kind])
    case = Case("operators", kernel, (), lambda rng, n: {}, lambda **a: ())
    (k,) = program(case, lw.SoA(), Plan(block=64), "cuda").kernels
    cubin = compile_cubin(emit_cuda(k, ""), k.name, "sm_90")
    assert "warning" not in cubin.log


@pytest.mark.parametrize(("kind", "values"), LITERALS, ids=[str(k) for k, _ in LITERALS])
def test_literals_keep_every_bit_on_the_cpu(kind, values):
    check_literals(kind, values, "cpu")


@pytest.mark.parametrize(("kind", "values"), LITERALS, ids=[str(k) for k, _ in LITERALS])
def test_literals_compile_for_cuda_without_a_warning(kind, values):
    mapped = thread_mapping.apply(literal_kernel(kind, values), 32)
    text = emit_cuda(layout_lowering.apply(mapped, vector_loads=True), "")
    assert "warning" not in compile_cubin(text, "literals", "sm_90").log


def test_literal_texts(golden):
    cuda = [f"{kind}: {cuda_literal(v, kind)}" for kind, values in LITERALS for v in values]
    llvm = [llvm_literal(v, kind) for kind, values in LITERALS for v in values]
    golden("literals", "\n".join(f"{c:56} {n}" for c, n in zip(cuda, llvm, strict=True)))

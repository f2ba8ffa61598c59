"""Every operator and intrinsic: CPU code against the interpreter, CUDA text through the compiler; and every awkward literal."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.cuda_prelude import literal as cuda_literal
from lanewise.emit.numba import emit_numba
from lanewise.emit.numba_prelude import literal as numba_literal
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT
from lanewise.passes import layout_lowering, thread_mapping
from lanewise.patterns.values import value_array
from lanewise.plan import Plan
from lanewise.runtime.cpu import load_kernel
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.types import BOOL, F32, F64, I32, I64, U32
from tests.corpus import Case
from tests.emit.operators import CLOSE, EXACT, TAME, interpreted, mismatches, operands, operator_kernel
from tests.harness import program


@pytest.mark.parametrize("kind", EXACT, ids=str)
def test_operators_have_one_meaning_on_the_cpu(kind):
    kernel, given = operator_kernel(kind, EXACT[kind]), operands(kind)
    with lw.device("cpu"):
        assert mismatches(EXACT[kind], given, kernel(**given), interpreted(kernel, given)) == []


@pytest.mark.parametrize("kind", CLOSE, ids=str)
def test_mathematics_on_the_cpu(kind):
    kernel, given = operator_kernel(kind, CLOSE[kind]), operands(kind, TAME)
    with lw.device("cpu"):
        found = kernel(**given)
    for e, f, w in zip(CLOSE[kind].split("; "), found, interpreted(kernel, given), strict=True):
        np.testing.assert_allclose(
            f, w, rtol=3e-6 if kind == F32 else 1e-14, atol=1e-6 if kind == F32 else 1e-15, err_msg=e
        )


@pytest.mark.parametrize("table", [EXACT, CLOSE], ids=["exact", "close"])
@pytest.mark.parametrize("kind", EXACT, ids=str)
def test_operators_compile_for_cuda_without_a_warning(kind, table):
    if kind in table:
        kernel = operator_kernel(kind, table[kind])
        case = Case("operators", kernel, (), lambda rng, n: {}, lambda **a: ())
        (k,) = program(case, lw.SoA(), Plan(block=64), "cuda").kernels
        cubin = compile_cubin(emit_cuda(k, ""), k.name, "sm_90")
        assert "warning" not in cubin.log


LITERALS = [
    (F32, (0.0, -0.0, 1.0, -1.5, 1e30, -1e30, 1e-45, 1.1754942e-38, 3.4028234663852886e38, float("inf"), float("-inf"), float("nan"), 0.1, 1e22, 16777217.0)),
    (F64, (0.0, -0.0, 1.0, -1.5, 1e300, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"), 0.1, 1e22)),
    (I32, (0, 1, -1, 2**31 - 1, -(2**31), -(2**31) + 1)),
    (U32, (0, 1, 2**31, 2**32 - 1)),
    (I64, (0, 1, -1, 2**31, -(2**31), 2**63 - 1, -(2**63), -(2**63) + 1)),
    (BOOL, (True, False)),
]  # fmt: skip


def literal_kernel(kind, values):
    """`result[i] = literal`, twice: as it stands, and as the right operand of an operator that binds tightly."""
    results = tuple(ir.Parameter(f"result.{n}", kind) for n in range(2 * len(values)))
    plain = tuple(ir.Literal(v, kind) for v in values)
    x = ir.Local("x", kind)
    second = tuple(
        ir.Select(x, e, ir.Unary("not", e, BOOL), BOOL) if kind == BOOL else ir.Binary("-", x, e, kind) for e in plain
    )
    f = ir.Function("literals", (ir.Parameter("x", kind),), results, (ir.Return((*plain, *second)),))
    source = value_array("x", kind, written=False)
    arrays = [value_array(f"$out{n}", kind, written=True) for n in range(len(results))]
    i = ir.Local("$i", I64)
    names = tuple(f"$r{n}" for n in range(len(results)))
    body = (
        ir.Fetch("x", i, (("value", "x"),)), ir.Apply(f, (x,), names),
        *(ir.Commit(a.name, i, (("value", ir.Local(n, kind)),)) for a, n in zip(arrays, names, strict=True)),
    )  # fmt: skip
    loop = ir.Parallel("$i", ir.Local(COUNT, I64), body)
    return ir.Kernel("literals", "elementwise", (source, *arrays), (), (ir.Parameter(COUNT, I64),), (loop,))


@pytest.mark.parametrize(("kind", "values"), LITERALS, ids=[str(k) for k, _ in LITERALS])
def test_literals_keep_every_bit_on_the_cpu(kind, values):
    kernel = layout_lowering.apply(literal_kernel(kind, values), vector_loads=False)
    run = load_kernel(emit_numba(kernel, "literals"), "literals")
    outputs = [np.zeros(1, kind.dtype) for _ in range(2 * len(values))]
    run(np.ones(1, kind.dtype), *outputs, 1, 0, 1)
    with np.errstate(all="ignore"):
        wanted = np.array(values, kind.dtype)
        second = wanted if kind == BOOL else np.ones(1, kind.dtype) - wanted
    np.testing.assert_array_equal(np.concatenate(outputs[: len(values)]), wanted)
    np.testing.assert_array_equal(np.concatenate(outputs[len(values) :]), second)
    if kind.is_float:
        np.testing.assert_array_equal(np.signbit(np.concatenate(outputs[: len(values)])), np.signbit(wanted))


@pytest.mark.parametrize(("kind", "values"), LITERALS, ids=[str(k) for k, _ in LITERALS])
def test_literals_compile_for_cuda_without_a_warning(kind, values):
    mapped = thread_mapping.apply(literal_kernel(kind, values), 32)
    text = emit_cuda(layout_lowering.apply(mapped, vector_loads=True), "")
    assert "warning" not in compile_cubin(text, "literals", "sm_90").log


def test_literal_texts(golden):
    cuda = [f"{kind}: {cuda_literal(v, kind)}" for kind, values in LITERALS for v in values]
    numba = [numba_literal(v, kind) for kind, values in LITERALS for v in values]
    golden("literals", "\n".join(f"{c:56} {n}" for c, n in zip(cuda, numba, strict=True)))

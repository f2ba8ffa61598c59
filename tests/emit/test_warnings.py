"""NVRTC has nothing to warn of in the texts of kernels that look odd but are legal."""

from __future__ import annotations

from typing import Any

import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.planning.plan import Plan
from lanewise.runtime.nvrtc import compile_cubin
from tests.corpus import Case, case
from tests.emit.operators import define
from tests.harness import program

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")


@lw.record
class Odd:
    a: lw.f32
    i: lw.i32
    l: lw.i64  # noqa: E741
    u: lw.u32


# What they came from: a division by zero, a number out of range, a comparison of a number without a sign with 0.
EXPRESSIONS = (
    "lw.i32(e.a / lw.f32(0)); lw.i32(e.a / lw.f32(-0.0)); e.i // lw.i32(0); e.i % (lw.i32(2) - lw.i32(2)); lw.i32(2147483647) + lw.i32(1); "
    "lw.i32(e.u // e.u); lw.i32(e.u % 7); lw.i32(e.u >= 0); lw.i32(e.u - lw.u32(1) < 0); lw.i32(0 > e.u); -lw.i32(-2147483648); "
    "lw.i32(e.l * lw.i64(9223372036854775807)); lw.i32(lw.u32(4294967295) * lw.u32(3)); lw.i32(lw.abs(e.u)); lw.i32(e.a // lw.f32(0))"
)


def log_of(kernel: Any, record: Any) -> str:
    none: Any = dict
    (k,) = program(Case("odd", kernel, (record,), none, none), lw.SoA(), Plan(block=64), "cuda").kernels
    return compile_cubin(emit_cuda(k, "test"), k.name, "sm_90").log


def test_odd_expressions() -> None:
    values = EXPRESSIONS.split("; ")
    text = f"def odd(e: Odd) -> tuple[{', '.join(['lw.i32'] * len(values))}]:\n    return {', '.join(values)}\n"
    kernel = lw.elementwise(define(text, "odd", Odd=Odd))
    assert "warning" not in log_of(kernel, Odd)


def test_variables_that_one_block_reads_and_another_does_not() -> None:
    """With nothing of a source to load, its place is not needed where pairs are met, and is where sums are written."""
    for k in program(case("order"), lw.SoA(), Plan(reciprocity="ordered", tile=0, block=64), "cuda").kernels:
        assert "warning" not in compile_cubin(emit_cuda(k, "test"), k.name, "sm_90").log

"""The generated text of flow on D2Q9, read line by line."""

from __future__ import annotations

import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.numba import emit_numba
from lanewise.pipeline import Program
from lanewise.plan import Plan
from tests.emit.sitewise import site_program

BLOCKS = lw.AoSoA(32)


def cuda_text(p: Program) -> str:
    return "\n".join(emit_cuda(k, f"lanewise: {k.name}\nplan: {p.plan.short()}") for k in p.kernels)


def numba_text(p: Program) -> str:
    return "\n\n".join(emit_numba(k, f"lanewise: {k.name}\nplan: {p.plan.short()}", fast_math=False) for k in p.kernels)


@pytest.mark.parametrize("phase", ["pull", "even", "odd"])
def test_float16_in_blocks_in_cuda(golden, phase):
    golden(f"cuda_{phase}", cuda_text(site_program(lw.D2Q9, phase, BLOCKS, storage="f16")))


def test_kinds_in_cuda(golden):
    golden("cuda_kinds", cuda_text(site_program(lw.D2Q9, "pull", BLOCKS, special="kinds")))
    golden("cuda_dense", cuda_text(site_program(lw.D2Q9, "pull", BLOCKS, special="dense")))
    golden("cuda_apart", cuda_text(site_program(lw.D2Q9, "pull", BLOCKS, plan=Plan(branches="apart"))))


@pytest.mark.parametrize("phase", ["pull", "even", "odd"])
def test_bulk_and_special_in_python(golden, phase):
    golden(f"numba_{phase}", numba_text(site_program(lw.D2Q9, phase, lw.SoA(), "cpu")))


def test_kinds_in_python(golden):
    golden("numba_kinds", numba_text(site_program(lw.D2Q9, "pull", lw.SoA(), "cpu", special="kinds")))

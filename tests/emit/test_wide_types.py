"""Several neighbouring elements as one access, for every type that an array may have."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.emit.cuda import emit_cuda
from lanewise.ir import nodes as ir
from lanewise.language.target import Machine
from lanewise.language.types import BOOL, SCALARS, STORED, Scalar
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.nvrtc import compile_cubin

GPU = Machine("cuda", 132, copies=True)
WIDEST = 16  # bytes of one access of a GPU
WIDE = [(t, n) for t in (*SCALARS, *STORED) for n in (2, 4) if n * t.size <= WIDEST]
TEXT = """import lanewise as lw


@lw.threadwise
def copied(y: lw.index, x: lw.index, a: lw.Array2[lw.{kind}], c: lw.Array2[lw.{kind}]):
    c[y, x] = a[y, x]


@lw.threadwise
def counted(x: lw.index, a: lw.Array1[lw.{kind}]) -> lw.i32:
    return 1 if {positive} else 0
"""


def _kernels(kind: Scalar, folder: Path) -> dict[str, Any]:
    path = folder / f"wide_{kind}.py"
    positive = "a[x]" if kind == BOOL else "a[x] > 0"
    path.write_text(TEXT.format(kind=kind, positive=positive), encoding="utf-8")
    return runpy.run_path(str(path))


def _in_multiples(kernel: ir.Kernel, lanes: int) -> ir.Kernel:
    return replace(kernel, arrays=tuple(replace(a, multiple=lanes) for a in kernel.arrays))


def _wide(kernels: tuple[ir.Kernel, ...], lanes: int) -> set[str]:
    """The arrays that have accesses of so many elements; every text compiles."""
    for kernel in kernels:
        log = compile_cubin(emit_cuda(kernel, ""), kernel.name, "sm_90").log
        assert "warning" not in log.lower(), log
    return {b.name for k in kernels for b in k.buffers if b.lanes == lanes}


@pytest.mark.slow_cases(*(f"{t}-2" for t, n in WIDE if n == 4))
@pytest.mark.parametrize(("kind", "lanes"), WIDE, ids=str)
def test_neighbours_of_every_type_are_one_access_on_cuda(kind, lanes, tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    kernels, a = _kernels(kind, tmp_path), np.zeros((8, 64), kind.dtype)

    counted = _in_multiples(kernels["counted"].compile(a[0], grid=64).reference, lanes)
    chosen = complete_plan(Plan(), GPU, describe_work(counted, 1 << 20, GPU.target))
    assert _wide(build_program(counted, chosen, "cuda").kernels, lanes) == {"a"}

    copied = _in_multiples(kernels["copied"].compile(a, a.copy(), grid=a.shape).reference, lanes)
    plan = Plan(block=32, across=16, targets=lanes, adjacent=lanes).filled(NEUTRAL)
    merged = {"a", "c"} if kind.size >= 4 else set()  # points of a thread: words at least
    assert _wide(build_program(copied, plan, "cuda").kernels, lanes) == merged


@pytest.mark.cuda
@pytest.mark.parametrize("kind", [*SCALARS, *STORED], ids=str)
def test_neighbours_of_every_type_are_read_together_on_a_gpu(kind, tmp_path):
    cupy = pytest.importorskip("cupy")
    kernels = _kernels(kind, tmp_path)
    a = np.random.default_rng(1).integers(0, 2, (8, 64)).astype(kind.dtype)
    given, copy = cupy.asarray(a), cupy.zeros_like(cupy.asarray(a))
    assert int(kernels["counted"](given[0], grid=64)) == np.count_nonzero(a[0])
    kernels["copied"](given, copy, grid=a.shape)
    np.testing.assert_array_equal(copy.get(), a)

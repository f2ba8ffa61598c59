"""lw.min and lw.max of float32 are one instruction on a GPU, wherever they stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.planning.plan import NEUTRAL, Plan
from tests.passes.ptx import ptx
from tests.patterns.reductions import reference

F32 = np.float32


@lw.threadwise
def min_plus(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    s = lw.f32(1e30)
    for k in range(a.shape[1]):
        s = lw.min(s, a[y, k] + b[k, x])
    c[y, x] = s


@lw.threadwise
def clamped(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    c[y, x] = lw.clamp(a[y, x], lw.min(b[y, x], 0.0), lw.max(b[y, x], 0.0))


@pytest.mark.parametrize("kernel", [min_plus, clamped], ids=["min-plus", "clamped"])
def test_one_instruction(kernel: Any) -> None:
    arrays = [np.zeros((8, 8), F32) for _ in range(3)]
    program = build_program(reference(kernel, arrays, (8, 8)), Plan(block=64).filled(NEUTRAL), "cuda")
    text = ptx(program.kernels[0])
    assert "min.NaN.f32" in text
    assert "setp.lt.f32" not in text
    assert "setp.gt.f32" not in text

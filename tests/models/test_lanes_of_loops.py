"""Loops as they are written: the model knows of which LLVM makes lanes, and expects no gain of a plan that makes them
itself.
"""

from __future__ import annotations

import platform
import re
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.lanes_of_loops import has_lanes
from lanewise.compiler.pipeline import Program, build_program
from lanewise.emit.llvm import emit_llvm
from lanewise.explanation.calls import call_subject
from lanewise.explanation.subject import Subject
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.models.devices import DeviceModel
from lanewise.models.predict import predict
from lanewise.runtime import llvm

AS_WRITTEN = lw.Plan(across=0, rows=1, layers=1, targets=1, tile=0, slices=1, unroll=1)
CPU = DeviceModel(
    "a CPU", "cpu", "x86_64", 2, 3.7e9, 16, 8, 2, 16, 16, 8, 28e9, 230e9, 1 << 20, None, 1, launch_seconds=4e-6,
    vector_bits=512, preferred_bits=512, last_cache_bytes=1 << 25,
)  # fmt: skip
PACKED = re.compile(r"\tv?(?:add|sub|mul|fn?madd\w*)ps\b")


@lw.threadwise
def edges_of_a_picture(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    across = a[y, x + 2] - a[y, x] + 2.0 * (a[y + 1, x + 2] - a[y + 1, x]) + a[y + 2, x + 2] - a[y + 2, x]
    down = a[y + 2, x] - a[y, x] + 2.0 * (a[y + 2, x + 1] - a[y, x + 1]) + a[y + 2, x + 2] - a[y, x + 2]
    r[y, x] = lw.sqrt(across * across + down * down)


@lw.threadwise
def mosaic(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    if x % 2 == 0:
        r[y, x] = 0.5 * (a[y, x] + a[y, x + 2])
    else:
        r[y, x] = a[y + 1, x + 1]


@lw.threadwise
def wave(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    around = a[y, x + 1] + a[y + 2, x + 1] + a[y + 1, x] + a[y + 1, x + 2]
    r[y, x] = 2.0 * a[y + 1, x + 1] - r[y, x] + 0.2 * (around - 4.0 * a[y + 1, x + 1])


@lw.threadwise
def column_of_five(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for v in range(5):
        s += a[y + v, x] * (1.0 + 0.5 * v)
    r[y, x] = s


@lw.threadwise
def upwind(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    v = a[y, x]
    d = a[y, x + 1] - a[y, x]
    if v < 0.0:
        d = a[y + 1, x] - a[y, x]
    r[y, x] = v - 0.1 * v * d


@lw.threadwise
def sums_of_rows(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[1]):
        s += a[y, k] * a[y, k]
    r[y, 0] = s


@lw.threadwise
def running_sums(y: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(r.shape[1]):
        s += a[y, k]
        r[y, k] = s


@lw.threadwise
def weighted_columns(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    s = 0.0
    for k in range(a.shape[0]):
        s += a[k, x] * a[y, k]
    r[y, x] = s


@lw.threadwise
def wrapped(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    r[y, x] = a[y, (x + 3) % a.shape[1]] * 2.0


POINTWISE = (edges_of_a_picture, mosaic, wave, column_of_five, upwind)
LANES = dict.fromkeys(POINTWISE, "x") | {sums_of_rows: "k", running_sums: "", weighted_columns: "", wrapped: ""}
named = pytest.mark.parametrize("kernel", LANES, ids=lambda k: k.__name__)


def built(kernel: Any, side: int, plan: lw.Plan = AS_WRITTEN) -> tuple[Subject, Program]:
    arrays = {"a": np.ones((side + 4, side + 4), np.float32), "r": np.ones((side, side), np.float32)}
    grid = (side,) * len(kernel.signature.indices)
    subject, _, _ = call_subject(kernel, (), {**arrays, "grid": grid}, "cpu", CPU)
    return subject, build_program(subject.reference, subject.default(plan), "cpu", between=False)


@named
def test_loops_whose_rounds_go_together(kernel: Any) -> None:
    _, program = built(kernel, 64)
    loops = [s for s in statements(program.kernels[0].body) if isinstance(s, ir.For) and has_lanes(s)]
    assert [s.variable for s in loops] == [n for n in (LANES[kernel],) if n]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads the machine code of x86")
@named
def test_so_does_the_compiler(kernel: Any) -> None:
    _, program = built(kernel, 64)
    text = llvm.assembly(emit_llvm(program.kernels[0], "", locations=False))
    assert bool(PACKED.search(text)) == bool(LANES[kernel])


@pytest.mark.parametrize("side", [128, 1024, 4096])
@pytest.mark.parametrize("kernel", POINTWISE, ids=lambda k: k.__name__)
def test_no_gain_over_lanes_that_a_compiler_makes(kernel: Any, side: int) -> None:
    """It was predicted as 1.3 to 13."""
    times = []
    for plan in (AS_WRITTEN, lw.Plan(across=16)):
        subject, program = built(kernel, side, plan)
        times.append(predict(program, subject.environment, CPU).seconds)
    assert times[0] / times[1] < 1.35


def test_lanes_that_share_rounds_run_a_share_of_them() -> None:
    """How many was a guess, as the first round differs between lanes."""
    times = []
    for side in (1024, 4096):
        subject, program = built(sums_of_rows, side, lw.Plan(slices=32))
        times.append(predict(program, subject.environment, CPU).seconds)
    assert times[1] > 8 * times[0]

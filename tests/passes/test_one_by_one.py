"""Blocks at edges compute their points one after the other: the same bits, and one copy of what a point does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.planning.plan import NEUTRAL, Plan
from tests.patterns.reductions import reference, run

Array = lw.Array3[lw.f32]


@lw.threadwise
def smoothed(z: lw.index, y: lw.index, x: lw.index, a: Array, c: Array):
    s = a[z, y, x]
    if y > 0:
        s += a[z, y - 1, x]
    if x + 1 < a.shape[2]:
        s += 0.5 * a[z, y, x + 1]
    c[z, y, x] = s


@lw.threadwise
def around(z: lw.index, y: lw.index, x: lw.index, a: Array, c: Array):
    n = a.shape[2]
    c[z, y, x] = a[z, y, (x - 1 + n) % n] + 2.0 * a[z, y, (x + n + 1) % n] + a[z, (y - 3) % a.shape[1], x]


@lw.threadwise
def left_out(z: lw.index, y: lw.index, x: lw.index, a: Array, c: Array):
    if 0 < y < a.shape[1] - 1:
        c[z, y, x] = a[z, lw.clamp(y - 2, 0, a.shape[1] - 1), x]


@lw.threadwise
def summed(z: lw.index, y: lw.index, x: lw.index, a: Array, c: Array):
    """Its loop reads what several points need: they stay together."""
    s = 0.0
    for k in range(a.shape[2]):
        if y > 0:
            s += a[z, y, k]
    c[z, y, x] = s


def points_apart(kernel: ir.Kernel) -> list[ir.For]:
    return [s for s in statements(kernel.body) if isinstance(s, ir.For) and s.role == "points"]


PLANS = {
    "rows": Plan(block=32, across=8, rows=2, targets=4),
    "layers": Plan(block=32, across=8, down=2, rows=2, targets=2, layers=2),
    "neighbours": Plan(block=32, across=4, targets=8, adjacent=2),
    "apart": Plan(block=32, across=8, layers=2, targets=4, adjacent=1),
    "first": Plan(block=32, across=2, rows=2, targets=4, neighbours="first"),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("kernel", [smoothed, around, left_out], ids=lambda k: k.__name__)
def test_points_at_edges_come_one_after_the_other(kernel: Any, plan: Plan) -> None:
    for n, shape in enumerate(((1, 4, 5), (3, 9, 33), (5, 8, 70))):
        a = np.random.default_rng(n).normal(size=shape).astype(np.float32)
        arrays = [a, np.full_like(a, 7)]
        naive = reference(kernel, arrays, shape)
        program = build_program(naive, plan.filled(NEUTRAL), "cuda")
        (loop,) = points_apart(program.kernels[0])
        stores = [s for s in statements(loop.body) if isinstance(s, ir.StoreElement | ir.Store)]
        assert len(stores) == 1
        wanted = run((naive,), kernel, arrays, shape)[1]
        np.testing.assert_array_equal(run(program.kernels, kernel, arrays, shape)[1], wanted)


def test_few_points_and_loops_are_written_out() -> None:
    a = np.ones((3, 9, 33), np.float32)
    for kernel, plan in ((smoothed, Plan(block=32, across=8, targets=4)), (summed, PLANS["rows"])):
        naive = reference(kernel, [a, a.copy()], a.shape)
        assert not points_apart(build_program(naive, plan.filled(NEUTRAL), "cuda").kernels[0])

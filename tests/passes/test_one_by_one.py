"""Blocks at edges compute their points one after the other: the same bits, and one copy of what a point does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.regions import Region, analyse
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.patterns.tables.names import extent_of, length_of
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


@pytest.mark.grid(every=100)
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


@lw.threadwise
def with_tests(z: lw.index, y: lw.index, x: lw.index, a: Array, c: Array):
    s = 0.0
    for v in range(3):
        for u in range(3):
            if 0 <= y + v - 1 < a.shape[1] and 0 <= x + u - 1 < a.shape[2]:
                s += a[z, y + v - 1, x + u - 1]
    c[z, y, x] = s


@lw.threadwise
def clamped(z: lw.index, y: lw.index, x: lw.index, a: Array, c: Array):
    s = 0.0
    for v in range(3):
        for u in range(3):
            s += a[z, lw.clamp(y + v - 1, 0, a.shape[1] - 1), lw.clamp(x + u - 1, 0, a.shape[2] - 1)]
    c[z, y, x] = s


def test_what_is_read_under_tests_is_counted_once() -> None:
    """Neighbours of a window lie in the same sectors, whether a test stands before each or not."""
    shape = (64, 128, 256)
    found: list[float] = []
    for kernel in (with_tests, clamped):
        a = np.zeros(shape, np.float32)
        naive = reference(kernel, [a, a.copy()], shape)
        program = build_program(naive, PLANS["rows"].filled(NEUTRAL), "cuda")
        counts = {extent_of(i): n for i, n in zip("zyx", shape, strict=True)}
        counts |= {length_of(m, d): n for m in "ac" for d, n in enumerate(shape)}
        work = analyse(program.kernels[0], counts)
        every = [r for r in work.regions if any(x.role == "loop over points" for x in _around(r))]
        found.append(sum(n * r.executions for r in every for key, n in r.sectors.items() if key.startswith("a/")))
    assert found[0] == pytest.approx(found[1], rel=0.15)


def _around(region: Region | None) -> list[Region]:
    return [] if region is None else [region, *_around(region.parent)]

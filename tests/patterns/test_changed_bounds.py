"""Loops whose rounds change what says where they begin: every plan computes what the text says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.planning.plan import NEUTRAL, Plan
from tests.patterns.reductions import reference, run

Matrix = lw.Array2[lw.f32]


@lw.threadwise
def counted(y: lw.index, a: Matrix, r: Matrix):
    s = 0.0
    j = 3
    for k in range(j, a.shape[1]):
        s += a[y, k]
        j += 1
    r[y, 0] = s
    r[y, 1] = lw.f32(j)


@lw.threadwise
def carried(y: lw.index, a: Matrix, r: Matrix):
    m = -1e30
    i = 3
    for k in range(i, a.shape[1]):
        if a[y, k] > m:
            m = a[y, k]
            i = k
    r[y, 0] = m
    r[y, 1] = lw.f32(i)


@lw.threadwise
def largest(y: lw.index, a: Matrix, r: Matrix):
    """The start is an extreme of the rounds."""
    first = 2
    s = 0.0
    for k in range(first, a.shape[1]):
        first = lw.max(first, k)
        s += a[y, k]
    r[y, 0] = s
    r[y, 1] = lw.f32(first)


@lw.threadwise
def ended(y: lw.index, a: Matrix, r: Matrix):
    """The end is what it was before the first round."""
    n = a.shape[1]
    s = 0.0
    for k in range(n):
        n -= 1
        s += a[y, k]
    r[y, 0] = s
    r[y, 1] = lw.f32(n)


PLANS = {
    "cuda": [Plan(block=64, **w) for w in ({}, {"slices": 32}, {"slices": 64}, {"slices": 32, "parts": 2}, {"targets": 2, "tile": 4})],
    "cpu": [Plan(), Plan(slices=8), Plan(slices=16), Plan(slices=16, targets=4), Plan(across=8)],
}  # fmt: skip


@pytest.mark.parametrize("device", PLANS)
@pytest.mark.parametrize("kernel", [counted, carried, largest, ended], ids=lambda k: k.__name__)
def test_every_plan_begins_where_the_text_says(kernel: Any, device: str) -> None:
    rng = np.random.default_rng(2)
    a = (rng.integers(0, 17, (5, 101)) / 16).astype(np.float32)
    a[:, :2] = 3  # before the first round of most
    arrays = [a, np.zeros((5, 2), np.float32)]
    text = reference(kernel, arrays, 5)
    wanted = run([text], kernel, arrays, 5)[-1]
    tried = 0
    for plan in PLANS[device]:
        try:
            program = build_program(text, plan.filled(NEUTRAL), device)
        except lw.PlanError:
            continue
        tried += 1
        np.testing.assert_array_equal(run(program.kernels, kernel, arrays, 5)[-1], wanted, str(plan))
    assert tried
    found = arrays[1].copy()
    kernel(a, found, grid=5)
    np.testing.assert_array_equal(found, wanted)

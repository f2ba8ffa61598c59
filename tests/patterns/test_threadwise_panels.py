"""Recurrences in panels of rounds: what is computed ahead, what is refused, and every kind of shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.errors import PlanError
from lanewise.ir.printer import print_kernel
from lanewise.launch.support import compile_kernel
from lanewise.passes import panels
from lanewise.pipeline import build_program
from lanewise.plan import NEUTRAL, Plan
from tests.patterns.panelled import CASES, Case, copies, forward, run_program

SHAPES = [(1, 1), (0, 3), (3, 0), (7, 5), (8, 16), (13, 9), (16, 4), (29, 17)]
PLANS = {
    "threads": Plan(block=32, panel=8),
    "points": Plan(block=32, across=8, rows=2, targets=2, panel=8),
    "tiles": Plan(block=32, across=8, rows=2, targets=4, tile=4, unroll=0, panel=8),
    "ahead": Plan(block=32, across=8, rows=1, targets=2, tile=4, prefetch="registers", panel=8),
}


def agree(case: Case, n: int, m: int, plan: Plan, seed: int = 3) -> int:
    arrays = case.make(np.random.default_rng(seed), n, m)
    compiled = case.kernel.compile(**arrays, grid=m)
    program = build_program(compiled.reference, plan.filled(NEUTRAL), "cuda")
    changed = copies(arrays)
    count = run_program(program.kernels, changed, compiled.environment)
    check(case, arrays, changed)
    return count


def check(case: Case, arrays: dict[str, Any], changed: dict[str, Any]) -> None:
    wide = arrays["l"].dtype == np.float64
    for name, expected in case.expect(**copies(arrays)).items():
        np.testing.assert_allclose(changed[name], expected, rtol=1e-10 if wide else 2e-4, atol=1e-10 if wide else 2e-4)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_recurrences_of_all_kinds(case: Case, name: str) -> None:
    if case.name == "rows" and PLANS[name].prefetch == "registers":
        pytest.skip("two loops")
    assert agree(case, 21, 6, PLANS[name]) == 2 * -(-(20 if case.name == "longest" else 21) // 8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_shapes(case: Case, shape: tuple[int, int]) -> None:
    agree(case, *shape, PLANS["points"])

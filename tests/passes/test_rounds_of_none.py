"""Loops that end before they begin have no rounds, by any plan: nothing is read, and nothing added."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.planning.plan import NEUTRAL, Plan
from tests.fuzz.texts import executed
from tests.patterns.reductions import reference, run

TEXT = """@lw.threadwise
def kernel(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], r: lw.Array2[lw.f32], n: lw.i32, m: lw.i32):
    s = {first}
    for k in range(m, n):
        {update}
    r[y, x] = s
"""
UPDATES = {
    "product": ("0.0", "s += a[y, k] * b[k, x]"),
    "smallest": ("5.0", "s = lw.min(s, a[y, k] + b[k, x])"),
    "row": ("0.0", "s += a[y, k]"),
    "numbers": ("0.0", "s += 1.0 + k"),
}
TILES = {"block": 32, "across": 8, "tile": 4, "unroll": 0}
PLANS = (
    Plan(),
    Plan(**TILES, rows=2, targets=2),
    Plan(**TILES, rows=4, prefetch="registers"),
    Plan(**TILES, targets=4, prefetch="async"),
    Plan(**TILES, targets=4, prefetch="async3"),
    Plan(block=32, slices=4, unroll=4),
    Plan(block=32, slices=4, unroll=2, parts=2),
    Plan(block=32, slices=32, unroll=4, tile=128),
    Plan(block=32, across=8, targets=2, rows=2),
)


@pytest.mark.parametrize("update", UPDATES)
def test_loops_that_end_before_they_begin(update: str) -> None:
    first, change = UPDATES[update]
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=size).astype(np.float32) for size in ((9, 3), (3, 9)))
    with executed(TEXT.format(first=first, update=change), f"none_{update}.py") as names:
        for n, m in ((-3, 0), (-9, 0), (2, 3), (0, 3), (0, 0), (3, 1)):
            arrays, ends = [a, b, np.full((9, 9), 7, np.float32)], {"n": np.int32(n), "m": np.int32(m)}
            naive = reference(names.kernel, arrays, (9, 9), **ends)
            wanted = run((naive,), names.kernel, arrays, (9, 9), **ends)[2]
            tried = 0
            for plan in PLANS:
                try:
                    program = build_program(naive, plan.filled(NEUTRAL), "cuda")
                except lw.PlanError:
                    continue
                tried += 1
                found = run(program.kernels, names.kernel, arrays, (9, 9), **ends)[2]
                np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=str((plan, ends)))
            assert tried > 2
            names.kernel(*arrays, n, m, grid=(9, 9))
            np.testing.assert_allclose(arrays[2], wanted, rtol=1e-5)

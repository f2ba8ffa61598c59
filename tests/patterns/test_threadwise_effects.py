"""Statements that change arrays, beside loops whose rounds threads share: each runs once for a point, whatever the
plan.

Written out: a statement before, between or behind the loops, the loops, and a plan. A plan is refused, or the kernels
for a GPU, thread by thread, leave what ordinary Python leaves, without a race.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import PlanError
from tests.patterns.reductions import reference, run
from tests.written import module

HEAD = (
    "def kernel(y: lw.index, a: lw.Array2[lw.i32], c: lw.Array1[lw.i32], d: lw.Array1[lw.i32], r: lw.Array1[lw.i32]):"
)
EFFECTS = {
    "none": "pass",
    "plain": "c[y] = c[y] + 1",
    "branch": "if y % 2 == 0: c[y] = c[y] + 1",
    "sides": "if y % 2 == 0: c[y] += 1\nelse: c[y] -= 2",
    "apart": "if y > 0:\n    if y > 1: d[y] = 3 * y",
    "rounds": "for i in range(3): c[y] = c[y] * 2 + i",
    "nested": "for i in range(3):\n    if i != y: c[y] += i",
    "until": "while c[y] < 6: c[y] += 2",
    "reads until": "n = 0\nwhile n < 6: n += d[y] * d[y] + 1\nd[y] = n",
    "kept": "v = c[y]\nc[y] = v + 1",
    "kept, branch": "v = c[y]\nif y != 1: c[y] = v + 1",
    "other": "d[y] = c[y]\nif y > 0: c[y] = 5",
    "forever": "while True:\n    v = d[y]\n    d[y] = v + 1\n    if v > 4: break\nc[y] = v",
    "stored": "c[y] = 7",
    "until, then": "v = 0\nwhile v < 6: v += d[y] * d[y] + 1",
}  # fmt: skip
LOOPS = {
    "sum": "s = 0\nfor k in range(a.shape[1]): s += a[y, k] * v\nr[y] = s",
    "writes": "for k in range(a.shape[1]): a[y, k] = a[y, k] + v",
    "two": "s = 0\nfor k in range(a.shape[1]): s += a[y, k] * v\nw = 0\nfor k in range(a.shape[1]): w += a[y, k] - s\nr[y] = w",
}
PLANS = (
    Plan(block=32, parts=3), Plan(block=64, slices=4, parts=2), Plan(block=64, slices=64), Plan(block=32, slices=32),
    Plan(block=64, slices=16, unroll=2), Plan(block=32, slices=2), Plan(block=32, targets=2), Plan(block=32, targets=2, tile=8),
)  # fmt: skip


def written(before: str, loops: str, behind: str) -> str:
    """The body of a kernel, indented."""
    lines = "\n".join(("v = 1 + y", EFFECTS[before], LOOPS[loops], EFFECTS[behind])).splitlines()
    return "\n    ".join((HEAD, *lines)) + "\n"


def arguments() -> tuple[np.ndarray[Any, Any], ...]:
    rng = np.random.default_rng(5)
    a = rng.integers(-9, 10, (5, 41)).astype(np.int32)
    c, d, r = np.arange(5, dtype=np.int32), np.arange(1, 6, dtype=np.int32), np.full(5, 77, np.int32)
    return a, c, d, r


def by_python(text: str) -> list[np.ndarray[Any, Any]]:
    function = module(text, "effects_python.py").kernel
    arrays = [x.copy() for x in arguments()]
    for y in range(5):
        function(y, *arrays)
    return arrays


def held(text: str) -> int:
    """Compare a program with ordinary Python, on every plan that fits: how many did."""
    kernel = lw.threadwise(module(text, "effects.py").kernel)
    wanted, before = by_python(text), reference(kernel, arguments(), 5)
    fitting = 0
    for plan in PLANS:
        try:
            program = build_program(before, plan.filled(NEUTRAL), "cuda")
        except PlanError:
            continue
        fitting += 1
        found = run(program.kernels, kernel, arguments(), 5)
        for name, one, other in zip("acdr", found, wanted, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{name} with {plan}\n{text}")
    return fitting


@pytest.mark.parametrize(
    ("before", "loops", "behind", "fitting"),
    [
        ("none", "sum", "none", 8), ("apart", "two", "none", 6), ("branch", "two", "none", 2), ("stored", "sum", "kept", 2),
        ("none", "sum", "forever", 4), ("none", "writes", "until", 4),
    ],
)  # fmt: skip
def test_some(before: str, loops: str, behind: str, fitting: int) -> None:
    assert held(written(before, loops, behind)) == fitting


@pytest.mark.slow
@pytest.mark.parametrize("before", EFFECTS)
@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize("behind", EFFECTS)
def test_all(before: str, loops: str, behind: str) -> None:
    held(written(before, loops, behind))


@pytest.mark.parametrize("plan", [Plan(block=64, slices=4), Plan(block=64, slices=1, parts=4)])
@pytest.mark.parametrize("before", ["plain", "branch", "rounds", "until", "kept"])
def test_refused(before: str, plan: Plan) -> None:
    kernel = lw.threadwise(module(written(before, "sum", "none"), "effects.py").kernel)
    with pytest.raises(
        PlanError, match=r"c is read (and|after it was) written.*threads that share a point would have to wait"
    ):
        build_program(reference(kernel, arguments(), 5), plan.filled(NEUTRAL), "cuda")

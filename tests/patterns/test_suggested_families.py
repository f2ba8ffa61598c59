"""Default plans of a GPU that are read off what neighbours read: however edges are written, wherever rows begin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.work import describe_work
from lanewise.language.target import CUDA, Machine
from lanewise.planning.plan import CompletePlan, Plan
from tests.fuzz.texts import executed
from tests.patterns.reductions import reference

HEAD = "@lw.threadwise\ndef kernel(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):\n"
LOOPS = "    s = 0.0\n    for v in range(3):\n        for u in range(3):\n{rounds}    c[y, x] = s\n"
EDGES = {
    "none": ["s += a[y + v, x + u]"],
    "test": ["p = y + v - 1", "q = x + u - 1", "if 0 <= p < a.shape[0] and 0 <= q < a.shape[1]:", "    s += a[p, q]"],
    "inline": ["if 0 <= y + v - 1 < a.shape[0] and 0 <= x + u - 1 < a.shape[1]:", "    s += a[y + v - 1, x + u - 1]"],
    "clamp": ["s += a[lw.clamp(y + v - 1, 0, a.shape[0] - 1), lw.clamp(x + u - 1, 0, a.shape[1] - 1)]"],
    "remainder": ["p = (y + v - 1 + a.shape[0]) % a.shape[0]", "s += a[p, (x + u - 1) % a.shape[1]]"],
}
POINTS = 4096 * 4096


def default(text: str, multiple: int) -> CompletePlan:
    with executed(text, "family.py") as names:
        arrays: list[Any] = [np.zeros((32, 32), np.float32) for _ in names.kernel.signature.arrays]
        work = describe_work(reference(names.kernel, arrays, (8, 8), multiple=multiple), POINTS, CUDA)
        return complete_plan(Plan(), Machine("cuda", 132), work.at({}, POINTS))


@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("edge", EDGES)
def test_windows_have_one_plan_whatever_is_done_at_edges(edge: str, multiple: int) -> None:
    rounds = "".join(f"            {line}\n" for line in EDGES[edge])
    plan = default(HEAD + LOOPS.format(rounds=rounds), multiple)
    plain = default(HEAD + LOOPS.format(rounds="            s += a[y + v, x + u]\n"), multiple)
    assert plan == plain
    assert plan.rows * plan.targets == 16


@pytest.mark.parametrize("e", ["2.0 * a[y, x]", "a[y, x] + a[y, x + 1]"])
def test_neighbours_of_a_warp_are_neighbours_where_rows_begin_anywhere(e: str) -> None:
    """Groups of four are for one access, which rows of odd lengths have not."""
    text = HEAD + f"    c[y, x] = {e}\n"
    assert default(text, 4).adjacent == 0
    assert default(text, 1).adjacent == 1


@pytest.mark.parametrize("step", [2, 3])
def test_steps_along_rows_have_several_points_of_a_thread(step: int) -> None:
    plan = default(HEAD + f"    c[y, x] = a[y, {step} * x] + a[y + 1, {step} * x + 1]\n", 4)
    assert plan.rows > 1
    assert plan.adjacent == 1

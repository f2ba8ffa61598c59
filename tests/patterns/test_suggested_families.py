"""Default plans of a GPU that are read off what neighbours read: however edges are written, wherever rows begin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.work import describe_work
from lanewise.language.target import CUDA, Machine
from lanewise.patterns.tables.names import extent_of
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
TESTED = ("test", "inline")
POINTS = 4096 * 4096


def default(text: str, multiple: int, grid: tuple[int, ...] = (), rank: int = 2) -> CompletePlan:
    """grid: where the counts of a call are known."""
    with executed(text, "family.py") as names:
        shape, points = (32,) * rank, int(np.prod(grid)) if grid else POINTS
        arrays: list[Any] = [np.zeros(shape, np.float32) for _ in names.kernel.signature.arrays]
        work = describe_work(reference(names.kernel, arrays, (8,) * rank, multiple=multiple), points, CUDA)
        counts = dict(zip(map(extent_of, names.kernel.signature.indices), grid, strict=False))
        return complete_plan(Plan(), Machine("cuda", 132), work.at(counts, points))


def window(edge: str, term: str = "{e}") -> str:
    lines = [line.replace("s += ", "e = ") for line in EDGES[edge]]
    added = [" " * (len(lines[-1]) - len(lines[-1].lstrip())) + "s += " + term.format(e="e")]
    return HEAD + LOOPS.format(rounds="".join(f"            {line}\n" for line in (*lines, *added)))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("edge", EDGES)
def test_windows_have_one_plan_whatever_is_done_at_edges(edge: str, multiple: int) -> None:
    rounds = "".join(f"            {line}\n" for line in EDGES[edge])
    plan = default(HEAD + LOOPS.format(rounds=rounds), multiple)
    plain = default(HEAD + LOOPS.format(rounds="            s += a[y + v, x + u]\n"), multiple)
    assert replace(plan, rows=4) == plain  # in which four rows take more registers than they save loads
    assert plan.rows * plan.targets == (8 if edge in TESTED else 16)


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


@pytest.mark.parametrize("edge", ["test", "inline", "clamp", "remainder"])
def test_edges_that_take_long_are_few_and_short(edge: str) -> None:
    """Blocks at an edge compute a thread's points one after the other: half as many of them."""
    plan, inside = default(window(edge), 4, (4096, 4096)), default(window("none"), 4, (4096, 4096))
    assert (plan.rows * plan.targets, inside.rows * inside.targets) == (8, 16)
    assert plan.block * plan.rows * plan.targets < inside.block * inside.rows * inside.targets


def test_edges_of_boxes_are_few_and_short() -> None:
    """Of three indices a thread has points one above the other, in both of its layers."""
    text = (
        "@lw.threadwise\ndef kernel(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):\n"
        "    s = 0.0\n    for w in range(3):\n        for v in range(3):\n            for u in range(3):\n"
        "                r, p, q = z + w - 1, y + v - 1, x + u - 1\n"
        "                if 0 <= r < a.shape[0] and 0 <= p < a.shape[1] and 0 <= q < a.shape[2]:\n"
        "                    s += a[r, p, q]\n    c[z, y, x] = s\n"
    )
    plan = default(text, 4, (256, 256, 256), rank=3)
    assert (plan.block, plan.down, plan.layers, plan.rows, plan.targets) == (128, 4, 2, 4, 1)


def test_edges_of_very_many_points_decide_nothing() -> None:
    for edge in EDGES:
        assert default(window(edge), 4, (1 << 14, 1 << 14)) == default(window(edge), 4)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("edge", EDGES)
def test_long_terms_decide_more_than_edges_and_rows_of_odd_lengths(edge: str, multiple: int) -> None:
    plan = default(window(edge, "{e} * lw.exp(({e} - 0.5) * (0.5 - {e}))"), multiple, (4096, 4096))
    assert (plan.rows, plan.targets, plan.adjacent) == (2 if edge in TESTED else 4, 4, 0)


PRODUCT = HEAD.replace("c:", "b: lw.Array2[lw.f32], c:") + (
    "    s = 0.0\n    for k in range(a.shape[1]):\n        {term}\n    c[y, x] = s\n"
)
TERMS = {
    "s += a[y, k] * b[k, x]": 16,
    "s = lw.max(s, a[y, k] + b[k, x])": 8,
    "s += (a[y, k] - b[k, x]) * (a[y, k] - b[k, x])": 8,
    "s += abs(a[y, k] - b[k, x])": 8,
}
BATCHED = PRODUCT.replace("(y:", "(z: lw.index, y:").replace("Array2", "Array3").replace("c[y", "c[z, y")
CHOSEN = "if a[y, k] * b[k, x] > s:\n            s = a[y, k] * b[k, x]"


@pytest.mark.parametrize("term", TERMS)
def test_rounds_of_a_tile_fit_the_instruction_cache(term: str) -> None:
    plan = default(PRODUCT.format(term=term), 4, (2048, 2048))
    assert (plan.rows, plan.targets, plan.tile) == (8, 8, TERMS[term])


def test_terms_that_a_branch_takes_have_fewer_points_of_a_thread() -> None:
    plan = default(PRODUCT.format(term=CHOSEN), 4, (2048, 2048))
    assert (plan.rows, plan.targets, plan.tile) == (4, 4, 16)
    plan = default(BATCHED.format(term=CHOSEN.replace("[", "[z, ")), 4, (6, 1024, 1024), rank=3)
    assert (plan.rows, plan.targets, plan.down) == (4, 4, 16)
    added = default(PRODUCT.format(term="if a[y, k] > 0.0:\n            s += b[k, x]"), 4, (2048, 2048))
    assert added.rows * added.targets == 64


def test_turned_batches_have_fewer_points_of_a_thread() -> None:
    text = BATCHED.format(term="s = lw.min(s, a[z, y, k] + b[z, k, x])").replace("c[z, y, x]", "c[z, x, y]")
    plan = default(text, 4, (6, 1024, 1024), rank=3)
    assert (plan.rows, plan.targets, plan.down) == (4, 4, 16)


def test_rounds_that_end_elsewhere_for_each_row_have_points_of_one_row() -> None:
    """A triangular product, in tiles; where each point of a row ends elsewhere, it has a thread."""
    triangular = PRODUCT.replace("range(a.shape[1])", "range(y + 1)").format(term="s += a[y, k] * b[k, x]")
    plan = default(triangular, 4, (2048, 2048))
    assert (plan.rows, plan.targets, plan.tile) == (8, 8, 8)
    assert default(triangular.replace("y + 1", "x + 1"), 4, (2048, 2048)).targets == 1


def test_strided_windows_of_channels_share_what_they_read() -> None:
    text = (
        "@lw.threadwise\ndef kernel(o: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], "
        "b: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):\n    s = 0.0\n    for k in range(4):\n"
        "        for u in range(3):\n            s += a[k, 2 * y, 2 * x + u] * b[o, k, u]\n    c[o, y, x] = s\n"
    )
    assert default(text, 4, (32, 362, 362), rank=3).layers == 4


@pytest.mark.parametrize(("columns", "points"), [(384, 64), (419, 16), (512, 64)])
def test_blocks_of_batches_are_no_emptier_than_they_have_to_be(columns: int, points: int) -> None:
    text = BATCHED.format(term="s = lw.max(s, a[z, y, k] + b[z, k, x])")
    plan = default(text, 4, (6, 1671, columns), rank=3)
    assert plan.rows * plan.targets == points


def test_windows_of_channels_leave_registers_for_sixteen_warps() -> None:
    text = (
        "@lw.threadwise\ndef kernel(o: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], "
        "b: lw.Array3[lw.f32], c: lw.Array3[lw.f32]):\n    s = 0.0\n    for k in range(a.shape[0]):\n"
        "        for u in range(3):\n            s += a[k, y, x + u] * b[o, k, u]\n    c[o, y, x] = s\n"
    )
    plan = default(text, 4, (8, 1448, 1448), rank=3)
    assert plan.layers == 8
    assert plan.block // 32 * plan.min_blocks == 16

"""Partitions of memory that blocks begin in, and rounds of tiles: what an order of blocks and a load ahead are for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.explanation import partitions
from lanewise.explanation.offline import compile_offline
from lanewise.explanation.partitions import AT_ONCE, PARTITIONS, PartitionLoad, partition_loads
from lanewise.explanation.timeline import Timeline
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import evaluate
from lanewise.ladders import compiler_kernels as naive
from lanewise.ladders.compiler_plans import naive_plan
from lanewise.language.types import I64
from lanewise.passes.points import merging

ORDERS = ("rows", "panels", "diagonal")


def loads(n: int, order: str) -> dict[str, PartitionLoad]:
    """Of the accesses of a transpose of n x n numbers, in blocks of 16 x 16."""
    subject = compile_offline(naive.transpose, n, "cuda", arch="sm_90", shapes={"a": (n, n), "c": (n, n)}).subject
    plan: Any = replace(naive_plan("cuda"), order=order)
    return {x.place: x for x in partition_loads(subject.reference, subject.environment, plan)}


def numbered(extents: list[int], order: Any) -> list[list[int]]:
    """The place of every block of one point each, by the statements that kernels compute it with."""
    indices = [f"i{d}" for d in range(len(extents))]
    nest: list[ir.Parallel] = [ir.Parallel(n, ir.Literal(e, I64), ()) for n, e in zip(indices, extents, strict=True)]
    counts: list[ir.Expression] = [ir.Literal(e, I64) for e in extents]
    numbers, extra = merging._numbers(tuple(nest), counts, order, I64)  # pyright: ignore[reportPrivateUsage]
    found: list[list[int]] = []
    for block in range(int(np.prod(extents))):
        env: dict[str, Any] = {merging.BLOCK: np.int64(block)}
        for s in extra:
            assert isinstance(s, ir.Assign)
            env[s.name] = evaluate(s.value, env)
        found.append([int(evaluate(n, env)) for n in numbers])
    return found


@given(st.lists(st.integers(1, 12), min_size=2, max_size=3), st.sampled_from(ORDERS))
def test_blocks_are_numbered_as_kernels_number_them(extents: list[int], order: str) -> None:
    """Every block has a place of its own, and the first ones are those whose loads are counted."""
    found = numbered(extents, order)
    assert len({tuple(x) for x in found}) == np.prod(extents)
    first = partitions._first_blocks(extents, [1] * len(extents), order)  # pyright: ignore[reportPrivateUsage]
    assert np.array(first).T.tolist() == found[:AT_ONCE]


@pytest.mark.parametrize(("height", "width"), [(64, 64), (40, 90), (90, 40)])
def test_blocks_along_a_diagonal_differ_in_both_indices(height: int, width: int) -> None:
    """Blocks that run at once need other rows and other columns each, which is what the order is for."""
    first = np.array(numbered([height, width], "diagonal")[:AT_ONCE])
    assert [len(set(first[:, d].tolist())) for d in range(2)] == [AT_ONCE, AT_ONCE]


def test_a_column_of_a_matrix_lies_in_one_partition() -> None:
    """A transpose writes rows that begin a multiple of all partitions apart; with another width, or along a
    diagonal, it does not."""
    in_rows, along = (loads(4096, order) for order in ("rows", "diagonal"))
    assert in_rows["c[x, y]"].unevenness == PARTITIONS
    assert in_rows["a[y, x]"].unevenness < 1.2
    assert along["c[x, y]"].unevenness < 1.2
    assert loads(4096 + 16, "rows")["c[x, y]"].unevenness < 1.5


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [256, 300])
def test_segments_are_those_that_blocks_touch(n: int, order: str) -> None:
    """Counted element by element, for every point of the first blocks."""
    found, wanted = loads(n, order), {"a[y, x]": [0] * PARTITIONS, "c[x, y]": [0] * PARTITIONS}
    for down, across in numbered([-(-n // 16)] * 2, order)[:AT_ONCE]:
        touched: dict[str, set[int]] = {"a[y, x]": set(), "c[x, y]": set()}
        for y in range(16 * down, min(n, 16 * down + 16)):
            for x in range(16 * across, min(n, 16 * across + 16)):
                touched["a[y, x]"].add(4 * (n * y + x) // 64)
                touched["c[x, y]"].add(4 * (n * x + y) // 64)
        for place, segments in touched.items():
            for s in segments:
                wanted[place][64 * s // 256 % PARTITIONS] += 1
    assert {place: list(load.segments) for place, load in found.items()} == wanted


def test_rounds_of_tiles() -> None:
    """The first load and the last round are alone, all else is as long as the longer of the two."""
    t = Timeline(10, 2.0, 3.0)
    assert (t.in_turn, t.ahead) == (50.0, 2 + 9 * 3 + 3)
    assert t.drawn() == ("LLLLCCCCCC|LLLLCCCCCC|LLLLCCCCCC|LLLLCCCCCC ...", "LLLL|BBBBCC|BBBBCC|BBBBCC ...")
    t = Timeline(2, 3.0, 1.0)
    assert (t.in_turn, t.ahead) == (8.0, 3 + 3 + 1)
    assert t.drawn() == ("LLLLLLCC|LLLLLLCC", "LLLLLL|BBLLLL|CC")


@given(st.integers(2, 100), st.floats(1e-9, 1.0), st.floats(1e-9, 1.0))
def test_loading_ahead_saves_at_most_the_shorter_part(rounds: int, load: float, compute: float) -> None:
    t = Timeline(rounds, load, compute)
    assert t.ahead <= t.in_turn * (1 + 1e-9)
    assert t.in_turn - t.ahead == pytest.approx((rounds - 1) * min(load, compute))

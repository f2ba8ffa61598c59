"""The shape of a tree by halves follows from the number of elements."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.search.tree.shape import TreeShape

COUNTS = (0, 1, 2, 7, 8, 9, 16, 17, 63, 64, 65, 1000)


@pytest.mark.parametrize("count", COUNTS)
def test_a_node_is_followed_by_all_below_it(count: int) -> None:
    shape = TreeShape(count, leaf=8)
    table = shape.table
    assert len(table) == shape.nodes == max(2 * -(-count // 8) - 1, 0)
    for node, (first, leaves) in enumerate(table):
        if leaves > 1:
            left, right = node + 1, node + 2 * ((leaves + 1) // 2)
            assert tuple(table[left]) == (first, (leaves + 1) // 2)
            assert tuple(table[right]) == (first + (leaves + 1) // 2, leaves // 2)
        link = node + 2 * leaves - 1
        inside = table[node:link]
        assert np.all((inside[:, 0] >= first) & (inside.sum(axis=1) <= first + leaves))
        assert link == shape.nodes or table[link, 0] == first + leaves


@pytest.mark.parametrize("count", COUNTS)
def test_heights_list_children_before_their_parents(count: int) -> None:
    shape = TreeShape(count, leaf=8)
    nodes, starts = shape.heights
    place = np.empty(shape.nodes, np.int64)
    place[nodes] = np.arange(shape.nodes)
    assert sorted(nodes) == list(range(shape.nodes))
    assert starts[0] == 0
    assert starts[-1] == shape.nodes
    assert len(starts) == shape.top + 2
    for h in range(shape.top + 1):
        for node in nodes[starts[h] : starts[h + 1]]:
            leaves = shape.table[node, 1]
            assert (leaves == 1) == (h == 0)
            if leaves > 1:
                left, right = node + 1, node + 2 * ((leaves + 1) // 2)
                assert place[left] < starts[h]
                assert place[right] < starts[h]
    assert np.array_equal(shape.table[nodes[: shape.leaves], 0], np.arange(shape.leaves))


def test_leaves_are_full_but_the_last_one() -> None:
    shape = TreeShape(1000, leaf=32)
    leaves = shape.table[shape.table[:, 1] == 1]
    begin, end = shape.places(leaves[:, 0], leaves[:, 1])
    assert np.array_equal(end[:-1] - begin[:-1], np.full(31, 32))
    assert (begin[-1], end[-1]) == (992, 1000)


def test_more_groups_than_have_a_number() -> None:
    assert TreeShape(2**30, 1).nodes == 2**31 - 1
    with pytest.raises(lw.ArgumentError, match=r"of 1,073,741,825 elements in leaves of 1 has 2,147,483,649 groups"):
        TreeShape(2**30 + 1, 1)

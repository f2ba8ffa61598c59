"""The shape of a tree by halves, which follows from the number of elements alone.

Every leaf has `leaf` elements but the last one. A node of m leaves has a left child of ceil(m / 2)
of them and a right child of the rest. Nodes lie in the order in which a walk meets them: node n,
then all below it; its children are n + 1 and n + 2 ceil(m / 2), and its subtree ends before
n + 2 m - 1. So 2 m - 1 nodes belong to m leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lanewise.ir.names import own
from lanewise.language.record import Leaf
from lanewise.language.types import I32
from lanewise.layouts import AoS, Arrangement
from lanewise.support.errors import ArgumentError

MOST_NODES = 2**31 - 1  # int32
LEAF = 32  # elements: a warp of targets
TREE = own("tree")  # of each node its first leaf, and how many it has
HEIGHTS = own("tree.heights")  # the nodes, children before parents
PARENTS = own("tree.parents")  # of each node; the root is its own

Whole = NDArray[np.int32]


@dataclass(frozen=True)
class TreeShape:
    """The shape of the tree of `count` elements."""

    count: int
    leaf: int = LEAF

    def __post_init__(self) -> None:
        if self.nodes > MOST_NODES:
            raise ArgumentError(
                f"a tree of {self.count:,} elements in leaves of {self.leaf} has {self.nodes:,} "
                f"groups, and at most {MOST_NODES:,} have a number; choose larger leaves"
            )

    @property
    def leaves(self) -> int:
        return -(-self.count // self.leaf)

    @property
    def nodes(self) -> int:
        return max(2 * self.leaves - 1, 0)

    @property
    def top(self) -> int:
        """The height of the root: leaves have height 0, parents one more than their left child."""
        return max(self.leaves - 1, 0).bit_length()

    @cached_property
    def table(self) -> Whole:
        """Shape (nodes, 2): of each node its first leaf, and how many leaves it has."""
        table = np.empty((self.nodes, 2), np.int32)
        for nodes, first, leaves in self.levels():
            table[nodes, 0], table[nodes, 1] = first, leaves
        return table

    @cached_property
    def heights(self) -> tuple[Whole, tuple[int, ...]]:
        """All nodes, children before parents and the leaves first, and where each height begins
        among them; the last number is that of all nodes.
        """
        height = _heights(self.table[:, 1])
        counts = np.bincount(height, minlength=self.top + 1)
        order = np.argsort(height, kind="stable").astype(np.int32)
        return order, (0, *(int(n) for n in np.cumsum(counts)))

    @cached_property
    def parents(self) -> Whole:
        """Of each node its parent; of the root itself."""
        parents = np.zeros(self.nodes, np.int32)
        for nodes, _, leaves in self.levels():
            above = nodes[leaves > 1]
            parents[above + 1] = above
            parents[above + 2 * ((leaves[leaves > 1] + 1) // 2)] = above
        return parents

    def levels(self) -> Iterator[tuple[Whole, Whole, Whole]]:
        """From the root down: the nodes of a level, their first leaves, how many they have."""
        if not self.count:
            return
        node, first = np.zeros(1, np.int32), np.zeros(1, np.int32)
        leaves = np.full(1, self.leaves, np.int32)
        while len(node):
            yield node, first, leaves
            parents = leaves > 1
            node, first, leaves = node[parents], first[parents], leaves[parents]
            left, right = (leaves + 1) // 2, leaves // 2
            node, first, leaves = (
                np.stack(pair, axis=1).reshape(-1)
                for pair in (
                    (node + 1, node + 2 * left),
                    (first, first + left),
                    (left, right),
                )
            )

    def places(self, first: Whole, leaves: Whole) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first sorted place of nodes, and the one behind their last."""
        begin = first.astype(np.int64) * self.leaf
        end = (first.astype(np.int64) + leaves) * self.leaf
        return begin, np.minimum(end, self.count)


def _heights(leaves: Whole) -> Whole:
    """How high nodes of so many leaves are: the number of bits of one less."""
    return np.frexp((leaves - 1).astype(np.float64))[1].astype(np.int32)


def tree_arrangement() -> Arrangement:
    """How the table lies in memory: one load a node."""
    return AoS().arrange((Leaf("first", I32), Leaf("leaves", I32)))

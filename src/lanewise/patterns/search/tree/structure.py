"""What a call over a tree has in memory: the shape of the tree, and the orders of its elements."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lanewise.ir.names import own
from lanewise.language.types import I32, Scalar
from lanewise.launch.arguments import bind_value_array, values_arrangement
from lanewise.launch.support import index_type
from lanewise.launch.task_list import BoundArray
from lanewise.launch.tasks import Buffer, Primitive, Role
from lanewise.layouts import Arrangement
from lanewise.patterns.search.base import (
    ORDER,
    POSITIONS,
    TARGET_POSITIONS,
    Statistics,
    Structure,
)
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.tree.arguments import (
    ACCURACY,
    ENTRIES,
    ENTRY_COUNT,
    LEAVES,
    NODES,
    TARGET_ORDER,
    THETA,
)
from lanewise.patterns.search.tree.order import made_order
from lanewise.patterns.search.tree.pairs import slices_of
from lanewise.patterns.search.tree.shape import (
    HEIGHTS,
    PARENTS,
    TREE,
    TreeShape,
    tree_arrangement,
)
from lanewise.runtime.memory import Pieces, PlannedPieces, on
from lanewise.support.numerals import counted

# of the accuracy that a group may take, which covers all that a target sees: most errors are
# smaller than their estimate. With it 99 % of the results of a sheet of 1e5, where errors have one
# sign, were at 0.4 to 0.94 of the accuracy, and those of cubes and clusters at 0.1 to 0.3 (order 2
# to 5, 1e-4 to 1e-2).
SHARE = 2.5
STEPS = 32  # of a loop, between two orders: a graph holds so many


class TreeStructure(Structure):
    """The tree of a call, and the order of targets that are other elements.

    described: what is searched, in a few words. accuracy: of results, by estimates; None: groups
    are far by their angle alone. pairs: groups of sources meet groups of targets.
    """

    every: ClassVar[int] = STEPS

    def __init__(
        self,
        described: str,
        theta: float,
        accuracy: float | None,
        terms: int,
        leaf: int,
        targets: Points,
        sources: Points,
        *,
        pairs: bool = False,
    ) -> None:
        self._described, self._theta, self.terms = described, theta, terms
        self.accuracy, self.pairs = accuracy, pairs
        self._sources = sources
        self.shape = TreeShape(sources.count, leaf)
        self._order = made_order(sources)
        self._target_order = None if targets is sources else made_order(targets)
        nodes, self._starts = self.shape.heights
        self._tables = {TREE: self.shape.table, HEIGHTS: nodes}
        if pairs:
            self._tables[PARENTS] = self.shape.parents
        sizes = {n: table.nbytes for n, table in self._tables.items()}
        # no method: the memory of a tree is given back with the last reference to it
        fill = partial(_fill, self._tables, sources.device)
        self._memory = PlannedPieces(sources.device, sizes, "the shape of a tree", fill)

    @property
    def planned(self) -> tuple[PlannedPieces, ...]:
        orders = () if self._target_order is None else self._target_order.planned
        return (*self._order.planned, *orders, self._memory)

    @property
    def targets_ordered(self) -> bool:
        return self._target_order is not None

    @property
    def order(self) -> Any:
        return self._order.order

    @property
    def target_order(self) -> Any:
        return None if self._target_order is None else self._target_order.order

    @property
    def arrays(self) -> Mapping[str, BoundArray]:
        numbers = (n for n in self._tables if n != TREE)
        return {
            TREE: BoundArray(self._memory[TREE], tree_arrangement(), self.shape.nodes),
            **{n: bind_value_array(self._memory[n].view("int32"), I32) for n in numbers},
        }

    @property
    def arrangements(self) -> Mapping[str, Arrangement]:
        numbers = dict.fromkeys(self._tables, values_arrangement(I32))
        return {**numbers, TREE: tree_arrangement()}

    @property
    def uniforms(self) -> Mapping[str, Any]:
        real = self._sources.precision.dtype.type
        values: dict[str, Any] = {LEAVES: self.shape.leaves, NODES: self.shape.nodes}
        values[THETA] = real(self._theta)
        if self.accuracy is not None:
            values[ACCURACY] = real(SHARE * self.accuracy)
            values[ENTRY_COUNT] = ENTRIES
        for height in range(self.shape.top + 1):
            first, count, threads = height_numbers(height)
            nodes = self._starts[height + 1] - self._starts[height]
            values[first], values[count] = self._starts[height], nodes
            if self.pairs:
                values[height_slices(height)] = slices = self.slices(height)
                values[threads] = nodes * slices
        return values

    def slices(self, height: int) -> int:
        """How many threads share a node of pairs of groups."""
        return slices_of(height, self.shape.top, index_type(self._sources.device))

    def kind(self, index: Scalar) -> Hashable:
        return index, self.shape.leaf, self.shape.top

    @property
    def settled(self) -> bool:
        return True  # what follows positions is filled by the tasks

    def tasks(self) -> tuple[Primitive, ...]:
        orders = [(self._order, POSITIONS, ORDER)]
        if self._target_order is not None:
            orders.append((self._target_order, TARGET_POSITIONS, TARGET_ORDER))
        return tuple(t for o, positions, order in orders for t in o.tasks(positions, order))

    def buffers(self) -> Mapping[str, Buffer]:
        return {n: replace(b, role=Role.KEPT) for n, b in super().buffers().items()}

    def statistics(self) -> Statistics:
        s = self.shape
        idle = s.leaves * s.leaf - s.count
        least = min(s.leaf - idle, s.count)
        return Statistics(s.leaves, s.leaves, least, min(s.leaf, s.count), s.count / s.leaves, idle)

    def describe(self) -> str:
        s = self.shape
        leaves, groups = counted(s.leaves, "leaf", "leaves"), counted(s.nodes, "group", "groups")
        return f"{self._described}; {leaves}, {groups}, {counted(s.top + 1, 'level', 'levels')}"


def height_numbers(height: int) -> tuple[str, str, str]:
    """The numbers of a call that say which nodes have this height, and how many threads share
    them.
    """
    of = f"height{height}"
    return own(f"{of}.first"), own(f"{of}.count"), own(f"{of}.threads")


def height_slices(height: int) -> str:
    """The number of a call that says how many threads share one of these nodes."""
    return own(f"height{height}.slices")


def _fill(tables: Mapping[str, NDArray[np.int32]], device: str, memory: Pieces) -> None:
    """The shape follows from the number of sources."""
    for name, table in tables.items():
        _copy(table, memory[name], device)


def _copy(values: NDArray[np.int32], to: Any, device: str) -> None:
    """Put these numbers into bytes of a device."""
    source = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    if isinstance(to, np.ndarray):
        to[:] = source
        return
    with on(device):
        to.set(source)

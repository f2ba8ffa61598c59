"""What a dynamic grid builds: a tree of boxes along a curve, or the leaves of one of the thesis's orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanewise.launch.arguments import bind_value_array
from lanewise.launch.executable import BoundArray
from lanewise.patterns.search.base import Launches, Search, Statistics, Structure, Walk
from lanewise.patterns.search.box_expressions import BOXES, box_uniforms
from lanewise.patterns.search.builders.curve import device_curve
from lanewise.patterns.search.builders.curve_host import HostCurve
from lanewise.patterns.search.builders.ordering import Recursive, idle_threads
from lanewise.patterns.search.builders.parts import HostParts, division_arrangement
from lanewise.patterns.search.builders.tree import fitting_leaf
from lanewise.patterns.search.leaf_walk import DIVISIONS, INFO, LISTED_CELLS, LISTS, STARTS, How, LeafWalk
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.tree_walk import LEAVES, NODES, SOURCES, TOP, Begin, TreeWalk
from lanewise.patterns.search.worlds import Periodic
from lanewise.target import is_gpu
from lanewise.types import I32, Scalar

# Counted for a million elements, seven nearest within a radius that two lie in, on average, and 200 where they are crowded.
FILL = 3  # sources that are met first, for each that the list takes: a bound that is tight saves more than they cost
WAITING = 4  # leaves of a GPU's walk: a warp tests 136 boxes (267 where elements are crowded), with one leaf 245 (465)


def waiting_leaves(index: Scalar) -> int:
    """How many leaves a walk finds before it looks at their sources: on a CPU there are no other lanes to wait for."""
    return WAITING if index == I32 else 1


class CurveGrid(Structure):
    """Leaves of exactly `leaf` elements along a Hilbert curve, built where the sources are."""

    def __init__(self, search: Search, sources: Points, leaf: int) -> None:
        self._search, self._sources = search, sources
        make = device_curve if is_gpu(sources.device) else HostCurve
        self._built = make(sources, search.world, fitting_leaf(sources.count, leaf, sources.precision))

    @property
    def order(self) -> Any:
        return self._built.order

    @property
    def arrays(self) -> Mapping[str, BoundArray]:
        return {BOXES: BoundArray(self._built.nodes, self._built.arrangement, self._built.tree.nodes)}

    @property
    def uniforms(self) -> Mapping[str, Any]:
        tree = self._built.tree
        values = {NODES: tree.nodes, SOURCES: tree.count, LEAVES: tree.levels[0], TOP: len(tree.levels) - 1}
        return {**values, **box_uniforms(self._search.world, self._sources.precision)}

    def walk(self, index: Scalar) -> Walk:
        s, search, leaf = self._sources, self._search, self._built.tree.leaf
        begin: Begin = "root" if search.k is None else "nearest" if search.radius is None else "own"
        together = -(-FILL * ((search.k or 0) + 1) // leaf)
        periodic = isinstance(search.world, Periodic)
        return TreeWalk(
            index, s.precision, s.dimension, leaf, periodic, begin, together, waiting_leaves(index)
        )  # fmt: skip

    @property
    def settled(self) -> bool:
        return True  # everything that follows positions is filled by the launches

    def launches(self) -> Launches:
        return self._built.launches()

    def statistics(self) -> Statistics:
        tree = self._built.tree
        leaves = tree.levels[0]
        idle = leaves * tree.leaf - tree.count
        return Statistics(leaves, leaves, tree.leaf - idle, min(tree.leaf, tree.count), tree.count / leaves, idle)

    def describe(self) -> str:
        tree = self._built.tree
        shape = f"{tree.levels[0]:,} leaves of {tree.leaf}, {tree.nodes:,} boxes in {len(tree.levels)} levels"
        return f"{self._search.describe()}; {shape}"


class LeafGrid(Structure):
    """Leaves of at most `leaf` elements in one of the thesis's orders, built on the host."""

    def __init__(self, search: Search, sources: Points, order: Recursive, leaf: int, how: How) -> None:
        self._search, self._sources, self._order, self._leaf = search, sources, order, leaf
        self._how: How = how
        self._built = HostParts(sources, search.world, order, leaf, search.radius if how == "listed" else None)

    @property
    def order(self) -> Any:
        return self._built.order

    @property
    def arrays(self) -> Mapping[str, BoundArray]:
        b, count = self._built, self._sources.count
        arrays = {
            BOXES: BoundArray(b.boxes.device, b.arrangement, count),
            STARTS: bind_value_array(b.starts.device.view("int32"), I32),
            INFO: bind_value_array(b.info.device.view("int32"), I32),
        }
        if self._how == "listed":
            arrays[DIVISIONS] = BoundArray(b.divisions.device, division_arrangement(self._sources.precision), count)
            arrays[LISTS] = bind_value_array(b.lists.device.view("int32"), I32)
        return arrays

    @property
    def uniforms(self) -> Mapping[str, Any]:
        listed = {LISTED_CELLS: self._built.lists_length} if self._how == "listed" else {}
        return {**listed, **box_uniforms(self._search.world, self._sources.precision)}

    def walk(self, index: Scalar) -> Walk:
        s, periodic = self._sources, isinstance(self._search.world, Periodic)
        return LeafWalk(index, s.precision, s.dimension, periodic, self._order != "3-D", self._how)

    @property
    def settled(self) -> bool:
        return True  # everything that follows positions is filled by the launches

    def launches(self) -> Launches:
        return (self._built.build,)

    @property
    def in_graphs(self) -> bool:
        return False

    def statistics(self) -> Statistics:
        members = self._built.members()
        idle = idle_threads(members, self._leaf).idle
        leaves = len(members)
        return Statistics(leaves, leaves, int(members.min()), int(members.max()), float(members.mean()), idle)

    def describe(self) -> str:
        return f"{self._search.describe()}; at most {self._leaf} in a leaf"

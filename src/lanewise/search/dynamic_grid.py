"""Dynamic grid: leaves with bounding boxes that follow the elements, wherever they are.

`order="curve"` puts elements in the order of a Hilbert curve, on the device, and every `leaf` consecutive ones are a leaf: all are full but
the last one. A tree of boxes above them is walked without a stack. The size of the world, far elements and crowds do not matter to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lanewise.errors import ArgumentError
from lanewise.runtime.executable import Bound, device_kind
from lanewise.search.base import Launches, Search, Statistics, Structure, Walk, check_sources, radius2
from lanewise.search.box_expressions import BOXES, box_uniforms
from lanewise.search.build.curve import device_curve
from lanewise.search.build.curve_device import BOX_THREADS
from lanewise.search.build.curve_host import HostCurve
from lanewise.search.build.tree import fitting_leaf
from lanewise.search.points import Points
from lanewise.search.tree_walk import LEAVES, NODES, SOURCES, TOP, Begin, TreeWalk
from lanewise.search.worlds import Periodic
from lanewise.types import Scalar

Order = Literal["curve"]
ORDERS = ("curve",)
CURVE_LEAF = 8  # elements: fewest boxes and elements together for a handful of neighbours
FILL = 2  # sources that are met first, for each that the list takes: a bound that is tight saves more than they cost
THREADS = 128  # a block of the thesis, one for each leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicGrid(Search):
    """Leaves of neighbouring elements.

    order: how elements become leaves. leaf: elements a leaf, a power of two up to 512 (None: 8).
    """

    order: Order = "curve"
    leaf: int | None = None

    def __post_init__(self) -> None:
        super(DynamicGrid, self).__post_init__()
        if self.radius is None and self.k is None:
            raise ArgumentError("DynamicGrid(): wanted a radius, or k nearest sources, or both")
        if self.order not in ORDERS:
            raise ArgumentError(f"DynamicGrid(order={self.order!r}): wanted {' or '.join(map(repr, ORDERS))}")
        _check_leaf(self.order, self.leaf)

    def describe(self) -> str:
        return f"dynamic grid along a curve: {self.found()}"

    def make(self, sources: Points) -> Structure:
        check_sources(self, sources)
        radius2(self, sources.precision)
        return _CurveGrid(self, sources)


def _check_leaf(order: str, leaf: Any) -> None:
    if leaf is None:
        return
    whole = isinstance(leaf, int) and not isinstance(leaf, bool) and leaf >= 1
    if not whole or leaf > BOX_THREADS or leaf & (leaf - 1):
        raise ArgumentError(
            f"DynamicGrid(order={order!r}, leaf={leaf!r}): wanted a power of two from 1 to {BOX_THREADS}"
        )


class _CurveGrid(Structure):
    def __init__(self, search: DynamicGrid, sources: Points) -> None:
        self._search, self._sources = search, sources
        leaf = fitting_leaf(sources.count, search.leaf or CURVE_LEAF, sources.precision)
        make = device_curve if device_kind(sources.device) == "cuda" else HostCurve
        self._built = make(sources, search.world, leaf)

    @property
    def order(self) -> Any:
        return self._built.order

    @property
    def arrays(self) -> Mapping[str, Bound]:
        return {BOXES: Bound(self._built.nodes, self._built.arrangement, self._built.tree.nodes)}

    @property
    def uniforms(self) -> Mapping[str, Any]:
        tree = self._built.tree
        values: dict[str, Any] = {
            NODES: tree.nodes,
            SOURCES: tree.count,
            LEAVES: tree.levels[0],
            TOP: len(tree.levels) - 1,
        }
        return values | dict(box_uniforms(self._search.world, self._sources.precision))

    def walk(self, index: Scalar) -> Walk:
        s, search, leaf = self._sources, self._search, self._built.tree.leaf
        begin: Begin = "root" if search.k is None else "nearest" if search.radius is None else "own"
        together = -(-FILL * ((search.k or 0) + 1) // leaf)
        periodic = isinstance(search.world, Periodic)
        return TreeWalk(index, s.precision, s.dimension, leaf, periodic, begin, max(1, together))

    def launches(self) -> Launches:
        return self._built.launches()

    def statistics(self) -> Statistics:
        count, leaf = self._sources.count, self._built.tree.leaf
        leaves = self._built.tree.levels[0]
        last = count - (leaves - 1) * leaf
        return Statistics(leaves, leaves, last, min(leaf, count), count / leaves, leaves * leaf - count)

    def describe(self) -> str:
        tree = self._built.tree
        return f"{self._search.describe()}; {tree.levels[0]:,} leaves of {tree.leaf}, {tree.nodes:,} boxes in {len(tree.levels)} levels"

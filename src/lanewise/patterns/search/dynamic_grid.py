"""Dynamic grid: leaves of neighbouring elements, with bounding boxes that follow them wherever they are.

`order="curve"` puts elements in the order of a Hilbert curve, on their device, and every `leaf` consecutive ones are a leaf: all
are full but the last one. A tree of boxes above them is walked without a stack. The size of the world, far elements and crowds do
not matter to it. The other orders are the thesis's (J. Breitbart, chapter 7), built on the host: blocks of a sort along x, parts of a
recursion along x, and parts of one along all axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from lanewise.attributes import frozen
from lanewise.checks import shown
from lanewise.errors import ArgumentError
from lanewise.patterns.search.base import Search, Structure, check_sources, radius2
from lanewise.patterns.search.builders.curve_device import BOX_THREADS
from lanewise.patterns.search.dynamic_structures import CurveGrid, LeafGrid
from lanewise.patterns.search.leaf_walk import How
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.worlds import Periodic

Order = Literal["curve", "sort", "1-D", "3-D"]
Leaves = Literal["all", "around"]
CURVE_LEAF = 8  # elements: fewest boxes and elements together for a handful of neighbours
THESIS_LEAF = 128  # its threads a block


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicGrid(Search):
    """Leaves with boxes.

    order: how elements become leaves. leaf: elements in one; for "curve" a power of two up to 512 (None: 8, larger when boxes would be
    too many to number), else at most so many (None: 128). leaves: which boxes a target of the other orders looks at, "all" or
    those "around" it; None: as in the thesis, all for "3-D", those around for slices (all of them in a periodic world).
    """

    order: Order = "curve"
    leaf: int | None = None
    leaves: Leaves | None = None

    def __post_init__(self) -> None:
        super(DynamicGrid, self).__post_init__()
        if self.radius is None and self.k is None:
            raise ArgumentError("DynamicGrid(): wanted a radius, or k nearest sources, or both")
        order, leaves = cast(Any, self.order), cast(Any, self.leaves)
        if not isinstance(order, str) or order not in get_args(Order):
            known = ", ".join(map(repr, get_args(Order)))
            raise ArgumentError(f"DynamicGrid(order={shown(order)}): wanted one of {known}")
        if leaves is not None and (not isinstance(leaves, str) or leaves not in get_args(Leaves)):
            raise ArgumentError(f"DynamicGrid(leaves={shown(leaves)}): wanted 'all' or 'around'")
        _check_leaf(self.order, self.leaf)
        self._check_leaves()

    def _check_leaves(self) -> None:
        head = f"DynamicGrid(order={self.order!r}, leaves={self.leaves!r})"
        if self.leaves is not None and self.order == "curve":
            raise ArgumentError(f"{head}: the boxes along a curve are a tree; leave out leaves")
        if self.leaves != "around":
            return
        if isinstance(self.world, Periodic):
            raise ArgumentError(
                f"{head}: in a periodic world every box has images; wanted leaves='all' or order='curve'"
            )
        if self.order == "3-D" and self.radius is None:
            raise ArgumentError(
                f"{head}: without a radius nothing says how far around; wanted a radius or leaves='all'"
            )

    def describe(self) -> str:
        kinds = {
            "curve": "along a curve",
            "sort": "sorted along x",
            "1-D": "ordered along x",
            "3-D": "ordered along all axes",
        }
        looks = {"all": ", all leaves looked at", "around": ", leaves around looked at", None: ""}[self.leaves]
        return f"dynamic grid {kinds[self.order]}{looks}: {self.found()}"

    def make(self, sources: Points) -> Structure:
        check_sources(self, sources)
        radius2(self, sources.precision)
        if self.order == "curve":
            return CurveGrid(self, sources, self.leaf or CURVE_LEAF)
        return LeafGrid(self, sources, self.order, self.leaf or THESIS_LEAF, self._how())

    def _how(self) -> How:
        slices = self.order != "3-D"
        if self.leaves == "all" or (self.leaves is None and (not slices or isinstance(self.world, Periodic))):
            return "all"
        return "range" if slices else "listed"


def _check_leaf(order: str, leaf: Any) -> None:
    if leaf is None:
        return
    whole = isinstance(leaf, int) and not isinstance(leaf, bool) and leaf >= 1
    if order == "curve" and (not whole or leaf > BOX_THREADS or leaf & (leaf - 1)):
        raise ArgumentError(
            f"DynamicGrid(order='curve', leaf={shown(leaf)}): wanted a power of two from 1 to {BOX_THREADS}"
        )
    if not whole:
        raise ArgumentError(f"DynamicGrid(order={order!r}, leaf={shown(leaf)}): wanted a whole number from 1 on")

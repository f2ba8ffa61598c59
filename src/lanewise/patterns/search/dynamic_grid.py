"""Dynamic grid: leaves of neighbouring elements, with bounding boxes that follow them wherever they
are.

`order="curve"` puts elements in the order of a Hilbert curve, on their device, and every `leaf`
consecutive ones are a leaf: all are full but the last one. A tree of boxes above them is walked
without a stack. The size of the world, far elements and crowds do not matter to it. The other
orders are the thesis's (J. Breitbart, chapter 7), built on the host: blocks of a sort along x,
parts of a recursion along x, and parts of one along all axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from lanewise.language.target import WARP, target_of
from lanewise.language.types import I32, Scalar
from lanewise.launch.arguments import bind_value_array, values_arrangement
from lanewise.launch.task_list import BoundArray
from lanewise.launch.tasks import Primitive
from lanewise.layouts import Arrangement
from lanewise.patterns.search.base import (
    Search,
    Statistics,
    Walk,
    Walked,
    check_sources,
    radius2,
)
from lanewise.patterns.search.box_expressions import BOXES, box_uniforms
from lanewise.patterns.search.builders.curve import device_curve
from lanewise.patterns.search.builders.curve_host import HostCurve
from lanewise.patterns.search.builders.ordering import Recursive, idle_threads
from lanewise.patterns.search.builders.parts import HostParts, division_arrangement
from lanewise.patterns.search.builders.tree import fitting_leaf
from lanewise.patterns.search.leaf_walk import (
    DIVISIONS,
    INFO,
    LISTED_CELLS,
    LISTS,
    STARTS,
    How,
    LeafWalk,
)
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.tree_walk import LEAVES, NODES, SOURCES, TOP, Begin, TreeWalk
from lanewise.patterns.search.worlds import Periodic
from lanewise.primitives.curve_text import BOX_THREADS
from lanewise.runtime.memory import PlannedPieces
from lanewise.support.attributes import frozen
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError
from lanewise.support.numerals import counted

Order = Literal["curve", "sort", "1-D", "3-D"]
Leaves = Literal["all", "around"]
CURVE_LEAF = 8  # elements: fewest boxes and elements together for a handful of neighbours
THESIS_LEAF = 128  # its threads per block


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicGrid(Search):
    """Boxes of neighbouring sources.

    order: how elements become leaves. leaf: elements in one; for "curve" a power of two up to 512
    (None: 8, larger when boxes would be too many to number), else at most that many (None: 128).
    leaves: which boxes a target checks with the other orders, "all" or those "around" it; None: as
    in the thesis, all for "3-D", those around for slices (all in a periodic world).
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
            orders = ", ".join(map(repr, get_args(Order)))
            raise ArgumentError(f"DynamicGrid(order={shown(order)}): wanted one of {orders}")
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
                f"{head}: in a periodic world every box has images; wanted leaves='all' or "
                "order='curve'"
            )
        if self.order == "3-D" and self.radius is None:
            raise ArgumentError(
                f"{head}: without a radius nothing says how far around; wanted a radius or "
                "leaves='all'"
            )

    def describe(self) -> str:
        kinds = {
            "curve": "along a curve",
            "sort": "sorted along x",
            "1-D": "ordered along x",
            "3-D": "ordered along all axes",
        }
        looks = {
            "all": ", all leaves are tested",
            "around": ", leaves around are tested",
            None: "",
        }[self.leaves]
        return f"dynamic grid {kinds[self.order]}{looks}: {self.in_words()}"

    def make(self, sources: Points) -> Walked:
        check_sources(self, sources)
        radius2(self, sources.precision)
        if self.order == "curve":
            return CurveGrid(self, sources, self.leaf or CURVE_LEAF)
        return LeafGrid(self, sources, self.order, self.leaf or THESIS_LEAF, self._how())

    def _how(self) -> How:
        slices = self.order != "3-D"
        if self.leaves == "all" or (
            self.leaves is None and (not slices or isinstance(self.world, Periodic))
        ):
            return "all"
        return "range" if slices else "listed"


def _check_leaf(order: str, leaf: Any) -> None:
    if leaf is None:
        return
    whole = isinstance(leaf, int) and not isinstance(leaf, bool) and leaf >= 1
    if order == "curve" and (not whole or leaf > BOX_THREADS or leaf & (leaf - 1)):
        raise ArgumentError(
            f"DynamicGrid(order='curve', leaf={shown(leaf)}): wanted a power of two from 1 to "
            f"{BOX_THREADS}"
        )
    if not whole:
        raise ArgumentError(
            f"DynamicGrid(order={order!r}, leaf={shown(leaf)}): wanted an integer from 1 on"
        )


# Counted for a million elements, seven nearest within a radius that two lie in, on average, and 200
# where they are crowded.
# sources that are met first, for each that the list takes: a bound that is tight saves more than
# they cost
FILL = 3
# leaves of a GPU's walk: a warp tests 136 boxes (267 where elements are crowded), with one leaf 245
# (465)
WAITING = 4


def waiting_leaves(index: Scalar) -> int:
    """How many leaves a walk finds before it looks at their sources: on a CPU there are no other
    lanes to wait for.
    """
    return WAITING if index == I32 else 1


class CurveGrid(Walked):
    """Leaves of exactly `leaf` elements along a Hilbert curve, built where the sources are."""

    def __init__(self, search: Search, sources: Points, leaf: int) -> None:
        self._search, self._sources = search, sources
        make = HostCurve if target_of(sources.device).host_memory else device_curve
        self._built = make(
            sources, search.world, fitting_leaf(sources.count, leaf, sources.precision)
        )

    @property
    def planned(self) -> tuple[PlannedPieces, ...]:
        return self._built.planned

    @property
    def order(self) -> Any:
        return self._built.order

    @property
    def arrays(self) -> Mapping[str, BoundArray]:
        return {
            BOXES: BoundArray(self._built.nodes, self._built.arrangement, self._built.tree.nodes)
        }

    @property
    def arrangements(self) -> Mapping[str, Arrangement]:
        return {BOXES: self._built.arrangement}

    @property
    def uniforms(self) -> Mapping[str, Any]:
        tree = self._built.tree
        values = {
            NODES: tree.nodes,
            SOURCES: tree.count,
            LEAVES: tree.levels[0],
            TOP: len(tree.levels) - 1,
        }
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

    def tasks(self) -> tuple[Primitive, ...]:
        return self._built.tasks()

    def statistics(self) -> Statistics:
        tree = self._built.tree
        leaves = tree.levels[0]
        idle = leaves * tree.leaf - tree.count
        return Statistics(
            leaves, leaves, tree.leaf - idle, min(tree.leaf, tree.count), tree.count / leaves, idle,
            min(idle, (idle - tree.leaf) % WARP),
        )  # fmt: skip

    def describe(self) -> str:
        tree = self._built.tree
        shape = (
            f"{counted(tree.levels[0], 'leaf', 'leaves')} of {tree.leaf}, "
            f"{counted(tree.nodes, 'box', 'boxes')} in "
            f"{counted(len(tree.levels), 'level', 'levels')}"
        )
        return f"{self._search.describe()}; {shape}"


class LeafGrid(Walked):
    """Leaves of at most `leaf` elements in one of the thesis's orders, built on the host."""

    def __init__(
        self, search: Search, sources: Points, order: Recursive, leaf: int, how: How
    ) -> None:
        self._search, self._sources, self._order, self._leaf = search, sources, order, leaf
        self._how: How = how
        self._built = HostParts(
            sources, search.world, order, leaf, search.radius if how == "listed" else None
        )

    @property
    def planned(self) -> tuple[PlannedPieces, ...]:
        return self._built.planned

    @property
    def order(self) -> Any:
        return self._built.order

    @property
    def arrangements(self) -> Mapping[str, Arrangement]:
        numbers = values_arrangement(I32)
        lies = {BOXES: self._built.arrangement, STARTS: numbers, INFO: numbers}
        if self._how == "listed":
            lies[DIVISIONS] = division_arrangement(self._sources.precision)
            lies[LISTS] = numbers
        return lies

    @property
    def arrays(self) -> Mapping[str, BoundArray]:
        b, count = self._built, self._sources.count
        arrays = {
            BOXES: BoundArray(b.boxes.device, b.arrangement, count),
            STARTS: bind_value_array(b.starts.device.view("int32"), I32),
            INFO: bind_value_array(b.info.device.view("int32"), I32),
        }
        if self._how == "listed":
            arrays[DIVISIONS] = BoundArray(
                b.divisions.device, division_arrangement(self._sources.precision), count
            )
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

    def tasks(self) -> tuple[Primitive, ...]:
        return self._built.tasks(self.arrangements)

    def statistics(self) -> Statistics:
        members = self._built.members()
        idle = idle_threads(members, self._leaf)
        leaves = len(members)
        return Statistics(
            leaves, leaves, int(members.min()), int(members.max()), float(members.mean()),
            idle.idle, idle.active,
        )  # fmt: skip

    def describe(self) -> str:
        return f"{self._search.describe()}; at most {self._leaf} in a leaf"

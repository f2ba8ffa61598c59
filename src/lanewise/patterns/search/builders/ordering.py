"""The thesis's three orders, on the host: leaves of at most `leaf` elements, made one after
another.

"sort" sorts along x and cuts into blocks; "1-D" divides at the mean along x until a part is small
enough; "3-D" divides along the axis whose border is nearest to the mean (J. Breitbart, chapter 7).
Parts of "1-D" and "3-D" are partly empty: about 40 % of threads idle. Elements that no mean divides
(they are in one place) are halved by number, which the thesis leaves open.

A part that was cut is nearer to its border along that axis than along the others, so the rule of
"3-D" continues along the axis that it began with: its leaves are slices of a flock as well, along an
axis that the elements choose, and as many threads idle as in "1-D".

For walks that look only at the leaves around a target, "3-D" keeps its planes: they lead from a
place to its cell, and a list of each cell has the leaves within the radius of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lanewise.language.target import WARP
from lanewise.language.types import Scalar
from lanewise.patterns.search.builders.dividing import divide
from lanewise.patterns.search.builders.merging import order_of
from lanewise.patterns.search.builders.tree import margin
from lanewise.runtime import cpu

Recursive = Literal["sort", "1-D", "3-D"]
Whole = NDArray[np.int32]
LIST = 64  # leaves around a cell that its list has room for
PLACE = 5.0  # nanoseconds that an element takes of its box

BOXES = """def part_boxes_kernel(places, margins, order, starts, boxed, nodes, halves, margin, begin, end):
    real = places.dtype
    for index in range(begin, end):
        for axis in range(places.shape[1]):
            if axis >= boxed:  # slices range throughout the world
                nodes[index, axis], nodes[index, halves + axis] = real(0), real(inf)
                continue
            low, high, lost = real(inf), real(-inf), real(0)
            for p in range(starts[index], starts[index + 1]):
                place = places[order[p], axis]
                low, high = min(low, place), max(high, place)
                if len(margins):
                    lost = max(lost, margins[order[p], axis])
            low, high = low - lost, high + lost
            centre = real(0.5) * low + real(0.5) * high
            half = max(high - centre, centre - low)
            nodes[index, axis] = centre
            nodes[index, halves + axis] = half + margin * (abs(centre) + half)
"""


@dataclass(frozen=True, slots=True)
class Parts:
    """Leaves of consecutive elements.

    order: (count,) the caller's indices; starts: (leaves + 1,) the first place of each leaf, and
    the count; planes: (divisions, 2) axis and place of each division, the first one first; links:
    (divisions, 2) the division below it and above it, or -1 - the leaf's number.
    """

    order: Whole
    starts: NDArray[np.int64]
    planes: NDArray[np.float64]
    links: NDArray[np.int64]

    @property
    def leaves(self) -> int:
        return len(self.starts) - 1

    @property
    def members(self) -> NDArray[np.int64]:
        """Elements of each leaf."""
        return np.diff(self.starts)


def make_parts(
    places: NDArray[Any], order: Recursive, leaf: int, box: NDArray[np.float64]
) -> Parts:
    """Divide places, shape (count, axes), into leaves. box: (axes, 2) the borders of the world, for
    "3-D".
    """
    count = len(places)
    if order == "sort":
        starts = np.append(np.arange(0, count, leaf), count).astype(np.int64)
        along = order_of(np.ascontiguousarray(places[:, 0]))
        return Parts(along, starts, np.empty((0, 2)), np.empty((0, 2), np.int64))
    made = divide(places, leaf, places.shape[1] if order == "3-D" else 1, box)
    starts = np.append(np.flatnonzero(made.firsts), count).astype(np.int64)
    links = made.links
    at_leaf = links < 0
    links[at_leaf] = -1 - np.searchsorted(starts, -1 - links[at_leaf])
    return Parts(made.order, starts, made.planes, links)


def draw_boxes(
    parts: Parts,
    order: Recursive,
    places: NDArray[Any],
    margins: NDArray[Any],
    nodes: NDArray[Any],
    precision: Scalar,
) -> None:
    """The boxes of leaves, into the rows of `nodes`: along x alone for slices, along all axes for
    "3-D".
    """
    boxed, halves = places.shape[1] if order == "3-D" else 1, 4 if places.shape[1] == 3 else 2
    room = places.dtype.type(margin(precision))
    arguments = (places, margins, parts.order, parts.starts, boxed, nodes, halves, room)
    each = PLACE * len(places) / parts.leaves
    cpu.run_priced(cpu.own_kernel(BOXES, "part_boxes"), arguments, parts.leaves, each)


WIDE = 256  # elements of a row


def world_box(places: NDArray[Any]) -> NDArray[np.float64]:
    """The borders of all places, shape (axes, 2)."""
    count, axes = places.shape
    whole = count - count % WIDE
    # NumPy takes rows of three numbers one by one, and long ones many at a time
    rows = places[:whole].reshape(-1, WIDE * axes)
    ends: list[NDArray[Any]] = []
    for extreme in (np.min, np.max):
        found = [extreme(rows, axis=0).reshape(WIDE, axes)] if whole else []
        ends.append(extreme(np.concatenate([*found, places[whole:]]), axis=0))
    return np.array(ends, np.float64).T.copy()


@dataclass(frozen=True, slots=True)
class Idle:
    """Threads without work when each leaf has its own block, as in table 7.1: all, and those
    in warps that run.
    """

    threads: int
    idle: int
    active: int

    @property
    def share(self) -> float:
        return self.idle / self.threads


def idle_threads(members: NDArray[np.int64], block: int) -> Idle:
    """Of leaves with that many members, a block each (several for leaves that are larger)."""
    blocks = -(-members // block)
    threads = int(blocks.sum()) * block
    return Idle(threads, threads - int(members.sum()), int((-members % WARP).sum()))

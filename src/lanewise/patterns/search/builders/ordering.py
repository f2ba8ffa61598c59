"""The thesis's three orders, on the host: leaves of at most `leaf` elements, made one after
another.

"sort" sorts along x and cuts into blocks; "1-D" divides at the mean along x until a part is small
enough; "3-D" divides along the axis whose border is nearest to the mean (J. Breitbart, chapter 7).
Parts of "1-D" and "3-D" are partly empty: about 40 % of threads idle. Elements that no mean divides
(they are in one place) are halved by number, which the thesis leaves open.

A part that was cut is nearer to its border along that axis than along the others, so the rule of
"3-D" goes on along the axis that it began with: its leaves are slices of a flock, too, along an
axis that the elements choose, and as many threads idle as in "1-D".

For walks that look only at the leaves around a target, "3-D" keeps its planes: they lead from a
place to its cell, and a list of each cell has the leaves within the radius of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lanewise.language.types import Scalar
from lanewise.patterns.search.builders.tree import margin
from lanewise.runtime import cpu

Recursive = Literal["sort", "1-D", "3-D"]
Whole = NDArray[np.int32]
LIST = 64  # leaves around a cell that its list has room for

# One row of `todo` is a part: first and last element, and the plane to hang it on. Small parts
# become leaves at once, the larger of two waits: rows never number more than the logarithm of the
# elements.
PARTS = """def parts_kernel(places, order, spare, leaf, axes, box, firsts, planes, links):
    todo, borders = empty((128, 3), int64), empty((128, places.shape[1], 2), float64)
    border, mean, low, high = empty((places.shape[1], 2), float64), empty(axes, float64), empty(axes, float64), empty(axes, float64)
    todo[0, 0], todo[0, 1], todo[0, 2] = 0, len(order), -1
    for a in range(places.shape[1]):
        borders[0, a, 0], borders[0, a, 1] = box[a, 0], box[a, 1]
    real = places.dtype
    waiting, leaves, divisions = 1, 0, 0
    while waiting:
        waiting -= 1
        begin, end, hook = todo[waiting, 0], todo[waiting, 1], todo[waiting, 2]
        for a in range(places.shape[1]):
            border[a, 0], border[a, 1] = borders[waiting, a, 0], borders[waiting, a, 1]
        if end - begin <= leaf:
            firsts[begin] = 1
            if hook >= 0:
                links[hook] = -1 - begin
            leaves += 1
            continue
        for a in range(axes):
            mean[a], low[a], high[a] = 0.0, inf, -inf
        for p in range(begin, end):
            for a in range(axes):
                x = places[order[p], a]
                mean[a] += x
                low[a], high[a] = min(low[a], x), max(high[a], x)
        axis, nearest = -1, inf
        for a in range(axes):
            mean[a] = real(mean[a] / (end - begin))  # a place of the positions' precision: walks compare with it exactly
            distance = min(mean[a] - border[a, 0], border[a, 1] - mean[a])
            if low[a] < mean[a] and mean[a] <= high[a] and (axis < 0 or distance < nearest):
                axis, nearest = a, distance
        middle, plane = (begin + end) // 2, inf
        if axis >= 0:
            left, right, plane = begin, 0, mean[axis]
            for p in range(begin, end):
                if places[order[p], axis] < plane:
                    order[left] = order[p]
                    left += 1
                else:
                    spare[right] = order[p]
                    right += 1
            for p in range(right):
                order[left + p] = spare[p]
            middle = left
        if hook >= 0:
            links[hook] = divisions
        planes[divisions, 0], planes[divisions, 1] = max(axis, 0), plane
        larger = 0 if middle - begin > end - middle else 1
        for turn in range(2):
            half = larger if turn == 0 else 1 - larger
            todo[waiting, 0] = begin if half == 0 else middle
            todo[waiting, 1] = middle if half == 0 else end
            todo[waiting, 2] = 2 * divisions + half
            for a in range(places.shape[1]):
                borders[waiting, a, 0], borders[waiting, a, 1] = border[a, 0], border[a, 1]
            if axis >= 0:
                borders[waiting, axis, 1 - half] = plane
            waiting += 1
        divisions += 1
    return divisions
"""

BOXES = """def part_boxes_kernel(places, margins, order, starts, leaves, boxed, nodes, halves, margin):
    real = places.dtype
    for index in range(leaves):
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


# The leaves within the radius of each cell, cells being what the planes cut the world into; a list
# that is too long is -1.
LISTS = """def around_kernel(planes, links, divisions, leaves, nodes, halves, axes, radius2, lists):
    low, high = full((leaves, axes), -inf), full((leaves, axes), inf)
    lows, highs = full((divisions + 1, axes), -inf), full((divisions + 1, axes), inf)
    for d in range(divisions):  # a division comes before those below it
        for side in range(2):
            axis, to = int(planes[d, 0]), links[d, side]
            below, above = (lows[to], highs[to]) if to >= 0 else (low[-1 - to], high[-1 - to])
            below[:], above[:] = lows[d], highs[d]
            if planes[d, 1] < inf:
                (above if side == 0 else below)[axis] = planes[d, 1]
    for cell in range(min(leaves, len(lists))):
        count, room = 0, lists.shape[1] - 1
        for leaf in range(leaves):
            d2 = 0.0
            for a in range(axes):
                centre, half = nodes[leaf, a], nodes[leaf, halves + a]
                gap = max(centre - half - high[cell, a], low[cell, a] - (centre + half), 0.0)
                d2 += gap * gap
            if d2 <= radius2:
                count += 1
                if count <= room:
                    lists[cell, count] = leaf
        lists[cell, 0] = count if count <= room else -1
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
        along = np.argsort(places[:, 0], kind="stable").astype(np.int32)
        return Parts(along, starts, np.empty((0, 2)), np.empty((0, 2), np.int64))
    sorted_places, spare = np.arange(count, dtype=np.int32), np.empty(count, np.int32)
    firsts, planes = np.zeros(count, np.bool_), np.empty((count, 2))
    links: NDArray[np.int64] = np.zeros(2 * count, np.int64)
    divide: Any = cpu.own_kernel(PARTS, "parts")
    axes = places.shape[1] if order == "3-D" else 1
    divisions = divide(places, sorted_places, spare, leaf, axes, box, firsts, planes, links)
    starts = np.append(np.flatnonzero(firsts), count).astype(np.int64)
    below = links[: 2 * divisions]
    numbers = np.searchsorted(starts, -1 - below)
    return Parts(
        sorted_places,
        starts,
        planes[:divisions],
        np.where(below < 0, -1 - numbers, below).reshape(-1, 2),
    )


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
    draw = cpu.own_kernel(BOXES, "part_boxes")
    draw(places, margins, parts.order, parts.starts, parts.leaves, boxed, nodes, halves, room)


def world_box(places: NDArray[Any]) -> NDArray[np.float64]:
    """The borders of all places, shape (axes, 2)."""
    return np.stack([places.min(axis=0), places.max(axis=0)], axis=1).astype(np.float64)


WARP = 32  # threads that run together


@dataclass(frozen=True, slots=True)
class Idle:
    """Threads without work when each leaf has a block of its own, as in table 7.1: all, and those
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

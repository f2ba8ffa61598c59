"""The leaves within the radius of each cell, cells being what the planes of a division cut the
world into.

Each cell goes down the divisions, on all threads, and leaves out those whose leaves are all too far
away: every division has the box of them. Lists are in the order of the leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime import cpu

CELL = 1000.0  # nanoseconds that the list of a cell takes
DEEP = (
    192  # divisions that wait while one side is looked at; a cell that needs more asks all leaves
)

# Borders of cells from the divisions above them, boxes of divisions from what is below them.
BORDERS = """def cell_borders_kernel(planes, links, divisions, nodes, halves, axes, low, high, lows, highs, hulls):
    for a in range(axes):
        lows[0, a], highs[0, a], low[0, a], high[0, a] = -inf, inf, -inf, inf
    for d in range(divisions):  # a division comes before those below it
        for side in range(2):
            axis, to = int(planes[d, 0]), links[d, side]
            for a in range(axes):
                under, over = lows[d, a], highs[d, a]
                if a == axis and planes[d, 1] < inf:
                    if side == 0:
                        over = planes[d, 1]
                    else:
                        under = planes[d, 1]
                if to >= 0:
                    lows[to, a], highs[to, a] = under, over
                else:
                    low[-1 - to, a], high[-1 - to, a] = under, over
    for d in range(divisions - 1, -1, -1):
        for a in range(axes):
            under, over = inf, -inf
            for side in range(2):
                to = links[d, side]
                if to >= 0:
                    under, over = min(under, hulls[to, a]), max(over, hulls[to, axes + a])
                else:
                    leaf = -1 - to
                    under = min(under, nodes[leaf, a] - nodes[leaf, halves + a])
                    over = max(over, nodes[leaf, a] + nodes[leaf, halves + a])
            hulls[d, a], hulls[d, axes + a] = under, over
"""

# A list that is too long is -1.
LISTS = f"""def list_around_kernel(links, divisions, leaves, nodes, halves, axes, radius2, low, high, hulls, lists, begin, end):
    waits = empty({DEEP}, int64)
    room = lists.shape[1] - 1
    for cell in range(begin, end):
        count, waiting, lost = 0, 0, divisions == 0
        if divisions > 0:
            waits[0], waiting = 0, 1
        while waiting > 0:
            waiting -= 1
            to = waits[waiting]
            d2 = 0.0
            for a in range(axes):
                if to >= 0:
                    gap = max(hulls[to, a] - high[cell, a], low[cell, a] - hulls[to, axes + a], 0.0)
                else:
                    centre, half = nodes[-1 - to, a], nodes[-1 - to, halves + a]
                    gap = max(centre - half - high[cell, a], low[cell, a] - (centre + half), 0.0)
                d2 += gap * gap
            if d2 <= radius2:
                if to < 0:
                    count += 1
                    if count <= room:
                        lists[cell, count] = -1 - to
                elif waiting + 2 > {DEEP}:
                    waiting, lost = 0, True
                else:  # below first: leaves come in their order
                    waits[waiting], waits[waiting + 1] = links[to, 1], links[to, 0]
                    waiting += 2
            if count > room:
                waiting = 0
        if lost:
            count = 0
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


def list_leaves(
    planes: NDArray[np.float64],
    links: NDArray[np.int64],
    leaves: int,
    nodes: NDArray[Any],
    axes: int,
    radius2: float,
    lists: NDArray[np.int32],
) -> None:
    """Fill rows of `lists`, one a cell: how many leaves lie within the radius (-1 where they do not
    fit the row), and their numbers.

    nodes: the leaves' boxes, rows of centre and half of the extents.
    """
    divisions, halves = len(planes), 4 if axes == 3 else 2
    low, high = np.empty((leaves, axes)), np.empty((leaves, axes))
    shape = (divisions + 1, axes)
    lows, highs, hulls = np.empty(shape), np.empty(shape), np.empty((divisions + 1, 2 * axes))
    borders = cpu.own_kernel(BORDERS, "cell_borders")
    borders(planes, links, divisions, nodes, halves, axes, low, high, lows, highs, hulls)
    around = cpu.own_kernel(LISTS, "list_around")
    arguments = (links, divisions, leaves, nodes, halves, axes, radius2, low, high, hulls, lists)
    cpu.run_priced(around, arguments, min(leaves, len(lists)), CELL)

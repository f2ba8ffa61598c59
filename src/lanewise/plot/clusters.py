"""Which points lie together: chains of points with gaps below a radius (connected components,
friends of friends).

Cells are so small that all points of one belong together; pairs of near cells are joined by the
first pair of points near enough. So crowds cost little: a search over all pairs of neighbours is
not needed to know that they are connected.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime.cpu import own_kernel
from lanewise.support.errors import ArgumentError

_JOIN = '''"""Connected components over cells, as a forest of agents."""


def root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


def before(cells, c, x, y, z):
    if cells[c, 0] != x:
        return cells[c, 0] < x
    if cells[c, 1] != y:
        return cells[c, 1] < y
    return cells[c, 2] < z


def join_cells(points, starts, radius2, parent, a, b):
    one, other = root(parent, starts[a]), root(parent, starts[b])
    if one == other:
        return
    for i in range(starts[a], starts[a + 1]):
        for j in range(starts[b], starts[b + 1]):
            dx, dy, dz = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1], points[i, 2] - points[j, 2]
            if dx * dx + dy * dy + dz * dz < radius2:
                parent[one] = other
                return


def join_kernel(points, cells, starts, radius2, parent):
    count = len(cells)
    for c in range(count):
        for i in range(starts[c] + 1, starts[c + 1]):
            parent[root(parent, i)] = root(parent, starts[c])
    for c in range(count):
        for dx in range(3):
            for dy in range(-2, 3):
                if dx == 0 and dy < 0:
                    continue
                x, y, z = cells[c, 0] + dx, cells[c, 1] + dy, cells[c, 2] - 2
                low, high = 0, count
                while low < high:
                    middle = (low + high) // 2
                    if before(cells, middle, x, y, z):
                        low = middle + 1
                    else:
                        high = middle
                while low < count and cells[low, 0] == x and cells[low, 1] == y and cells[low, 2] <= z + 4:
                    if low > c:
                        join_cells(points, starts, radius2, parent, c, low)
                    low += 1
'''


def clusters(
    position: NDArray[Any], radius: float, period: float | None = None
) -> NDArray[np.int64]:
    """The cluster of each agent (n,): 0 is the largest; of equal ones that with the first agent
    comes first.

    position: (n, 3). radius: agents nearer than this belong together. period: the side of a
    periodic box, a multiple of the radius.
    """
    if not (math.isfinite(radius) and radius > 0):
        raise ArgumentError(
            f"the radius of clusters is {radius:g}; wanted a finite number above zero"
        )
    points, owner = np.asarray(position, np.float64), np.arange(len(position))
    if period is not None:
        points, owner = _with_images(points, radius, period)
    side = radius / math.sqrt(3) * (1 - 1e-9)
    cells = _closed_up(np.floor((points - points.min(axis=0)) / side).astype(np.int64))
    order = np.lexsort(cells.T[::-1])
    cells = cells[order]
    begins = np.flatnonzero(np.r_[True, (cells[1:] != cells[:-1]).any(axis=1)])
    place = np.argsort(order)
    parent = np.arange(len(points))
    parent[place] = place[owner]  # a copy belongs to whom it is a copy of
    own_kernel(_JOIN, "join")(
        points[order], cells[begins], np.r_[begins, len(points)], radius * radius, parent
    )
    while (parent[parent] != parent).any():
        parent = parent[parent]
    return _numbered(parent[place[: len(position)]])


def _with_images(
    points: NDArray[np.float64], radius: float, period: float
) -> tuple[Any, NDArray[np.int64]]:
    """The agents in the box, and behind them copies of those near its low faces beyond the high
    ones; and whose copies these are.
    """
    points, owner = points % period, np.arange(len(points))
    for axis in range(3):
        near = points[:, axis] < radius
        copies = points[near] + period * np.eye(3)[axis]
        points, owner = np.concatenate([points, copies]), np.concatenate([owner, owner[near]])
    return points, owner


def _closed_up(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where no cell is in use along an axis, three empty ones are as good as many: numbers stay
    small, however far outliers are.
    """
    result = np.empty_like(cells)
    for axis in range(3):
        used, place = np.unique(cells[:, axis], return_inverse=True)
        result[:, axis] = np.cumsum(np.r_[0, np.minimum(np.diff(used), 3)])[place]
    return result


def _numbered(roots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers by size."""
    _, first, label, sizes = np.unique(
        roots, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(len(sizes), np.int64)
    rank[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return rank[label]

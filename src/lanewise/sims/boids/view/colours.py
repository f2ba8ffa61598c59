"""What the colour of an agent says: where it heads, how fast it is, or which cluster it belongs to.

Clusters are agents that fly together: chains of agents with gaps below a radius (connected
components, friends of friends). Cells are so small that all agents of one belong together; pairs of
near cells are joined by the first pair of agents near enough. So crowds cost
little: a search over all pairs of neighbours is not needed to know that they are connected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.canvas import speed_colours
from lanewise.plot.raster import srgb
from lanewise.runtime.cpu import own_kernel
from lanewise.support.attributes import unknown
from lanewise.support.errors import ArgumentError, InputError

COLOURINGS = ("heading", "speed", "cluster")

FEWEST = 3
"""Agents of a cluster with a colour of its own; smaller ones are pale."""

PALE = np.array((118, 128, 148), np.float32)

HUES = 10
"""Colours of clusters; of more clusters some look alike."""


def check_colouring(name: str) -> None:
    """Refuse an unknown one."""
    if name not in COLOURINGS:
        raise InputError(unknown("colour", name, COLOURINGS))


def heading_colours(forward: NDArray[Any]) -> NDArray[np.float32]:
    """Agents (n, 3) that look the same way look the same: around the vertical axis the hue turns,
    upwards is lighter.
    """
    x, y, z = np.asarray(forward, np.float64).T
    return srgb(np.stack([0.79 + 0.12 * y, 0.15 * x, 0.15 * z], axis=1)).astype(np.float32)


def speed_table() -> NDArray[np.float32]:
    """(256, 3) from slow to fast."""
    return np.round(speed_colours()(np.linspace(0, 1, 256))[:, :3] * 255).astype(np.float32)


def scaled_colours(
    values: NDArray[Any], high: float, table: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Colours of a table for values from 0 to `high`."""
    return table[np.clip(np.asarray(values, np.float64) / high * 255, 0, 255).astype(np.int64)]


def cluster_table() -> NDArray[np.float32]:
    """HUES colours of one lightness, neighbours in the table far apart."""
    angle = 2 * np.pi * (np.arange(HUES) * 3 % HUES) / HUES + 4.2
    return srgb(
        np.stack([np.full(HUES, 0.79), 0.135 * np.cos(angle), 0.135 * np.sin(angle)], axis=1)
    ).astype(np.float32)


@dataclass(slots=True)
class ClusterColours:
    """Colours of clusters that stay from frame to frame: a cluster takes that of most of its
    agents, unless a larger one has it.
    """

    # the colour of each agent, HUES for none
    _before: NDArray[np.int64] | None = field(default=None)

    def of(self, labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """(n, 3) for the clusters (n,) of agents, the largest of which is number 0."""
        sizes = np.bincount(labels)
        own = int((sizes >= FEWEST).sum())
        chosen = np.full(len(sizes), HUES, np.int64)
        votes = self._votes(labels, own)
        taken: set[int] = set()
        for cluster in range(min(own, 40 * HUES)):
            colour = int(votes[cluster].argmax()) if votes[cluster].any() else -1
            if colour < 0 or (colour in taken and cluster < HUES):
                free = [c for c in range(HUES) if c not in taken]
                colour = free[0] if free else cluster % HUES
            taken.add(colour)
            chosen[cluster] = colour
        rest = np.arange(40 * HUES, own)
        chosen[rest] = rest % HUES
        self._before = chosen[labels]
        return np.concatenate([cluster_table(), PALE[None]])[self._before]

    def _votes(self, labels: NDArray[np.int64], own: int) -> NDArray[np.int64]:
        """How many agents of each cluster had each colour: (own, HUES)."""
        if self._before is None or len(self._before) != len(labels):
            return np.zeros((own, HUES), np.int64)
        voting = (labels < own) & (self._before < HUES)
        ballots = labels[voting] * HUES + self._before[voting]
        return np.bincount(ballots, minlength=own * HUES).reshape(own, HUES)


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

"""What the colour of an agent says: where it heads, how fast it is, or which cluster it belongs to.

Clusters are agents that fly together (`lanewise.plot.clusters`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.canvas import speed_colours
from lanewise.plot.raster import srgb
from lanewise.sims.common.checks import check_known

COLOURINGS = ("heading", "speed", "cluster")

FEWEST = 3
"""Agents of a cluster that has its own colour; smaller ones are pale."""

PALE = np.array((118, 128, 148), np.float32)

HUES = 10
"""Colours of clusters; of more clusters some look alike."""


def check_colouring(name: str) -> None:
    """Refuse an unknown one."""
    check_known("colour", name, COLOURINGS)


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

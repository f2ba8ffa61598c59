"""Where every population comes from, as index arrays made by plain loops over directions and axes.

A population of direction q ARRIVES at site x from x - e. On its way it may leave the box (through periodic faces, which
it enters again at the other side, through slip faces or walls) or come from a site of a wall kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]

INSIDE, SLIP = -2, -1
"""What a link crosses along an axis when it is not the number of a wall kind."""
REST = -3
"""The wall of a link that crosses the faces of different walls: it is at rest."""
OPEN = -4
"""No wall."""

EDGE = str | tuple[str, str]


@dataclass(frozen=True, slots=True)
class Links:
    """All links of a box with N sites (x fastest), arrays of shape (Q, N).

    `site`, `leaf`: which departing population arrives. `wall`: `OPEN`, the number of the wall kind that the link meets,
    or `REST`. `still`: the wall that is met does not move there, since the link passes by a wall that moves otherwise.
    """

    site: Index
    leaf: Index
    wall: Index
    still: NDArray[np.bool_]


def axes_of(velocities: Index) -> str:
    """The names of the axes, in the order of a velocity's components."""
    return "xyz"[: velocities.shape[1]]


def both_edges(edges: Mapping[str, EDGE], axis: str) -> tuple[str, str]:
    """What lies at the low and at the high face."""
    edge = edges.get(axis, "periodic")
    return (edge, edge) if isinstance(edge, str) else edge


def find_direction(velocities: Index, wanted: Sequence[int] | Index) -> int:
    """The number of a velocity."""
    (found,) = np.flatnonzero((velocities == np.asarray(wanted)).all(axis=1))
    return int(found)


def make_links(
    velocities: Index,
    shape: tuple[int, ...],
    mask: NDArray[Any],
    edges: Mapping[str, EDGE],
    walls: Mapping[str, int],
    motion: Mapping[int, tuple[float, ...]] | None = None,
) -> Links:
    """Follow every link of a box backwards. `walls` gives the number of every wall kind by its name, `motion`
    velocities by number.
    """
    rows = [_links_of(e, velocities, shape, mask, edges, walls) for e in velocities]
    site, leaf, wall = (np.stack(columns) for columns in zip(*rows, strict=True))
    still = np.zeros(wall.shape, np.bool_)
    speeds = {k: tuple(u) for k, u in (motion or {}).items()}
    for q, e in enumerate(velocities):
        oblique = [a for a in range(len(e)) if e[a]]
        for keep in (k for n in range(1, len(oblique)) for k in combinations(oblique, n)):
            part = np.array([c if a in keep else 0 for a, c in enumerate(e)])
            beside = _links_of(part, None, shape, mask, edges, walls)[2]
            for n in np.flatnonzero(np.isin(wall[q], list(speeds))):
                if beside[n] != OPEN and speeds.get(int(beside[n])) != speeds[int(wall[q, n])]:
                    still[q, n] = True
    return Links(site, leaf, wall, still)


def _links_of(
    e: Index,
    velocities: Index | None,
    shape: tuple[int, ...],
    mask: NDArray[Any],
    edges: Mapping[str, EDGE],
    walls: Mapping[str, int],
) -> tuple[Index, Index, Index]:
    """Of one direction. `velocities` are left out for a direction that the lattice may not have: then the leaves mean
    nothing.
    """
    dimensions = len(e)
    here = [c.ravel() for c in reversed(np.indices(shape))]  # coordinates of all sites in the order x, y, z
    sizes = list(reversed(shape))
    sites = here[0].size

    # Go back along the link, axis by axis, and note what is crossed.
    source, crossed = [], []
    for a in range(dimensions):
        low, high = (name if name == "periodic" else (SLIP if name == "slip" else walls[name])
                     for name in both_edges(edges, "xyz"[a]))  # fmt: skip
        there = here[a] - e[a]
        label = np.full(sites, INSIDE)
        if low != "periodic":
            label[there < 0] = low
        if high != "periodic":
            label[there >= sizes[a]] = high
        source.append(np.where(label == INSIDE, there % sizes[a], here[a]))  # not followed along a face that reflects
        crossed.append(label)

    site = np.asarray(np.ravel_multi_index(tuple(reversed(source)), shape), np.int64)

    # A link that stays inside comes from a neighbour, as it is, unless that is a wall.
    leaf = np.full(sites, 0 if velocities is None else find_direction(velocities, e))
    kind = mask.ravel()[site]
    from_wall = np.isin(kind, list(walls.values()))
    wall = np.where(from_wall, kind, OPEN)

    # A wall at a face comes first; slip faces mirror the direction along every axis whose face is crossed.
    for n in np.flatnonzero(np.any([label != INSIDE for label in crossed], axis=0)):
        faces = {int(label[n]) for label in crossed if label[n] != INSIDE}
        if met := faces - {SLIP}:
            wall[n] = min(met) if len(met) == 1 else REST
        if velocities is None:
            continue
        leaf[n] = find_direction(velocities, [-e[a] if crossed[a][n] == SLIP else e[a] for a in range(dimensions)])
    cut = wall != OPEN
    site[cut], leaf[cut] = np.arange(sites)[cut], 0 if velocities is None else find_direction(velocities, -e)
    return site, leaf, wall

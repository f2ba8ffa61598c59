"""Links followed one by one, as design/0003-sitewise.md words it: the brute force that words and streaming are compared
with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.patterns.sitewise.kinds import Edges, read_edges
from lanewise.patterns.sitewise.streaming import Phase
from tests.lbm.boxes import LID, WALL, Box

WALLS = {"wall": WALL, "lid": LID}
Place = tuple[int, int]  # site, leaf


@dataclass(frozen=True, slots=True)
class End:
    """Where a link leads: `axes` are those that slip faces mirror; `cut` when there is a wall instead."""

    site: int
    axes: frozenset[int]
    cut: bool


@dataclass(frozen=True)
class Walk:
    """The box that links are followed in."""

    lattice: lw.Lattice
    kinds: NDArray[np.uint8]
    edges: Edges

    @staticmethod
    def of(box: Box) -> Walk:
        return Walk(box.lattice, box.mask.astype(np.uint8), read_edges(box.edges, box.lattice.dimension, WALLS))

    @property
    def fluid(self) -> list[int]:
        """The sites that are no walls."""
        return [n for n, kind in enumerate(self.kinds.ravel()) if kind not in WALLS.values()]

    def coordinates(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Every site with its x, y[, z]; x is the fastest."""
        for n, place in enumerate(product(*map(range, self.kinds.shape))):
            yield n, place[::-1]

    def end(self, n: int, steps: tuple[int, ...]) -> End:
        """The end of the link that leaves site n with these steps along x, y[, z]."""
        place = [int(i) for i in np.unravel_index(n, self.kinds.shape)][::-1]
        axes: set[int] = set()
        cut = False
        for axis, step in enumerate(steps):
            size, moved = self.kinds.shape[::-1][axis], place[axis] + step
            if 0 <= moved < size:
                place[axis] = moved
                continue
            face = self.edges.faces[axis][step > 0]
            if face == "periodic":
                place[axis] = moved % size
            elif face == "slip":
                axes.add(axis)
            else:
                cut = True
        site = int(np.ravel_multi_index(place[::-1], self.kinds.shape))
        return End(site, frozenset(axes), cut or self.kinds.ravel()[site] in WALLS.values())

    def arrives(self, n: int, q: int) -> End:
        """Where population q of site n comes from."""
        return self.end(n, tuple(-c for c in self.lattice.velocities[q]))

    def leaves(self, n: int, q: int) -> End:
        """Where population q of site n goes to."""
        return self.end(n, self.lattice.velocities[q])

    def loaded(self, phase: Phase, n: int, q: int) -> Place:
        """The place from which a phase loads population q of site n."""
        return self._place(n, q, self.arrives(n, q) if phase.load_links else None, phase.load_opposite)

    def put(self, phase: Phase, n: int, q: int) -> Place:
        """The place to which a phase puts population q of site n."""
        return self._place(n, q, self.leaves(n, q) if phase.put_links else None, phase.put_opposite)

    def _place(self, n: int, q: int, end: End | None, opposite: bool) -> Place:
        leaf = self.lattice.opposite[q] if opposite else q
        if end is None:
            return n, leaf
        if end.cut:
            return n, self.lattice.opposite[leaf]
        return end.site, self.lattice.mirror(leaf, end.axes)

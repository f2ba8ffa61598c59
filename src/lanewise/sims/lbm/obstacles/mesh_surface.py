"""Where links meet a surface of triangles.

The mesh is sheared until links of one direction are columns along z, on which the columns of sites stay columns of sites. Triangles
are then cut by rows and columns, as `voxels.py` does: no column leaks between two triangles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanewise.sims.lbm.obstacles.mesh import Mesh
from lanewise.sims.lbm.obstacles.surfaces import ROUNDING, Floats
from lanewise.sims.lbm.obstacles.voxels import Whole, columns_cut

FINE = 20
"""Crossings of a column are in order to 2^-20 of a site."""


@dataclass(frozen=True, slots=True)
class MeshSurface:
    """The triangles of a mesh whose vertices are in site coordinates."""

    mesh: Mesh

    def fractions(self, starts: Floats, step: Floats) -> Floats:
        """Where links first meet a triangle; starts are sites, and the step goes to a neighbour: whole numbers."""
        axis = int(np.flatnonzero(step)[-1])
        up = float(step[axis])
        order = [a for a in range(3) if a != axis] + [axis]
        slope = (step / up)[order[:2]]
        vertices, begin = _sheared(self.mesh.vertices[:, order], slope), _sheared(starts[:, order], slope)
        low = np.floor(begin.min(axis=0))
        low[2] = min(low[2], float(np.floor(vertices[:, 2].min()))) - 1
        vertices, begin = vertices - low, begin - low
        width, height = (int(n) for n in begin[:, :2].max(axis=0) + 1)
        column, z = columns_cut(vertices, self.mesh.faces, height, width)
        wanted = np.rint(begin[:, 1]).astype(np.int64) * width + np.rint(begin[:, 0]).astype(np.int64)
        return _first(column, z, wanted, begin[:, 2], up)


def _sheared(points: Floats, slope: Floats) -> Floats:
    moved = points.copy()
    moved[:, :2] -= points[:, 2:] * slope
    return moved


def _first(column: Whole, z: Floats, wanted: Whole, begin: Floats, up: float) -> Floats:
    """The crossing of the wanted column next to `begin`, upwards or downwards, as a fraction; NaN if it is more than a link away."""
    if not len(z):
        return np.full(len(wanted), np.nan)
    bits = int(np.ceil(np.log2(max(z.max(), begin.max()) + 2))) + FINE
    key = (column << bits) + np.rint(z * 2**FINE).astype(np.int64)
    order = np.argsort(key, kind="stable")
    key, column, z = key[order], column[order], z[order]
    near = (wanted << bits) + np.rint(begin * 2**FINE).astype(np.int64)
    found = np.searchsorted(key, near - 1) if up > 0 else np.searchsorted(key, near + 1, side="right") - 1
    inside = np.clip(found, 0, len(z) - 1)
    t = (z[inside] - begin) * up
    on = (found == inside) & (column[inside] == wanted) & (t >= -2 * ROUNDING) & (t <= 1 + 2 * ROUNDING)
    return np.where(on, np.clip(t, 0, 1), np.nan)

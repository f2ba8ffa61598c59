"""The body in a stream: the case's own, or another one from a picture, an array or a mesh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.lbm.obstacles.surfaces import Round, Solid, Surface, as_solid_body, point
from lanewise.support.errors import InputError

Mask = NDArray[np.bool_]
Obstacle = Callable[[tuple[int, ...], tuple[float, ...], float], Mask | Solid]
"""(shape of the box, centre (x, y, z), diameter) of the case's own body -> another one.

Its solid sites, of that shape, or a `Solid`.
"""

Shape = Callable[[tuple[int, ...], tuple[float, ...], float], Mask]
"""(shape, centre, radius) -> the solid sites of a disc or a sphere."""


@dataclass(frozen=True, slots=True, eq=False)
class SolidBody:
    """Solid sites in a box. `width` is the extent across the flow (along y), in sites: the length
    of Re and coefficients.

    surface: where the body is known better than by its sites.
    """

    solid: Mask
    width: float
    surface: Surface | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.solid.shape

    def surfaces(self, number: int) -> dict[int, Surface]:
        """The surface, if it is known, as that of this kind."""
        return {} if self.surface is None else {number: self.surface}

    @property
    def frontal_area(self) -> float:
        """The sites that the body covers when seen along x: a length in two dimensions, an area in
        three.
        """
        return float(np.count_nonzero(self.solid.any(axis=-1)))


def place(
    obstacle: Obstacle | None,
    shape: tuple[int, ...],
    centre: tuple[float, ...],
    diameter: float,
    own: Shape,
) -> SolidBody:
    """The body that is requested, or the case's own: round, of this diameter."""
    if obstacle is None:
        return SolidBody(
            own(shape, centre, diameter / 2), diameter, Round(point(centre), diameter / 2)
        )
    body = as_solid_body(obstacle(shape, centre, diameter))
    return SolidBody(_checked(body.mask), extent(body.mask), body.surface)


def extent(solid: Mask) -> float:
    """The sites from the lowest to the highest solid one across the flow (along y)."""
    rows = np.nonzero(solid.any(axis=tuple(a for a in range(solid.ndim) if a != solid.ndim - 2)))[0]
    return float(rows[-1] - rows[0] + 1) if len(rows) else 0.0


def _checked(solid: Any) -> Mask:
    """Refuse a body without sites, and one that closes the inlet or the outlet."""
    if not solid.any():
        raise InputError(
            "the obstacle has no solid site; wanted at least one: is the mask inverted, or the "
            "mesh too small?"
        )
    for face, name in ((solid[..., 0], "first"), (solid[..., -1], "last")):
        if face.any():
            raise InputError(
                f"the obstacle has {int(np.count_nonzero(face)):,} solid sites in the {name} "
                "column of x, where the fluid flows "
                "through; leave both columns free"
            )
    return solid

"""The body in a stream: the case's own, one from an image that is the whole box, or a mesh that takes the body's place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import InputError

Mask = NDArray[np.bool_]
Mesh = Callable[[tuple[int, ...], tuple[float, ...], float], Mask]
"""(shape, centre (x, y, z), length) -> the solid sites of a body whose longest side is so long, about that centre."""


@dataclass(frozen=True, slots=True, eq=False)
class Obstacle:
    """What shall stand in the stream: a mask (booleans, true where solid) that is the whole box, or a mesh."""

    mask: Mask | None = None
    mesh: Mesh | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """Solid sites in a box. `width` is the extent across the flow (along y), in sites: the length of Re and coefficients."""

    solid: Mask
    width: float

    @property
    def shape(self) -> tuple[int, ...]:
        return self.solid.shape

    @property
    def frontal_area(self) -> float:
        """The sites that the body covers when seen along x: a length in two dimensions, an area in three."""
        return float(np.count_nonzero(self.solid.any(axis=-1)))


def place(obstacle: Obstacle | None, own: Callable[[], Mask], width: float, centre: tuple[float, ...]) -> Body:
    """The body that is asked for. `own` makes the case's, `width` wide, in the case's box."""
    if obstacle is None:
        return Body(own(), width)
    if obstacle.mask is not None:
        return Body(_checked(obstacle.mask), extent(obstacle.mask))
    assert obstacle.mesh is not None
    solid = _checked(obstacle.mesh(own().shape, centre, width))
    return Body(solid, extent(solid))


def extent(solid: Mask) -> float:
    """The sites from the lowest to the highest solid one across the flow (along y)."""
    rows = np.nonzero(solid.any(axis=tuple(a for a in range(solid.ndim) if a != solid.ndim - 2)))[0]
    return float(rows[-1] - rows[0] + 1) if len(rows) else 0.0


def _checked(solid: Any) -> Mask:
    """Refuse a body without sites, and one that closes the inlet or the outlet."""
    if not solid.any():
        raise InputError(
            "the obstacle has no solid site; wanted at least one: is the mask inverted, or the mesh too small?"
        )
    for face, name in ((solid[..., 0], "first"), (solid[..., -1], "last")):
        if face.any():
            raise InputError(
                f"the obstacle has {int(np.count_nonzero(face)):,} solid sites in the {name} column of x, where the fluid flows "
                "through; leave both columns free"
            )
    return solid

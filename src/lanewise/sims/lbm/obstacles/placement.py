"""Where in the box a picture or a mesh goes, and how large: by fractions of the box or in sites."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.checks import check_fields, checked
from lanewise.errors import InputError
from lanewise.sims.lbm.obstacles.boxes import AXES, check_length, check_point, check_shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Size and place of what is put into a box; the proportions are always kept.

    Size, at most one of
    fraction   it is made as large as fits into this fraction of the box along every axis
    length     its longest edge, in sites (of its bounding box, after rotation)
    scale      sites a unit of its own: a pixel of a picture, a millimetre or whatever the mesh is in

    Place of the middle of its bounding box, at most one of
    at         fractions of the box, in the order x, y, z: (0, 0, 0) is the low corner; the default is the middle
    centre     site coordinates, in the order x, y, z
    """

    fraction: float | None = None
    length: float | None = None
    scale: float | None = None
    at: Sequence[float] | None = None
    centre: Sequence[float] | None = None

    def __post_init__(self) -> None:
        check_fields(self, InputError)

    @checked(InputError)
    def sites_per_unit(self, extent: Sequence[float], shape: Sequence[int], default: float) -> float:
        """The scale for what has edges `extent` (x first), in a box of `shape` (x last); `default` is the fraction if none is given.

        Raises InputError for two sizes and for one that is not positive.
        """
        given = {
            n: v
            for n, v in (("fraction", self.fraction), ("length", self.length), ("scale", self.scale))
            if v is not None
        }
        if len(given) > 1:
            raise InputError(f"the size is given by {' and '.join(given)}; wanted one of them")
        if len(extent) != len(check_shape(shape)):
            raise InputError(f"what is placed has {len(extent)} edges, and the box {len(shape)}; wanted as many")
        if not all(math.isfinite(e) and e >= 0 for e in extent) or not any(extent):
            raise InputError(f"what is placed has the edges {tuple(extent)}; wanted finite lengths")
        if self.scale is not None:
            return check_length("scale", self.scale)
        if self.length is not None:
            return check_length("length", self.length) / max(extent)
        fraction = default if self.fraction is None else self.fraction
        if not 0 < fraction <= 1:
            raise InputError(f"the fraction of the box is {fraction:g}; wanted more than 0 and at most 1")
        return min(fraction * n / edge for n, edge in zip(reversed(shape), extent, strict=True) if edge > 0)

    @checked(InputError)
    def middle(self, shape: Sequence[int]) -> tuple[float, ...]:
        """The middle in site coordinates, x first. Raises InputError for two places and for a point of another dimension."""
        axes = AXES[: len(check_shape(shape))]
        if self.at is not None and self.centre is not None:
            raise InputError("the place is given by at and centre; wanted one of them")
        if self.centre is not None:
            return check_point("centre", self.centre, axes)
        at = [0.5] * len(axes) if self.at is None else check_point("place at", self.at, axes)
        return tuple(f * n - 0.5 for f, n in zip(at, reversed(shape), strict=True))

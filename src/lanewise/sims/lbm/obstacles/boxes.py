"""The box of sites that a mask covers, and where in it a picture or a mesh goes: by fractions of
the box or in sites.

Site i has its centre at i, so the box runs from -0.5 to n - 0.5 along every axis. Shapes are
NumPy's, (ny, nx) or (nz, ny, nx), with x fastest; points are (x, y) or (x, y, z), as in formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lanewise.support.checks import check_fields, checked, shown
from lanewise.support.errors import InputError
from lanewise.support.kinds import listed

AXES = "xyz"
Mask = NDArray[np.bool_]


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """`shape` as integers from 1 on, two or three of them; raises InputError."""
    try:
        lengths = listed(shape)
        sizes = tuple(int(n) for n in lengths)
        fits = len(sizes) in (2, 3) and min(sizes) >= 1 and sizes == lengths
        described: object = lengths
    except Exception:  # of the user's class, or what is no list of numbers
        sizes, fits, described = (), False, shown(shape)
    if not fits:
        raise InputError(
            f"the shape of the box is {described}; wanted (ny, nx) or (nz, ny, nx), from 1 site on "
            "each"
        )
    return sizes


def check_point(name: str, point: Sequence[float], axes: str) -> tuple[float, ...]:
    """`point` as finite numbers, one for each of `axes`; raises InputError."""
    values = tuple(float(v) for v in point)
    if len(values) != len(axes) or not all(map(math.isfinite, values)):
        raise InputError(
            f"the {name} is {_listed(point)}; wanted finite numbers ({', '.join(axes)})"
        )
    return values


def check_length(name: str, value: float) -> float:
    """`value` as a finite number above zero; raises InputError."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"the {name} is {value:g} sites; wanted a finite length above zero")
    return float(value)


def coordinates(shape: Sequence[int]) -> dict[str, NDArray[np.float64]]:
    """Coordinates of the sites' centres by axis, each of a shape that broadcasts to `shape`: 0 to n
    - 1.
    """
    count = len(shape)
    return {
        AXES[count - 1 - axis]: np.arange(n, dtype=np.float64).reshape(
            [n if a == axis else 1 for a in range(count)]
        )
        for axis, n in enumerate(shape)
    }


def site_text(index: Sequence[SupportsIndex]) -> str:
    """`(y, x) = (3, 7)`: a site of a mask as errors show it."""
    return (
        f"({', '.join(AXES[: len(index)][::-1])}) = "
        f"({', '.join(str(i.__index__()) for i in index)})"
    )


def sites_text(shape: Sequence[int]) -> str:
    """`512 x 256 sites`, in the order x, y, z."""
    return f"{' x '.join(str(n) for n in shape[::-1])} sites"


def _listed(values: Sequence[float]) -> str:
    return f"({', '.join(f'{float(v):g}' for v in values)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Size and place of what is put into a box; the proportions are always kept.

    Give at most one of `fraction`, `length` and `scale`, and at most one of `at` and `centre`.

    Attributes:
        fraction: as large as fits into this fraction of the box along every axis.
        length: the longest edge of its bounding box after rotation, in sites.
        scale: sites per pixel of a picture, or per unit of a mesh.
        at: the middle of its bounding box in fractions of the box, in the order x, y, z: (0, 0, 0)
            is the low corner. The default is the middle of the box.
        centre: the middle of its bounding box in site coordinates, in the order x, y, z.
    """

    fraction: float | None = None
    length: float | None = None
    scale: float | None = None
    at: Sequence[float] | None = None
    centre: Sequence[float] | None = None

    def __post_init__(self) -> None:
        check_fields(self, InputError)

    @checked(InputError)
    def sites_per_unit(
        self, extent: Sequence[float], shape: Sequence[int], default: float
    ) -> float:
        """The scale for what has edges `extent` (x first), in a box of `shape` (x last); `default`
        is the fraction if none is given.

        Raises InputError for two sizes and for one that is not positive.
        """
        ways = {
            n: v
            for n, v in (
                ("fraction", self.fraction),
                ("length", self.length),
                ("scale", self.scale),
            )
            if v is not None
        }
        if len(ways) > 1:
            raise InputError(f"the size is given by {' and '.join(ways)}; wanted one of them")
        if len(extent) != len(check_shape(shape)):
            raise InputError(
                f"what is placed has {len(extent)} edges, and the box {len(shape)}; wanted as many"
            )
        if not all(math.isfinite(e) and e >= 0 for e in extent) or not any(extent):
            raise InputError(f"what is placed has the edges {tuple(extent)}; wanted finite lengths")
        if self.scale is not None:
            return check_length("scale", self.scale)
        if self.length is not None:
            return check_length("length", self.length) / max(extent)
        fraction = default if self.fraction is None else self.fraction
        if not 0 < fraction <= 1:
            raise InputError(
                f"the fraction of the box is {fraction:g}; wanted more than 0 and at most 1"
            )
        return min(
            fraction * n / edge for n, edge in zip(reversed(shape), extent, strict=True) if edge > 0
        )

    @checked(InputError)
    def middle(self, shape: Sequence[int]) -> tuple[float, ...]:
        """The middle in site coordinates, x first.

        Raises InputError for two places and for a point of another dimension.
        """
        axes = AXES[: len(check_shape(shape))]
        if self.at is not None and self.centre is not None:
            raise InputError("the place is given by at and centre; wanted one of them")
        if self.centre is not None:
            return check_point("centre", self.centre, axes)
        at = [0.5] * len(axes) if self.at is None else check_point("place at", self.at, axes)
        return tuple(f * n - 0.5 for f, n in zip(at, reversed(shape), strict=True))

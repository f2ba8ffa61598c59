"""The box of sites that a mask covers: site i has its centre at i, so the box runs from -0.5 to n - 0.5 along every axis.

Shapes are NumPy's, (ny, nx) or (nz, ny, nx), with x fastest; points are (x, y) or (x, y, z), as in formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lanewise.checks import listed, shown
from lanewise.errors import InputError

AXES = "xyz"
Mask = NDArray[np.bool_]


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """`shape` as whole numbers from 1 on, two or three of them; raises InputError."""
    try:
        given = listed(shape)
        sizes = tuple(int(n) for n in given)
        fits = len(sizes) in (2, 3) and min(sizes) >= 1 and sizes == given
        found: object = given
    except Exception:  # of the user's class, or what is no list of numbers
        sizes, fits, found = (), False, shown(shape)
    if not fits:
        raise InputError(f"the shape of the box is {found}; wanted (ny, nx) or (nz, ny, nx), from 1 site on each")
    return sizes


def check_point(name: str, point: Sequence[float], axes: str) -> tuple[float, ...]:
    """`point` as finite numbers, one for each of `axes`; raises InputError."""
    values = tuple(float(v) for v in point)
    if len(values) != len(axes) or not all(map(math.isfinite, values)):
        raise InputError(f"the {name} is {_listed(point)}; wanted finite numbers ({', '.join(axes)})")
    return values


def check_length(name: str, value: float) -> float:
    """`value` as a finite number above zero; raises InputError."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"the {name} is {value:g} sites; wanted a finite length above zero")
    return float(value)


def coordinates(shape: Sequence[int]) -> dict[str, NDArray[np.float64]]:
    """Coordinates of the sites' centres by axis, each of a shape that broadcasts to `shape`: 0 to n - 1."""
    count = len(shape)
    return {
        AXES[count - 1 - axis]: np.arange(n, dtype=np.float64).reshape([n if a == axis else 1 for a in range(count)])
        for axis, n in enumerate(shape)
    }


def site_text(index: Sequence[SupportsIndex]) -> str:
    """`(y, x) = (3, 7)`: a site of a mask as errors show it."""
    return f"({', '.join(AXES[: len(index)][::-1])}) = ({', '.join(str(i.__index__()) for i in index)})"


def sites_text(shape: Sequence[int]) -> str:
    """`512 x 256 sites`, in the order x, y, z."""
    return f"{' x '.join(str(n) for n in shape[::-1])} sites"


def _listed(values: Sequence[float]) -> str:
    return f"({', '.join(f'{float(v):g}' for v in values)})"

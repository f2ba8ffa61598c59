"""Round and square bodies: a site is solid when its centre lies in the body.

Bodies may reach out of the box; what lies outside is left out. Masks are combined by `|`, `&` and `~`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanewise.checks import checked
from lanewise.errors import InputError
from lanewise.sims.lbm.obstacles.boxes import AXES, Mask, check_length, check_point, check_shape, coordinates


@checked(InputError)
def disc(shape: Sequence[int], centre: Sequence[float], radius: float) -> Mask:
    """Sites of a box (ny, nx) at most `radius` from `centre` = (x, y).

    Half-way walls lie between solid and fluid sites, so the disc that the flow meets has a radius of about `radius`.
    Raises InputError for a box of another dimension, a centre that is no point and a radius that is not positive.
    """
    _check_axes("disc", shape, 2, "cylinder")
    return _ball(shape, check_point("centre", centre, "xy"), radius, "xy")


@checked(InputError)
def sphere(shape: Sequence[int], centre: Sequence[float], radius: float) -> Mask:
    """Sites of a box (nz, ny, nx) at most `radius` from `centre` = (x, y, z). Raises InputError as `disc`."""
    _check_axes("sphere", shape, 3, "disc")
    return _ball(shape, check_point("centre", centre, AXES), radius, AXES)


@checked(InputError)
def cylinder(shape: Sequence[int], centre: Sequence[float], radius: float, axis: str = "z") -> Mask:
    """Sites of a box (nz, ny, nx) at most `radius` from the line along `axis` through `centre`.

    `centre` has the two other coordinates, in the order x, y, z. The cylinder is as long as the box. Raises InputError as `disc`.
    """
    _check_axes("cylinder", shape, 3, "disc")
    if axis not in tuple(AXES):
        raise InputError(f"the axis of the cylinder is {axis!r}; wanted 'x', 'y' or 'z'")
    across = AXES.replace(axis, "")
    section = _ball(shape, check_point("centre", centre, across), radius, across)
    return np.broadcast_to(section, shape).copy()


@checked(InputError)
def box(shape: Sequence[int], centre: Sequence[float], size: Sequence[float]) -> Mask:
    """Sites in the box of edges `size` = (x, y) or (x, y, z) about `centre`.

    A whole edge of n holds n sites wherever it lies: of two opposite faces that both go through centres of sites, the
    lower one's sites are solid. Raises InputError for points of another dimension than the shape.
    """
    sizes = check_shape(shape)
    axes = AXES[: len(sizes)]
    middle = check_point("centre", centre, axes)
    edges = [
        check_length(f"edge along {axis}", e) for axis, e in zip(axes, check_point("size", size, axes), strict=True)
    ]
    mask = np.ones(sizes, np.bool_)
    for x, c, edge in zip(reversed(coordinates(sizes).values()), middle, edges, strict=True):
        mask &= (x >= c - edge / 2) & (x < c + edge / 2)
    return mask


def _ball(shape: Sequence[int], centre: Sequence[float], radius: float, axes: str) -> Mask:
    """Sites at most `radius` from the centre, in the axes named; of size 1 along the others."""
    check_length("radius", radius)
    x = coordinates(check_shape(shape))
    squares = [(x[axis] - c) ** 2 for axis, c in zip(axes, centre, strict=True)]
    distance2 = squares[0] + squares[1]
    for square in squares[2:]:
        distance2 = distance2 + square
    return distance2 <= radius * radius  # infinite for radii whose square no number holds


def _check_axes(what: str, shape: Sequence[int], wanted: int, other: str) -> None:
    if len(shape) != wanted:
        box = "(ny, nx)" if wanted == 2 else "(nz, ny, nx)"
        raise InputError(f"a {what} needs a box of shape {box}, found {tuple(shape)}; use {other} there")

"""`lw.interpolate` in ordinary Python, and what its edges are: the definition of what kernels
compute.

Element i of a table lies at the coordinate i. Between two elements the value is a + w (b - a),
along one axis after the other, the last axis first.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from lanewise.support.checks import host_array, shown
from lanewise.support.errors import ArgumentError

__all__ = ["EDGES", "RANK", "Edge", "interpolate"]

Edge = Literal["clamp", "repeat", "mirror", "zero"]
EDGES: tuple[Edge, ...] = get_args(Edge)
RANK = 3  # dimensions of a table at most


def interpolate(table: Any, *coordinates: Any, edge: Edge = "clamp") -> Any:
    """The value of a table between its elements, by linear interpolation along each axis.

    table: floats, an array of one to three dimensions. coordinates: a float for each dimension, in
    the order of its indices: `lw.interpolate(t, y, x)` at y = 2.0 and x = 3.0 is t[2, 3]. edge: the
    values outside of the table. "clamp": the nearest element. "repeat": the table repeated, so that
    the last element has the first as its neighbour. "mirror": the table mirrored at its outer
    edges, half an element outside of the last one, as textures do: element n is element n - 1.
    "zero": zeros. A NaN coordinate gives NaN. Coordinates of float32 are exact up to 2^24.

    In a kernel the table is a parameter, `t: lw.Array2[lw.f32]`, and edge a literal. In ordinary
    Python coordinates may be arrays. Raises `ArgumentError` for arguments that do not fit.
    """
    values = _computed(host_array("lw.interpolate: the table", table))
    if values.dtype.kind != "f" or not 1 <= values.ndim <= RANK or not values.size:
        raise ArgumentError(
            f"lw.interpolate takes a table of floats with one to {RANK} dimensions, found "
            f"{shown(table)}"
        )
    if len(coordinates) != values.ndim:
        raise ArgumentError(
            f"lw.interpolate takes a coordinate for each of the {values.ndim} dimensions of the "
            f"table, found {len(coordinates)}"
        )
    asked: Any = edge
    if not isinstance(asked, str) or asked not in EDGES:
        raise ArgumentError(
            f"lw.interpolate(edge={shown(edge)}): wanted one of {', '.join(map(repr, EDGES))}"
        )
    try:
        places = np.broadcast_arrays(*(_floats(x, values.dtype) for x in coordinates))
    except ValueError as error:
        raise ArgumentError(
            f"lw.interpolate: the coordinates do not fit together: {error}"
        ) from error
    with np.errstate(invalid="ignore", over="ignore"):
        ends = [_ends(x, n, edge) for x, n in zip(places, values.shape, strict=True)]
        return _between(values, ends, ())[()]


def _floats(x: Any, kind: np.dtype[Any]) -> Any:
    """A coordinate; numbers of Python take the type of the table."""
    array = host_array("lw.interpolate: the coordinates", x)
    if array.dtype.kind not in "fiu" or (array.dtype.kind != "f" and not isinstance(x, int)):
        raise ArgumentError(f"lw.interpolate takes coordinates that are floats, found {shown(x)}")
    weak = isinstance(x, (int, float)) and not isinstance(x, np.generic)
    return array.astype(kind) if weak else _computed(array)


def _computed(array: Any) -> Any:
    """Floats of 16 bits are float32 wherever something is computed with them."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


Ends = tuple[Any, Any, Any, Any, Any]
"""The two elements next to a coordinate, how far it lies from the first, and whether either is in
the table.
"""


def _ends(x: Any, n: int, edge: Edge) -> Ends:
    real = x.dtype.type
    inside = np.ones(x.shape, bool)
    match edge:
        case "clamp":
            x = np.minimum(np.maximum(x, real(0)), real(n - 1))
            below = np.floor(x)
            first = _whole(below, n - 1)
            return first, np.minimum(first + 1, n - 1), x - below, inside, inside
        case "zero":
            x = np.minimum(np.maximum(x, real(-1)), real(n))
            below = np.floor(x)
            first = _whole(below, n, least=-1)
            ends = first, first + 1
            one, other = ((e >= 0) & (e < n) for e in ends)
            return np.clip(ends[0], 0, n - 1), np.clip(ends[1], 0, n - 1), x - below, one, other
        case "repeat" | "mirror":
            period = n if edge == "repeat" else 2 * n
            below = np.floor(x)
            rest = below - real(period) * np.floor(below / real(period))
            rest = np.where(rest < 0, rest + real(period), rest)
            first = _whole(np.where(rest >= period, rest - real(period), rest), period - 1)
            second = np.where(first + 1 < period, first + 1, 0)
            if edge == "mirror":
                first, second = (np.where(e < n, e, period - 1 - e) for e in (first, second))
            return first, second, x - below, inside, inside


def _whole(x: Any, most: int, least: int = 0) -> Any:
    """Floats as indices; what is not a number becomes 0."""
    return np.clip(np.where(np.isfinite(x), x, 0), least, most).astype(np.int64)


def _between(values: Any, ends: list[Ends], chosen: tuple[Any, ...], inside: Any = True) -> Any:
    if len(chosen) == len(ends):
        return np.where(inside, values[chosen], values.dtype.type(0))
    first, second, weight, one, other = ends[len(chosen)]
    a = _between(values, ends, (*chosen, first), inside & one)
    b = _between(values, ends, (*chosen, second), inside & other)
    return a + weight * (b - a)

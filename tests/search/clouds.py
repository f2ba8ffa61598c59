"""Clouds of points that searches find hard, and which neighbours they have, in float64."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
CLOUDS = ("uniform", "clusters", "plane", "line", "duplicates", "outliers", "single place")


def cloud(name: str, count: int, axes: int, dtype: str, seed: int = 0) -> tuple[Array, float]:
    """The points of a cloud, and a radius that a few to some dozen neighbours lie within."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, axes))
    match name:
        case "uniform":
            radius = 0.15
        case "clusters":
            x, radius = rng.normal(size=(count, axes)) * 0.1 + rng.integers(0, 4, (count, 1)) * 5.0, 0.05
        case "plane":
            x[:, -1], radius = 0.25, 0.1
        case "line":
            x[:, 1:], radius = -3.0, 0.02
        case "duplicates":
            x, radius = np.repeat(x[: -(-count // 5)], 5, axis=0)[:count], 0.1
            rng.shuffle(x)
        case "outliers":
            x[:: max(1, count // 7)] *= 1e4
            radius = 0.15
        case "single place":
            x, radius = np.full((count, axes), 0.125), 0.5
        case _:
            raise AssertionError(name)
    return x.astype(dtype), radius


def neighbours(
    x: Array, y: Array, radius: float | None, k: int | None, *, same: bool, size: float | None = None
) -> tuple[list[Array], Array]:
    """For each of the targets x the indices of its sources y, nearest first, and whether rounding could change which
    they are.
    """
    found: list[Array] = []
    doubtful = np.zeros(len(x), bool)
    limit = np.inf if radius is None else radius**2
    for i in range(len(x)):
        d = y.astype(np.float64) - x[i].astype(np.float64)
        if size is not None:
            d -= size * np.round(d / size)
        d2 = (d**2).sum(axis=1)
        if same and k is not None:
            d2[i] = np.inf
        doubtful[i] = bool((np.abs(d2 - limit) <= 1e-4 * limit).any()) if radius is not None else False
        order = np.lexsort((np.arange(len(y)), d2))
        order = order[d2[order] < limit]
        if k is not None and len(order) > k:
            last, next_one = d2[order[k - 1]], d2[order[k]]
            rounding = 1e-4 * next_one + (
                0 if size is None else 1e-6 * size**2
            )  # an image is moved by a rounded addition
            doubtful[i] |= (last != next_one or size is not None) and next_one - last <= rounding
            order = order[:k]
        found.append(order)
    return found, doubtful

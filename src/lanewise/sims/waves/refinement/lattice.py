"""The points of a cubic lattice within an ellipsoid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanewise.support.errors import InputError

Floats = NDArray[np.float64]
Points = tuple[NDArray[np.int64], Floats]


def lattice(metric: Floats, region: Floats, mismatch: float, most: int) -> Points:
    """Offsets x (n, d) with x region x at most 1, so near to each other that each such offset has
    one with a mismatch of at most this.

    The lattice is cubic where `metric` (d, d) is the unit matrix: its steps are 2 sqrt(mismatch /
    d), and its points differ by multiples of them. Parameters that stand last change least often:
    the first array (n) numbers what offsets have in common in all but the first two, which for a
    search are the directions. Raises InputError for more than `most` points.
    """
    size = len(metric)
    step = 2 * np.sqrt(mismatch / size)
    upper = np.linalg.cholesky(metric).T  # of x: where upper @ x is a multiple of the step
    inverse = np.linalg.inv(upper)
    # of integers k: |bound k| is at most 1
    bound = np.linalg.cholesky(inverse.T @ region @ inverse).T * step
    points, common = np.zeros((1, 0)), np.zeros(1, np.int64)
    for i in reversed(range(size)):
        points = _with_one_more(bound, points, i, most)
        if i == 2:
            common = np.arange(len(points))
        elif i < 2:
            common = common[points[:, -1].astype(np.int64)]
        points = points[:, :-1]
    return common, step * points @ inverse.T


def _with_one_more(bound: Floats, points: Floats, i: int, most: int) -> Floats:
    """All integers that may stand before those of each point, and at the end the number of
    that point.
    """
    shift = points @ bound[i, i + 1 :]
    rest = 1 - np.sum((points @ bound[i + 1 :, i + 1 :].T) ** 2, axis=1)
    half = np.sqrt(np.maximum(rest, 0)) / bound[i, i]
    low, high = np.ceil(-shift / bound[i, i] - half), np.floor(-shift / bound[i, i] + half)
    counts = np.maximum(high - low + 1, 0)
    if counts.sum() > most:
        raise InputError(
            f"a follow-up needs {counts.sum():.3g} templates at a time; wanted at most {most:,}: "
            "data without long gaps, or longer stacks"
        )
    number = np.repeat(np.arange(len(points)), counts.astype(np.int64))
    begin = np.repeat(np.cumsum(counts) - counts, counts.astype(np.int64))
    first = low[number] + np.arange(len(number)) - begin
    return np.column_stack([first, points[number], number]).astype(np.float64)

"""What was measured on the way and its table as CSV, and values between the sites of a line.

Between sites cubic Lagrange interpolation gives them; walls half a link outside are nodes like others.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Measurements after some steps: `steps` (n,) int64, `values` (n, len(names)) float64."""

    names: tuple[str, ...]
    steps: NDArray[np.int64]
    values: NDArray[np.float64]

    @staticmethod
    def of(names: tuple[str, ...], rows: list[tuple[int, tuple[float, ...]]]) -> Series:
        """From (step, values) pairs."""
        steps = np.array([step for step, _ in rows], np.int64)
        return Series(names, steps, np.array([v for _, v in rows], np.float64).reshape(len(rows), len(names)))

    def __len__(self) -> int:
        return len(self.steps)

    def column(self, name: str) -> NDArray[np.float64]:
        """All measurements of one quantity."""
        return self.values[:, self.names.index(name)]

    def csv(self) -> str:
        """A table with a line of names; numbers are written so that they read back exactly."""
        text = io.StringIO()
        table: Any = csv.writer(text, lineterminator="\n")
        table.writerow(("step", *self.names))
        table.writerows(
            (int(s), *(repr(float(x)) for x in row)) for s, row in zip(self.steps, self.values, strict=True)
        )
        return text.getvalue()


NODES = 4  # a cubic: its error is far below that of the flow


def interpolate(places: Any, values: Any, wanted: Any) -> NDArray[np.float64]:
    """The values at `wanted` (m,) from those at `places` (n,), ascending and not evenly spaced; float64 of shape (m,).

    Each uses the four nodes around it, fewer if there are fewer. Outside the nodes it extrapolates.
    """
    x, y, at = (np.asarray(a, np.float64) for a in (places, values, wanted))
    width = min(NODES, len(x))
    first = np.clip(np.searchsorted(x, at) - width // 2, 0, len(x) - width)
    nodes = first[:, None] + np.arange(width)
    result = np.zeros(len(at))
    for j in range(width):
        others = [k for k in range(width) if k != j]
        factors = [(at - x[nodes[:, k]]) / (x[nodes[:, j]] - x[nodes[:, k]]) for k in others]
        result += y[nodes[:, j]] * np.prod(factors, axis=0)
    return result


def between_walls(values: Any, low: float = 0.0, high: float = 0.0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places (n + 2,) in 0..1 and values of n sites between two walls half a link outside, with the walls' own values."""
    n = len(values)
    places = np.concatenate(([0.0], (np.arange(n) + 0.5) / n, [1.0]))
    return places, np.concatenate(([low], np.asarray(values, np.float64), [high]))


def middle(field: Any, axis: int) -> NDArray[np.float64]:
    """The field on the plane in the middle of an axis: a plane of sites, or the mean of the two beside it."""
    n = field.shape[axis]
    a, b = np.take(field, (n - 1) // 2, axis), np.take(field, n // 2, axis)
    return (np.asarray(a, np.float64) + np.asarray(b, np.float64)) / 2

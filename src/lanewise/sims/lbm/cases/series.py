"""What was measured on the way, and its table as CSV."""

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

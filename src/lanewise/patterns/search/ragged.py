"""Ragged: lists of different lengths in one array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lanewise.runtime.memory import module_of
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentTypeError
from lanewise.support.numerals import counted


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """`rows[i]` is `indices[offsets[i] : offsets[i + 1]]`, a view.

    indices: int32, shape (entries,), all rows consecutively. offsets: int64, shape (rows + 1,).
    Both are arrays of one
    device: NumPy on the CPU, CuPy on a GPU.
    """

    indices: Any
    offsets: Any

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Any:
        """One row; a negative number counts from the end.

        Raises `IndexError` for a row that is not there.
        """
        number: Any = row
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ArgumentTypeError(
                f"rows are taken one by one with an integer, found {shown(number)}"
            )
        count = len(self)
        if not -count <= row < count:
            raise IndexError(f"row {row} of {count:,}")
        row %= count
        return self.indices[int(self.offsets[row]) : int(self.offsets[row + 1])]

    def __iter__(self) -> Iterator[Any]:
        ends = self.offsets.tolist()
        return (self.indices[a:b] for a, b in pairwise(ends))

    @property
    def counts(self) -> Any:
        """The length of every row, shape (rows,)."""
        return module_of(self.offsets).diff(self.offsets)

    def __repr__(self) -> str:
        rows = counted(len(self), "row", "rows")
        return f"<Ragged: {rows}, {counted(len(self.indices), 'entry', 'entries')}>"

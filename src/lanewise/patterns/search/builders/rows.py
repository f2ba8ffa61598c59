"""Rows of a ragged list, each brought into ascending order: the order does not depend on the
structure that found them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime.cpu import own_kernel, run_range

GRAIN = 4096  # rows worth handing to another thread

_SORT = '''"""Every row in ascending order."""

from numba import njit


@njit(error_model="numpy", nogil=True)
def sort_rows_kernel(entries, offsets, begin, end):
    for row in range(begin, end):
        entries[offsets[row] : offsets[row + 1]].sort()
'''


def sort_rows(entries: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
    """Sort the rows of a list on the host, in place."""
    run_range(own_kernel(_SORT, "sort_rows"), (entries, offsets), len(offsets) - 1, GRAIN)


def sort_keys(module: Any, keys: Any) -> Any:
    """The entries of 64-bit keys (row, entry), on a GPU: one sort for all rows, crowded ones
    too.
    """
    keys.sort()
    return module.ascontiguousarray(keys.view("int32")[::2])  # the lower half comes first

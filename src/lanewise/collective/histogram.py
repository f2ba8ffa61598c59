"""`lw.histogram`: how often each whole number occurs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.collective import histogram_device, histogram_host
from lanewise.collective.arrays import check_out, check_row, empty_beside
from lanewise.runtime.memory import overlap
from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

TYPES = tuple(histogram_device.VALUES)
ADVICE = "bins are whole numbers: .astype(np.int32) of what tells them"
MOST = 2**31 - 1  # bins


@settings_by_name
def histogram(values: Any, *, bins: int, out: Any = None) -> Any:
    """How often each of the numbers 0 to `bins - 1` occurs in an array; others are not counted, so the counts add up to those that are.

    values: a contiguous array of NumPy or CuPy of shape (n,) of int32, uint32 or int64. The result has shape (bins,) and int64, and lies
    where the values do; a GPU is not waited for. out: such an array for it, which is overwritten.

    Results are exact, so that every run and every device gives the same. Raises `ArgumentError` for other arrays and numbers.
    """
    check_row("histogram: the array of values", values, TYPES, ADVICE)
    whole = isinstance(bins, (int, np.integer)) and not isinstance(bins, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not whole or not 0 <= bins <= MOST:
        raise ArgumentError(f"histogram: bins= is a whole number from 0 to {MOST:,}, found {shown(bins)}")
    shape = (int(bins),)
    if out is None:
        out = empty_beside(values, np.int64, shape)
    else:
        check_row("histogram: out", out, ("int64",), "counts have 64 bits")
        check_out("histogram", out, values, np.int64, shape)
        if overlap(out, values):
            raise ArgumentError("histogram: out shares memory with the values; give it memory of its own")
    run = histogram_host.histogram if isinstance(values, np.ndarray) else histogram_device.histogram
    run(values, out)
    return out

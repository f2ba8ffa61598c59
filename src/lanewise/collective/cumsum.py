"""`lw.cumsum`: what it takes, and where it runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.collective import cumsum_device, cumsum_host
from lanewise.collective.arrays import check_out, check_row, empty_beside
from lanewise.runtime.memory import address, overlap
from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

TYPES = tuple(cumsum_device.ELEMENTS)
ADVICE = ".astype(...) converts it, to int64 where sums get large"


@settings_by_name
def cumsum(values: Any, *, exclusive: bool = False, out: Any = None) -> Any:
    """The prefix sums of an array: element i of the result is `values[0] + ... + values[i]`, without `values[i]` if `exclusive`.

    values: a contiguous array of NumPy or CuPy of shape (n,) of int32, uint32, int64, float32 or float64. The result has its type, and lies
    where it does; a GPU is not waited for. out: an array of the same shape and type for it, which may be `values` itself.

    Whole numbers wrap. Floats are added in an order that n alone decides: on one device results repeat to the bit. float32 is added in
    float64 and each result rounded once; on a GPU 128 neighbours are added in float32 first, and a result is off by at most 11 * 2^-24 of
    the sum of the magnitudes up to there, however long the array is.

    Raises `ArgumentError` for other arrays.
    """
    asked: Any = exclusive
    if not isinstance(asked, bool | np.bool_):
        raise ArgumentError(f"cumsum: exclusive= is True or False, found {shown(asked)}")
    check_row("cumsum: the array of values", values, TYPES, ADVICE)
    if out is None:
        out = empty_beside(values, values.dtype, values.shape)
    else:
        check_row("cumsum: out", out, TYPES, ADVICE)
        check_out("cumsum", out, values, values.dtype, values.shape)
        if address(out) != address(values) and overlap(out, values):
            raise ArgumentError(
                "cumsum: out shares a part of its memory with the values; give it memory of its own, or all of theirs"
            )
    run = cumsum_host.cumsum if isinstance(values, np.ndarray) else cumsum_device.cumsum
    run(values, out, exclusive=bool(exclusive))
    return out

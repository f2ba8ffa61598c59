"""Stable compaction of plain arrays: the rows whose mask is true, in their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.collective import compaction_device, compaction_host
from lanewise.collective.arrays import check_row, is_array, place_of
from lanewise.runtime.memory import device_of
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

ADVICE = "a comparison makes one: values > 0"
WANTED = "compact: the array must be a contiguous array of NumPy or CuPy with at least one axis, or an array of records"


def check_mask(mask: Any, count: int, device: str) -> None:
    """Refuse what is no mask of that many elements on this device."""
    check_row("compact: the mask", mask, ("bool",), ADVICE)
    if len(mask) != count:
        raise ArgumentError(
            f"compact: the mask has {len(mask):,} elements, and the array {count:,}; one for each is wanted"
        )
    if (lies := "cpu" if isinstance(mask, np.ndarray) else device_of(mask)) != device:
        raise ArgumentError(f"compact: the mask lies on {lies!r}, and the array on {device!r}; bring them together")


def compact_array(array: Any, mask: Any) -> Any:
    """See `lanewise.compact`."""
    on_host = isinstance(array, np.ndarray)
    if not is_array(array):
        raise ArgumentError(f"{WANTED}, found {shown(array)}")
    if not array.ndim or array.dtype.hasobject or not array.dtype.itemsize or not array.flags.c_contiguous:
        told = f"{WANTED}, found one of {array.dtype} with shape {tuple(array.shape)} on {place_of(array)}"
        apart = array.ndim and not array.flags.c_contiguous
        raise ArgumentError(f"{told}, which is not contiguous; pass np.ascontiguousarray(...) of it" if apart else told)
    check_mask(mask, len(array), "cpu" if on_host else device_of(array))
    return (compaction_host if on_host else compaction_device).compact(array, mask)

"""`lw.compact`: the elements that a mask keeps, in their order."""

from __future__ import annotations

from typing import Any

from lanewise.language.target import where_arrays_lie
from lanewise.primitives.compaction import check_mask, compact_array
from lanewise.records.arrays import RecordArray
from lanewise.support.errors import brief


@brief
def compact(array: Any, mask: Any) -> Any:
    """A new array of the elements whose mask is true, in their order: `fast = lw.compact(bodies,
    speed > limit)`.

    array: an array of records in any layout, or a contiguous array of NumPy or CuPy of any type and
    shape (n, ...), whose rows are kept or left out. mask: a contiguous array of bool of shape (n,)
    on the same device. The result is on that device, in the same layout (for a strided view, in
    that of the whole array). From a GPU only the number of elements is copied to the host.
    The method `compact` of an array of records keeps them in place instead.

    Raises `ArgumentError` for other arrays and masks.
    """
    if not isinstance(array, RecordArray):
        return compact_array(array, mask)
    check_mask(mask, len(array), where_arrays_lie(array.device))
    return array[mask]

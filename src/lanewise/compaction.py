"""`lw.compact`: the elements that a mask keeps, in their order."""

from __future__ import annotations

from functools import cache
from typing import Any

from lanewise.arrays import RecordArray
from lanewise.collective.compaction import check_mask, compact_array, kept_places
from lanewise.ir.names import COUNT
from lanewise.ir.pattern import Work
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.executable import Executable
from lanewise.launch.support import bind_record, compile_kernel, index_type, machine_of
from lanewise.layouts import Layout, packed
from lanewise.patterns.elementwise.build import ELEMENTWISE
from lanewise.patterns.search.base import ORDER
from lanewise.patterns.search.gather import SORTED, build_gather
from lanewise.plans import complete_plan
from lanewise.record import Record
from lanewise.target import CPU, PYTHON
from lanewise.types import I32

RECORDS = "records"


def compact(array: Any, mask: Any) -> Any:
    """The elements of an array whose mask is true, in their order, as a new array: `fast = lw.compact(bodies, speed > limit)`.

    array: an array of records in any layout, or a contiguous array of NumPy or CuPy of any type and shape (n, ...), whose rows are kept
    or left out. mask: a contiguous array of bool of shape (n,) on the same device. The result lies there, too, in the same layout (that of
    the whole array, of a view in steps); a GPU tells the host how many elements there are, and nothing else is copied. `compact` of an
    array of records keeps them in place instead.

    Raises `ArgumentError` for other arrays and masks.
    """
    return _records(array, mask) if isinstance(array, RecordArray) else compact_array(array, mask)


def _records(array: RecordArray, mask: Any) -> RecordArray:
    device = array.device
    check_mask(mask, len(array), CPU.name if device == PYTHON.name else device)
    places = kept_places(mask)
    python_class = array._python_class  # pyright: ignore[reportPrivateUsage]
    result = RecordArray.zeros(
        array.record, len(places), layout=packed(array.layout), device=device, python_class=python_class
    )
    if not len(places):
        return result
    bound = {ORDER: bind_value_array(places, I32), RECORDS: bind_record(array), SORTED: bind_record(result)}
    _gather(array.record, array.layout, device).prepare(bound, {COUNT: len(places)})()
    return result


@cache
def _gather(record: Record, layout: Layout, device: str) -> Executable:
    """The copy of records by their places."""
    reference = build_gather(RECORDS, record.leaves, layout, record.leaves, packed(layout), index_type(device))
    return compile_kernel(reference, complete_plan(None, machine_of(device), Work(ELEMENTWISE, 1)), device)

"""Where the results of a call may lie, and values next to records that it changes: a kernel must
not overwrite what it has yet to read for other elements.

Every call with `out` comes here, and with values next to records that are changed in place, first
calls and repeated ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Field
from lanewise.launch.slots import NOTHING
from lanewise.launch.support import Uses
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.records.field_views import FieldViews
from lanewise.records.two_sides import bits_of
from lanewise.runtime.memory import address, overlap
from lanewise.support.errors import ArgumentError


def check_results(
    kernel: str,
    results: Sequence[Any],
    records: Mapping[str, Any],
    uses: Mapping[str, Uses],
    *,
    own_only: bool = False,
    values: Mapping[str, Any] = NOTHING,
    shaped: Mapping[str, Any] = NOTHING,
    touched: Container[str] = (),
) -> None:
    """Refuse results that would overwrite what is yet to be read, or each other.

    uses: of records. own_only: whether an element reads no fields but its own. values: of which an
    element reads its own. shaped: tables, and arrays that are touched while results are written,
    which are named in `touched`. Raises `ArgumentError`.
    """
    _check_in_place(kernel, results, values)
    _check_beside_records(kernel, results, records, uses, own_only=own_only)
    for result in results:
        for name, array in shaped.items():
            if overlap(result, array):
                what = "array" if name in touched else "table"
                raise ArgumentError(
                    f"{kernel}: out shares memory with the {what} {name!r}; give it its own memory"
                )


def _check_in_place(kernel: str, results: Sequence[Any], values: Mapping[str, Any]) -> None:
    """Refuse results that share memory with each other, or with values of other elements: those are
    read while they are written.

    A result may replace the value of the same element: the two arrays then begin together and are
    as long.
    """
    if len(results) > 1 and any(_meet(a, b) for a, b in itertools.combinations(results, 2)):
        raise ArgumentError(f"{kernel}: two arrays of out share memory; give each its own memory")
    for name, array in values.items():
        for result in results:
            if array is not result and _meet(result, array) and not _same_place(result, array):
                raise ArgumentError(
                    f"{kernel}: out shares memory with {name!r}, and an element's result is not "
                    "where its value is: it would overwrite "
                    "values of other elements; give it its own memory"
                )


def _check_beside_records(
    kernel: str,
    results: Sequence[Any],
    records: Mapping[str, RecordArray],
    uses: Mapping[str, Uses],
    *,
    own_only: bool,
) -> None:
    """Refuse results in memory of fields that the kernel reads or changes.

    uses: of the records, by parameter; results may lie in fields that are not among them. own_only:
    whether an element reads no fields but its own; then a result may replace a field that its own
    element reads.
    """
    for name, used in uses.items():
        array = records[name]
        places = places_of(array)
        for result in results:
            if not _meet(result, places.data):
                continue
            for field in array.record:
                bit = bits_of(array.record)[field.name]
                if not used.reads & bit or (
                    own_only and not used.writes & bit and _is_field(result, places, field)
                ):
                    continue
                if any(
                    _overlap(result, places.blocks(leaf))
                    for leaf in t.leaves(field.name, field.type)
                ):
                    raise ArgumentError(
                        f"{kernel}: out shares memory with {name}.{field.name}, which the kernel "
                        + ("changes" if used.writes & bit else "reads for other elements")
                        + "; give it its own memory"
                    )


def value_elsewhere(
    records: Mapping[str, RecordArray], uses: Mapping[str, Uses], values: Mapping[str, Any]
) -> tuple[str, str, str] | None:
    """A record parameter that is changed in place, its field, and values that lie in that field
    where other elements change it; None where there are none.

    uses: of the records, by parameter. values: of which an element reads its own, contiguous. They
    may lie in a field of the same element.
    """
    for name, array in records.items():
        places = places_of(array)
        met = [n for n, value in values.items() if _meet(value, places.data)]
        for value, field in itertools.product(met, array.record if met else ()):
            if uses[name].writes & bits_of(array.record)[field.name] and any(
                _overlap(values[value], blocks) and not _beside(values[value], blocks)
                for leaf in t.leaves(field.name, field.type)
                for blocks in [places.blocks(leaf)]
            ):
                return name, field.name, value
    return None


def _beside(values: Any, leaf: Any) -> bool:
    """Whether a scalar of each element lies in the value of the same element."""
    row = values.nbytes // max(1, len(values))
    begin = address(leaf) - address(values)
    alike = leaf.shape[1] == 1 and (len(values) == 1 or leaf.strides[0] == row)
    return alike and 0 <= begin <= row - leaf.dtype.itemsize


def _is_field(result: Any, places: FieldViews, field: Field) -> bool:
    """Whether each result lies where its own element has the field."""
    view = places.strided(field)
    return view is not None and bool(view.flags.c_contiguous) and _same_place(result, view)


def _same_place(one: Any, other: Any) -> bool:
    return address(one) == address(other) and one.nbytes == other.nbytes


def _overlap(result: Any, view: Any) -> bool:
    """Whether a contiguous array has bytes between the first and the last one of a view."""
    start, first = address(result), address(view)
    span = (
        sum((n - 1) * step for n, step in zip(view.shape, view.strides, strict=True))
        + view.dtype.itemsize
    )
    return start < first + span and first < start + result.nbytes


def _meet(a: Any, b: Any) -> bool:
    """Whether two contiguous arrays have any bytes in common, in less time than `overlap` takes."""
    if isinstance(a, np.ndarray):
        return a is b or (not (a.flags.owndata and b.flags.owndata) and np.may_share_memory(a, b))
    first, start = a.data.ptr, b.data.ptr
    return first < start + b.nbytes and start < first + a.nbytes

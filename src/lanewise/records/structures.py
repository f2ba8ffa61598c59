"""Records in the forms of other libraries: NumPy's structured arrays, pandas' tables, contiguous
arrays of one field.

A structured array is a view where the layout is one structure after the other, as in AoS and AoAS.
Tables and the rest are copies, and say so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Field, Record
from lanewise.layouts import AoAS, AoS, Arrangement, Layout
from lanewise.records.field_views import FieldViews
from lanewise.records.storage import Storage
from lanewise.runtime.field_copies import field_copy
from lanewise.runtime.memory import array_module, on
from lanewise.support.attributes import near
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError
from lanewise.support.installation import install

STRUCTURED: tuple[Layout, ...] = (AoS(), AoAS(8), AoAS(16))
"""Layouts that the memory of a structured array may be in."""


# ------------------------------------------------------------ structured arrays


def dtype_of(storage: Storage) -> np.dtype[Any]:
    """The dtype of `to_structured`: as the records lie, where they are structures, else as those of
    AoS.
    """
    return _own_structure(storage) or structure_of(storage.record)


def _own_structure(storage: Storage) -> np.dtype[Any] | None:
    """The dtype of the records as they lie, where that is one structure after the other."""
    places = storage.places
    known = isinstance(places, FieldViews)
    return _structure(storage.record, places.arrangement) if known else None


def layout_of(record: Record, dtype: np.dtype[Any]) -> Layout | None:
    """The layout that structured arrays of this dtype lie in, as records do; None for none."""
    for layout in STRUCTURED:
        wanted = _structure(record, layout.arrange(record.leaves))
        if (
            wanted is not None
            and dict(wanted.fields or {}) == dict(dtype.fields or {})
            and wanted.itemsize == dtype.itemsize
        ):
            return layout
    return None


def structure_of(record: Record) -> np.dtype[Any]:
    """The dtype of the records of AoS: a field of vectors has the shape (components,)."""
    found = _structure(record, AoS().arrange(record.leaves))
    assert found is not None
    return found


def _structure(record: Record, arrangement: Arrangement) -> np.dtype[Any] | None:
    """The dtype that a record has where all of it lies in one structure, its vectors in one piece;
    else None.
    """
    if len(arrangement.buffers) != 1 or arrangement.buffers[0].width != 1:
        return None
    places: dict[str, tuple[Any, int]] = {}
    for field in record:
        slots = [arrangement.slot(leaf) for leaf in t.leaves(field.name, field.type)]
        first, size = slots[0].offset, slots[0].type.size
        if [s.offset for s in slots] != [first + size * n for n in range(len(slots))]:
            return None
        dtype = slots[0].type.dtype
        vector = isinstance(field.type, t.Vector)
        places[field.name] = ((dtype, (len(slots),)) if vector else dtype), first
    buffer = arrangement.buffers[0]
    return _nested(record, places, buffer.own or buffer.block)


def _nested(record: Record, places: dict[str, tuple[Any, int]], size: int) -> np.dtype[Any]:
    """The dtype of a record of so many bytes, whose fields have these formats and places; records
    within it are structures from their first byte to their last one.
    """
    held: dict[str, tuple[Any, int]] = {}
    for name in record.names:
        if (part := record.part(name)) is None:
            held[name] = places[name]
            continue
        own = {f.name: places[f"{name}.{f.name}"] for f in part}
        first = min(place for _, place in own.values())
        last = max(place + np.dtype(form).itemsize for form, place in own.values())
        moved = {n: (form, place - first) for n, (form, place) in own.items()}
        held[name] = _nested(part, moved, last - first), first
    described: Any = {
        "names": list(held),
        "formats": [form for form, _ in held.values()],
        "offsets": [place for _, place in held.values()],
        "itemsize": size,
    }
    return np.dtype(described)


def column(values: Any, name: str) -> Any:
    """A column of a structured array; one of a record within its records has a name with dots."""
    for one in name.split("."):
        values = values[one]
    return values


def structured(storage: Storage, copy: bool | None) -> np.ndarray[Any, Any]:
    """See `RecordArray.to_structured`."""
    if copy is not None and not isinstance(copy, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"to_structured: copy is {shown(copy)}; wanted True, False or None (a view where there "
            "can be one)"
        )
    record, count, dtype = storage.record, len(storage), dtype_of(storage)
    on_host = all(isinstance(m, np.ndarray) for m in storage.places.memories)
    if on_host and copy is not True and _own_structure(storage) is not None:
        if not count:
            return np.zeros(0, dtype)
        data = storage.lent
        arrangement = storage.memory.arrangement
        start, step = arrangement.starts(count)[0], arrangement.buffers[0].block
        return np.ndarray((count,), dtype, data, start, (step,))
    lies = (
        f"the fields of {storage.layout} lie apart"
        if on_host
        else f"the records lie on {storage.device!r}"
    )
    if copy is False:
        other = "" if on_host else '.to("cpu")'
        raise ArgumentError(
            f"to_structured(copy=False): {lies}, so a structured array of {record.name} is a copy; "
            f"that of {other}.with_layout(lw.AoS()) "
            "is a view"
        )
    made = np.zeros(count, dtype)
    for field in record:
        column(made, field.name)[...] = storage.on_host(field)
    if copy:
        return made
    return field_copy(
        made,
        f"to_structured() is a copy here, as {lies}; assign fields of the array, "
        f"array.{record.fields[0].name} = values, or take "
        "to_structured(copy=True), which is yours",
    )


# ------------------------------------------------------------ fields and tables


def contiguous(storage: Storage, name: str) -> Any:
    """See `RecordArray.contiguous`."""
    field = storage.record.field(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if field is None:
        names = [f.name for f in storage.record]
        raise ArgumentError(unknown_name(storage.record, "field", name, names))
    values = storage.field(field)
    with on(storage.device):
        return array_module(storage.device).array(values, copy=True, order="C")


def dataframe(storage: Storage) -> Any:
    """See `RecordArray.dataframe`."""
    try:
        import pandas  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ArgumentError(f"dataframe() needs pandas: {install('pandas')}") from error
    names = column_names(storage.record)
    columns: dict[str, Any] = {}
    for field in storage.record:
        values = np.array(storage.on_host(field))
        for number, name in enumerate(names[field]):
            columns[name] = (
                np.ascontiguousarray(values[:, number])
                if isinstance(field.type, t.Vector)
                else values
            )
    return pandas.DataFrame(columns)


def column_names(record: Record) -> dict[Field, list[str]]:
    """The columns of each field in a table: `mass`, or `position_x`, `position_y`, `position_z`.

    Raises `ArgumentError` where two fields would have a column of one name, or one of them the name
    of the other: a table that is read may name a whole field.
    """
    owners = {f.name: f for f in record}
    for field in record:
        for name in component_columns(field):
            if (other := owners.setdefault(name, field)) is not field:
                raise _two_columns(record, name, [f for f in record if f in (other, field)])
    return {f: component_columns(f) for f in record}


def component_columns(field: Field) -> list[str]:
    """What the columns of a field are called in a table, a column for each scalar."""
    return [leaf.replace(".", "_") for leaf in t.leaves(field.name, field.type)]


def table_column(record: Record, name: Any) -> Field:
    """The field that a column of a table belongs to. It is called as the field, else as in
    `dataframe`, `position_x`, `shape_radius`; else as a vector with `_` for its dots, `shape_axis`.

    Raises `ArgumentError` for a column that belongs to none, and for one that belongs to two.
    """
    if isinstance(name, str) and (field := record.field(name)) is not None:
        return field
    meant = [f for f in record if name in component_columns(f)]
    meant = meant or [f for f in record if name == f.name.replace(".", "_")]
    if len(meant) > 1:
        raise _two_columns(record, name, meant)
    if meant:
        return meant[0]
    columns = [(f.name.replace(".", "_"), *component_columns(f)) for f in record]
    known = dict.fromkeys([f.name for f in record] + [c for names in columns for c in names])
    raise ArgumentError(unknown_name(record, "column", name, known))


def _two_columns(record: Record, name: str, fields: list[Field]) -> ArgumentError:
    return ArgumentError(
        f"{record}: two columns of a table would be called {name!r}, those of "
        f"{' and '.join(repr(f.name) for f in fields)}; rename one of these fields, or give them "
        "by their names in full"
    )


def unknown_name(record: Record, what: str, name: Any, names: Iterable[str]) -> str:
    """The text of the error about a field or a column that is not there."""
    listed = list(names)
    meant = near(name, listed) if isinstance(name, str) else ""
    return f"{record.name} has no {what} {shown(name)}{meant or ';'} wanted {', '.join(listed)}"

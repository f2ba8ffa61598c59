"""Records in the forms of other libraries: NumPy's structured arrays, pandas' tables, contiguous
arrays of one field.

A structured array is a view where the layout is one structure behind the other, as in AoS and AoAS.
Tables and the rest are copies, and say so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Field, Record
from lanewise.language.target import CPU, where_arrays_lie
from lanewise.layouts import AoAS, AoS, Arrangement, Layout
from lanewise.records.arrays import OF_ANOTHER, RecordArray, host_field, places_of
from lanewise.records.field_values import brought
from lanewise.runtime.devices import resolve
from lanewise.runtime.field_copies import field_copy, is_writable
from lanewise.runtime.memory import address, array_module, device_of, home, on
from lanewise.support.attributes import near
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, DeviceError
from lanewise.support.installation import install

STRUCTURED: tuple[Layout, ...] = (AoS(), AoAS(8), AoAS(16))
"""Layouts that the memory of a structured array may be in."""
# bytes: the widest access of one thread of a GPU; smaller parts of records lie at multiples of
# their size
ALIGNED = 16


# ------------------------------------------------------------ structured arrays


def dtype_of(array: RecordArray) -> np.dtype[Any]:
    """The dtype of `to_structured`: as the records lie, where they are structures, else as those of
    AoS.
    """
    return _structure(array.record, places_of(array).arrangement) or structure_of(array.record)


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
    formats: list[Any] = []
    offsets: list[int] = []
    for field in record:
        slots = [arrangement.slot(leaf) for leaf in t.leaves(field.name, field.type)]
        first, size = slots[0].offset, slots[0].type.size
        if [s.offset for s in slots] != [first + size * n for n in range(len(slots))]:
            return None
        formats.append(
            (slots[0].type.dtype, (len(slots),))
            if isinstance(field.type, t.Vector)
            else slots[0].type.dtype
        )
        offsets.append(first)
    buffer = arrangement.buffers[0]
    described: Any = {
        "names": [f.name for f in record],
        "formats": formats,
        "offsets": offsets,
        "itemsize": buffer.own or buffer.block,
    }
    return np.dtype(described)


def structured(array: RecordArray, copy: bool | None) -> np.ndarray[Any, Any]:
    """See `RecordArray.to_structured`."""
    if copy is not None and not isinstance(copy, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"to_structured: copy is {shown(copy)}; wanted True, False or None (a view where there "
            "can be one)"
        )
    views, record = places_of(array), array.record
    dtype = dtype_of(array)
    found = _structure(record, views.arrangement)
    on_host = isinstance(views.data, np.ndarray)
    if on_host and found is not None and copy is not True:
        if not len(array):
            return np.zeros(0, dtype)
        start, step = views.arrangement.starts(views.count)[0], views.arrangement.buffers[0].block
        return np.ndarray((len(array),), dtype, array.data, start, (step,))
    lies = (
        f"the fields of {array.layout} lie apart"
        if on_host
        else f"the records lie on {array.device!r}"
    )
    if copy is False:
        other = "" if on_host else '.to("cpu")'
        raise ArgumentError(
            f"to_structured(copy=False): {lies}, so a structured array of {record.name} is a copy; "
            f"that of {other}.with_layout(lw.AoS()) "
            "is a view"
        )
    made = np.zeros(len(array), dtype)
    for field in record:
        made[field.name] = host_field(array, field)
    if copy:
        return made
    return field_copy(
        made,
        f"to_structured() is a copy here, as {lies}; assign fields of the array, "
        f"array.{record.fields[0].name} = values, or take "
        "to_structured(copy=True), which is yours",
    )


# ------------------------------------------------------------ fields and tables


def contiguous(array: RecordArray, name: str) -> Any:
    """See `RecordArray.contiguous`."""
    field = array.record.field(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if field is None:
        raise ArgumentError(_unknown(array.record, "field", name, [f.name for f in array.record]))
    values = getattr(array, name)
    with on(array.device):
        return array_module(array.device).array(values, copy=True, order="C")


def dataframe(array: RecordArray) -> Any:
    """See `RecordArray.dataframe`."""
    try:
        import pandas  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ArgumentError(f"dataframe() needs pandas: {install('pandas')}") from error
    names = column_names(array.record)
    columns: dict[str, Any] = {}
    for field in array.record:
        values = np.array(host_field(array, field))
        for number, name in enumerate(names[field]):
            columns[name] = (
                np.ascontiguousarray(values[:, number])
                if isinstance(field.type, t.Vector)
                else values
            )
    return pandas.DataFrame(columns)


def column_names(record: Record) -> dict[Field, list[str]]:
    """The columns of each field in a table: `mass`, or `position_x`, `position_y`, `position_z`.

    Raises `ArgumentError` where another field is called so.
    """
    names = {f: [leaf.replace(".", "_") for leaf in t.leaves(f.name, f.type)] for f in record}
    flat = [name for columns in names.values() for name in columns]
    if twice := next((name for name in flat if flat.count(name) > 1), None):
        raise ArgumentError(
            f"{record}: two columns of a table would be called {twice!r}, a component and a field; "
            "rename the field"
        )
    return names


# ------------------------------------------------------------ what comes in


def array_of(
    cls: type[Any],
    values: Any,
    fields: Mapping[str, Any],
    layout: Layout | None,
    device: str | None,
    copy: bool,
    host_layout: Layout | None = None,
) -> RecordArray:
    """An array of the records of `cls` from a table and from fields; see `RecordValue.array`."""
    record: Record = cls.__record__
    if not isinstance(copy, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"{record.name}.array: copy is {shown(copy)}; wanted True, or False for an array in "
            "the memory that is there"
        )
    if not copy:
        if host_layout is not None:
            raise ArgumentError(
                f"{record.name}.array: an array in the memory of another one has one side; leave "
                "host_layout= or copy=False out"
            )
        return _over(cls, values, fields, layout, device)
    where = resolve(device)
    found = {} if values is None else _fields(record, values, where)
    if twice := [n for n in fields if n in found]:
        raise ArgumentError(
            f"{record.name}.array got {twice[0]!r} twice, in the table and by its name"
        )
    return RecordArray.from_fields(
        record,
        {**found, **fields},
        layout=layout,
        device=where,
        python_class=cls,
        host_layout=host_layout,
    )


def _fields(record: Record, values: Any, device: str) -> dict[str, Any]:
    """The fields that a table has, on the device."""
    names, column = _table(record, values)
    named = (
        column_names(record)
        if any(record.field(n) is None for n in names)
        else {f: [f.name] for f in record}
    )
    known = dict.fromkeys(
        [f.name for f in record] + [c for columns in named.values() for c in columns]
    )
    for name in names:
        if name not in known:
            raise ArgumentError(_unknown(record, "column", name, known))
    found: dict[str, Any] = {}
    for field, columns in named.items():
        if field.name in names:
            found[field.name] = column(field.name)
        elif parts := [c for c in columns if c in names]:
            if missing := [c for c in columns if c not in names]:
                raise ArgumentError(
                    f"{record.name}.{field.name} is a {field.type}: the table has "
                    f"{', '.join(parts)}, and no {', '.join(missing)}"
                )
            brought_columns = [
                brought(f"the column {c!r} of {record.name}", column(c), device) for c in columns
            ]
            found[field.name] = array_module(device).stack(brought_columns, axis=1)
    return found


def _table(record: Record, values: Any) -> tuple[list[Any], Callable[[str], Any]]:
    """The names of the columns of a table, and what gives one of them."""
    pandas: Any = sys.modules.get("pandas")  # whoever has one of its tables has imported it
    if isinstance(values, np.ndarray) and values.dtype.names is not None:
        if values.ndim != 1:
            raise ArgumentError(
                f"{record.name}.array takes a structured array of shape (n,), found shape "
                f"{values.shape}; .reshape(-1) makes one"
            )
        return list(values.dtype.names), cast("Callable[[str], Any]", values.__getitem__)
    if pandas is not None and isinstance(values, pandas.DataFrame):
        frame: Any = values
        names = list(frame.columns)
        if not frame.columns.is_unique:
            twice = next(n for n in names if names.count(n) > 1)
            raise ArgumentError(f"{record.name}.array: the table has two columns {twice!r}")
        return names, lambda name: frame[name].to_numpy()
    if isinstance(values, Mapping):
        mapping = cast("Mapping[Any, Any]", values)
        return list(mapping), mapping.__getitem__
    what = (
        "an array of records; .copy() is another one"
        if isinstance(values, RecordArray)
        else shown(values)
    )
    raise ArgumentError(
        f"{record.name}.array takes fields by their names, {record.fields[0].name}=..., a "
        "structured array, a DataFrame or a mapping of "
        f"columns, found {what}"
    )


def _unknown(record: Record, what: str, name: Any, names: Iterable[str]) -> str:
    listed = list(names)
    meant = near(name, listed) if isinstance(name, str) else ""
    return f"{record.name} has no {what} {name!r}{meant or ';'} wanted {', '.join(listed)}"


# ------------------------------------------------------------ memory of others


def _over(
    cls: type[Any],
    values: Any,
    fields: Mapping[str, Any],
    layout: Layout | None,
    device: str | None,
) -> RecordArray:
    """An array whose memory is that of a structured array, or of the array of its only field."""
    record: Record = cls.__record__
    place = f"{record.name}.array(copy=False)"
    if isinstance(values, np.ndarray) and values.dtype.names is not None and not fields:
        memory, found = values, _layout_of(record, values.dtype)
        if found is None:
            raise ArgumentError(
                f"{place}: a structured array of {values.dtype} does not lie as records of "
                f"{record}; wanted one of {record.name}.dtype, "
                f"{structure_of(record)}. Without copy=False it is copied"
            )
        where = resolve(device)
    elif values is None and len(fields) == len(record.fields) == 1:
        where, found = resolve(device), AoS()
        memory = _only_field(place, record.fields[0], next(iter(fields.values())), where)
    else:
        raise ArgumentError(
            f"{place}: an array of records has one piece of memory, so there is no way round a "
            "copy but for a structured array of "
            f"{record.name}.dtype, and for records of one field; leave copy=False out"
        )
    lies = "cpu" if isinstance(memory, np.ndarray) else device_of(memory)
    if lies != where_arrays_lie(where):
        raise _elsewhere(place, lies, where)
    if layout is not None and layout != found:
        raise ArgumentError(f"{place}: the memory lies as {found}, and {layout} is asked for")
    if memory.dtype.names is not None and memory.ndim != 1:
        raise ArgumentError(
            f"{place}: wanted a structured array of shape (n,), found {memory.shape}"
        )
    if not memory.flags.c_contiguous or not is_writable(memory):
        state = "read-only" if memory.flags.c_contiguous else "not contiguous"
        raise ArgumentError(
            f"{place}: the array is {state}; kernels run over contiguous memory that they may "
            "write to"
        )
    if address(memory) % ALIGNED:
        raise ArgumentError(
            f"{place}: the memory begins at {address(memory):#x}, and kernels read {ALIGNED} bytes "
            f"at once; wanted a multiple of {ALIGNED}"
        )
    return RecordArray(
        record,
        len(memory),
        found,
        where,
        memory.reshape(-1).view(np.uint8),
        cls,
        fixed=OF_ANOTHER,
    )


def _elsewhere(place: str, lies: str, wanted: str) -> DeviceError:
    return DeviceError(
        f"{place}: the memory lies on {lies!r}, and the array would be on {wanted!r}; give "
        f"device={lies!r}"
    )


def _layout_of(record: Record, dtype: np.dtype[Any]) -> Layout | None:
    for layout in STRUCTURED:
        wanted = _structure(record, layout.arrange(record.leaves))
        if (
            wanted is not None
            and dict(wanted.fields or {}) == dict(dtype.fields or {})
            and wanted.itemsize == dtype.itemsize
        ):
            return layout
    return None


def _only_field(place: str, field: Field, value: Any, device: str) -> Any:
    """The memory of an array of this field: of NumPy or CuPy, without a copy."""
    if not any(
        hasattr(value, f"__{n}__") for n in ("cuda_array_interface", "dlpack", "array_interface")
    ):
        raise ArgumentError(
            f"{place}: {shown(value)} shows no memory to share; leave copy=False out"
        )
    lies = home(value) or CPU.name
    if lies != where_arrays_lie(device):
        raise _elsewhere(place, lies, device)
    array = brought(f"{place}: {field.name!r}", value, device)
    width = (field.type.length,) if isinstance(field.type, t.Vector) else ()
    dtype = t.scalar_of(field.type).dtype
    if array.dtype != dtype or array.shape[1:] != width or array.ndim != 1 + len(width):
        wanted = f"(n, {width[0]})" if width else "(n,)"
        raise ArgumentError(
            f"{place}: {field.name!r} is a {field.type}: wanted {wanted} of {dtype}, found "
            f"{tuple(array.shape)} of {array.dtype}"
        )
    return array

"""Arrays of records made of other libraries' arrays: tables and fields that are copied, and memory
that is shared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lanewise.language import types as t
from lanewise.language.record import Field, Record, RecordValue
from lanewise.language.target import CPU, where_arrays_lie
from lanewise.layouts import AoS, Layout
from lanewise.records.arrays import RecordArray
from lanewise.records.field_values import brought
from lanewise.records.open_layout import AUTO, LayoutArgument
from lanewise.records.parts import PartOfRecords, columns_within
from lanewise.records.storage import OF_ANOTHER, Storage
from lanewise.records.structures import (
    column_names,
    component_columns,
    layout_of,
    structure_of,
    table_column,
)
from lanewise.runtime.devices import resolve
from lanewise.runtime.field_copies import is_writable
from lanewise.runtime.memory import address, array_module, device_of, home
from lanewise.runtime.mesh import Mesh, first_of, place_of
from lanewise.support.articles import an
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, DeviceError

# bytes: the widest access of one thread of a GPU; smaller parts of records lie at multiples of
# their size
ALIGNED = 16


def array_of(
    cls: type[Any],
    values: Any,
    fields: Mapping[str, Any],
    layout: LayoutArgument | None,
    device: str | Mesh | None,
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
        if isinstance(device, Mesh):
            raise ArgumentError(
                f"{record.name}.array: an array on a mesh ({device}) is a copy; leave copy=False "
                "out"
            )
        return _over(cls, values, fields, layout, device)
    where = place_of(device)
    found = {} if values is None else _fields(record, values, first_of(where))
    fields = _laid_flat(record, fields, first_of(where))
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


def _laid_flat(record: Record, values: Mapping[str, Any], device: str) -> dict[str, Any]:
    """The fields of what is given by name: records within others are records of their class,
    arrays of them, or tables of their columns.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        part = record.part(name)
        if part is None:
            columns = {name: value}
        elif isinstance(value, (RecordValue, RecordArray, PartOfRecords)):
            columns = columns_within(record, name, value, None)
        else:
            columns = {f"{name}.{n}": c for n, c in _fields(part, value, device).items()}
        if twice := [n for n in columns if n in found]:
            raise ArgumentError(f"{record.name}.array got {twice[0]!r} twice")
        found |= columns
    return found


def _fields(record: Record, values: Any, device: str) -> dict[str, Any]:
    """The fields that a table has, on the device."""
    if isinstance(values, Mapping):
        values = _laid_flat(record, cast("Mapping[str, Any]", values), device)
    names, column = _table(record, values)
    given: dict[Field, list[str]] = {}
    for name in names:
        field = table_column(record, name)
        given.setdefault(field, []).append(name)
    found: dict[str, Any] = {}
    for field, columns in given.items():
        parts = component_columns(field) if isinstance(field.type, t.Vector) else []
        whole = [n for n in columns if n not in parts]
        if len(whole) > 1 or (whole and len(columns) > 1):
            raise ArgumentError(
                f"{record.name}.array got {field.name!r} twice: the table has the columns "
                f"{', '.join(map(repr, columns))}"
            )
        if whole:
            found[field.name] = column(whole[0])
            continue
        if missing := [c for c in parts if c not in columns]:
            column_names(record)  # refuses a component that is called as another field
            raise ArgumentError(
                f"{record.name}.{field.name} is {an(field.type)}: the table has "
                f"{', '.join(columns)}, and no {', '.join(missing)}"
            )
        brought_columns = [
            brought(f"the column {c!r} of {record.name}", column(c), device) for c in parts
        ]
        found[field.name] = array_module(device).stack(brought_columns, axis=1)
    return found


def _flat(record: Record, values: NDArray[Any], prefix: str = "") -> dict[str, NDArray[Any]]:
    """The columns of a structured array. Those of a record within its records have the names of
    both: `shape.radius` where the record has one called so within it, else `shape_radius`.
    """
    found: dict[str, NDArray[Any]] = {}
    for inner in values.dtype.names or ():
        name, column = f"{prefix}{inner}", values[inner]
        whole = column.dtype.names is None or record.field(name) is not None
        joint = "_" if record.part(name) is None else "."
        columns = {name: column} if whole else _flat(record, column, f"{name}{joint}")
        if twice := [n for n in columns if n in found]:
            raise ArgumentError(
                f"{record.name}.array: the table has two columns {twice[0]!r}, one of them in a "
                "record within its records"
            )
        found |= columns
    return found


def _table(record: Record, values: Any) -> tuple[list[Any], Callable[[str], Any]]:
    """The names of the columns of a table, and what gives one of them."""
    pandas: Any = sys.modules.get("pandas")  # a caller with one of its tables has imported it
    if isinstance(values, np.ndarray) and values.dtype.names is not None:
        if values.ndim != 1:
            raise ArgumentError(
                f"{record.name}.array takes a structured array of shape (n,), found shape "
                f"{values.shape}; .reshape(-1) makes one"
            )
        flat = _flat(record, values)
        return list(flat), flat.__getitem__
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
        else f"{shown(values)}; .copy() is an array of them"
        if isinstance(values, PartOfRecords)
        else shown(values)
    )
    raise ArgumentError(
        f"{record.name}.array takes fields by their names, {record.fields[0].name}=..., a "
        "structured array, a DataFrame or a mapping of "
        f"columns, found {what}"
    )


# ------------------------------------------------------------ memory of others


def _over(
    cls: type[Any],
    values: Any,
    fields: Mapping[str, Any],
    layout: LayoutArgument | None,
    device: str | None,
) -> RecordArray:
    """An array whose memory is that of a structured array, or of the array of its only field."""
    record: Record = cls.__record__
    place = f"{record.name}.array(copy=False)"
    if isinstance(values, np.ndarray) and values.dtype.names is not None and not fields:
        memory, found = values, layout_of(record, values.dtype)
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
    if layout == AUTO:
        raise ArgumentError(
            f"{place}: layout='auto' moves records to another layout, and the memory is that of "
            "another array; leave layout= or copy=False out"
        )
    if layout is not None and layout != found:
        raise ArgumentError(f"{place}: the memory lies as {found}, and {layout} is requested")
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
    data = memory.reshape(-1).view(np.uint8)
    storage = Storage.over(record, len(memory), found, where, data, fixed=OF_ANOTHER)
    return RecordArray(storage, cls)


def _elsewhere(place: str, lies: str, wanted: str) -> DeviceError:
    return DeviceError(
        f"{place}: the memory lies on {lies!r}, and the array would be on {wanted!r}; give "
        f"device={lies!r}"
    )


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
    width = t.shape_of(field.type)
    dtype = t.scalar_of(field.type).dtype
    if array.dtype != dtype or array.shape[1:] != width or array.ndim != 1 + len(width):
        wanted = f"(n, {width[0]})" if width else "(n,)"
        raise ArgumentError(
            f"{place}: {field.name!r} is {an(field.type)}: wanted {wanted} of {dtype}, found "
            f"{tuple(array.shape)} of {array.dtype}"
        )
    return array

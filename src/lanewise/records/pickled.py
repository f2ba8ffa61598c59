"""What pickle calls to make arrays and rows again. It finds these functions by their names here:
they stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from lanewise.language.record import Record, RecordValue, make_class
from lanewise.layouts import Layout
from lanewise.records.arrays import RecordArray
from lanewise.records.open_layout import LayoutArgument
from lanewise.runtime.mesh import Mesh
from lanewise.support.errors import RecordError
from lanewise.support.naming import named_object


def restored_array(
    module: str,
    qualname: str,
    record: Record,
    layout: LayoutArgument,
    device: str | Mesh,
    fields: Mapping[str, Any],
    host_layout: Layout | None = None,
) -> Any:
    """A pickled array of records. Raises `DeviceError` where its device is missing."""
    cls = record_class(module, qualname, record)
    count = len(next(iter(fields.values())))
    array = RecordArray.zeros(
        record, count, layout=layout, device=device, python_class=cls, host_layout=host_layout
    )
    for name, values in fields.items():
        setattr(array, name, values)
    return array


def restored_row(module: str, qualname: str, record: Record, fields: Mapping[str, Any]) -> Any:
    """A pickled record."""
    return record_class(module, qualname, record)(**fields)


def record_class(module: str, qualname: str, record: Record) -> type[RecordValue]:
    """The record class of this name; made again from its fields where there is none, as for classes
    of functions and notebooks.

    Raises `RecordError` where the class of this name has other fields now.
    """
    cls = named_object(module, qualname, load=True)
    if not (isinstance(cls, type) and issubclass(cls, RecordValue)):
        return _made(module, qualname, record)
    if cls.__record__ != record:
        raise RecordError(
            f"what was pickled are records {record}, and {module}.{qualname} is now "
            f"{cls.__record__}"
        )
    return cls


@cache
def _made(module: str, qualname: str, record: Record) -> type[RecordValue]:
    return make_class(record, module, qualname, None)

"""What pickle, copy and other processes need: how arrays, rows, kernels and names of types are found or made again."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from lanewise.errors import RecordError

if TYPE_CHECKING:
    from lanewise.layouts import Layout
    from lanewise.record import Record, RecordValue


def named_object(module: str, qualname: str, *, load: bool = False) -> Any:
    """What stands under a name at the top of a module (or in a class there); None if nothing does."""
    if load and module not in sys.modules:
        try:
            importlib.import_module(module)
        except ImportError:
            return None
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def by_name(instance: Any, otherwise: tuple[Any, ...]) -> str | tuple[Any, ...]:
    """For `__reduce__`: the qualified name of a kernel that its module has under it, as for functions; else how to make it again."""
    found = named_object(instance.__module__, instance.__qualname__)
    return instance.__qualname__ if found is instance else otherwise


def restored_array(
    module: str, qualname: str, record: Record, layout: Layout, device: str, fields: Mapping[str, Any]
) -> Any:
    """A pickled array of records. Raises `DeviceError` where its device is missing."""
    from lanewise.arrays import RecordArray

    cls = record_class(module, qualname, record)
    count = len(next(iter(fields.values())))
    array = RecordArray.zeros(record, count, layout=layout, device=device, python_class=cls)
    for name, values in fields.items():
        setattr(array, name, values)
    return array


def restored_row(module: str, qualname: str, record: Record, fields: Mapping[str, Any]) -> Any:
    """A pickled record."""
    return record_class(module, qualname, record)(**fields)


def record_class(module: str, qualname: str, record: Record) -> type[RecordValue]:
    """The record class of this name; made again from its fields where there is none, as for classes of functions and notebooks.

    Raises `RecordError` where the class of this name has other fields now.
    """
    from lanewise.record import RecordValue

    found = named_object(module, qualname, load=True)
    if not (isinstance(found, type) and issubclass(found, RecordValue)):
        return _made(module, qualname, record)
    if found.__record__ != record:
        raise RecordError(f"what was pickled are records {record}, and {module}.{qualname} is now {found.__record__}")
    return found


@cache
def _made(module: str, qualname: str, record: Record) -> type[RecordValue]:
    from lanewise.record import make_class

    return make_class(record, module, qualname, None)

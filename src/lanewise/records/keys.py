"""What stands in the brackets of an array of records: a number, a slice, a mask, or
integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.records.field_values import brought
from lanewise.runtime.memory import array_module, device_of, module_of, on
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True, slots=True)
class Span:
    """`count` records from `start` on, `step` apart."""

    start: int
    step: int
    count: int

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True, eq=False)
class Indices:
    """Records by their indices: int64 of shape (k,), from 0 on, on the device of the array.

    distinct: surely none comes twice.
    """

    indices: Any
    distinct: bool

    def __len__(self) -> int:
        return len(self.indices)


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """Records by whether they are meant: bool of shape (n,), on the device of the array."""

    values: Any


Key = int | Span | Indices | Mask


def read_key(name: str, key: Any, count: int, device: str, field: str) -> Key:
    """A key of an array of `count` records called `name`; `field` is one of its fields, for hints.

    Raises `IndexError` for what lies outside, `ArgumentTypeError` and `ArgumentError` for what is
    no key.
    """
    if (
        isinstance(key, (bool, np.bool_))
        or key is None
        or key is Ellipsis
        or isinstance(key, (str, tuple))
    ):
        raise _no_key(key, field)
    if isinstance(key, (int, np.integer)):
        return place_of(int(key), count)
    if isinstance(key, slice):
        return _span(name, key, count)
    if isinstance(key, list) and not key:
        return Indices(array_module(device).zeros(0, np.int64), distinct=True)
    if not (isinstance(key, list) or hasattr(key, "dtype")):
        raise _no_key(key, field)
    array = brought(f"a key of an array of {name}", key, device)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise ArgumentTypeError(
            f"records are taken with a mask of shape ({count},) or with integers of shape "
            f"(k,), found an array of {array.dtype} "
            f"with shape {tuple(array.shape)}"
        )
    return (
        Mask(checked_mask(name, array, count, device))
        if array.dtype.kind == "b"
        else _places(name, array, count)
    )


def place_of(index: int, count: int) -> int:
    """An index from 0 on; raises `IndexError`."""
    if not -count <= index < count:
        raise IndexError(f"record {shown(index)} of {count}")
    return index % count


def places_of_mask(name: str, mask: Any, count: int, device: str) -> Indices:
    """The records that a mask keeps, in their order."""
    mask = checked_mask(name, mask, count, device)
    return Indices(array_module(device).flatnonzero(mask), distinct=True)


def checked_mask(name: str, mask: Any, count: int, device: str) -> Any:
    """A mask of as many records, on the device; raises `ArgumentError` for another shape or
    type.
    """
    mask = brought(f"the mask of an array of {name}", mask, device)
    if mask.dtype.kind != "b" or mask.shape != (count,):
        raise ArgumentError(
            f"a mask of {count} records of {name} has the type bool and the shape ({count},), "
            f"found {mask.dtype} with shape "
            f"{tuple(mask.shape)}"
        )
    return mask


def _span(name: str, key: slice, count: int) -> Span:
    try:
        start, stop, step = key.indices(count)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"a slice of an array of {name}: {error}") from error
    if step < 0:
        raise ArgumentError(
            f"a slice of an array of {name} goes forward, found the step {step}; "
            f"array[np.arange(len(array))[::{step}]] is a copy in "
            "that order"
        )
    return Span(start, step, len(range(start, stop, step)))


def _places(name: str, array: Any, count: int) -> Indices:
    if not array.size:
        return Indices(module_of(array).zeros(0, np.int64), distinct=True)
    with on(device_of(array)):
        return _checked_places(name, array, count)


def _checked_places(name: str, array: Any, count: int) -> Indices:
    module = module_of(array)
    least, most = int(array.min()), int(array.max())
    if least < -count or most >= count:
        outside = least if least < -count else most
        element = int((array == outside).argmax())
        raise IndexError(
            f"record {outside} of {count}: element {element} of the indices of an array of {name}"
        )
    indices = array.astype(np.int64)
    return Indices(module.where(indices < 0, indices + count, indices), distinct=False)


def check_distinct(name: str, places: Indices) -> None:
    """Refuse to assign to a record twice: which of the values it would hold is undefined on
    a GPU.
    """
    if places.distinct or not len(places):
        return
    with on(device_of(places.indices)):
        ordered = module_of(places.indices).sort(places.indices)
        if bool((twice := ordered[1:] == ordered[:-1]).any()):
            raise ArgumentError(
                f"record {int(ordered[int(twice.argmax())])} of an array of {name} would be "
                "assigned twice; "
                "give each index once"
            )


def _no_key(key: Any, field: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        "records are taken with an integer, a slice, a mask or integers, found "
        f"{shown(key)}; fields are arrays: "
        f".{field}[...]"
    )

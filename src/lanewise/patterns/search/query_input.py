"""What queries take: positions as plain arrays of any library, brought to one device and checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.errors import ArgumentError
from lanewise.field_values import brought
from lanewise.patterns.search.base import Search, reach
from lanewise.patterns.search.points import Points, points_of_values
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import array_module

DLPACK_CUDA = (2, 13)  # kinds of memory: of a GPU, and of one that the host can read too
MOST_POINTS = 2**31 - 2**16  # their numbers have 32 bits


def home(values: Any) -> str | None:
    """The GPU that an array lies on, or None for what lies on the host."""
    kind: Any = getattr(values, "__dlpack_device__", None)
    if kind is not None and not isinstance(values, type):
        try:
            library, number = kind()
        except Exception:  # of the user's class: who reads the array says what is wrong
            return None
        if int(library) not in DLPACK_CUDA:
            return None
        return f"cuda:{int(number)}"
    if hasattr(values, "__cuda_array_interface__"):
        return f"cuda:{int(array_module('cuda').asarray(values).device.id)}"
    return None


def device_of(values: Any, device: str | None) -> str:
    """Where a query runs: where it is told to, else where the points are; from the host, on the default device."""
    return resolve(device if device is not None else home(values))


def points_from(call: str, name: str, values: Any, device: str, search: Search) -> Points:
    """Positions of shape (n, 2) or (n, 3), float32 or float64, as points on `device`.

    Raises `ArgumentError` for other shapes and types, for positions that are not finite, for those outside a bounded
    world, and for those whose distances the type does not hold.
    """
    array = brought(f"{call}: {name!r}", values, device)
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise ArgumentError(f"{call}: {name!r} must have the shape (n, 2) or (n, 3), found {tuple(array.shape)}")
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        raise ArgumentError(
            f"{call}: {name!r} must be float32 or float64, found {array.dtype}; distances are computed in the type of the positions: "
            f"{name}.astype('float64')"
        )
    if len(array) > MOST_POINTS:
        raise ArgumentError(f"{call}: {name!r} has {len(array):,} positions; wanted at most {MOST_POINTS:,}")
    points = points_of_values(_plain(array, device), device)
    if points.count:
        points.check(f"{call}: {name!r}", search.world, reach(search, points.precision, points.dimension))
    return points


def _plain(array: Any, device: str) -> Any:
    """Contiguous, in the byte order of the machine, and writable: kernels are compiled for that."""
    plain = array_module(device).ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return plain.copy() if isinstance(plain, np.ndarray) and not plain.flags.writeable else plain

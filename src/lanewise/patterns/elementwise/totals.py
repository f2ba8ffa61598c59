"""Sums and extremes of whole arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.language import values as v
from lanewise.records.arrays import RecordArray
from lanewise.records.field_values import brought
from lanewise.records.split_array import SplitArray
from lanewise.runtime.devices import default_device
from lanewise.runtime.memory import home, module_of
from lanewise.support.checks import check_unmasked, shown
from lanewise.support.errors import ArgumentError

NO_EXTREME = "an array without elements has no smallest and no largest one"


def _numbers(array: Any) -> tuple[Any, Any]:
    """The library of an array of numbers, and the array as that library's own.

    Rows on a mesh come to the host: their sum has the same bits for every number of parts.
    """
    if isinstance(array, SplitArray):
        array = array.numpy()
    if isinstance(array, np.ndarray):
        check_unmasked("a reduction", array)
        module: Any = np
    elif hasattr(array, "__cuda_array_interface__") and not isinstance(array, type):
        array = brought("a reduction", array, home(array) or default_device())
        module = module_of(array)
    else:
        raise ArgumentError(f"a reduction takes an array of values, found {_described(array)}")
    if array.dtype.kind not in "biuf" or not array.ndim:
        raise ArgumentError(
            f"a reduction takes an array of numbers with at least one axis, found {shown(array)}"
            + ("" if array.ndim else "; .reshape(1) is one of one element")
        )
    if array.ndim > 2:
        raise ArgumentError(
            "a reduction takes numbers of shape (n,) or vectors of shape (n, components), found "
            f"the shape {tuple(array.shape)}: "
            "reshape it; kernel.sum, .min and .max reduce the results of arrays of any shape"
        )
    return module, array


def _described(array: Any) -> str:
    if isinstance(array, RecordArray):
        return (
            f"an array of {array.record.name}: name a field of it, or write an @lw.elementwise "
            "function, whose kernel.sum, .min and .max reduce its results"
        )
    return type(array).__name__


def _filled(array: Any) -> tuple[Any, Any]:
    """An array that has at least one element, behind its library."""
    module, array = _numbers(array)
    if not len(array):
        raise ArgumentError(NO_EXTREME)
    return module, array


def _host(result: Any) -> Any:
    """A Python number, or a NumPy array of one number a component."""
    host = result.get() if hasattr(result, "get") else np.asarray(result)
    return host.item() if host.ndim == 0 else host


def sum_(array: Any) -> Any:
    """The sum over the elements of an array of shape (n,) or (n, components).

    Accumulated in float64 or int64, in a fixed order, on the device of the array; for an array on a
    mesh on the host, by every process. The result is a number, or a vector of components. The sum
    of no elements is 0. Raises `ArgumentError` for anything but such an array.
    """
    module, array = _numbers(array)
    dtype = np.float64 if array.dtype.kind == "f" else np.int64
    if module is np and array.ndim == 2:
        # NumPy adds rows in another order where they lie in columns; parts of a mesh may do either
        return np.array([column.sum(dtype=dtype) for column in array.T], dtype)
    return _host(module.sum(array, axis=0, dtype=dtype))


def min_(first: Any, *others: Any) -> Any:
    """The smallest element of one array (by component), or the smaller of several numbers or
    vectors: `lw.min(array)`, `lw.min(a, b)`.

    It is NaN if any of them is. An array has the shape (n,) or (n, components). Raises
    `ArgumentError` for an array without elements.
    """
    if others:
        for other in others:
            first = v.minimum(first, other)
        return first
    module, array = _filled(first)
    return _host(module.min(array, axis=0))


def max_(first: Any, *others: Any) -> Any:
    """The largest element of one array (by component), or the larger of several numbers or
    vectors: `lw.max(array)`, `lw.max(a, b)`.

    It is NaN if any of them is. An array has the shape (n,) or (n, components). Raises
    `ArgumentError` for an array without elements.
    """
    if others:
        for other in others:
            first = v.maximum(first, other)
        return first
    module, array = _filled(first)
    return _host(module.max(array, axis=0))


# What the frontend knows them by: with several arguments `min` and `max` are the functions of
# kernels, with one they are not.
min_.__lanewise_intrinsic__ = "min"  # type: ignore[attr-defined]


max_.__lanewise_intrinsic__ = "max"  # type: ignore[attr-defined]


sum_.__lanewise_reduction__ = "sum"  # type: ignore[attr-defined]

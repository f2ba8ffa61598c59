"""The arrays of calls of primitives: one row of numbers of NumPy or CuPy, as it lies in memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.runtime.field_copies import advice_of, is_writable
from lanewise.runtime.memory import device_of, module_of
from lanewise.support.checks import check_unmasked, shown
from lanewise.support.errors import ArgumentError


def check_row(place: str, array: Any, types: tuple[str, ...], advice: str) -> None:
    """Refuse what is no contiguous array of shape (n,) of one of these types. advice: what to do
    about another type.
    """
    known = is_array(array)
    if (
        known
        and array.ndim == 1
        and array.flags.c_contiguous
        and array.dtype.isnative
        and array.dtype.name in types
    ):
        return
    wanted = (
        f"{place} must be a contiguous array of NumPy or CuPy of shape (n,) of {', '.join(types)}"
    )
    if not known:
        raise ArgumentError(f"{wanted}, found {shown(array)}")
    found = f"{wanted}, found one of {array.dtype} with shape {tuple(array.shape)}"
    if array.dtype.name not in types or not array.dtype.isnative:
        raise ArgumentError(f"{found}; {advice}")
    if array.ndim != 1:
        raise ArgumentError(f"{found}; .reshape(-1) makes one row of it")
    raise ArgumentError(f"{found}, which is not contiguous; pass np.ascontiguousarray(...) of it")


def check_out(call: str, out: Any, beside: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    """Refuse an array for results that has another type or shape, lies elsewhere than the one
    besides it, or is read-only.
    """
    check_unmasked(f"{call}: out", out)
    if (place_of(out), out.dtype, out.shape) != (place_of(beside), dtype, shape):
        raise ArgumentError(
            f"{call}: out must be an array of {np.dtype(dtype)} with shape {shape} on "
            f"{place_of(beside)}, where the values are, "
            f"found one of {out.dtype} with shape {tuple(out.shape)} on {place_of(out)}"
        )
    if not is_writable(out):
        raise ArgumentError(f"{call}: out is written, and this array is read-only{advice_of(out)}")


def empty_beside(array: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """A new array on the device of another one, of anything."""
    return module_of(array).empty(shape, dtype)


def place_of(array: Any) -> str:
    """Where an array lies, for people."""
    return "the host" if isinstance(array, np.ndarray) else repr(device_of(array))


def is_array(value: Any) -> bool:
    """Whether it is an array of NumPy, without a mask, or of CuPy."""
    if isinstance(value, np.ndarray):
        return not isinstance(value, np.ma.MaskedArray)
    return _is_of_cupy(type(value))


@cache
def _is_of_cupy(kind: type[Any]) -> bool:
    """Whether it is CuPy's class of arrays, or that of a copy of a field, which is derived from
    it.
    """
    return hasattr(kind, "__cuda_array_interface__") and any(
        k.__module__.partition(".")[0] == "cupy" for k in kind.__mro__
    )

"""Arrays whose elements have indices, as a call brings them: contiguous, of the declared type, on
one device; nothing is converted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lanewise.language.array_types import ArrayType
from lanewise.launch.arguments import describe
from lanewise.runtime.field_copies import advice_of, is_writable
from lanewise.support.errors import ArgumentError

NARROW = (
    2**31 - 2**16
    # values of an index, or elements of an array, for which 32 bits are enough: blocks reach beyond
    # their end
)


def check_shaped(place: str, array: Any, kind: ArrayType, written: bool) -> None:
    """Raise `ArgumentError` for what is no contiguous array of this type. `place`: what the error
    is about.
    """
    dtype = np.dtype(kind.element.dtype)
    wanted = (
        f"a contiguous array of NumPy or CuPy with {kind.rank} "
        f"dimension{'s' if kind.rank > 1 else ''} of {dtype}"
    )
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(
            f"{place} must be {wanted}, found a masked one; pass .filled(value) of it"
        )
    if not _is_array(array):
        raise ArgumentError(f"{place} must be {wanted}, found {describe(array)}")
    refusal = (
        f"{place} must be {wanted}, found one of {array.dtype} with shape {tuple(array.shape)}"
    )
    if array.dtype != dtype:
        hint = "a kernel writes into it" if written else "arrays are passed as they are"
        raise ArgumentError(
            f"{refusal}; nothing is converted, because {hint}: make it one of {dtype}"
        )
    if array.ndim != kind.rank:
        raise ArgumentError(
            f"{refusal}; reshape it, or declare it as lw.Array{array.ndim}[lw.{kind.element}]"
        )
    if not array.flags.c_contiguous:
        hint = "and copy the result back" if written else "which copies it"
        raise ArgumentError(
            f"{refusal}, which is not contiguous; pass np.ascontiguousarray(...) of it, {hint}"
        )
    if written:
        check_writable(place, array)


def check_writable(place: str, array: Any) -> None:
    """Raise `ArgumentError` for an array that is read-only."""
    if not is_writable(array):
        raise ArgumentError(
            f"{place} is written by the kernel, and this array is read-only{advice_of(array)}"
        )


def writable_checks(place: str, *arrays: Any) -> tuple[Callable[[], None], ...]:
    """What a bound call asks each time of arrays that it writes."""
    return tuple(
        partial(check_writable, place, array) for array in arrays if isinstance(array, np.ndarray)
    )


def _is_array(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return True
    kinds = type(value).__mro__  # of a copy of a field the second one
    return hasattr(value, "__cuda_array_interface__") and any(
        k.__module__.partition(".")[0] == "cupy" for k in kinds
    )

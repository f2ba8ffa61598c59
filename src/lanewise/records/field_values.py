"""Arrays that come in from outside, as values of fields.

What comes in is brought to the device, and checked against the type and shape that it is to fill. A
conversion may round floats and may not lose anything else: no float becomes an integer, no
integer wraps, no finite float becomes infinite.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.runtime.memory import array_module, bring, device_of, module_of, on
from lanewise.support.checks import check_unmasked
from lanewise.support.errors import ArgumentError, LanewiseError


def brought(name: str, value: Any, device: str) -> Any:
    """An array-like as an array on the device; the error says which argument or field it was
    for.
    """
    check_unmasked(name, value)
    try:
        array = bring(value, device)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}") from None  # the same, with the name
    except LanewiseError:
        raise
    except Exception as error:
        # ragged lists, foreign arrays that cannot be shared, whatever their own methods raise
        raise ArgumentError(
            f"{name}: {type(value).__name__} cannot be read as an array ({error})"
        ) from error
    if array.dtype.kind not in "biuf":
        raise ArgumentError(
            f"{name}: an array of numbers is needed, found {type(value).__name__} with dtype "
            f"{array.dtype}"
        )
    return array


def check_type(name: str, array: Any, kind: t.ValueType) -> None:
    """Refuse values that the scalars of `kind` cannot hold."""
    scalar = t.scalar_of(kind)
    if array.dtype == scalar.dtype:
        return
    whole_into_whole = array.dtype.kind in "iu" and scalar.is_integer
    if not whole_into_whole and not np.can_cast(array.dtype, scalar.dtype, "same_kind"):
        raise ArgumentError(
            f"{name} holds {scalar}: {array.dtype} would lose information; convert it first"
        )
    if whole_into_whole and array.size and not np.can_cast(array.dtype, scalar.dtype, "safe"):
        with on(device_of(array)):
            smallest, largest = int(array.min()), int(array.max())
        low, high = t.limits(scalar)
        if smallest < low or largest > high:
            what = (
                f"{largest} does"
                if smallest == largest
                else f"values from {smallest} to {largest} do"
            )
            raise ArgumentError(f"{name} holds {scalar}: {what} not fit")


def rounded(name: str, values: Any, dtype: Any) -> Any:
    """Values as they can be stored: the array itself where no conversion can fail, else a converted
    copy.

    Refuses finite floats that become infinite, before anything is stored.
    """
    if np.can_cast(values.dtype, dtype, "safe") or values.dtype.kind != "f":
        return values
    module = module_of(values)
    with np.errstate(over="ignore", invalid="ignore"), on(device_of(values)):
        result = values.astype(dtype)
        overflows = bool((module.isinf(result) & module.isfinite(values)).any())
    if overflows:
        raise ArgumentError(
            f"{name} holds {dtype}: {values.dtype} values up to {_largest(values):.3g} do not fit"
        )
    return result


def check_fits(name: str, arrays: Iterable[Any], scalar: t.Scalar) -> None:
    """Refuse arrays whose finite numbers become infinite in a float type.

    They may come one after the other.
    """
    limits: Any = np.finfo
    most = float(limits(scalar.dtype).max)
    largest = max((_largest(a) for a in arrays if not _within(a.dtype, most)), default=0.0)
    with np.errstate(over="ignore"):
        if np.isinf(np.float64(largest).astype(scalar.dtype)):
            raise ArgumentError(
                f"{name} are stored as {scalar}, which ends at {most:g}; found values up to "
                f"{largest:.6g}"
            )


def _within(dtype: Any, most: float) -> bool:
    """Whether all finite numbers of a NumPy type are at most `most`."""
    limits: Any = np.finfo if dtype.kind == "f" else np.iinfo
    return dtype.kind == "b" or float(limits(dtype).max) <= most


def converted(name: str, array: Any, scalar: t.Scalar, device: str) -> Any:
    """A contiguous array of the scalar type; the array itself when it is one already."""
    if array.dtype == scalar.dtype and array.flags.c_contiguous:
        return array
    result = array_module(device).empty(array.shape, scalar.dtype)
    with on(device):
        result[...] = rounded(name, array, scalar.dtype)
    return result


def _largest(values: Any) -> float:
    with on(device_of(values)):
        finite = values[np.isfinite(values)]
        return float(np.abs(finite).max()) if finite.size else 0.0

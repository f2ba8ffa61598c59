"""Checks of arrays from outside: the error names the field, the first bad body, what was seen and what is wanted."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.checks import host_array
from lanewise.errors import InputError

COMPONENTS = 6
AXES = "xyz"
Scalar = TypeVar("Scalar", np.float64, np.int64)


def vectors(name: str, values: ArrayLike, bodies: int | None = None) -> NDArray[np.float64]:
    """`values` as (n, 3) float64, finite; n must be `bodies` when that is given."""
    array = _real(name, values)
    if array.ndim != 2 or array.shape[1] != 3 or bodies not in (None, len(array)):
        wanted = "n" if bodies is None else str(bodies)
        raise InputError(f"{name} has shape {array.shape}; wanted ({wanted}, 3)")
    bad = ~np.isfinite(array)
    if bad.any():
        body, axis = (int(index) for index in np.argwhere(bad)[0])
        raise InputError(f"{name} of body {body} is {array[body, axis]} in {AXES[axis]}; wanted a finite number")
    return array


def masses(values: ArrayLike, bodies: int) -> NDArray[np.float64]:
    """`values` as (bodies,) float64, finite, zero or more; one number holds for all."""
    array = _one_each("mass", _real("mass", values), bodies)
    _refuse_first("mass", array, ~np.isfinite(array), "a finite number")
    _refuse_first("mass", array, array < 0, "zero or more")
    return array


def ids(values: ArrayLike, bodies: int) -> NDArray[np.int64]:
    """`values` as (bodies,) int64."""
    return _one_each("ids", _whole("ids", values), bodies)


def components(values: ArrayLike, bodies: int) -> NDArray[np.uint8]:
    """`values` as (bodies,) uint8 of 0..5; one number holds for all."""
    array = _one_each("component", _whole("component", values), bodies)
    _refuse_first("component", array, (array < 0) | (array >= COMPONENTS), f"0 to {COMPONENTS - 1}")
    return array.astype(np.uint8)


def scalar(name: str, value: float, minimum: float = -math.inf) -> float:
    """`value` as a finite float of at least `minimum`."""
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{name} is {number}; wanted a finite number")
    if number < minimum:
        raise InputError(f"{name} is {number}; wanted {minimum:g} or more")
    return number


def as_float32(name: str, values: NDArray[Any], bodies: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
    """`values` rounded to float32; refuses what would become infinite. `bodies` are the numbers of the rows, if not 0 to n."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    if not np.isfinite(rounded).all():
        row = int(np.argwhere(~np.isfinite(rounded))[0][0])
        body = row if bodies is None else int(bodies[row])
        raise InputError(f"{name} of body {body} does not fit into float32; wanted magnitudes below 3.4e38")
    return rounded


def _real(name: str, values: ArrayLike) -> NDArray[np.float64]:
    array = _array(name, values)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} has dtype {array.dtype}; wanted real numbers")
    return np.asarray(array, np.float64, order="C")


def _whole(name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = _array(name, values)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} has dtype {array.dtype}; wanted whole numbers")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{name} has the value {int(array.max())}; wanted at most {np.iinfo(np.int64).max}")
    return array.astype(np.int64, copy=False)


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    return host_array(name, values, InputError)


def _one_each(name: str, array: NDArray[Scalar], bodies: int) -> NDArray[Scalar]:
    """(bodies,), from one value a body or from one for all."""
    if array.ndim == 0:
        return np.full(bodies, array)
    if array.shape != (bodies,):
        raise InputError(f"{name} has shape {array.shape}; wanted ({bodies},)")
    return array


def _refuse_first(name: str, array: NDArray[Any], bad: NDArray[np.bool_], wanted: str) -> None:
    if bad.any():
        body = int(np.flatnonzero(bad)[0])
        raise InputError(f"{name} of body {body} is {array[body]}; wanted {wanted}")

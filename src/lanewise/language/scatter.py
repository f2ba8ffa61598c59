"""Scatters: an element of an array is combined with a value, by many threads at once and with the
same bits in every run.

Sums of integers wrap, so that their order does not matter. Minima and maxima of floats have an
order of all numbers: -0.0 is smaller than 0.0, and what is not a number wins against any number and
stays, as NumPy's `nan`. Sums of floats are exact while a kernel
runs, in words next to the array (`lanewise.language.exact_sums`), and are rounded once behind it:
in kernels they are the operation "sum".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import LARGEST, check_unmasked, shown
from lanewise.support.errors import ArgumentError

Operation = Literal["add", "min", "max", "sum"]


def combined(operation: Operation, element: Any, value: Any) -> Any:
    """What becomes of an element, both of one NumPy type."""
    if operation == "add":
        with np.errstate(over="ignore"):
            return element + value
    if not _replaces(operation, element, value):
        return element
    return value if value == value else type(value)(np.nan)


def _replaces(operation: Operation, element: Any, value: Any) -> bool:
    """Whether a value takes the place of an element."""
    if element != element:
        return False
    if value != value:
        return True
    if value == element and value.dtype.kind == "f":
        low, high = (value, element) if operation == "min" else (element, value)
        return bool(np.signbit(low)) and not np.signbit(high)
    return bool(value < element if operation == "min" else value > element)


def _place(name: str, array: Any, index: Any) -> tuple[int, ...]:
    """The place of one element, inside of the array."""
    place = index if isinstance(index, tuple) else (index,)
    whole = all(
        isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_)) for i in place
    )
    if not whole or len(place) != array.ndim:
        numbers = "an integer" if array.ndim == 1 else f"a tuple of {array.ndim} integers"
        raise ArgumentError(
            f"lw.{name}: the index of an array of {array.ndim} dimensions is {numbers}, found "
            f"{shown(index)}"
        )
    if not all(0 <= i < n for i, n in zip(place, array.shape, strict=True)):
        raise ArgumentError(
            f"lw.{name}: {shown(index)} is outside of an array of shape {array.shape}"
        )
    return tuple(int(i) for i in place)


def _scatter(operation: Operation) -> Callable[..., None]:
    def scatter(array: Any, index: Any, value: Any) -> None:
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
            raise ArgumentError(
                f"lw.{scatter.__name__} changes an element of an array of NumPy, found "
                f"{type(array).__name__}"
            )
        check_unmasked(f"lw.{scatter.__name__}", array)
        place = _place(scatter.__name__, array, index)
        if isinstance(value, (bool, np.bool_)) or not isinstance(
            value, (int, float, np.integer, np.floating)
        ):
            raise ArgumentError(f"lw.{scatter.__name__} takes a number, found {shown(value)}")
        if array.dtype.kind != "f" and isinstance(value, (float, np.floating)):
            raise ArgumentError(
                f"lw.{scatter.__name__}: {shown(value)} is not an integer, as the elements are"
            )
        with np.errstate(all="ignore"):
            kept = (
                np.asarray(value).astype(array.dtype)[()]
                if abs(value) < 2**63 or (array.dtype.kind == "f" and not abs(value) > LARGEST)
                else None
            )
        if kept is None:
            raise ArgumentError(
                f"lw.{scatter.__name__}: {shown(value)} does not fit into {array.dtype}"
            )
        array[place] = combined(operation, array[place], kept)

    scatter.__name__ = scatter.__qualname__ = f"scatter_{operation}"
    scatter.__lanewise_scatter__ = operation  # type: ignore[attr-defined]  # what the frontend knows it by
    return scatter


_add, scatter_min, scatter_max = _scatter("add"), _scatter("min"), _scatter("max")


@settings_by_name
def scatter_add(array: Any, index: Any, value: Any, *, exact: bool = True) -> None:
    """Add a number to an element: `lw.scatter_add(counts, place, 1)`, in elementwise and threadwise
    functions.

    Many elements or threads may add to one element, and the result has the same bits in every run,
    on every device and with any number of threads. Sums of integers wrap. Sums of floats are exact:
    the old element and all values are added, and rounded once to the nearest float when the kernel
    ends. A NaN among the values makes the sum NaN, and so do infinities of both signs; a sum that
    is too large for the type is infinite.

    index: an integer, or a tuple for an array of two or three dimensions. value: converted to the
    type of the elements. exact: a literal. False, for floats only, adds one after the other on a
    CPU, two to three times as fast, in an order that the plan determines (`parts`), and rounds each
    sum; a GPU still adds exactly. The function must not access the array in any other way. Outside
    of kernels it adds one number to an element of a NumPy array, and rounds.
    """
    _add(array, index, value)


scatter_add.__lanewise_scatter__ = "add"  # type: ignore[attr-defined]
scatter_min.__doc__ = """Replace an element by the smaller of it and a value; otherwise as
`scatter_add`.

For floats -0.0 is smaller than 0.0, and NaN wins.
"""
scatter_max.__doc__ = """Replace an element by the larger of it and a value; otherwise as
`scatter_add`.

For floats 0.0 is larger than -0.0, and NaN wins.
"""

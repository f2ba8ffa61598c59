"""A masked element is no number: whoever takes arrays refuses it, and nothing reads what lies under
the mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.public_calls import CALLS

X = np.arange(6, dtype=np.float32)
WHOLE = np.arange(6, dtype=np.int32)

# what takes arrays, and has numbers or lists in the table of public calls
MORE: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "interpolate a coordinate": lambda masked: lw.interpolate(X, masked(X)),
    "ragged lists": lambda masked: lw.ragged([X, masked(X)]),
    "ragged counts": lambda masked: lw.ragged(X, counts=masked(np.array([2, 2, 2]))),
    "ragged levels": lambda masked: lw.ragged(X, counts=([3], masked(np.array([2, 2, 2])))),
    **{
        f"{name} {place}": lambda masked, name=name, place=place: getattr(lw, name)(
            *(masked(WHOLE) if n == place else 1 for n in range(3))
        )
        for name in ("random", "random4", "drandom", "normal", "unit_vector")
        for place in (0, 2)
    },
    "random_integer": lambda masked: lw.random_integer(0, masked(WHOLE), 1, 2),
}


def masked(values: Any) -> Any:
    """The array with its first element masked."""
    array = np.ma.array(values)
    array[(0,) * array.ndim] = np.ma.masked
    return array


def _places(name: str) -> Iterator[int | str]:
    """The arguments of a good call that are arrays of NumPy."""
    _, arguments, named = CALLS[name]()
    for place, value in [*enumerate(arguments), *named.items()]:
        if isinstance(value, np.ndarray):
            yield place


def test_every_array_of_a_public_call_refuses_masked_elements() -> None:
    taken: list[str] = []
    for name in CALLS:
        for place in _places(name):
            call, arguments, named = CALLS[name]()
            given: Any = named if isinstance(place, str) else arguments
            given[place] = masked(given[place])
            try:
                call(*arguments, **named)
            except lw.LanewiseError:
                continue
            taken.append(f"{name}, argument {place}")
    assert not taken, "\n".join(taken)


@pytest.mark.parametrize("name", MORE)
def test_what_else_takes_arrays_refuses_masked_elements(name: str) -> None:
    MORE[name](np.asarray)
    with pytest.raises(lw.LanewiseError, match="masked"):
        MORE[name](masked)

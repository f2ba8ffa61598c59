"""`lw.every(k, call)`: a call in every k-th step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, brief


@dataclass(frozen=True, slots=True)
class Every:
    """A call in the steps n with n % k == at."""

    k: int
    call: Any
    at: int


@settings_by_name
@brief
def every(k: int, call: Any, *, at: int = 0) -> Every:
    """A call of a loop in the steps n with n % k == at: `lw.every(100, count.bind(grains, bins))`.

    call: anything that the list of `lw.steps` takes. Raises `ArgumentError` for k below 1, and for
    an `at` that is not a remainder.
    """
    number = whole("lw.every: k", k)
    if number < 1:
        raise ArgumentError(f"lw.every: k is at least 1, found {number}")
    remainder = whole("lw.every: at", at)
    if not 0 <= remainder < number:
        raise ArgumentError(
            f"lw.every({number}, ..., at={remainder}): no step n has n % {number} == {remainder}; "
            f"wanted at from 0 to {number - 1}"
        )
    if isinstance(call, Every):
        raise ArgumentError(
            f"lw.every({number}, lw.every({call.k}, ...)): wanted one of them, which says all of it"
        )
    return Every(number, call, remainder)


def whole(what: str, value: Any) -> int:
    """An integer. Raises `ArgumentError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ArgumentError(f"{what} is an integer, found {shown(value)}")
    return int(value)

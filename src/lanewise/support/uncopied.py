"""What stands for memory that changes in place is not copied by Python's `copy` and `pickle`."""

from __future__ import annotations

from typing import NoReturn

from lanewise.support.errors import ArgumentError


def uncopied(what: str, instead: str) -> NoReturn:
    """For `__reduce__`, by which `copy.copy`, `copy.deepcopy` and `pickle` go: a copy would change
    the same memory, and each would count its own steps.
    """
    raise ArgumentError(
        f"{what} is bound to its memory, and cannot be copied or pickled: {instead}"
    )

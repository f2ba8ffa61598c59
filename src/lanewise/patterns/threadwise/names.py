"""What a threadwise kernel calls the extents of its indices and the lengths of its arrays."""

from __future__ import annotations

from lanewise.ir.names import own

POINTS = own("points")  # of the index space


def extent_of(index: str) -> str:
    """The number of values of an index: a count."""
    return own(f"{index}.extent")


def length_of(array: str, dimension: int) -> str:
    """The length of a dimension of an array: a count."""
    return own(f"{array}.shape{dimension}")

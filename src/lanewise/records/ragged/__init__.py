"""Lists of different lengths in one allocation: what a ragged array is, and what becomes one."""

from lanewise.records.ragged.array import RaggedArray
from lanewise.records.ragged.bound import (
    check_of,
    entries,
    padding,
    storage_of_lists,
    version,
    views,
)
from lanewise.records.ragged.making import ragged, unfilled
from lanewise.records.ragged.memory import PAD

__all__ = [
    "PAD",
    "RaggedArray",
    "check_of",
    "entries",
    "padding",
    "ragged",
    "storage_of_lists",
    "unfilled",
    "version",
    "views",
]

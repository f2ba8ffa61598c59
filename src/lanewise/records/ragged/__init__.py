"""Lists of different lengths in one allocation: what a ragged array is, and what becomes one."""

from lanewise.records.ragged.array import RaggedArray, entries, padding, views
from lanewise.records.ragged.making import ragged, unfilled
from lanewise.records.ragged.memory import PAD

__all__ = ["PAD", "RaggedArray", "entries", "padding", "ragged", "unfilled", "views"]

"""Ragged arrays are made here, of whatever becomes lists."""

from __future__ import annotations

from typing import Any

from lanewise.language.target import CPU
from lanewise.records.ragged.array import RaggedArray, made_of
from lanewise.records.ragged.reading import flat_values, offsets_of, read_lists, wanted_kind
from lanewise.support.attributes import settings_by_name


@settings_by_name
def ragged(
    values: Any, counts: Any = None, *, kind: Any = None, device: str | None = None
) -> RaggedArray:
    """Lists of different lengths in one allocation.

    values: nested lists of arrays, of record arrays or of numbers; an awkward array; or, with
    `counts`, all values consecutively, as an array of shape (n,) or (n, components), or a record
    array. Complex numbers become vectors of two.
    counts: the lengths of the lists: an array of integers for one level; for several levels a tuple
    of arrays, outermost first, or an array with one axis per level if all lists of the outer levels
    have the same length. kind: the type of a value, such as lw.vec2; by default that of the array.
    device: by default that of the records or GPU arrays, for other values that of `lw.device`.

    Raises `ArgumentError` for values that are not numbers, lists of different depth, counts that do
    not match the values, and records on several devices without `device`.
    """
    lists = read_lists(values, counts, wanted_kind(kind), device)
    return made_of(lists.flat, lists.ends, lists.device, lists.like)


def unfilled(values: Any, counts: Any) -> RaggedArray:
    """Lists on the host of the sizes of these values, which are not copied: for calls that are
    described and not run.
    """
    flat = flat_values(values, None, CPU.name)
    return made_of(flat, offsets_of(counts, flat.count), CPU.name, values, filled=False)

"""The memory of a ragged array: its flat values with what lies behind them, and its offsets, in one
allocation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.values import WINDOW
from lanewise.layouts import Layout
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.storage import Storage
from lanewise.runtime.memory import allocate_pieces

# values behind the last list of floats that are not numbers: what kernels read in place of a value
# outside of a list
PAD = WINDOW
LEVEL = "level {}"


@dataclass(frozen=True, slots=True)
class FlatValues:
    """What all lists hold together, before it has its memory: values or records, and how many there
    are.
    """

    values: Any
    kind: Record | t.ValueType
    count: int


def host_layout_of(values: Any) -> Layout | None:
    """That of the host's side of records, where they have one."""
    return storage_of(values).layout_of_host if isinstance(values, RecordArray) else None


def padding_bytes(kind: t.ValueType) -> int:
    """Of what lies behind the last list."""
    scalar = t.scalar_of(kind)
    return PAD * len(t.leaves("", kind)) * scalar.size if scalar.is_float else 0


def allocated(
    flat: FlatValues, lengths: Sequence[int], device: str, like: Any, host: Layout | None
) -> tuple[Any, tuple[Any, ...], Any]:
    """The flat array, the offsets of each level, and the allocation, which holds anything.

    like: records whose layout and class those of the array have, where `flat` has none. host: the
    layout of a second side of its records.
    """
    kind, source = flat.kind, flat.values if isinstance(flat.values, RecordArray) else like
    if isinstance(kind, Record):
        name = kind.name
        size = source.layout.arrange(kind.leaves).nbytes(max(1, flat.count))
    else:
        name, width = str(kind), t.scalar_of(kind).size * len(t.leaves("", kind))
        size = flat.count * width + padding_bytes(kind)
    sizes = {"data": size, **{LEVEL.format(n): 8 * length for n, length in enumerate(lengths)}}
    pieces = allocate_pieces(device, sizes, f"lists with {flat.count:,} {name}")
    offsets = tuple(pieces[LEVEL.format(n)].view(np.int64) for n in range(len(lengths)))
    if not isinstance(kind, Record):
        values = pieces["data"].view(t.scalar_of(kind).dtype).reshape(-1, *t.shape_of(kind))
        return values[: flat.count], offsets, pieces.whole
    fixed = "those of a ragged array are as many as its lists have"
    storage = Storage.over(kind, max(1, flat.count), source.layout, device, pieces["data"], fixed)
    if host is not None:
        storage.make_host(host)
    return RecordArray(storage, class_of(source)), offsets, pieces.whole


def fill(data: Any, flat: FlatValues) -> None:
    """Put the values or records where they belong."""
    if not isinstance(flat.kind, Record):
        data[...] = flat.values
    elif flat.count:
        records = isinstance(flat.values, RecordArray)
        for f in flat.kind:
            name = f.name
            setattr(data, name, getattr(flat.values, name) if records else flat.values[name])

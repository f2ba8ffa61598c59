"""Ragged arrays: lists of different lengths, nested to any depth, in one allocation.

The values, or records, of all lists lie in one flat array, one list after the other; for each level
an offset vector says where its lists begin. `rows[i]` of a ragged array with one level is
`data[offsets[0][i] : offsets[0][i + 1]]`, a view. With two levels `stacks[i]` is a ragged array
with one level, which shares the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.layouts import Layout
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import side_of
from lanewise.records.field_values import brought
from lanewise.records.ragged.forms import awkward_array, nested_lists
from lanewise.records.ragged.memory import (
    FlatValues,
    allocated,
    fill,
    host_layout_of,
    padding_bytes,
)
from lanewise.records.two_sides import EVERY
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import array_module, copy_whole, on, read_only, to_host
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentTypeError, brief

UNKNOWN = "not asked for"


class RaggedArray:
    """Lists of different lengths in one allocation; made by `lw.ragged`.

    Indexing gives the outermost lists: with one level a view of the values, of shape (n,) or (n,
    components), or a dict with a view of each field of its records; with more levels a ragged array
    with one level less, on the same memory.
    """

    __slots__ = (
        "__weakref__",
        "_count",
        "_data",
        "_device",
        "_kind",
        "_memory",
        "_offsets",
        "_outer",
        "_views",
        "_whole",
    )

    _count: int | None  # of values or records, where it is whole
    _outer: tuple[int, ...] | str | None  # UNKNOWN until somebody asks
    _views: tuple[Any, Any, Any] | None

    def __init__(
        self,
        data: Any,
        offsets: tuple[Any, ...],
        kind: Record | t.ValueType,
        device: str,
        memory: Any,
        whole: bool,
    ) -> None:
        self._data, self._offsets, self._kind = data, offsets, kind
        self._device, self._memory, self._whole = device, memory, whole
        self._count, self._outer, self._views = None, UNKNOWN, None

    # ------------------------------------------------------------ what it is

    @property
    def data(self) -> Any:
        """All lists one after the other: a `RecordArray`, or an array of shape (n,) or (n,
        components) on its device.

        A `RecordArray` has the layout of the records that the lists were made of, and as many sides
        (`host_layout=`).
        """
        return self._data

    @property
    def offsets(self) -> tuple[Any, ...]:
        """For each level, outermost first, where its lists begin and the last one ends: int64,
        shape (lists + 1,).

        They count lists of the next level; those of the last level count values or records of
        `data`, also of a part. They are for reading, on a CPU read-only: where lists begin is fixed
        when the array is made.
        """
        return self._offsets

    @property
    def levels(self) -> int:
        return len(self._offsets)

    @property
    def kind(self) -> Record | t.ValueType:
        """The record, or the type of a value."""
        return self._kind

    @property
    def device(self) -> str:
        return self._device

    @property
    def nbytes(self) -> int:
        """The size of the allocation that it lies in."""
        return int(self._memory.nbytes)

    @property
    def is_whole(self) -> bool:
        """Whether it has the allocation for itself, and is no part of another ragged array."""
        return self._whole

    @property
    def lengths(self) -> Any:
        """The lengths of the innermost lists, int64, shape (lists,)."""
        return array_module(self._device).diff(self._offsets[-1])

    @property
    def outer_shape(self) -> tuple[int, ...] | None:
        """How many lists each level has, where all lists of a level above the last have as many;
        else None.

        Three stacks of two detectors each give (3, 2), whatever the lengths of the detectors'
        lists.
        """
        if isinstance(self._outer, str):
            self._outer = _outer_shape(len(self), [to_host(o) for o in self._offsets[:-1]])
        return self._outer

    def __len__(self) -> int:
        """How many outermost lists there are."""
        return len(self._offsets[0]) - 1

    @brief
    def __getitem__(self, index: int) -> Any:
        place = self._place(index)
        part = self._offsets[0][place : place + 2]
        inner: list[Any] = []
        for outer, offsets in pairwise(self._offsets):
            begin = int(outer[0])  # a part of another array has the offsets of its own lists alone
            part = offsets[int(part[0]) - begin : int(part[-1]) - begin + 1]
            inner.append(part)
        if inner:
            own = tuple(inner)
            return RaggedArray(self._data, own, self._kind, self._device, self._memory, False)
        first, last = int(part[0]), int(part[1])
        if isinstance(self._kind, Record):
            return {f.name: getattr(self._data, f.name)[first:last] for f in self._kind}
        return self._data[first:last]

    def _place(self, index: int) -> int:
        number: Any = index
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ArgumentTypeError(
                "the lists of a ragged array are taken one by one with a whole number, found "
                f"{shown(number)}"
            )
        if not -len(self) <= index < len(self):
            raise IndexError(f"list {index} of {len(self):,}")
        return int(index) % len(self)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise ArgumentTypeError(
            "lists of different lengths are no array; take .data, which has all of them one after "
            "the other, or a list"
        )

    def __repr__(self) -> str:
        kind = self._kind.name if isinstance(self._kind, Record) else self._kind
        lists = " of ".join(f"{len(o) - 1:,}" for o in self._offsets)
        return f"<ragged: {lists} lists with {self._entries():,} {kind} on {self._device}>"

    # ------------------------------------------------------------ ways out

    def _ends(self) -> list[np.ndarray[Any, Any]]:
        """The offsets on the host, from 0 on at every level, as if it were whole."""
        return [(part := np.asarray(to_host(offsets))) - part[0] for offsets in self._offsets]

    def _range(self) -> tuple[int, int]:
        """The first and the last place of its own in the flat array."""
        return int(self._offsets[-1][0]), int(self._offsets[-1][-1])

    def _entries(self) -> int:
        if self._count is not None:
            return self._count
        first, last = self._range()
        return last - first

    def _own(self) -> Any:
        """Its own part of the flat array on its device: an array, or a dict of them."""
        first, last = self._range()
        if isinstance(self._kind, Record):
            return {f.name: getattr(self._data, f.name)[first:last] for f in self._kind}
        return self._data[first:last]

    def numpy(self) -> tuple[Any, tuple[np.ndarray[Any, Any], ...]]:
        """Copies on the host: the flat values (for records a dict of fields), and the offsets of
        every level, which begin at 0.
        """
        own = self._own()
        copied = (
            {n: np.array(to_host(a)) for n, a in own.items()}
            if isinstance(own, dict)
            else np.array(to_host(own))
        )
        return copied, tuple(self._ends())

    def tolist(self) -> list[Any]:
        """Nested lists of Python numbers; of a vector or a record a list or a dict."""
        return nested_lists(*self.numpy())

    def awkward(self) -> Any:
        """The same lists as an awkward array on the host; needs the package awkward."""
        return awkward_array(*self.numpy())

    # ------------------------------------------------------------ copies

    @brief
    def to(self, device: str) -> RaggedArray:
        """The same lists on another device: one copy of one allocation.

        What is part of another array comes alone.
        """
        where = resolve(device)
        if not self._whole:
            return self.copy() if where == self._device else self.copy().to(where)
        host = host_layout_of(self._data) if where == self._device else None
        made = empty(
            FlatValues(None, self._kind, self._entries()),
            [len(o) for o in self._offsets],
            where,
            self._data,
            host,
        )
        made._outer = self._outer
        if isinstance(self._data, RecordArray):
            side_of(self._data).read(EVERY)
        copy_whole(made._memory, self._memory)
        for offsets in made._offsets:
            read_only(offsets)
        return made

    def copy(self) -> RaggedArray:
        """The same lists in an allocation of their own, on the same device."""
        if self._whole:
            return self.to(self._device)
        return made_of(
            FlatValues(self._own(), self._kind, self._entries()),
            self._ends(),
            self._device,
            self._data,
        )

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> RaggedArray:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Its values and offsets: it comes back on the same device, or not at all; `.to("cpu")`
        before is for other machines.
        """
        whole = self if self._whole else self.copy()
        flat = whole._data if isinstance(self._kind, Record) else np.array(to_host(whole._data))
        return _restored, (flat, self._kind, whole._entries(), tuple(whole._ends()), self._device)


def _outer_shape(count: int, levels: Sequence[Any]) -> tuple[int, ...] | None:
    """`RaggedArray.outer_shape` of `count` lists, given the offsets of all levels but the last."""
    shape = [count]
    for offsets in levels:
        counts = np.diff(offsets)
        if len(counts) and (counts != counts[0]).any():
            return None
        shape.append(int(counts[0]) if len(counts) else 0)
    return tuple(shape)


def _restored(
    flat: Any, kind: Record | t.ValueType, count: int, ends: tuple[Any, ...], device: str
) -> RaggedArray:
    """What pickle makes of the parts of a ragged array."""
    values = (
        flat
        if isinstance(flat, RecordArray)
        else brought("a pickled ragged array", flat, resolve(device))
    )
    return made_of(FlatValues(values, kind, count), ends, resolve(device), flat)


# ---------------------------------------------------------------- memory


def empty(
    flat: FlatValues, lengths: Sequence[int], device: str, like: Any, host: Layout | None = None
) -> RaggedArray:
    """An array of these sizes whose memory holds anything. host: the layout of a second side of its
    records.
    """
    data, offsets, memory = allocated(flat, lengths, device, like, host)
    made = RaggedArray(data, offsets, flat.kind, device, memory, True)
    made._count = flat.count  # pyright: ignore[reportPrivateUsage]
    return made


def made_of(
    flat: FlatValues, ends: Sequence[Any], device: str, like: Any, *, filled: bool = True
) -> RaggedArray:
    """An array with these values and offsets. filled: without it the values may be anything, for
    arrays that nobody reads.
    """
    host = host_layout_of(flat.values) or host_layout_of(like)
    made = empty(flat, [len(e) for e in ends], device, like, host)
    with on(device):
        made._outer = _outer_shape(len(made), ends[:-1])  # pyright: ignore[reportPrivateUsage]
        for target, source in zip(made.offsets, ends, strict=True):
            target[...] = array_module(device).asarray(source)
            read_only(target)
        if not filled:
            return made
        fill(made.data, flat)
        if not isinstance(flat.kind, Record) and t.scalar_of(flat.kind).is_float:
            padding(made)[...] = np.nan
    return made


def padding(array: RaggedArray) -> Any:
    """The values behind the last list, flat: what kernels read in place of a value outside of a
    list. Whole numbers have none.
    """
    return padded(array)[1]


def padded(array: RaggedArray) -> tuple[Any, Any]:
    """The values with those behind the last list, and the latter alone, flat."""
    data, kind = array.data, array.kind
    assert not isinstance(kind, Record)
    last = data.nbytes + padding_bytes(kind)
    memory = array._memory[:last]  # pyright: ignore[reportPrivateUsage]
    whole = memory.view(data.dtype)
    return whole.reshape(-1, *data.shape[1:]), whole[data.size :]


def views(array: RaggedArray) -> tuple[Any, Any, Any]:
    """What a kernel reads of a whole array: where innermost lists begin and end, and its records,
    or its values with `padding`.
    """
    if array._views is None:  # pyright: ignore[reportPrivateUsage]
        ends = array.offsets[-1]
        values = array.data if isinstance(array.kind, Record) else padded(array)[0]
        array._views = ends[:-1], ends[1:], values  # pyright: ignore[reportPrivateUsage]
    return array._views  # pyright: ignore[reportPrivateUsage]


def entries(array: RaggedArray) -> int:
    """How many values or records all lists have together."""
    return array._entries()  # pyright: ignore[reportPrivateUsage]

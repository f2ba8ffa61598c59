"""Ragged arrays: lists of different lengths, nested to any depth, in one allocation.

The values, or records, of all lists lie in one flat array, one list after the other; for each level
an offset vector says where its lists begin. `rows[i]` of a ragged array with one level is
`data[offsets[0][i] : offsets[0][i + 1]]`, a view. With two levels `stacks[i]` is a ragged array
with one level, which shares the memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.target import CPU
from lanewise.layouts import Layout
from lanewise.profiling.copies import copying
from lanewise.records.arrays import RecordArray
from lanewise.records.field_values import brought
from lanewise.records.ragged.forms import awkward_array, nested_lists
from lanewise.records.ragged.memory import FlatMemory, FlatValues, allocated, host_layout_of, put
from lanewise.records.ragged.reading import read_lists
from lanewise.records.two_sides import EVERY
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import array_module, copy_whole, on, read_only, to_host
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, ArgumentTypeError, brief

UNKNOWN = "not requested"


class RaggedArray:
    """Lists of different lengths in one allocation; made by `lw.ragged`.

    Indexing gives the outermost lists: with one level a view of the values, of shape (n,) or (n,
    components), or a dict with a view of each field of its records; with more levels a ragged array
    with one level less, on the same memory.
    """

    __slots__ = (
        "__weakref__",
        "_beside",
        "_count",
        "_device",
        "_flat",
        "_memory",
        "_offsets",
        "_outer",
        "_version",
        "_views",
        "_whole",
    )

    _count: int | None  # of values or records, where it is whole
    _outer: tuple[int, ...] | str | None  # UNKNOWN until a caller asks
    _views: tuple[Any, Any, Any] | None
    # what is on the other side: the host's, or of that the device's, which it does not keep alive
    _beside: RaggedArray | weakref.ref[RaggedArray] | None

    def __init__(
        self,
        flat: FlatMemory,
        offsets: tuple[Any, ...],
        device: str,
        memory: Any,
        whole: bool,
    ) -> None:
        """memory: the allocation, None where data and offsets lie apart."""
        self._flat, self._offsets = flat, offsets
        self._device, self._memory, self._whole = device, memory, whole
        self._count, self._outer, self._views = None, UNKNOWN, None
        self._beside, self._version = None, 0

    # ------------------------------------------------------------ what it is

    @property
    def data(self) -> Any:
        """All lists consecutively: a `RecordArray`, or an array of shape (n,) or (n, components) on
        its device.

        A `RecordArray` has the layout of the records that the lists were made of, and as many sides
        (`host_layout=`). An array of values is read-only on the host's side of a GPU's.
        """
        return self._flat.given

    @property
    def offsets(self) -> tuple[Any, ...]:
        """For each level, outermost first, the starts of its lists and the end of the last one:
        int64, shape (lists + 1,).

        They count lists of the next level; those of the last level count values or records of
        `data`, even for a part. Do not write to them (on a CPU they are read-only); `append` makes
        new ones.
        """
        return self._offsets

    @property
    def levels(self) -> int:
        return len(self._offsets)

    @property
    def kind(self) -> Record | t.ValueType:
        """The record, or the type of a value."""
        return self._flat.kind

    @property
    def device(self) -> str:
        return self._device

    @property
    def nbytes(self) -> int:
        """The size of its allocation; for an array that has grown, and for the host side, the total
        of its parts.
        """
        if self._memory is not None:
            return int(self._memory.nbytes)
        data = self._flat.storage.memory.data.nbytes
        return int(data) + sum(int(o.nbytes) for o in self._offsets)

    @property
    def is_whole(self) -> bool:
        """Whether it owns its allocation, and is not part of another ragged array."""
        return self._whole

    @property
    def lengths(self) -> Any:
        """The lengths of the innermost lists, int64, shape (lists,)."""
        return array_module(self._device).diff(self._offsets[-1])

    @property
    def outer_shape(self) -> tuple[int, ...] | None:
        """The number of lists on each level, if all lists of a level above the last have the same
        number; else None.

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
            begin = int(outer[0])  # a part of another array has the offsets of these lists alone
            part = offsets[int(part[0]) - begin : int(part[-1]) - begin + 1]
            inner.append(part)
        if inner:
            own = tuple(inner)
            return RaggedArray(self._flat, own, self._device, self._memory, False)
        return self._flat.part(int(part[0]), int(part[1]))

    def _place(self, index: int) -> int:
        number: Any = index
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ArgumentTypeError(
                "the lists of a ragged array are taken one by one with an integer, found "
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
        kind = self.kind.name if isinstance(self.kind, Record) else self.kind
        lists = " of ".join(f"{len(o) - 1:,}" for o in self._offsets)
        lists += " list" if lists == "1" else " lists"
        return f"<ragged: {lists} with {self._entries():,} {kind} on {self._device}>"

    # ------------------------------------------------------------ ways out

    def _ends(self) -> list[np.ndarray[Any, Any]]:
        """The offsets on the host, from 0 on at every level, as if it were whole."""
        return [(part := np.asarray(to_host(offsets))) - part[0] for offsets in self._offsets]

    def _range(self) -> tuple[int, int]:
        """Its first and its last place in the flat array."""
        return int(self._offsets[-1][0]), int(self._offsets[-1][-1])

    def _entries(self) -> int:
        if self._count is not None:
            return self._count
        first, last = self._range()
        return last - first

    def _own(self) -> Any:
        """Its own part of the flat array on its device: an array, or a dict of them."""
        return self._flat.part(*self._range())

    def numpy(self) -> tuple[Any, tuple[np.ndarray[Any, Any], ...]]:
        """Copies on the host: the flat values (for records a dict of fields), and the offsets of
        every level, which begin at 0.
        """
        if self._has_sides:
            return self.host._numpy()
        return self._numpy()

    def _numpy(self) -> tuple[Any, tuple[np.ndarray[Any, Any], ...]]:
        own = self._flat.part_on_host(*self._range())
        copied = (
            {n: np.array(a) for n, a in own.items()} if isinstance(own, dict) else np.array(own)
        )
        return copied, tuple(self._ends())

    def tolist(self) -> list[Any]:
        """Nested lists of Python numbers; a vector becomes a list, a record a dict."""
        return nested_lists(*self.numpy())

    def awkward(self) -> Any:
        """The same lists as an awkward array on the host; needs the package awkward."""
        return awkward_array(*self.numpy())

    # ------------------------------------------------------------ copies

    @brief
    def to(self, device: str) -> RaggedArray:
        """The same lists on another device: one copy of one allocation.

        A part of another array is copied alone.
        """
        where = resolve(device)
        if not self._whole:
            return self.copy() if where == self._device else self.copy().to(where)
        given = self._flat.array
        if self._memory is None:
            return made_of(self._values(), self._ends(), where, given)
        host = host_layout_of(given) if where == self._device else None
        sizes = [len(o) for o in self._offsets]
        made = empty(self._values(), sizes, where, given, host)
        made._outer = self._outer
        self._flat.storage.side.read(EVERY)
        assert made._memory is not None
        copy_whole(made._memory, self._memory)
        for offsets in made._offsets:
            read_only(offsets)
        return made

    def _values(self) -> FlatValues:
        """Of a whole array."""
        return FlatValues(self._flat.given, self.kind, self._entries())

    def copy(self) -> RaggedArray:
        """The same lists in a new allocation, on the same device."""
        if self._whole:
            return self.to(self._device)
        return made_of(
            FlatValues(self._own(), self.kind, self._entries()),
            self._ends(),
            self._device,
            self._flat.array,
        )

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> RaggedArray:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Its values and offsets: it comes back on the same device, or not at all; `.to("cpu")`
        before is for other machines.
        """
        whole = self if self._whole else self.copy()
        array = whole._flat.array
        flat = array if array is not None else np.array(whole._numpy()[0])
        return _restored, (flat, self.kind, whole._entries(), tuple(whole._ends()), self._device)

    # ------------------------------------------------------------ the side on the host

    @property
    def _has_sides(self) -> bool:
        return self._flat.storage.side.sides is not None

    @property
    def host(self) -> RaggedArray:
        """The same lists on the host. Accessing this gives an array on a GPU a host side; see
        `RecordArray.host`.

        Reading a side after the other one has changed copies the change first: for records the
        fields that are read, for values all of them. Offsets are copied when the side is made, and
        when lists are added. An array on the CPU is its own, unless its records have two sides.
        """
        storage = self._flat.storage
        if storage.is_on_host:
            return self
        if not self._has_sides:
            storage.make_host()
            self._flat.pad()
        if not self._whole:  # a part, made where a caller asks
            return RaggedArray(self._flat.host, self._on_host(), CPU.name, None, False)
        if not isinstance(self._beside, RaggedArray):
            made = RaggedArray(self._flat.host, self._on_host(), CPU.name, None, True)
            made._count, made._outer = self._count, self._outer
            self._flat.pad()
            self._beside, made._beside = made, weakref.ref(self)
        return self._beside

    @host.deleter
    def host(self) -> None:
        """Let the host's side go, and its memory. An array of it that a caller holds becomes
        independent.
        """
        self._flat.storage.drop_host()
        if isinstance(self._beside, RaggedArray):
            self._beside._beside = None
            self._beside = None

    def _on_host(self) -> tuple[Any, ...]:
        """Its offsets in their own memory on the host."""
        with self._copied(self._offsets, "to host"):
            return tuple(read_only(np.array(to_host(o))) for o in self._offsets)

    def _copied(self, offsets: Sequence[Any], direction: str) -> Any:
        """A context in which offsets go to the other side."""
        nbytes = sum(int(o.nbytes) for o in offsets)
        return copying(self._flat.storage.record.name, "offsets", direction, nbytes)

    # ------------------------------------------------------------ growth

    @brief
    def append(self, lists: Any, counts: Any = None) -> None:
        """Add lists at the end, on both sides.

        lists: outermost lists, as `lw.ragged` takes them: nested as deep as the existing ones, or
        all their values with `counts`; or a ragged array. The memory grows by half, so appending
        many lists one by one costs as much as a few copies of all. Data and offsets are then in
        separate allocations. Bind calls on this array again.

        Raises `ArgumentError` for lists of other depth, type or record, and for a part of an array.
        """
        if not self._whole:
            raise ArgumentError(
                "append changes the length of a ragged array, and this is a part of another one; "
                ".copy() is an independent array"
            )
        flat, ends = self._read(lists, counts)
        own = self._ends()
        if len(ends) != len(own):
            raise ArgumentError(
                f"append: wanted lists of {_levels(len(own))}, found {_levels(len(ends))}"
            )
        if not self._entries() and len(self._flat.storage):
            self._flat.empty()
        self._flat.grow(flat)
        longer = [np.concatenate([a, a[-1] + b[1:]]) for a, b in zip(own, ends, strict=True)]
        self._lengthen(longer, self._entries() + flat.count)
        other = self._beside() if isinstance(self._beside, weakref.ref) else self._beside
        if other is not None:
            there = CPU.name == other._device and not isinstance(self._beside, weakref.ref)
            with self._copied(longer, "to host" if there else "to device"):
                other._lengthen(longer, self._entries())

    def _read(self, lists: Any, counts: Any) -> tuple[FlatValues, Sequence[Any]]:
        """Lists that are to be added, on its device."""
        if isinstance(lists, RaggedArray):
            whole = lists if lists._whole and lists._memory is not self._memory else lists.copy()
            flat, ends = whole._values(), whole._ends()
        else:
            kind = None if isinstance(self.kind, Record) else self.kind
            if counts is None and isinstance(lists, list) and not lists:
                raise ArgumentError(
                    "append: found [], which has no list in it, so its depth is unknown; [[]] is "
                    "one empty list, and nothing is appended by leaving the call out"
                )
            try:
                read = read_lists(lists, counts, kind, self._device)
            except ArgumentError as error:
                raise ArgumentError(f"append: {error}") from error
            flat, ends = read.flat, read.ends
        if flat.kind != self.kind and flat.count:
            found = flat.kind.name if isinstance(flat.kind, Record) else flat.kind
            wanted = self.kind.name if isinstance(self.kind, Record) else self.kind
            raise ArgumentError(f"append: wanted lists of {wanted}, found some of {found}")
        return FlatValues(flat.values, self.kind, flat.count), ends

    def _lengthen(self, ends: Sequence[np.ndarray[Any, Any]], count: int) -> None:
        """Have these offsets, from 0 on, and so many values or records."""
        with on(self._device):
            module = array_module(self._device)
            self._offsets = tuple(read_only(module.array(e)) for e in ends)
        self._count, self._outer, self._views, self._memory = count, UNKNOWN, None, None
        self._version += 1
        self._flat.storage.side.write(0)  # of lists alone nothing else is said


def _levels(count: int) -> str:
    return f"{count} level" + ("" if count == 1 else "s")


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
    made = RaggedArray(data, offsets, device, memory, True)
    made._count = flat.count  # pyright: ignore[reportPrivateUsage]
    return made


def made_of(
    flat: FlatValues, ends: Sequence[Any], device: str, like: Any, *, filled: bool = True
) -> RaggedArray:
    """An array with these values and offsets. filled: without it the values may be anything, for
    arrays that nothing reads.
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
        data = made._flat  # pyright: ignore[reportPrivateUsage]
        put(data, flat)
        data.pad()
    return made

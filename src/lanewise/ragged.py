"""Ragged arrays: lists of different lengths, nested to any depth, in one allocation.

The values, or records, of all lists lie in one flat array, one list after the other; for each level an offset vector says where its lists
begin. `rows[i]` of a ragged array with one level is `data[offsets[0][i] : offsets[0][i + 1]]`, a view. With two levels `stacks[i]`
is a ragged array with one level, which shares the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np

from lanewise import types as t
from lanewise.arrays import RecordArray
from lanewise.checks import shown
from lanewise.errors import ArgumentError, ArgumentTypeError
from lanewise.field_values import brought, check_type, rounded
from lanewise.record import Record
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import allocate_pieces, array_module, to_host
from lanewise.target import is_gpu
from lanewise.values import WINDOW, type_of_annotation

PAD = WINDOW  # values behind the last list of floats that are not numbers: what kernels read in place of a value outside of a list
LEVEL = "level {}"

_PARTS = {np.dtype(np.complex64): np.float32, np.dtype(np.complex128): np.float64}


@dataclass(frozen=True, slots=True)
class _Flat:
    """What all lists hold together, before it has its memory: values or records, and how many there are."""

    values: Any
    kind: Record | t.ValueType
    count: int


class RaggedArray:
    """Lists of different lengths in one allocation; made by `lw.ragged`.

    Indexing gives the outermost lists: with one level a view of the values, of shape (n,) or (n, components), or a dict with a view of
    each field of its records; with more levels a ragged array with one level less, on the same memory.
    """

    __slots__ = ("_data", "_device", "_kind", "_memory", "_offsets", "_whole")

    def __init__(
        self, data: Any, offsets: tuple[Any, ...], kind: Record | t.ValueType, device: str, memory: Any, whole: bool
    ) -> None:
        self._data, self._offsets, self._kind = data, offsets, kind
        self._device, self._memory, self._whole = device, memory, whole

    # ------------------------------------------------------------ what it is

    @property
    def data(self) -> Any:
        """All lists one after the other: a `RecordArray`, or an array of shape (n,) or (n, components) on its device."""
        return self._data

    @property
    def offsets(self) -> tuple[Any, ...]:
        """For each level, outermost first, where its lists begin and the last one ends: int64, shape (lists + 1,).

        They count lists of the next level; those of the last level count values or records of `data`.
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
        return self._offsets[-1][1:] - self._offsets[-1][:-1]

    @property
    def outer_shape(self) -> tuple[int, ...] | None:
        """How many lists each level has, where all lists of a level above the last have as many; else None.

        Three stacks of two detectors each give (3, 2), whatever the lengths of the detectors' lists.
        """
        shape = [len(self)]
        for offsets in self._offsets[:-1]:
            counts = np.diff(to_host(offsets))
            if len(counts) and (counts != counts[0]).any():
                return None
            shape.append(int(counts[0]) if len(counts) else 0)
        return tuple(shape)

    def __len__(self) -> int:
        """How many outermost lists there are."""
        return len(self._offsets[0]) - 1

    def __getitem__(self, index: int) -> Any:
        place = self._place(index)
        first, last = int(self._offsets[0][place]), int(self._offsets[0][place + 1])
        if self.levels > 1:
            inner = (self._offsets[1][first : last + 1], *self._offsets[2:])
            return RaggedArray(self._data, inner, self._kind, self._device, self._memory, False)
        if isinstance(self._kind, Record):
            return {f.name: getattr(self._data, f.name)[first:last] for f in self._kind}
        return self._data[first:last]

    def _place(self, index: int) -> int:
        given: Any = index
        if isinstance(given, bool) or not isinstance(given, (int, np.integer)):
            raise ArgumentTypeError(
                f"the lists of a ragged array are taken one by one with a whole number, found {shown(given)}"
            )
        if not -len(self) <= index < len(self):
            raise IndexError(f"list {index} of {len(self):,}")
        return int(index) % len(self)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise ArgumentTypeError(
            "lists of different lengths are no array; take .data, which has all of them one after the other, or a list"
        )

    def __repr__(self) -> str:
        kind = self._kind.name if isinstance(self._kind, Record) else self._kind
        lists = " of ".join(f"{len(o) - 1:,}" for o in self._offsets)
        return f"<ragged: {lists} lists with {self._entries():,} {kind} on {self._device}>"

    # ------------------------------------------------------------ ways out

    def _ends(self) -> list[np.ndarray[Any, Any]]:
        """The offsets on the host, from 0 on at every level, as if it were whole."""
        ends: list[np.ndarray[Any, Any]] = []
        first, last = 0, len(self)
        for offsets in self._offsets:
            part = np.asarray(to_host(offsets[first : last + 1]))
            first, last = int(part[0]), int(part[-1])
            ends.append(part - part[0])
        return ends

    def _range(self) -> tuple[int, int]:
        """The first and the last place of its own in the flat array."""
        first, last = 0, len(self)
        for offsets in self._offsets:
            first, last = int(offsets[first]), int(offsets[last])
        return first, last

    def _entries(self) -> int:
        first, last = self._range()
        return last - first

    def _own(self) -> Any:
        """Its own part of the flat array on its device: an array, or a dict of them."""
        first, last = self._range()
        if isinstance(self._kind, Record):
            return {f.name: getattr(self._data, f.name)[first:last] for f in self._kind}
        return self._data[first:last]

    def numpy(self) -> tuple[Any, tuple[np.ndarray[Any, Any], ...]]:
        """Copies on the host: the flat values (for records a dict of fields), and the offsets of every level, which begin at 0."""
        own = self._own()
        copied = {n: np.array(to_host(a)) for n, a in own.items()} if isinstance(own, dict) else np.array(to_host(own))
        return copied, tuple(self._ends())

    def tolist(self) -> list[Any]:
        """Nested lists of Python numbers; of a vector or a record a list or a dict."""
        flat, ends = self.numpy()
        if isinstance(flat, dict):
            fields = {n: a.tolist() for n, a in cast("dict[str, Any]", flat).items()}
            items: list[Any] = [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
        else:
            items = flat.tolist()
        for offsets in reversed(ends):
            items = [items[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
        return items

    def awkward(self) -> Any:
        """The same lists as an awkward array on the host; needs the package awkward."""
        ak = _awkward("RaggedArray.awkward")
        flat, ends = self.numpy()
        content: Any
        if isinstance(flat, dict):
            fields = cast("dict[str, Any]", flat)
            content = ak.contents.RecordArray([ak.contents.NumpyArray(a) for a in fields.values()], list(fields))
        else:
            content = ak.contents.NumpyArray(flat)
        for offsets in reversed(ends):
            content = ak.contents.ListOffsetArray(ak.index.Index64(offsets), content)
        return ak.Array(content)

    # ------------------------------------------------------------ copies

    def to(self, device: str) -> RaggedArray:
        """The same lists on another device: one copy of one allocation. What is part of another array comes alone."""
        where = resolve(device)
        if not self._whole:
            return self.copy() if where == self._device else self.copy().to(where)
        made = _empty(_Flat(None, self._kind, len(self._data)), [len(o) for o in self._offsets], where, self._data)
        target, source = made._memory, self._memory
        if isinstance(target, np.ndarray):
            target[...] = to_host(source)
        elif isinstance(source, np.ndarray):
            target.set(source)
        else:
            target[...] = source
        return made

    def copy(self) -> RaggedArray:
        """The same lists in an allocation of their own, on the same device."""
        if self._whole:
            return self.to(self._device)
        return _made(_Flat(self._own(), self._kind, self._entries()), self._ends(), self._device, self._data)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> RaggedArray:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Its values and offsets: it comes back on the same device, or not at all; `.to("cpu")` before is for other machines."""
        whole = self if self._whole else self.copy()
        flat = whole._data if isinstance(self._kind, Record) else np.array(to_host(whole._data))
        return _restored, (flat, self._kind, whole._entries(), tuple(whole._ends()), self._device)


def _restored(flat: Any, kind: Record | t.ValueType, count: int, ends: tuple[Any, ...], device: str) -> RaggedArray:
    """What pickle makes of the parts of a ragged array."""
    values = flat if isinstance(flat, RecordArray) else brought("a pickled ragged array", flat, resolve(device))
    return _made(_Flat(values, kind, count), ends, resolve(device), flat)


# ---------------------------------------------------------------- making


def ragged(values: Any, counts: Any = None, *, kind: Any = None, device: str | None = None) -> RaggedArray:
    """Lists of different lengths in one allocation.

    values: nested lists of arrays, of record arrays or of numbers, an awkward array; or with `counts` all values one after
    the other, as an array of shape (n,) or (n, components), or a record array. Complex numbers become vectors of two.
    counts: how long the lists are: an array of whole numbers for one level; for several a tuple of arrays, outermost first,
    or an array with as many axes, where all lists of the outer levels are of one length. kind: the type of a value, such as
    lw.vec2; without it that of the array. device: by default that of `lw.device`.

    Raises `ArgumentError` for values that are no numbers, lists of different depth, and counts that do not go with the values.
    """
    wanted = _wanted_kind(kind)
    if counts is None and type(values).__module__.partition(".")[0] == "awkward":
        values, counts = _from_awkward(values)
    if counts is not None:
        flat = _flat(values, wanted, device)
        return _made(flat, _offsets(counts, flat.count), _device_of(device), values)
    if isinstance(values, RecordArray) or not isinstance(values, (list, tuple)):
        raise ArgumentError(
            f"lw.ragged takes nested lists of arrays, or all values with counts=...; found {_described(values)} and no counts"
        )
    levels: list[list[int]] = []
    leaves = _leaves(cast("Sequence[Any]", values), levels, _depth(values, "the list"), "the list")
    flat = _flat(_joined(leaves, wanted), wanted, device)
    ends = [np.concatenate([[0], np.cumsum(np.asarray(c, np.int64), dtype=np.int64)]).astype(np.int64) for c in levels]
    return _made(flat, ends, _device_of(device), leaves[0] if leaves else None)


def _device_of(device: str | None) -> str:
    return resolve(device)


def _wanted_kind(kind: Any) -> Record | t.ValueType | None:
    if kind is None:
        return None
    found = type_of_annotation(kind)
    if found is None or t.scalar_of(found) == t.BOOL:
        raise ArgumentError(f"lw.ragged: kind is the type of a value, such as lw.f32 or lw.vec2; found {shown(kind)}")
    return found


def _described(value: Any) -> str:
    return (
        f"an array of shape {tuple(value.shape)}"
        if isinstance(getattr(value, "shape", None), tuple)
        else f"{type(value).__name__} {shown(value)}"
    )


def _is_list(x: Any) -> bool:
    return isinstance(x, (list, tuple))


def _is_leaf(x: Any) -> bool:
    """Whether this is a list of values or records, and none of lists."""
    if _is_list(x):
        return not any(_is_list(y) or isinstance(y, RecordArray) or getattr(y, "ndim", 0) > 0 for y in x)
    return True


def _depth(x: Any, place: str) -> int:
    """Levels of lists above the innermost values: 0 for an array or a list of numbers; -1 for an empty list, which fits any depth."""
    if not _is_list(x):
        return 0
    if _is_leaf(x):
        return 0 if len(x) else -1
    depths = {d: n for n, y in enumerate(x) if (d := _depth(y, f"{place}[{n}]")) >= 0}
    if len(depths) > 1:
        found = " and ".join(f"{place}[{n}] has {d} level{'' if d == 1 else 's'} of lists" for d, n in depths.items())
        raise ArgumentError(f"lw.ragged: all lists of a level are as deep as each other; found that {found}")
    return 1 + max(depths, default=0)


def _leaves(x: Sequence[Any], levels: list[list[int]], depth: int, place: str, level: int = 0) -> list[Any]:
    """The innermost lists in order; `levels` takes the lengths of the lists of each level."""
    if depth < 1:
        raise ArgumentError(
            f"lw.ragged takes lists of lists, or all values with counts=...; found {_described(x)}, which is one list of values"
        )
    while len(levels) < depth:
        levels.append([])
    if depth == 1:
        levels[level].extend(len(y) for y in x)
        return list(x)
    found: list[Any] = []
    for n, y in enumerate(x):
        levels[level].append(len(y))
        found += _leaves(y, levels, depth - 1, f"{place}[{n}]", level + 1)
    return found


def _joined(leaves: list[Any], wanted: Record | t.ValueType | None) -> Any:
    """The innermost lists one after the other."""
    arrays = [a for a in leaves if isinstance(a, RecordArray)]
    if arrays:
        first = arrays[0]
        if len(arrays) < len(leaves) or any(a.record != first.record for a in arrays):
            raise ArgumentError(
                f"lw.ragged: wanted arrays of {first.record.name} in all lists, found others beside them"
            )
        fields = {f.name: np.concatenate([to_host(getattr(a, f.name)) for a in arrays]) for f in first.record}
        return RecordArray.from_fields(
            first.record,
            fields,
            layout=first.layout,
            device="cpu",
            python_class=first._python_class,  # pyright: ignore[reportPrivateUsage]
        )
    filled = [np.asarray(to_host(a)) if hasattr(a, "dtype") else np.asarray(a) for a in leaves if len(a)]
    if not filled:
        shape = (0, wanted.length) if isinstance(wanted, t.Vector) else (0,)
        return np.zeros(
            shape, t.scalar_of(wanted).dtype if wanted is not None and not isinstance(wanted, Record) else np.float64
        )
    shapes = {a.shape[1:] for a in filled}
    if len(shapes) > 1 or any(a.dtype.kind not in "biufc" for a in filled):
        found = ", ".join(sorted({f"{a.dtype} {a.shape}" for a in filled}))
        raise ArgumentError(f"lw.ragged: wanted arrays of numbers of one shape behind the first axis, found {found}")
    return np.concatenate(filled)


def _flat(values: Any, wanted: Record | t.ValueType | None, device: str | None) -> _Flat:
    """All values, checked, on their device."""
    if isinstance(values, RecordArray):
        if wanted is not None:
            raise ArgumentError(f"lw.ragged: kind is for values, and these are records of {values.record.name}")
        return _Flat(values, values.record, len(values))
    where = resolve(device)
    array = values
    if getattr(array, "dtype", None) in _PARTS:  # pairs of floats in memory already
        module = np if isinstance(array, np.ndarray) else array_module("cuda")
        array = module.ascontiguousarray(array)
        if array.ndim != 1:
            raise ArgumentError(f"lw.ragged: complex values come as an array of shape (n,), found {tuple(array.shape)}")
        array = array.view(_PARTS[np.dtype(array.dtype)]).reshape(-1, 2)
    array = brought("lw.ragged", array, where)
    kind = wanted if wanted is not None else _kind_of(array)
    assert not isinstance(kind, Record)
    shape = (kind.length,) if isinstance(kind, t.Vector) else ()
    if array.shape[1:] != shape or not array.ndim:
        raise ArgumentError(
            f"lw.ragged: values of type {kind} have shape {('n', *shape)}, found {tuple(array.shape)}".replace("'", "")
        )
    check_type("lw.ragged", array, kind)
    return _Flat(rounded("lw.ragged", array, t.scalar_of(kind).dtype), kind, len(array))


def _kind_of(array: Any) -> t.ValueType:
    scalar = t.from_dtype(array.dtype)
    if scalar is None or scalar == t.BOOL:
        raise ArgumentError(
            f"lw.ragged holds f32, f64, i32, i64, u32 or vectors of them; found values of {array.dtype}: convert them, or say kind="
        )
    if array.ndim == 1:
        return scalar
    if array.ndim == 2 and 2 <= array.shape[1] <= 4:
        return t.Vector(scalar, array.shape[1])
    raise ArgumentError(
        f"lw.ragged: wanted values of shape (n,), or (n, 2) to (n, 4) for vectors, found {tuple(array.shape)}"
    )


def _offsets(counts: Any, entries: int) -> list[np.ndarray[Any, Any]]:
    """The offset vectors that counts mean, outermost first."""
    if isinstance(counts, tuple) and all(
        np.ndim(to_host(c) if hasattr(c, "dtype") else c) == 1 for c in cast("tuple[Any, ...]", counts)
    ):
        levels = [_whole(c) for c in cast("tuple[Any, ...]", counts)]
    else:
        whole = _whole(counts)
        levels = [
            np.full(int(np.prod(whole.shape[:n], dtype=np.int64)), whole.shape[n], np.int64)
            for n in range(1, whole.ndim)
        ]
        levels.append(whole.reshape(-1))
    for n, (outer, inner) in enumerate(pairwise(levels)):
        if (wanted := int(outer.sum())) != len(inner):
            raise ArgumentError(
                f"lw.ragged: the counts of level {n} add up to {wanted:,} lists, and level {n + 1} has {len(inner):,}"
            )
    total = int(levels[-1].sum()) if levels else 0
    if not levels or total != entries:
        raise ArgumentError(f"lw.ragged: the counts add up to {total:,}, and there are {entries:,} values")
    return [np.concatenate([np.zeros(1, np.int64), np.cumsum(c, dtype=np.int64)]) for c in levels]


def _whole(counts: Any) -> np.ndarray[Any, Any]:
    try:
        found = np.asarray(to_host(counts) if hasattr(counts, "dtype") else counts)
    except Exception as error:  # lists of different lengths, or whatever the user's class raises
        raise ArgumentError(
            f"lw.ragged: counts are one array, or a tuple with an array for each level ({error})"
        ) from error
    if found.dtype.kind not in "iu" and not found.size:
        found = found.astype(np.int64)
    if found.dtype.kind not in "iu" or not found.ndim or (found.size and int(found.min()) < 0):
        raise ArgumentError(f"lw.ragged: counts are whole numbers from 0 on, found {shown(counts)}")
    return found.astype(np.int64)


def _sizes(flat: _Flat, lengths: Sequence[int], like: Any) -> dict[str, int]:
    """Bytes of the flat array and of each offset vector."""
    if isinstance(flat.kind, Record):
        layout = _layout(flat, like)
        size = layout.arrange(flat.kind.leaves).nbytes(max(1, flat.count))
    else:
        scalar, width = t.scalar_of(flat.kind), flat.kind.length if isinstance(flat.kind, t.Vector) else 1
        size = (flat.count + (PAD if scalar.is_float else 0)) * width * scalar.size
    return {"data": size, **{LEVEL.format(n): 8 * length for n, length in enumerate(lengths)}}


def _layout(flat: _Flat, like: Any) -> Any:
    return (flat.values if isinstance(flat.values, RecordArray) else like).layout


def _empty(flat: _Flat, lengths: Sequence[int], device: str, like: Any) -> RaggedArray:
    """An array of these sizes whose memory holds anything."""
    sizes = _sizes(flat, lengths, like)
    kind = flat.kind
    name = kind.name if isinstance(kind, Record) else str(kind)
    pieces = allocate_pieces(device, sizes, f"lists with {flat.count:,} {name}")
    offsets = tuple(pieces[LEVEL.format(n)].view(np.int64) for n in range(len(lengths)))
    if isinstance(kind, Record):
        source = flat.values if isinstance(flat.values, RecordArray) else like
        data: Any = RecordArray(
            kind,
            max(1, flat.count),
            source.layout,
            device,
            pieces["data"],
            source._python_class,  # pyright: ignore[reportPrivateUsage]
        )
    else:
        values = pieces["data"].view(t.scalar_of(kind).dtype)
        data = values.reshape(-1, kind.length) if isinstance(kind, t.Vector) else values
        data = data[: flat.count]
    return RaggedArray(data, offsets, kind, device, pieces.whole, True)


def _made(flat: _Flat, ends: Sequence[Any], device: str, like: Any) -> RaggedArray:
    """An array with these values and offsets."""
    made = _empty(flat, [len(e) for e in ends], device, like)
    for target, source in zip(made.offsets, ends, strict=True):
        target[...] = array_module(device).asarray(source) if is_gpu(device) else source
    if isinstance(flat.kind, Record):
        fields: Mapping[str, Any] = (
            {f.name: getattr(flat.values, f.name) for f in flat.kind}
            if isinstance(flat.values, RecordArray)
            else flat.values
        )
        if flat.count:
            for name, value in fields.items():
                setattr(made.data, name, value)
        return made
    made.data[...] = flat.values
    if t.scalar_of(flat.kind).is_float:
        padding(made)[...] = np.nan
    return made


def padding(array: RaggedArray) -> Any:
    """The values behind the last list, flat: what kernels read in place of a value outside of a list. Whole numbers have none."""
    assert not isinstance(array.kind, Record)
    scalar, width = t.scalar_of(array.kind), array.kind.length if isinstance(array.kind, t.Vector) else 1
    first = len(array.data) * width
    pad = PAD * width if scalar.is_float else 0
    memory = array._memory[: (first + pad) * scalar.size]  # pyright: ignore[reportPrivateUsage]
    return memory.view(scalar.dtype)[first:]


def _awkward(place: str) -> Any:
    try:
        import awkward  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ArgumentError(f"{place} needs the package awkward: pip install awkward") from error
    return awkward


def _from_awkward(values: Any) -> tuple[Any, tuple[Any, ...]]:
    """The flat values and the counts of each level."""
    ak = _awkward("lw.ragged")
    if getattr(values, "fields", None):
        raise ArgumentError(
            "lw.ragged: an awkward array of records; make a record array of its flat fields, and give counts"
        )
    if values.ndim < 2:
        raise ArgumentError("lw.ragged: an awkward array of one axis has no lists; give counts with it")
    if any(ak.any(ak.is_none(values, axis=n), axis=None) for n in range(values.ndim)):
        raise ArgumentError("lw.ragged: the awkward array has missing values; fill or drop them first")
    counts = tuple(
        np.asarray(ak.to_numpy(ak.flatten(ak.num(values, axis=n), axis=None))) for n in range(1, values.ndim)
    )
    flat = ak.to_numpy(ak.flatten(values, axis=None))
    return np.asarray(flat), counts

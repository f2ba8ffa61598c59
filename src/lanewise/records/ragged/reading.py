"""What becomes lists of a ragged array: nested lists, flat values with counts, awkward arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.values import type_of_annotation
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.field_values import brought, check_type, rounded
from lanewise.records.ragged.forms import awkward_module
from lanewise.records.ragged.memory import FlatValues
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import home, module_of, to_host
from lanewise.support.checks import check_unmasked, host_array, shown
from lanewise.support.errors import ArgumentError

_PARTS = {np.dtype(np.complex64): np.float32, np.dtype(np.complex128): np.float64}


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists as they were read: their values, where the lists of each level begin and end, outermost
    first, their device, and records whose layout and class lists without records have.
    """

    flat: FlatValues
    ends: list[np.ndarray[Any, Any]]
    device: str
    like: Any


def read_lists(values: Any, counts: Any, wanted: t.ValueType | None, device: str | None) -> Lists:
    """See `lw.ragged`. wanted: the type of a value."""
    if counts is None and type(values).__module__.partition(".")[0] == "awkward":
        values, counts = _from_awkward(values)
    if counts is not None:
        where = _device_of(device, [values])
        flat = flat_values(values, wanted, where)
        return Lists(flat, offsets_of(counts, flat.count), where, values)
    if isinstance(values, RecordArray) or not isinstance(values, (list, tuple)):
        raise ArgumentError(
            "lw.ragged takes nested lists of arrays, or all values with counts=...; found "
            f"{_described(values)} and no counts"
        )
    levels: list[list[int]] = []
    leaves = _leaves(cast("Sequence[Any]", values), levels, _depth(values, "the list"), "the list")
    where = _device_of(device, leaves)
    flat = flat_values(_joined(leaves, wanted), wanted, where)
    ends = [_ends(np.asarray(c, np.int64)) for c in levels]
    return Lists(flat, ends, where, leaves[0] if leaves else None)


def _device_of(device: str | None, values: Sequence[Any]) -> str:
    """The device of the lists: the one that is given, else that of their values."""
    if device is not None:
        return resolve(device)
    places = {p for v in values if (p := v.device if isinstance(v, RecordArray) else home(v))}
    if len(places) > 1:
        raise ArgumentError(
            f"lw.ragged: the lists lie on {' and '.join(sorted(places))}; give device="
        )
    return places.pop() if places else resolve(None)


def wanted_kind(kind: Any) -> t.ValueType | None:
    """The type of a value that `kind=` names. Raises `ArgumentError` for anything else."""
    if kind is None:
        return None
    asked = type_of_annotation(kind)
    if asked is None or t.scalar_of(asked) in (t.BOOL, *t.STORED):
        raise ArgumentError(
            "lw.ragged: kind is the type of a value, such as lw.f32 or lw.vec2; found "
            f"{shown(kind)}"
        )
    return asked


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
        return not any(
            _is_list(y) or isinstance(y, RecordArray) or getattr(y, "ndim", 0) > 0 for y in x
        )
    return True


def _depth(x: Any, place: str) -> int:
    """Levels of lists above the innermost values: 0 for an array or a list of numbers; -1 for an
    empty list, which fits any depth.
    """
    if not _is_list(x):
        return 0
    if _is_leaf(x):
        return 0 if len(x) else -1
    depths = {d: n for n, y in enumerate(x) if (d := _depth(y, f"{place}[{n}]")) >= 0}
    if len(depths) > 1:
        described = " and ".join(
            f"{place}[{n}] has {d} level{'' if d == 1 else 's'} of lists" for d, n in depths.items()
        )
        raise ArgumentError(
            f"lw.ragged: all lists of a level are as deep as each other; found that {described}"
        )
    return 1 + max(depths, default=0)


def _leaves(
    x: Sequence[Any], levels: list[list[int]], depth: int, place: str, level: int = 0
) -> list[Any]:
    """The innermost lists in order; `levels` takes the lengths of the lists of each level."""
    if depth < 1:
        raise ArgumentError(
            "lw.ragged takes lists of lists, or all values with counts=...; found "
            f"{_described(x)}, which is one list of values"
        )
    while len(levels) < depth:
        levels.append([])
    if depth == 1:
        levels[level].extend(len(y) for y in x)
        return list(x)
    arrays: list[Any] = []
    for n, y in enumerate(x):
        levels[level].append(len(y))
        arrays += _leaves(y, levels, depth - 1, f"{place}[{n}]", level + 1)
    return arrays


def _joined(leaves: list[Any], wanted: Record | t.ValueType | None) -> Any:
    """The innermost lists one after the other."""
    arrays = [a for a in leaves if isinstance(a, RecordArray)]
    if arrays:
        first = arrays[0]
        if len(arrays) < len(leaves) or any(a.record != first.record for a in arrays):
            raise ArgumentError(
                f"lw.ragged: wanted arrays of {first.record.name} in all lists, found others "
                "as well"
            )
        fields = {
            f.name: np.concatenate([to_host(getattr(a, f.name)) for a in arrays])
            for f in first.record
        }
        return RecordArray.from_fields(
            first.record,
            fields,
            layout=first.layout,
            device="cpu",
            python_class=class_of(first),
            host_layout=storage_of(first).layout_of_host,
        )
    filled = [
        host_array("lw.ragged", to_host(a) if hasattr(a, "dtype") else a) for a in leaves if len(a)
    ]
    if not filled:
        if wanted is None or isinstance(wanted, Record):
            return np.zeros(0)
        return np.zeros((0, *t.shape_of(wanted)), t.scalar_of(wanted).dtype)
    shapes = {a.shape[1:] for a in filled}
    if len(shapes) > 1 or any(a.dtype.kind not in "biufc" for a in filled):
        described = ", ".join(sorted({f"{a.dtype} {a.shape}" for a in filled}))
        raise ArgumentError(
            "lw.ragged: wanted arrays of numbers of one shape after the first axis, found "
            f"{described}"
        )
    return np.concatenate(filled)


def flat_values(values: Any, wanted: Record | t.ValueType | None, device: str) -> FlatValues:
    """All values, checked, on their device."""
    if isinstance(values, RecordArray):
        if wanted is not None:
            raise ArgumentError(
                f"lw.ragged: kind is for values, and these are records of {values.record.name}"
            )
        return FlatValues(values, values.record, len(values))
    array = values
    if getattr(array, "dtype", None) in _PARTS:  # pairs of floats in memory already
        array = module_of(array).ascontiguousarray(array)
        if array.ndim != 1:
            raise ArgumentError(
                "lw.ragged: complex values come as an array of shape (n,), found "
                f"{tuple(array.shape)}"
            )
        array = array.view(_PARTS[np.dtype(array.dtype)]).reshape(-1, 2)
    array = brought("lw.ragged", array, device)
    kind = wanted if wanted is not None else _kind_of(array)
    assert not isinstance(kind, Record)
    shape = t.shape_of(kind)
    if array.shape[1:] != shape or not array.ndim:
        raise ArgumentError(
            f"lw.ragged: values of type {kind} have shape {('n', *shape)}, found "
            f"{tuple(array.shape)}".replace("'", "")
        )
    check_type("lw.ragged", array, kind)
    return FlatValues(rounded("lw.ragged", array, t.scalar_of(kind).dtype), kind, len(array))


def _kind_of(array: Any) -> t.ValueType:
    scalar = t.from_dtype(array.dtype)
    if scalar is None or scalar in (t.BOOL, *t.STORED):
        raise ArgumentError(
            "lw.ragged holds f32, f64, i32, i64, u32 or vectors of them; found values of "
            f"{array.dtype}: convert them, or say kind="
        )
    if array.ndim == 1:
        return scalar
    if array.ndim == 2 and 2 <= array.shape[1] <= 4:
        return t.Vector(scalar, array.shape[1])
    raise ArgumentError(
        "lw.ragged: wanted values of shape (n,), or (n, 2) to (n, 4) for vectors, found "
        f"{tuple(array.shape)}"
    )


def offsets_of(counts: Any, entries: int) -> list[np.ndarray[Any, Any]]:
    """The offset vectors that counts mean, outermost first."""
    if isinstance(counts, tuple) and all(
        np.ndim(to_host(c) if hasattr(c, "dtype") else c) == 1
        for c in cast("tuple[Any, ...]", counts)
    ):
        levels = [_whole(c) for c in cast("tuple[Any, ...]", counts)]
    else:
        whole = _whole(counts)
        levels = [
            np.full(int(np.prod(whole.shape[:n], dtype=np.int64)), whole.shape[n], np.int64)
            for n in range(1, whole.ndim)
        ]
        levels.append(whole.reshape(-1))
    ends = [_ends(c) for c in levels]
    for n, (outer, inner) in enumerate(pairwise(ends)):
        if (lists := int(outer[-1])) != len(inner) - 1:
            raise ArgumentError(
                f"lw.ragged: the counts of level {n} add up to {lists:,} lists, and level {n + 1} "
                f"has {len(inner) - 1:,}"
            )
    total = int(ends[-1][-1]) if levels else 0
    if not levels or total != entries:
        raise ArgumentError(
            f"lw.ragged: the counts add up to {total:,}, and there are {entries:,} values"
        )
    return ends


def _ends(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where lists of these lengths begin, and the last one ends."""
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    if int(ends.min()) < 0:  # the first sum of two counts that wraps is negative
        raise ArgumentError(
            "lw.ragged: the counts add up to 2**63 or more; wanted as many as there are values"
        )
    return ends


def _whole(counts: Any) -> np.ndarray[Any, Any]:
    check_unmasked("lw.ragged: counts", counts)
    try:
        array = np.asarray(to_host(counts) if hasattr(counts, "dtype") else counts)
    except Exception as error:  # lists of different lengths, or whatever the user's class raises
        raise ArgumentError(
            f"lw.ragged: counts are one array, or a tuple with an array for each level ({error})"
        ) from error
    if array.dtype.kind not in "iu" and not array.size:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or not array.ndim or (array.size and int(array.min()) < 0):
        raise ArgumentError(f"lw.ragged: counts are integers from 0 on, found {shown(counts)}")
    if array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ArgumentError(f"lw.ragged: counts are below 2**63, found {int(array.max()):,}")
    return array.astype(np.int64)


def _from_awkward(values: Any) -> tuple[Any, tuple[Any, ...]]:
    """The flat values and the counts of each level."""
    ak = awkward_module("lw.ragged")
    if getattr(values, "fields", None):
        raise ArgumentError(
            "lw.ragged: an awkward array of records; make a record array of its flat fields, and "
            "give counts"
        )
    if values.ndim < 2:
        raise ArgumentError(
            "lw.ragged: an awkward array of one axis has no lists; give counts with it"
        )
    if any(ak.any(ak.is_none(values, axis=n), axis=None) for n in range(values.ndim)):
        raise ArgumentError(
            "lw.ragged: the awkward array has missing values; fill or drop them first"
        )
    counts = tuple(
        np.asarray(ak.to_numpy(ak.flatten(ak.num(values, axis=n), axis=None)))
        for n in range(1, values.ndim)
    )
    flat = ak.to_numpy(ak.flatten(values, axis=None))
    return np.asarray(flat), counts

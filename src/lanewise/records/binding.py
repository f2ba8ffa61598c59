"""What calls bind of an array of records: where its records are in memory, and which side it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lanewise.records.arrays import RecordArray, storage_of
from lanewise.records.field_views import FieldViews
from lanewise.records.storage import Storage
from lanewise.records.two_sides import MemorySide
from lanewise.support.errors import ArgumentError


def places_of(array: RecordArray) -> FieldViews:
    """Where the records of an array are, for kernels, which run over one memory: see
    `check_usable`. It is another object after every change in length: who has bound memory sees
    that by it.

    Raises `ArgumentError` for a view of an array that was changed in length since.
    """
    storage = array._storage  # pyright: ignore[reportPrivateUsage]
    places = storage.placement if storage.whole is None else storage.places
    return places  # pyright: ignore[reportReturnType]


def side_of(array: RecordArray) -> MemorySide:
    """Which side of its array this is: who reads or changes fields says so to it, see
    `MemorySide.read` and `MemorySide.write`.
    """
    return array._storage.side  # pyright: ignore[reportPrivateUsage]


def side_at(array: RecordArray, places: FieldViews | None) -> MemorySide | None:
    """`side_of` an array whose records are there still, else None."""
    storage = array._storage  # pyright: ignore[reportPrivateUsage]
    seen = storage.placement if storage.whole is None else storage.places
    return storage.side if seen is places else None


def open_owners(arrays: Iterable[RecordArray]) -> list[Storage]:
    """The storages of these arrays, each once, about whose layout something is open."""
    owners = {id(s): s for r in arrays if (s := storage_of(r).owner).open is not None}
    return [s for s in owners.values() if s.open is not None and not s.open.settled]


def await_layout(values: Iterable[Any], calls: Any) -> bool:
    """Whether a call of `calls` chooses the layout of arrays among its arguments, or looks again
    whether it suits.
    """
    for value in values:
        if type(value) is RecordArray:
            left = storage_of(value).owner.open
            if left is not None and left.awaits(calls):
                return True
    return False


def keep_layouts(arrays: Iterable[RecordArray], why: str) -> None:
    """Never move these arrays to another layout from now on."""
    for storage in open_owners(arrays):
        storage.settle(why)


def layout_reasons(records: Mapping[str, RecordArray]) -> dict[str, str]:
    """Of arrays whose layout kernels chose: why it is as it is, by parameter."""
    left = {n: storage_of(r).owner.open for n, r in records.items()}
    return {n: o.reason for n, o in left.items() if o is not None}


def check_usable(array: RecordArray, kernel: str, name: str) -> None:
    """Raise `ArgumentError` where kernels cannot run over the records as they lie."""
    places = storage_of(array).places
    if not places.is_regular:
        why = places.irregular(array.record.name, array.layout)
        if not isinstance(places, FieldViews):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"{kernel}: {name!r}: {why}; kernels of this kind, and sums of a call, run over "
                "arrays in one memory, where .to(device) brings it; lw.sum takes the results of "
                "calls on a mesh"
            )
        raise ArgumentError(
            f"{kernel}: {name!r}: {why}; kernels run over whole blocks. Pass a .copy() of it, and "
            "assign that to the slice if the kernel changes it, or choose a layout without blocks"
        )

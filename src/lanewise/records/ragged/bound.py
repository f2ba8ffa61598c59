"""What kernels bind of ragged arrays, and how calls notice that they have changed."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from lanewise.records.placement import RecordPlacement
from lanewise.records.ragged.array import RaggedArray
from lanewise.records.storage import Storage
from lanewise.records.two_sides import EVERY, MemorySide
from lanewise.support.errors import ArgumentError


def padding(array: RaggedArray) -> Any:
    """The values after the last list, flat: what kernels read instead of a value outside of a
    list. Integers have none.
    """
    flat = array._flat  # pyright: ignore[reportPrivateUsage]
    return flat.raw()[len(flat.storage) :].reshape(-1)


def views(array: RaggedArray) -> tuple[Any, Any, Any]:
    """What a kernel reads of a whole array: where innermost lists begin and end, and its records,
    or its values with `padding`, which are up to date. What it reads of records says who calls it.
    """
    flat = array._flat  # pyright: ignore[reportPrivateUsage]
    if flat.array is None:
        flat.storage.side.read(EVERY)
    if array._views is None:  # pyright: ignore[reportPrivateUsage]
        ends = array.offsets[-1]
        values = flat.raw() if flat.array is None else flat.array
        array._views = ends[:-1], ends[1:], values  # pyright: ignore[reportPrivateUsage]
    return array._views  # pyright: ignore[reportPrivateUsage]


def check_of(array: RaggedArray, kernel: str, name: str) -> Callable[[], None]:
    """What a bound call asks before it runs: that no lists were added since, and the newest values;
    arrays of records bring their fields themselves. It raises `ArgumentError`.
    """
    storage = array._flat.storage  # pyright: ignore[reportPrivateUsage]
    bound = weakref.ref(storage), storage.placement, weakref.ref(array), array.offsets
    return partial(_check, *bound, None if array._flat.array else storage.side, kernel, name)  # pyright: ignore[reportPrivateUsage]


def _check(
    stored: weakref.ref[Storage],
    places: RecordPlacement,
    bound: weakref.ref[RaggedArray],
    offsets: tuple[Any, ...],
    side: MemorySide | None,
    kernel: str,
    name: str,
) -> None:
    array, storage = bound(), stored()
    if (array is not None and array.offsets is not offsets) or (
        storage is not None and storage.placement is not places
    ):
        raise ArgumentError(
            f"{kernel}: {name!r} had {len(offsets[0]) - 1:,} lists when a call was bound to it, "
            "and lists were added since; bind the call again"
        )
    if side is not None:
        side.read(EVERY)


def entries(array: RaggedArray) -> int:
    """How many values or records all lists have together."""
    return array._entries()  # pyright: ignore[reportPrivateUsage]


def storage_of_lists(array: RaggedArray) -> Storage:
    """That of its records, or of its values."""
    return array._flat.storage  # pyright: ignore[reportPrivateUsage]


def version(array: RaggedArray) -> int:
    """Another one after every change of its lists."""
    return array._version  # pyright: ignore[reportPrivateUsage]

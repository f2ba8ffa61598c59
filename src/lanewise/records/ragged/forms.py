"""Ragged arrays in the forms of other libraries: nested lists of Python, arrays of awkward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from lanewise.support.errors import ArgumentError
from lanewise.support.installation import install


def nested_lists(flat: Any, ends: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Lists of values, or of dicts for fields by their names."""
    if isinstance(flat, dict):
        fields = {n: a.tolist() for n, a in cast("dict[str, Any]", flat).items()}
        items: list[Any] = [
            dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)
        ]
    else:
        items = flat.tolist()
    for offsets in reversed(ends):
        items = [
            items[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        ]
    return items


def awkward_array(flat: Any, ends: Sequence[np.ndarray[Any, Any]]) -> Any:
    """See `RaggedArray.awkward`."""
    ak = awkward_module("RaggedArray.awkward")
    content = _contents(ak, flat)
    for offsets in reversed(ends):
        content = ak.contents.ListOffsetArray(ak.index.Index64(offsets), content)
    return ak.Array(content)


def _contents(ak: Any, flat: Any) -> Any:
    """Values, or records of fields by their names; records within records lie within them."""
    if not isinstance(flat, dict):
        return ak.contents.NumpyArray(flat)
    held: dict[str, Any] = {}
    for name, values in cast("dict[str, Any]", flat).items():
        own, dot, rest = name.partition(".")
        if dot:
            held.setdefault(own, {})[rest] = values
        else:
            held[own] = values
    return ak.contents.RecordArray([_contents(ak, x) for x in held.values()], list(held))


def awkward_module(place: str) -> Any:
    """The package awkward; raises `ArgumentError` where it is not installed."""
    try:
        import awkward  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ArgumentError(f"{place} needs the package awkward: {install('ragged')}") from error
    return awkward

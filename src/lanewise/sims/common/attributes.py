"""The parameters of a run as attributes of an HDF5 file: one attribute a value, nested names joined
by dots.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from lanewise.support.articles import an
from lanewise.support.errors import ArgumentError

MOST_VALUES = 400
"""HDF5 keeps attributes of up to 4 KiB under a sum.

What is larger is data and belongs into a dataset.
"""


def attributes(parameters: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values that HDF5 can hold.

    {"collision": {"name": "trt", "magic": 0.1875}} becomes collision.name and collision.magic;
    dataclasses are taken as dictionaries, sequences of numbers as arrays, paths and enum members as
    text, and None as the text "none".

    Raises:
        ArgumentError: a value is of another type, or an array has more than MOST_VALUES values.
    """
    for key, value in parameters.items():
        name = f"{prefix}{key}"
        if is_dataclass(value) and not isinstance(value, type):
            value = {field.name: getattr(value, field.name) for field in fields(value)}
        if isinstance(value, Mapping):
            yield from attributes(value, f"{name}.")
        else:
            yield name, _attribute(name, value)


def _attribute(name: str, value: Any) -> Any:
    match value:
        case None:
            return "none"
        case enum.Enum():
            return value.name
        case str() | bool() | int() | float() | np.generic():
            return value
        case os.PathLike():
            return os.fspath(value)
        case np.ndarray() | Sequence():
            return _array(name, value)
        case _:
            kind = type(value).__name__
            raise ArgumentError(
                f"parameter {name} is {an(kind)}; wanted a number, text, or a few of them"
            )


def _array(name: str, value: Any) -> Any:
    if any(isinstance(entry, str) for entry in value):
        return ",".join(map(str, value))
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"parameter {name} is no array of numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"parameter {name} holds {array.dtype}; wanted numbers or text")
    if array.size > MOST_VALUES:
        raise ArgumentError(
            f"parameter {name} has {array.size:,} values; wanted at most {MOST_VALUES:,}"
        )
    return array
